#include "tools/console/assertion.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tools/console/options.hpp"
#include "tools/views/run/figure_text.hpp"

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

TEST_CASE("a bound has the unit of its number, or one that such a number can have") {
  const nlohmann::ordered_json result{
      {"step_s", 6.5},    {"peak_memory_gib", 70},   {"site_w", 1.25e6},        {"energy_j", 7.2e9},
      {"price_usd", 5e6}, {"nic_bytes_per_s", 50e9}, {"ttft_s", {{"p99", 0.3}}}};
  const auto misses = [&result](const std::string& text) {
    return missed(parse_assertion(text), result).has_value();
  };
  for (const char* kept :
       {"step_s<=6500 ms", "step_s>0.1min", "peak_memory_gib==70 GiB", "peak_memory_gib<76 GB",
        "site_w>=1.25 MW", "energy_j==2 MWh", "price_usd<=5 M USD", "price_usd==5000 k USD",
        "nic_bytes_per_s==400 Gb/s", "ttft_s.p99<0.5 s"}) {
    CAPTURE(kept);
    CHECK_FALSE(misses(kept));
  }
  for (const char* broken : {"step_s<6500 ms", "peak_memory_gib<69 GiB", "site_w<1.2 MW",
                             "energy_j>2 MWh", "price_usd<5 M USD", "ttft_s.p99<299 ms"}) {
    CAPTURE(broken);
    CHECK(misses(broken));
  }
  CHECK_THROWS_WITH_AS(
      parse_assertion("step_s<40 %"),
      "--assert: found \"step_s<40 %\"; allowed: a number, or one with a unit that "
      "\"step_s\" can have: s, ms, us, ns, min, h, d",
      UsageError);
  CHECK_THROWS_WITH_AS(parse_assertion("mfu<4 ms"),
                       "--assert: found \"mfu<4 ms\"; allowed: a number, or one with %: the name "
                       "\"mfu\" ends in no unit, as \"step_s\" does",
                       UsageError);
  CHECK_THROWS_WITH_AS(
      parse_assertion("x_celsius<4 C"),
      "--assert: found \"x_celsius<4 C\"; allowed: a number without a unit for \"x_celsius\"",
      UsageError);
}

TEST_CASE("a bound that is missed by little is said with the digits that show it") {
  const nlohmann::ordered_json result{{"mfu", 0.400000003}};
  CHECK(missed(parse_assertion("mfu<=40 %"), result).value() ==
        "assertion missed: mfu<=40 %: mfu is 0.400000003, above by 3e-09 (7.5e-07 %)");
  CHECK(missing_text("mfu", 0.400003, 0.4) == "40.0003 %");
  CHECK(missing_text("mfu", 0.413, 0.4) == "41.3 %");
  CHECK(missing_text("facility_mean_w", 1.2000001e6, 1.2e6) == "1.2000001 MW");
  CHECK(missing_text("step_s", 0.0059999, 0.006) == "5.9999 ms");
  CHECK(missing_text("site_excess_w", -5740, 0) == "-5,740 W");
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
