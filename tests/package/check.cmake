# Installs BUILD beside it, builds the project in this folder against the copy, and runs its programs
# and the installed one. All have to read the presets of the installed copy.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Training steps, which the command line, the library, Python and the page of `explore` all answer: the
# tests of each read this list. Then what is no step, which a page has not.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/twenty.txt" twenty)
list(APPEND twenty llama2-70b-h100-a100 rsc1-reliability power/gpt3-175b-512-h100
  congestion/two-jobs-one-spine rl/grpo-llama3-8b-colocated claims/h100-memory-bandwidth
  queue/slurm-recorded serving/llama3-70b-h100-chat)

set(prefix "${BUILD}/package/prefix")
file(REMOVE_RECURSE "${BUILD}/package")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")

# Each block of C++ of CONTRIBUTING.md as a file of its own. Written as it is, and found by its fences:
# a list would lose its semicolons.
file(READ "${SOURCE}/CONTRIBUTING.md" rest)
set(examples 0)
foreach(number RANGE 1 99)
  string(FIND "${rest}" "\n```cpp\n" begin)
  if(begin EQUAL -1)
    break()
  endif()
  math(EXPR begin "${begin} + 8")
  string(SUBSTRING "${rest}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```\n" end)
  string(SUBSTRING "${rest}" 0 ${end} example)
  set(examples ${number})
  file(WRITE "${BUILD}/package/examples/${examples}.cpp" "${example}\n")
endforeach()
if(examples LESS 4)
  message(FATAL_ERROR "found ${examples} examples in CONTRIBUTING.md; allowed: those that are to compile, 4 or more")
endif()

if(FUZZ)  # the library is instrumented, so its user has to link the runtimes
  string(APPEND FLAGS " -fsanitize=address,undefined")
endif()
run("${CMAKE_COMMAND}" -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}" -B "${BUILD}/package/consumer"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  -DCMAKE_BUILD_TYPE=Debug)
run("${CMAKE_COMMAND}" --build "${BUILD}/package/consumer")
set(presets "${prefix}/share/lockstep/presets")
run("${BUILD}/package/consumer/consumer")
if(NOT output MATCHES "^${presets}/")
  message(FATAL_ERROR "a program that links the package reads the presets of ${output}")
endif()
run("${BUILD}/package/consumer/host")
run("${BUILD}/package/consumer/measured")
run("${BUILD}/package/consumer/extensions")
run("${BUILD}/package/consumer/answer" "${prefix}/share/lockstep/scenarios/llama3-405b-54days.json")
if(NOT output MATCHES "goodput 0\\.[0-9]+\n.*owned_usd [0-9.e+]+\n")
  message(FATAL_ERROR "a program that links the package gets no answer by name:\n${output}")
endif()

# Scenarios of all kinds have one answer, byte for byte: the library's and the program's, which
# says its version besides. Sanitized they would take as long as many tests, and print the same.
if(NOT FUZZ)
  list(TRANSFORM twenty REPLACE "(.+)" "${prefix}/share/lockstep/scenarios/\\1.json")
  run("${BUILD}/package/consumer/same" ${twenty})
  set(of_library "${output}")
  set(of_program "")
  foreach(scenario IN LISTS twenty)
    run("${prefix}/bin/lockstep" run "${scenario}" --format json)
    string(REGEX REPLACE "\n  \"lockstep_version\": \"[^\"]*\"," "" output "${output}")
    string(APPEND of_program "${output}")
  endforeach()
  if(NOT of_library STREQUAL of_program)
    message(FATAL_ERROR "a program that links the package gets other answers than lockstep run gives")
  endif()
  # Collectives, traffic, searches and plans have the same numbers, under the same names.
  foreach(question IN ITEMS "comm comm/allreduce-dgxh100" "comm comm/allreduce-nvl72-2-racks"
      "comm comm/incast-32" "comm comm/checkpoint-beside-rings" "tune bloom-176b"
      "tune llama3-8b-b200" "plan plans/train-70b-15t-tokens --samples 20"
      "plan plans/train-70b-three-regions --samples 20")
    separate_arguments(question)
    list(POP_FRONT question command scenario)
    set(scenario "${prefix}/share/lockstep/scenarios/${scenario}.json")
    set(printed "${BUILD}/package/printed.json")
    execute_process(COMMAND "${prefix}/bin/lockstep" ${command} "${scenario}" ${question} --format json
      OUTPUT_FILE "${printed}" ERROR_VARIABLE errors COMMAND_ERROR_IS_FATAL ANY)
    run("${BUILD}/package/consumer/searches" ${command} "${scenario}" "${printed}")
  endforeach()
endif()

# The same without the source tree, where one may hide it.
execute_process(COMMAND unshare --mount true RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 0)
  file(MAKE_DIRECTORY "${BUILD}/package/empty")
  set(hide "mount --bind '${BUILD}/package/empty' '${SOURCE}/models'")
  string(APPEND hide " && mount --bind '${BUILD}/package/empty' '${SOURCE}/topologies'")
  run(unshare --mount sh -c "${hide} && '${BUILD}/package/consumer/consumer'")
  run(unshare --mount sh -c "${hide} && '${BUILD}/package/consumer/host'")
  run(unshare --mount sh -c "${hide} && '${prefix}/bin/lockstep' list models")
endif()

file(COPY_FILE "${presets}/gpus/h100_sxm5_80gb.json" "${presets}/gpus/only_in_the_copy.json")
run("${prefix}/bin/lockstep" list gpus)
if(NOT output MATCHES "only_in_the_copy")
  message(FATAL_ERROR "the installed program does not read ${presets}:\n${output}")
endif()
run("${prefix}/bin/lockstep" run "${prefix}/share/lockstep/scenarios/llama3-405b-16k.json")
file(READ "${prefix}/share/man/man1/lockstep-compare.1" manual)
if(manual MATCHES "\nlockstep [^\n]*scenarios/" OR NOT manual MATCHES "\nlockstep compare llama3")
  message(FATAL_ERROR "manual pages name files that are not installed there:\n${manual}")
endif()
foreach(completion IN ITEMS bash-completion/completions/lockstep zsh/site-functions/_lockstep)
  file(READ "${prefix}/share/${completion}" script)
  if(NOT script MATCHES "lockstep list|_lockstep_names")
    message(FATAL_ERROR "no completion in ${completion}")
  endif()
endforeach()
