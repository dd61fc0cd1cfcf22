# Writes what ctest runs of a program of doctest's: one entry for each file of tests, and one for each
# case that takes long (LONG: a file that sets long_cases). Starting the program takes as long as most
# of its cases do, and there are thousands of these.
#   cmake -DPROGRAM=... -DSOURCE=... -DLONG=... -DOUT=... -P discover.cmake
include("${LONG}")
execute_process(COMMAND "${PROGRAM}" --list-test-cases --no-skip --reporters=xml
  OUTPUT_VARIABLE listed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --list-test-cases: ${status}\n${listed}")
endif()

string(REGEX MATCHALL "<TestCase name=" cases "${listed}")
list(LENGTH cases count)
if(count EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} lists no test")
endif()

# Files in the order in which they are listed; of each, its long cases, to be left out of its entry.
string(REGEX MATCHALL "filename=\"[^\"]*\"" files "${listed}")
list(REMOVE_DUPLICATES files)
set(entries "")
foreach(long_case IN LISTS long_cases)
  string(REGEX MATCH "^([0-9]+) (.*)$" matched "${long_case}")
  set(cost "${CMAKE_MATCH_1}")
  set(name "${CMAKE_MATCH_2}")
  string(REPLACE "&" "&amp;" written "${name}")
  string(REPLACE "<" "&lt;" written "${written}")
  string(REPLACE "\"" "&quot;" written "${written}")
  string(FIND "${listed}" "<TestCase name=\"${written}\" filename=\"" at)
  if(at EQUAL -1)  # some need what is not everywhere
    message(STATUS "no such case in this build: ${name}")
    continue()
  endif()
  string(SUBSTRING "${listed}" ${at} 1000 line)
  string(REGEX MATCH "filename=\"([^\"]*)\"" file "${line}")
  string(REPLACE "," "\\," filter "${name}")
  list(FIND files "${file}" place)
  if(DEFINED without_${place})
    string(APPEND without_${place} ",")
  endif()
  string(APPEND without_${place} "${filter}")
  string(APPEND entries "add_test([==[${name}]==] [==[${PROGRAM}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties([==[${name}]==] PROPERTIES COST ${cost})\n")
endforeach()
set(place 0)
foreach(file IN LISTS files)
  string(REGEX REPLACE "^filename=\"(.*)\"$" "\\1" path "${file}")
  file(RELATIVE_PATH name "${SOURCE}" "${path}")
  set(more "")
  if(DEFINED without_${place})
    set(more " [==[--test-case-exclude=${without_${place}}]==]")
  endif()
  string(APPEND entries
    "add_test([==[${name}]==] [==[${PROGRAM}]==] [==[--source-file=*/${name}]==]${more})\n")
  math(EXPR place "${place} + 1")
endforeach()
file(WRITE "${OUT}" "${entries}")
message(STATUS "${count} cases in ${place} files")
