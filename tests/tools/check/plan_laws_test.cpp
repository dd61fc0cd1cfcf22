// Laws on plans of trainings: they hold, and a planted mistake breaks the one that is about it.
#include "tools/laws/plan_laws.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/laws/check_laws.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Planted = std::function<void(Json&, std::size_t)>;

constexpr const char* kTwoWays =
    R"({"training": {"tokens": 20000000000}, "samples": 10, "limits": {"time": "60 d"},
        "scenario": {"model": "llama3_8b",
          "cluster": {"node": "dgx_h100", "fabric": "rail_optimised"},
          "parallelism": {"tensor": 1, "data": 32, "sharding": "zero3"},
          "batch": {"sequences": 128, "micro": 1, "tokens": 8192}, "recompute": "full",
          "stack": "megatron_core", "power": {"facility": "air_chiller"},
          "cost": {"usd_per_gpu": 25000, "usd_per_node": 60000, "usd_per_kwh": 0.07, "years": 4},
          "run": {"reliability": "llama3_54_days", "checkpoint": {"interval": "1 h",
            "storage": {"write": "5 GB/s", "read": "5 GB/s"}}}},
        "candidates": [{"name": "own", "pay": "own", "nodes": [4]},
          {"name": "rent", "pay": "rent", "nodes": [4],
           "scenario": {"price": {"usd_per_gpu_hour": 2.5}}}]})";

Certificate plan_certificate(const std::string& law = {}, Planted plant = {}) {
  DocumentQuestion question;
  question.file = "plan.json";
  question.text = kTwoWays;
  question.about = "plan";
  question.answer = [](const std::string& file, const std::string& of) {
    return plan_answer(file, of, test::presets());
  };
  question.plant = std::move(plant);
  DocumentSubject subject(std::move(question), test::presets());
  std::vector<DocumentLaw> laws = plan_laws({});
  if (!law.empty()) {
    std::erase_if(laws, [&](const DocumentLaw& each) { return each.name != law; });
    REQUIRE(laws.size() == 1);
  }
  return check_laws(subject, laws);
}

TEST_CASE("plan laws: all hold of a plan that owns or rents, and each has a sentence") {
  const Certificate certificate = plan_certificate();
  for (const LawResult& law : certificate.laws) {
    CAPTURE(law.name);
    for (const LawBreak& each : law.book.breaks()) {
      FAIL_CHECK(each.what << ": " << each.found << ", expected " << each.expected);
    }
    const LawVerdict verdict = law.book.verdict();
    CHECK((verdict == LawVerdict::held || verdict == LawVerdict::held_with_anomalies));
    CHECK(law.sentence.ends_with('.'));
    CHECK(law.sentence.size() <= 100);
  }
  CHECK(certificate.laws.size() == plan_laws({}).size());
}

Json& expected_of(Json& answer) { return answer["candidates"][0]["expected"]; }

TEST_CASE("plan laws: a mistake that is planted in an answer breaks the law that is about it") {
  const std::map<std::string, Planted> mistakes{
      {"money", [](Json& a, std::size_t) { expected_of(a)["capital_network_usd"] = 1e9; }},
      {"samples", [](Json& a, std::size_t) { a["candidates"][1]["time_s"]["p05"] = 1e12; }},
      {"choice", [](Json& a, std::size_t) { a["choice_time_s"] = 1.0; }},
      {"asked_twice", [](Json& a, std::size_t n) { a["seed"] = n; }},
      {"candidate_order", [](Json& a, std::size_t n) { a["candidates"][0]["mfu"] = n; }},
      {"candidate_alone", [](Json& a, std::size_t n) { a["candidates"][0]["goodput"] = n; }},
      {"cheaper", [](Json& a, std::size_t n) { expected_of(a)["usd"] = n == 0 ? 1e12 : 1.0; }},
      {"fewer_tokens",
       [](Json& a, std::size_t n) { expected_of(a)["time_s"] = 1000.0 + static_cast<double>(n); }},
      {"inputs",
       [](Json& a, std::size_t) {
         for (Json& swing : a["candidates"][0]["sensitivity"]) swing["at_low"]["time_s"] = 1e12;
       }},
      {"plan", [](Json& a, std::size_t) { a["choice_usd"] = 1.0; }},
      {"steps", [](Json& a, std::size_t) { a["candidates"][0]["step_s"] = 1.0; }},
  };
  CHECK(mistakes.size() == plan_laws({}).size());
  for (const auto& [law, plant] : mistakes) {
    CAPTURE(law);
    CHECK(plan_certificate(law, plant).broken());
  }
}

TEST_CASE("check: takes a plan with ten samples") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", kTwoWays);
  const test::Ran ran = test::lockstep_with(
      {"check", file, "--set", "samples=40", "--law", "samples", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const Json certificate = Json::parse(ran.out);
  CHECK(certificate.at("answer_to") == "plan");
  CHECK(certificate.at("held") == 1);
}

}  // namespace
}  // namespace lockstep
