#include "sim/measured/validate_power.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/power_rows.hpp"

namespace lockstep {
namespace {

const std::string kOwn = LOCKSTEP_SOURCE_DIR "/tests/reference/power.json";

std::string problem(std::string_view text) {
  try {
    (void)parse_power_rows("p.json", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("parse_power_rows: figures, ranges, both sides of a supply, what is not known is none") {
  const PowerFile file = parse_power_rows("p.json", R"({"records": [
    {"id": "a", "gpu": "H100-SXM5-80GB", "nodes": 4, "node_w": {"mean": 6000, "max": 7000},
     "where": "DC after power supply", "notes": null},
    {"id": "b", "idle_node_w_ac": [2000, 2200], "idle_node_w_dc": 1900},
    {"id": "c", "profile": {"node_w_by_step_phase": [1, 2, 3]}}],
    "workloads": {"x": {"model": "llama2_7b"}}})");
  REQUIRE(file.rows.size() == 4);
  CHECK(file.rows[0].node_mean_w == 6000);
  CHECK(file.rows[0].dc);
  CHECK(file.rows[0].nodes == 4);
  CHECK_FALSE(file.rows[0].node_idle_w);
  CHECK(file.rows[1].node_idle_w == 2100);
  CHECK_FALSE(file.rows[1].dc);
  CHECK(file.rows[2].node_idle_w == 1900);
  CHECK(file.rows[2].dc);
  CHECK(file.rows[3].step_profile_w == std::vector<double>{1, 2, 3});
  CHECK(file.workloads.at("x") == R"({"model":"llama2_7b"})");
  CHECK(problem("[]").starts_with("p.json: found an array"));
  CHECK(problem(R"({"records": [3]})").starts_with("p.json#/records/0: found 3"));
}

TEST_CASE(
    "validate --power: MLPerf's GPT-3 within 10 %, on both meters, every row is accounted for") {
  const PresetStore presets;
  const PointTable table = validate_power(kOwn, presets);
  int gpt3 = 0, profile = 0;
  for (const ValidationPoint& point : table.points) {
    const std::string row = identity_of(point, "row"), figure = identity_of(point, "figure");
    CAPTURE(row);
    CAPTURE(figure);
    if (row.ends_with("gpt3")) {
      CHECK(std::abs(point.error) < 0.1);
      ++gpt3;
    }
    if (figure == "step profile") {
      CHECK(std::abs(point.error) < 0.1);
      ++profile;
    }
    if (figure == "step swing") CHECK(std::abs(point.error) < 0.2);
  }
  CHECK(gpt3 == 4);
  CHECK(profile == 20);
  CHECK(table.unit == "w");
  CHECK(table.summary.front().n == table.points.size());
  CHECK(table.skipped ==
        std::vector<std::string>{"8 rows: no scenario of the workload llama2_70b_lora"});
}

}  // namespace lockstep
