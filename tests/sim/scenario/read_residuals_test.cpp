#include "sim/scenario/read_residuals.hpp"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/residuals_file.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// One group with these rows.
std::string residuals_with(const std::string& rows) {
  return R"({"groups": [{"source": "a", "vendor": "b", "stack": "megatron_core", "release": "",
    "gpu": "h100_sxm5_80gb", "architecture": "hopper", "network": "", "fabric": "",
    "experts": false, "sharded_weights": true, "context": false, "rows": [)" +
         rows + "]}]}";
}

}  // namespace

TEST_CASE("residuals: what ships is what the writer makes of it") {
  const std::string file = test::presets().path("accuracy", "published");
  const std::string text = read_text_file(file);
  CHECK(residuals_json(read_residuals(file, text)) == text);
}

TEST_CASE("residuals: rows have what their group has, and errors of their own") {
  const ResidualTable table = read_residuals(
      "r.json", residuals_with(R"(["x", 0.1, 0.2, 0.3, null, null], ["y", 0, 0, 0, 1, 2])"));
  REQUIRE(table.size() == 2);
  CHECK(table[0].row == "x");
  CHECK(table[0].left_out == 0.2);
  CHECK_FALSE(table[0].as_default);
  CHECK(table[1].vendor == "b");
  CHECK(table[1].traits.sharded_weights);
  CHECK(table[1].as_default == 1.0);
  CHECK_FALSE(table[0].composed);
  CHECK(table[1].composed == 2.0);
}

TEST_CASE("residuals: a mistake is told at its place") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"(["x", 0, 0, 0, null])",
       "r.json#/groups/0/rows/0: found an array; allowed: [row, fitted, left_out, "
       "vendor_left_out, as_default, composed]"},
      {R"(["x", 0, 0, 0, null, null], ["y", 0, 99, 0, null, null])",
       "r.json#/groups/0/rows/1/2: found 99; allowed: a number from -20 to 20"},
      {R"([7, 0, 0, 0, null, null])", "r.json#/groups/0/rows/0/0: found 7; allowed: a string"},
      {"", "r.json#/groups: found an array; allowed: at least one row"}};
  for (const auto& [rows, message] : mistakes) {
    std::string said;
    try {
      (void)read_residuals("r.json", residuals_with(rows));
    } catch (const InputError& error) {
      said = error.what();
    }
    CHECK(said == message);
  }
}

}  // namespace lockstep
