// Laws held against scenarios that failed them once, and against new ones.
#include <doctest/doctest.h>

#include "sim/scenario/read_scenario.hpp"
#include "tests/support/failed_scenarios.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep::test {

RunSpec run_of(const std::string& text) {
  return read_run_spec(JsonCursor::parse("random.json", text).at("run"), presets());
}

void hold(std::string_view law, std::uint64_t seed, int count, const RandomScenarioOptions& options,
          const ScenarioLaw& check) {
  for (const FailedScenario& failed : failed_scenarios()) {
    if (failed.law != law) continue;
    const std::string text(failed.text);
    CAPTURE(failed.why);
    CAPTURE(text);
    check(read_scenario("failed.json", text, presets()), text);
  }
  CAPTURE(seed);
  RandomScenarios scenarios(seed, options);
  for (int number = 0; number < count; ++number) {
    const Scenario scenario = scenarios.next();
    CAPTURE(number);
    CAPTURE(scenarios.text());
    check(scenario, scenarios.text());
  }
}

}  // namespace lockstep::test
