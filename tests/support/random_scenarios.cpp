#include "tests/support/random_scenarios.hpp"

#include <optional>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {

Scenario RandomScenarios::next() {
  while (true) {
    const std::optional<nlohmann::ordered_json> drawn = draw_job(random_, options_);
    if (!drawn) continue;
    text_ = write_json(*drawn);
    try {
      Scenario scenario = read_scenario("random.json", text_, presets());
      if (options_.weeks) (void)run_of(text_);
      return scenario;
    } catch (const InputError&) {
      // The fabric cannot join that many nodes, or a width does not divide: another one.
    }
  }
}

}  // namespace lockstep::test
