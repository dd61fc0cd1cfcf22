# What the installed program has to say to shells and to man(1), in its own words; lockstep_emulator
# runs it where it is of another machine than this one.
function(lockstep_words file)
  set(path "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${lockstep_share}/${file}")
  cmake_path(GET path PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND ${lockstep_emulator} "${lockstep_program}" ${ARGN}
    OUTPUT_FILE "${path}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()
lockstep_words(bash-completion/completions/lockstep completion bash)
lockstep_words(zsh/site-functions/_lockstep completion zsh)
lockstep_words(fish/vendor_completions.d/lockstep.fish completion fish)
lockstep_words(man/man1/lockstep.1 manual)
execute_process(COMMAND ${lockstep_emulator} "${lockstep_program}" manual OUTPUT_VARIABLE manual
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n\\.TP\n\\\\fB[a-z]+(\\\\-[a-z]+)*" heads "${manual}")
foreach(head IN LISTS heads)
  string(REGEX REPLACE "^\n\\.TP\n.fB" "" command "${head}")
  string(REPLACE "\\" "" command "${command}")
  lockstep_words("man/man1/lockstep-${command}.1" manual "${command}")
endforeach()
