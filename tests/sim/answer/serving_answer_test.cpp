// The answer to a service: what a mean of no requests is.
#include "sim/answer/serving_answer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/scenario/read_serving.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// The answer to 20 requests with prompts and answers of so many tokens.
nlohmann::ordered_json answer_of_requests(int input, int output) {
  const std::string text = fmt::format(R"({{
    "model": "llama3_8b", "cluster": {{"node": "dgx_h100", "nodes": 1}},
    "serving": {{
      "load": {{"rate": 1, "requests": 20, "input": {{"mean": {}}}, "output": {{"mean": {}}}}},
      "pools": {{"both": {{"replicas": 1}}}}
    }}
  }})",
                                       input, output);
  ServingSpec spec = read_serving(JsonCursor::parse("s.json", text), test::presets());
  const ServingReport report = simulate_serving(spec);
  return serving_json({.spec = spec, .report = report, .written = {}});
}

}  // namespace

TEST_CASE("serving answer: times of no requests are null, those of one token have none behind it") {
  const nlohmann::ordered_json none = answer_of_requests(10'000'000, 100);
  REQUIRE(none.at("served") == 0);
  const nlohmann::ordered_json one = answer_of_requests(1000, 1);
  REQUIRE(one.at("served") == 20);
  for (const char* key : {"tpot_mean_s", "tpot_p99_s", "tokens_per_s_per_user"}) {
    CAPTURE(key);
    CHECK(none.at(key).is_null());
    CHECK(one.at(key).is_null());
  }
  for (const char* key : {"ttft_mean_s", "ttft_p99_s"}) {
    CAPTURE(key);
    CHECK(none.at(key).is_null());
    CHECK(one.at(key).get<double>() > 0);
  }
  for (const char* key : {"mean", "p50", "p90", "p99", "most"}) {
    CAPTURE(key);
    CHECK(none.at("e2e_s").at(key).is_null());
    CHECK(one.at("tpot_s").at(key).is_null());
    CHECK(one.at("itl_s").at(key).is_null());
    CHECK(one.at("e2e_s").at(key).get<double>() > 0);
  }
  CHECK(answer_of_requests(1000, 100).at("tpot_mean_s").get<double>() > 0);
}

}  // namespace lockstep
