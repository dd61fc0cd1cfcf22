// Scenarios out of published rows.
#include "sim/measured/row_scenario.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {

TEST_CASE("every published run is something that its software can run") {
  for (const char* name : {"training", "fine_tuning", "hybrid", "single_node", "memory"}) {
    const std::string file = fmt::format("{}/tests/reference/{}.json", LOCKSTEP_SOURCE_DIR, name);
    std::size_t allowed = 0;
    for (const ReferenceRow& row : parse_rows(file, read_text_file(file))) {
      if (!row.obstacle.empty()) continue;
      CAPTURE(row.id);
      try {
        const Scenario scenario = row_scenario(row, test::presets());
        CHECK(scenario.beyond_stack.empty());
        ++allowed;
      } catch (const InputError& error) {
        // What breaks another rule says nothing about the software.
        CHECK(std::string(error.what()).find("can do no more") == std::string::npos);
      }
    }
    CAPTURE(name);
    CHECK(allowed > 15);
  }
}

}  // namespace lockstep
