// The laws as a generator: random scenarios of every kind, and what breaks a law made small.
#include <cstdlib>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/laws/check_random.hpp"
#include "sim/laws/random_scenario.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/thorough.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Law> law_named(const std::string& name) {
  std::vector<Law> laws = product_laws();
  std::erase_if(laws, [&](const Law& law) { return law.name != name; });
  REQUIRE(laws.size() == 1);
  return laws;
}

RandomCertificate random_certificate(const RandomCheck& check, const std::vector<Law>& laws) {
  return check_random(check, laws, test::presets(), StepIntervals(test::presets()));
}

TEST_CASE(
    "random scenarios: a function of seed and number, of every kind, and hardly twice alike") {
  std::set<std::string> texts, kinds;
  for (std::uint32_t number = 0; number < 60; ++number) {
    const std::string text = random_scenario({.seed = 5, .number = number}, test::presets());
    CHECK(text == random_scenario({.seed = 5, .number = number}, test::presets()));
    texts.insert(text);
    kinds.insert(std::string(name_of(parse_scenario("random.json", text).kind)));
  }
  CHECK(texts.size() >= 55);
  CHECK(kinds == std::set<std::string>{"step", "run", "jobs", "rl", "queue", "serving"});
  CHECK(random_scenario({.seed = 5}, test::presets()) !=
        random_scenario({.seed = 6}, test::presets()));
}

/// 320 in all, three quarters of a minute of a core, or a third of each; `lockstep check --random`
/// tries as many as one likes.
constexpr std::pair<AnswerKind, std::uint32_t> kTried[] = {
    {AnswerKind::step, 180}, {AnswerKind::run, 40},   {AnswerKind::jobs, 20},
    {AnswerKind::rl, 20},    {AnswerKind::queue, 40}, {AnswerKind::serving, 20}};

TEST_CASE("random scenarios: no law is broken" * doctest::skip(test::kSlowBuild)) {
  for (const auto& [kind, count] : kTried) {
    CAPTURE(name_of(kind));
    const RandomCertificate certificate =
        random_certificate({.seed = test::test_seed() + 71,
                            .count = test::thorough() ? count : count / 3,
                            .kind = kind,
                            .threads = 2},
                           product_laws());
    for (const BrokenScenario& each : certificate.broken) {
      FAIL_CHECK(each.number << " breaks " << each.law << ": " << each.first.what << ": "
                             << each.first.found << ", expected " << each.first.expected << "\n"
                             << write_json(*each.scenario));
    }
    CHECK(certificate.refused.empty());
    std::size_t held = 0;
    for (const LawTally& law : certificate.laws) held += law.held;
    CHECK(held >= 4 * certificate.scenarios);
  }
}

TEST_CASE("random scenarios: the certificate is the same on any number of threads") {
  const auto certificate = [](int threads) {
    return write_json(random_certificate_json(
        random_certificate({.seed = 3, .count = 6, .kind = AnswerKind::serving, .threads = threads},
                           law_named("time"))));
  };
  CHECK(certificate(1) == certificate(3));
}

TEST_CASE("random scenarios: a planted mistake is found, and shrunk to a few lines that have it") {
  // A second that is booked twice, in pipelines alone.
  const auto plant = [](Json& answer, std::size_t, const Question&) {
    if (answer.at("job").at("parallelism").at("pipeline") == 1) return;
    Json& seconds = answer["waterfall"][0]["seconds"];
    seconds = 1.001 * seconds.get<double>();
  };
  const RandomCertificate certificate = random_certificate(
      {.seed = 9, .count = 12, .kind = AnswerKind::step, .plant = plant}, law_named("time"));
  REQUIRE_FALSE(certificate.broken.empty());
  for (const BrokenScenario& each : certificate.broken) {
    const std::string small = write_json(*each.scenario);
    CAPTURE(small);
    CHECK(each.law == "time");
    CHECK(each.scenario->at("parallelism").at("pipeline") > 1);
    CHECK(small.size() <
          random_scenario({.seed = 9, .number = each.number, .kind = AnswerKind::step},
                          test::presets())
                  .size() *
              2 / 3);
  }
  CHECK(certificate.laws.front().broken == certificate.broken.size());
  CHECK(certificate.laws.front().held + certificate.broken.size() == certificate.scenarios);
}

TEST_CASE("shrunk: leaves what the failure needs, and nothing else") {
  const Json large = {
      {"a", {{"b", 64}, {"c", {1, 2, 3}}}}, {"d", {{"preset", "x"}, {"e", 1}}}, {"f", "needed"}};
  const auto fails = [](const Json& of) {
    const bool b = of.contains("/a/b"_json_pointer) && of.at("/a/b"_json_pointer) >= 16;
    return b && of.contains("f");
  };
  CHECK(shrunk(large, fails, 1000) == Json{{"a", {{"b", 16}}}, {"f", "needed"}});
  // Nothing smaller fails: it stays as it is.
  CHECK(shrunk(large, [&](const Json& of) { return of == large; }, 1000) == large);
  // Asked once alone: no more than one change.
  CHECK(shrunk(large, fails, 0) == large);
}

}  // namespace
}  // namespace lockstep
