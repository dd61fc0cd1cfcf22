// What a cluster preset says about its site is what every command takes.
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/search/read_plan.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

constexpr const char* kSiteJob = R"("model": "llama3_70b",
  "parallelism": {"tensor": 8, "sharding": "zero1"},
  "batch": {"sequences": 512, "micro": 1, "tokens": 8192}, "recompute": "full")";

std::string site_text(const std::string& cluster, const std::string& more) {
  return fmt::format(R"({{"cluster": {}, {}, {}}})", cluster, kSiteJob, more);
}
Scenario at_site(const std::string& cluster, const std::string& more = R"("power": {})") {
  return read_scenario("t.json", site_text(cluster, more), presets());
}
bool says(const std::vector<std::string>& assumptions, const std::string& text) {
  return std::ranges::find(assumptions, text) != assumptions.end();
}

constexpr const char* kColossus = R"({"preset": "xai_colossus_220k", "nodes": 64})";

}  // namespace

TEST_CASE("cluster preset: its facility and its power limit are the scenario's, and are named") {
  const Scenario s = at_site(kColossus);
  CHECK(s.power->facility.name == presets().cluster("xai_colossus_220k").facility);
  CHECK(s.power->site_limit == presets().cluster("xai_colossus_220k").power_limit);
  CHECK(says(s.assumptions, "power.facility: liquid (of the cluster preset xai_colossus_220k)"));
  CHECK(says(s.assumptions, "power.site_limit: 300 MW (of the cluster preset xai_colossus_220k)"));
  CHECK(says(s.assumptions, "power.outside_celsius: 20 (not given)"));
}

TEST_CASE("cluster preset: what the scenario says holds instead, and is no assumption") {
  const Scenario s = at_site(kColossus, R"("power": {"facility": "air_chiller",
    "site_limit": "10 MW", "outside_celsius": 10})");
  CHECK(s.power->facility.name == "air_chiller");
  CHECK(*s.power->site_limit == Watts{10e6});
  CHECK(std::ranges::none_of(s.assumptions,
                             [](const std::string& text) { return text.starts_with("power."); }));
  // A facility that is only changed is the site's, changed.
  const Scenario changed = at_site(kColossus, R"("power": {"facility": {"pue": 1.2}})");
  CHECK(changed.power->facility.liquid_share == presets().facility("liquid").liquid_share);
  CHECK(changed.power->facility.pue == 1.2);
}

TEST_CASE("cluster preset: its fabric stays where a scenario changes a value of it") {
  const Scenario whole = at_site(kColossus);
  const Scenario changed = at_site(
      R"({"preset": "xai_colossus_220k", "nodes": 64, "fabric": {"switch_latency": "2 us"}})");
  CHECK(changed.fabric.name == whole.fabric.name);
  CHECK(changed.fabric.levels == whole.fabric.levels);
  CHECK(changed.fabric.switch_latency == Seconds{2e-6});
  CHECK(whole.fabric.levels == 3);
  // A kind makes it another one.
  const Scenario other =
      at_site(R"({"preset": "xai_colossus_220k", "nodes": 64, "fabric": {"kind": "fat_tree"}})");
  CHECK(other.fabric.levels == 2);
}

TEST_CASE("cluster preset: none named, the default facility, and no limit") {
  const Scenario s = at_site(R"({"node": "dgx_h100", "nodes": 64})");
  CHECK(s.power->facility.name == "air_chiller");
  CHECK_FALSE(s.power->site_limit);
  CHECK(says(s.assumptions, "power.facility: air_chiller (not given)"));
}

TEST_CASE("cluster preset: its failure rates are the run's") {
  const JsonCursor run = JsonCursor::parse("t.json", R"({"duration": "1 d"})");
  const RunSpec spec = read_run_spec(run, presets(), at_site(kColossus).site);
  CHECK(spec.reliability.name == "llama3_54_days");
  CHECK(says(spec.assumptions,
             "run.reliability: llama3_54_days (of the cluster preset xai_colossus_220k)"));
  const JsonCursor own =
      JsonCursor::parse("t.json", R"({"duration": "1 d", "reliability": "meta_rsc1"})");
  CHECK(read_run_spec(own, presets(), at_site(kColossus).site).reliability.name == "meta_rsc1");
  CHECK_THROWS_AS((void)read_run_spec(run, presets()), InputError);
}

TEST_CASE("cluster preset: a plan's candidate reads it as a scenario does") {
  const std::string plan = fmt::format(
      R"({{"training": {{"tokens": 1e11}}, "scenario": {{{}, "run": {{}}}},
           "candidates": [{{"name": "a", "pay": "own", "scenario": {{"cluster": {}}}}}]}})",
      kSiteJob, kColossus);
  const PlanSpec spec = read_plan("plan.json", plan, presets());
  const PlanCandidate& candidate = spec.candidates.at(0);
  const Scenario alone = at_site(kColossus);
  CHECK(candidate.scenario.power->facility.name == alone.power->facility.name);
  CHECK(candidate.power_limit == alone.power->site_limit);
  CHECK(candidate.run.reliability.name == "llama3_54_days");
  for (const std::string& assumed : alone.assumptions) {
    CAPTURE(assumed);
    CHECK(says(candidate.scenario.assumptions, assumed));
  }
}

}  // namespace lockstep
