// Laws on clusters that pods fill: they hold, and a planted mistake breaks the one that is about
// it.
#include "tools/laws/filling_laws.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/laws/check_laws.hpp"
#include "tests/support/presets.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using PlantedFill = std::function<void(Json&, std::size_t)>;

constexpr const char* kTwoModels =
    R"({"filling": {"policies": ["random", "fgd"], "seeds": 3, "seed": 5,
        "nodes": [{"count": 3, "cpus": 64, "memory": "256 GiB", "gpus": 8, "gpu_model": "A"},
          {"count": 4, "cpus": 32, "memory": "128 GiB", "gpus": 2, "gpu_model": "B"}],
        "pods": [{"count": 9, "cpus": 4, "memory": "16 GiB", "gpus": 1, "gpu_milli": 300},
          {"count": 6, "cpus": 8, "memory": "32 GiB", "gpus": 2},
          {"count": 5, "cpus": 2, "memory": "8 GiB", "gpus": 1, "gpu_models": ["B"]}]}})";

Certificate filling_certificate(const std::string& law = {}, PlantedFill plant = {}) {
  DocumentQuestion question;
  question.file = "fill.json";
  question.text = kTwoModels;
  question.about = "filling";
  question.answer = [](const std::string& file, const std::string& of) {
    return filling_answer(file, of);
  };
  question.plant = std::move(plant);
  DocumentSubject subject(std::move(question), test::presets());
  std::vector<DocumentLaw> laws = filling_laws({});
  if (!law.empty()) {
    std::erase_if(laws, [&](const DocumentLaw& each) { return each.name != law; });
    REQUIRE(laws.size() == 1);
  }
  return check_laws(subject, laws);
}

}  // namespace

TEST_CASE("filling laws: all hold of two policies on two kinds of nodes") {
  const Certificate certificate = filling_certificate();
  CHECK(certificate.laws.size() == 7);
  for (const LawResult& law : certificate.laws) {
    CAPTURE(law.name);
    for (const LawBreak& each : law.book.breaks()) {
      FAIL_CHECK(each.what << ": found " << each.found << "; expected " << each.expected);
    }
    CHECK(law.book.comparisons() > 0);
  }
}

TEST_CASE("filling laws: a planted mistake breaks the law that is about it, and no other") {
  const std::map<std::string, PlantedFill> mistakes{
      {"books",
       [](Json& answer, std::size_t) {
         answer["policies"]["fgd"]["allocated_by_asked"][4] = 0.27;  // of 0.25 asked for
       }},
      {"pods", [](Json& answer, std::size_t) { answer["policies"]["fgd"]["refused_pods"] = 99; }},
      {"asked_twice",
       [](Json& answer, std::size_t number) { answer["pods"] = 20 + static_cast<int>(number); }},
      {"lists",
       [](Json& answer, std::size_t number) { answer["gpus"] = 32 + static_cast<int>(number); }},
      {"seeds",
       [](Json& answer, std::size_t number) {
         if (number > 0) answer["policies"]["random"]["allocated_by_seed"][1] = 0.125;
       }},
      {"policy_alone",
       [](Json& answer, std::size_t number) {
         if (number > 1) answer["policies"]["fgd"]["fragmented"] = 0.5;
       }},
      {"fill", [](Json& answer, std::size_t) { answer["nodes"] = 8; }}};
  for (const auto& [law, plant] : mistakes) {
    CAPTURE(law);
    CHECK_FALSE(filling_certificate(law).broken());
    CHECK(filling_certificate(law, plant).broken());
  }
}

TEST_CASE("check: a cluster that pods fill has a certificate") {
  const test::Ran ran = test::lockstep_with(
      {"check", std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/queue/fill-mixed-gpus.json", "--law",
       "pods", "--law", "lists", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const Json certificate = Json::parse(ran.out);
  CHECK(certificate.at("answer_to") == "filling");
  CHECK(certificate.at("broken") == 0);
}
}  // namespace lockstep
