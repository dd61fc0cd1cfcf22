#include "sim/scenario/named_jobs.hpp"

#include <doctest/doctest.h>
#include <string>

namespace lockstep {

TEST_CASE("NamedJobs: five by name, then how many more") {
  NamedJobs jobs;
  CHECK(jobs.words() == "0 jobs");
  CHECK(jobs.names().empty());
  jobs.add("7");
  CHECK(jobs.words() == "1 job (7)");
  for (const char* name : {"8_1", "8_2", "9", "10"}) jobs.add(name);
  CHECK(jobs.words() == "5 jobs (7, 8_1, 8_2, 9, 10)");
  jobs.add("11");
  CHECK(jobs.count() == 6);
  CHECK(jobs.names() == "7, 8_1, 8_2, 9, 10, and 1 more");
}

}  // namespace lockstep
