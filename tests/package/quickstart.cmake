# Installs a build folder that holds what `cmake --build --target lockstep` leaves in it, with and
# without lockstep-calibrate among the project's targets: as tools/quickstart, then `cmake --install`.
# The libraries and the program are copies of BUILD's.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

find_program(NVCC nvcc HINTS /usr/local/cuda/bin)
set(choices OFF)
if(NVCC)
  list(APPEND choices ON)
endif()
set(folder "${BUILD}/quickstart")
file(REMOVE_RECURSE "${folder}")
# In one folder: what CMake has found need not be looked for again.
foreach(cuda IN LISTS choices)
  file(REMOVE_RECURSE "${folder}/prefix")
  run("${CMAKE_COMMAND}" -E env "CUDACXX=${NVCC}" "${CMAKE_COMMAND}" -G Ninja -S "${SOURCE}"
    -B "${folder}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
    -DCMAKE_BUILD_TYPE=Debug -DLOCKSTEP_BENCH=OFF -DLOCKSTEP_TESTS=OFF "-DLOCKSTEP_CUDA=${cuda}"
    "-DTBB_DIR=${TBB_DIR}")  # ThreadSanitizer's own lies beside the program's path
  file(COPY "${BUILD}/liblockstep.a" "${BUILD}/liblockstep_study.a" "${BUILD}/lockstep"
    DESTINATION "${folder}")
  run("${CMAKE_COMMAND}" --install "${folder}" --prefix "${folder}/prefix")
  run("${folder}/prefix/bin/lockstep" show gpu h100_sxm5_80gb)
  if(EXISTS "${folder}/prefix/bin/lockstep-calibrate")
    message(FATAL_ERROR "lockstep-calibrate was installed and not built")
  endif()
endforeach()
file(REMOVE_RECURSE "${folder}")
