#include "tools/console/assertion.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tools/console/options.hpp"

using namespace lockstep;

namespace {

const nlohmann::ordered_json kResult{{"mfu", 0.391}, {"step_s", 6.5}, {"gpus", 16}, {"name", "x"}};

std::optional<std::string> miss(const std::string& text) {
  return missed(parse_assertion(text), kResult);
}

}  // namespace

TEST_CASE("assertions: each operator holds on its side of the bound and not on the other") {
  for (const char* kept : {"mfu>=0.391", "mfu<=0.391", "mfu==0.391", "mfu>0.390999", "mfu<0.391001",
                           " mfu >= 39 % ", "gpus==16"}) {
    CAPTURE(kept);
    CHECK_FALSE(miss(kept));
  }
  for (const char* broken :
       {"mfu>=0.391001", "mfu<=0.390999", "mfu==0.3911", "mfu>0.391", "mfu<0.391", "gpus==17"}) {
    CAPTURE(broken);
    CHECK(miss(broken));
  }
}

TEST_CASE("a missed assertion says by how much") {
  CHECK(miss("mfu>=0.40").value() ==
        "assertion missed: mfu>=0.40: mfu is 0.391000, below by 0.00900 (2.25 %)");
  CHECK(miss("step_s<6").value() ==
        "assertion missed: step_s<6: step_s is 6.50000, above by 0.500 (8.33 %)");
  CHECK(miss("step_s<6.5").value() ==
        "assertion missed: step_s<6.5: step_s is 6.50000, exactly at the bound");
}

TEST_CASE("assertions that cannot be read or name no number say what would do") {
  CHECK_THROWS_WITH_AS(
      parse_assertion("mfu=>0.4"),
      "--assert: found \"mfu=>0.4\"; allowed: FIELD OPERATOR NUMBER with an operator "
      "of >=, <=, >, <, ==, such as \"mfu>=0.40\"",
      UsageError);
  CHECK_THROWS_AS(parse_assertion("mfu>=nan"), UsageError);
  CHECK_THROWS_AS(parse_assertion("mfu>="), UsageError);
  CHECK_THROWS_AS(parse_assertion(">=1"), UsageError);
  CHECK_THROWS_AS(parse_assertion(""), UsageError);
  CHECK_THROWS_WITH_AS(miss("mfuu>1"),
                       "--assert \"mfuu>1\": unknown field \"mfuu\"; allowed: mfu, step_s, gpus. "
                       "Did you mean mfu?",
                       UsageError);
  CHECK_THROWS_AS(miss("name==1"), UsageError);
}
