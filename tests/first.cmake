# Read by ctest after the list of tests: the long ones start first, so that no core waits for the last.
# From nothing ctest doesn't know yet how long they take.
foreach(long_test
    "random scenarios: no law is broken"
    "agreement: run, sweep, compare and tune of random jobs, and any order of their keys"
    "opensm: routes 1,024 hosts of a three-layer tree as we do, entry by entry"
    "published runs: where nobody says what ran, the neutral stack is not far off"
    "answer: the output of `run` fits the schema, and its scenario gives the same answer")
  set_tests_properties("${long_test}" PROPERTIES COST 60)
endforeach()
