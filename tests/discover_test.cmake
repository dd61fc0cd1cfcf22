# What discover.cmake makes of a program's list: every case is in one entry, and no entry is without.
#   cmake -DFOLDER=... -P discover_test.cmake
file(MAKE_DIRECTORY "${FOLDER}")
file(WRITE "${FOLDER}/program" "#!/bin/sh
cat << 'END'
<TestCase name=\"short, one\" filename=\"/s/tests/a_test.cpp\" line=\"1\"/>
<TestCase name=\"long, one\" filename=\"/s/tests/a_test.cpp\" line=\"2\"/>
<TestCase name=\"long &amp; alone\" filename=\"/s/tests/b_test.cpp\" line=\"1\"/>
<TestCase name=\"long too\" filename=\"/s/tests/b_test.cpp\" line=\"2\"/>
<TestCase name=\"short too\" filename=\"/s/tests/c_test.cpp\" line=\"1\"/>
END
")
file(CHMOD "${FOLDER}/program" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE "${FOLDER}/long.cmake"
  "set(long_cases \"9 long, one\" \"5 long & alone\" \"4 long too\")\n")
execute_process(COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=${FOLDER}/program" -DSOURCE=/s
  "-DLONG=${FOLDER}/long.cmake" "-DOUT=${FOLDER}/found.cmake"
  -P "${CMAKE_CURRENT_LIST_DIR}/discover.cmake" COMMAND_ERROR_IS_FATAL ANY)

set(entries "")
function(add_test name program)
  set(entries ${entries} "${name}: ${ARGN}" PARENT_SCOPE)
endfunction()
function(set_tests_properties)
endfunction()
include("${FOLDER}/found.cmake")
set(expected
  "long, one: --test-case=long\\, one"
  "long & alone: --test-case=long & alone"
  "long too: --test-case=long too"
  "tests/a_test.cpp: --source-file=*/tests/a_test.cpp;--test-case-exclude=long\\, one"
  "tests/c_test.cpp: --source-file=*/tests/c_test.cpp")
if(NOT "${entries}" STREQUAL "${expected}")
  message(FATAL_ERROR "found\n${entries}\nexpected\n${expected}")
endif()
