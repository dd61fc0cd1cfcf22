// Laws on plans of services: they hold, and a planted mistake breaks the one that is about it.
#include "tools/laws/serving_plan_laws.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/laws/check_laws.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Planted = std::function<void(Json&, std::size_t)>;

constexpr const char* kChat =
    R"({"prefer": "money", "failures": {"gpu_mean_time": "5000 h", "repair": "1 d"},
        "scenario": {"model": "llama3_8b", "serving": {
          "load": {"rate": 20, "requests": 200, "input": {"mean": 800, "sigma": 0.6, "most": 4000},
                   "output": {"mean": 100, "sigma": 0.6, "most": 600}},
          "pools": {"both": {"engine": "vllm"}},
          "objectives": {"ttft_p99": "1 s", "tpot_p99": "30 ms"}}},
        "candidates": [
          {"name": "H100", "scenario": {"cluster": {"node": "dgx_h100", "nodes": 2},
            "price": {"usd_per_gpu_hour": 2.5}}},
          {"name": "A100", "scenario": {"cluster": {"node": "dgx_a100_80gb", "nodes": 2},
            "price": {"usd_per_gpu_hour": 1.3}}}]})";

Certificate service_certificate(const std::string& law = {}, Planted plant = {}) {
  DocumentQuestion question;
  question.file = "service.json";
  question.text = kChat;
  question.about = "serving_plan";
  question.answer = [](const std::string& file, const std::string& of) {
    return serving_plan_answer(file, of, test::presets());
  };
  question.plant = std::move(plant);
  DocumentSubject subject(std::move(question), test::presets());
  std::vector<DocumentLaw> laws = serving_plan_laws({});
  if (!law.empty()) {
    std::erase_if(laws, [&](const DocumentLaw& each) { return each.name != law; });
    REQUIRE(laws.size() == 1);
  }
  return check_laws(subject, laws);
}

TEST_CASE("serving plan laws: all hold of chat on two kinds of machine, and each has a sentence") {
  const Certificate certificate = service_certificate();
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
}

TEST_CASE("serving plan laws: a mistake that is planted breaks the law that is about it") {
  const auto first = [](Json& answer) -> Json& { return answer["options"][0]; };
  const std::map<std::string, Planted> mistakes{
      {"parts", [&](Json& a, std::size_t) { first(a)["spare_gpus"] = 77; }},
      {"asked_twice", [](Json& a, std::size_t n) { a["simulations"] = n; }},
      {"candidate_order", [&](Json& a, std::size_t n) { first(a)["layouts"] = 100 + n; }},
      {"candidate_alone", [&](Json& a, std::size_t n) { first(a)["layouts"] = 100 + n; }},
      {"cheaper",
       [&](Json& a, std::size_t n) {
         if (n > 0) first(a)["usd_per_million_output_tokens"] = 1e6;
       }},
      {"looser", [&](Json& a, std::size_t n) { first(a)["gpus"] = n == 0 ? 1 : 16; }},
      {"half_rate", [&](Json& a, std::size_t n) { first(a)["possible"] = n == 0; }},
      {"choice", [](Json& a, std::size_t) { a["choice_gpus"] = 77; }},
      {"plan", [](Json& a, std::size_t) { a["choice_gpus"] = 77; }},
      {"services", [&](Json& a, std::size_t) { first(a)["ttft_p99_s"] = 0.001; }},
  };
  CHECK(mistakes.size() == serving_plan_laws({}).size());
  for (const auto& [law, plant] : mistakes) {
    CAPTURE(law);
    CHECK(service_certificate(law, plant).broken());
  }
}

TEST_CASE("check: takes the plan of a service as it is") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("service.json", kChat);
  const test::Ran ran = test::lockstep_with({"check", file, "--law", "choice", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const Json certificate = Json::parse(ran.out);
  CHECK(certificate.at("answer_to") == "serving_plan");
  CHECK(certificate.at("held") == 1);
}

}  // namespace
}  // namespace lockstep
