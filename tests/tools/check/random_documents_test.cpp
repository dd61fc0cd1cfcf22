// Random documents of commands other than run: drawn by seed and number, and no law is broken.
#include <doctest/doctest.h>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/presets.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/tools/ran.hpp"
#include "tools/laws/random_filling.hpp"
#include "tools/laws/random_plan.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

/// No law is broken by `count` documents of a kind, and each holds of one of them at least.
void hold_random(const std::string& kind, const std::string& count) {
  CAPTURE(kind);
  const Ran ran = lockstep_with(
      {"check", "--random", count, "--seed", "3", "--kind", kind, "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.out << ran.err);
  const Json certificate = Json::parse(ran.out);
  CHECK(certificate.at("refused").empty());
  for (const Json& law : certificate.at("laws")) {
    CAPTURE(law.at("law"));
    CHECK(law.at("held").get<int>() + law.at("held_with_anomalies").get<int>() > 0);
  }
}

}  // namespace

TEST_CASE("random documents: a function of seed and number, and hardly twice alike") {
  const auto drawn_twice = [](auto draw) {
    constexpr std::uint32_t kDocuments = 20;
    std::set<std::string> texts;
    for (std::uint32_t number = 0; number < kDocuments; ++number) {
      const std::string text = draw(5, number);
      CHECK(text == draw(5, number));
      texts.insert(text);
    }
    CHECK(texts.size() >= kDocuments - 1);
    CHECK(draw(5, 0) != draw(6, 0));
  };
  drawn_twice([](std::uint64_t seed, std::uint32_t n) { return random_plan(seed, n, presets()); });
  drawn_twice(
      [](std::uint64_t seed, std::uint32_t n) { return random_serving_plan(seed, n, presets()); });
  drawn_twice([](std::uint64_t seed, std::uint32_t n) { return random_filling(seed, n); });
}

TEST_CASE("random plans: no law is broken" * doctest::skip(kSlowBuild)) {
  hold_random("plan", "8");
}
TEST_CASE("random plans of services: no law is broken" * doctest::skip(kSlowBuild)) {
  hold_random("serving_plan", "12");
}
TEST_CASE("random clusters that pods fill: no law is broken" * doctest::skip(kSlowBuild)) {
  hold_random("filling", "30");
}

}  // namespace lockstep::test
