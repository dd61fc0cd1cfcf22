/// Rows of published measurements in the scenario's own words, both ways: a published row becomes
/// a scenario that `lockstep run` takes, and a row that is written as a scenario is validated like
/// any other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// The scenario of a row, with what was measured as its "expect": read_scenario() makes the same
/// job of it as row_scenario(), and so the same prediction to the last digit. Only values that
/// differ from presets and defaults are written out. Requires a row without an obstacle; throws
/// InputError as row_scenario() does.
nlohmann::ordered_json row_document(const ReferenceRow& row, const PresetStore& presets);

/// The scenario of a row in the scenario's own words. Throws InputError at its place in the file.
Scenario own_row_scenario(const ReferenceRow& row, const PresetStore& presets);

/// The rows of a file, with what those in the scenario's own words say of their jobs, for reports
/// by GPU, software and kind of job. Throws InputError at the place of a mistake.
std::vector<ReferenceRow> load_rows(const std::string& file, const PresetStore& presets);

/// A row that a command was asked for: "rows.json#NAME".
struct RowPlace {
  std::string file, row;
};
/// Splits such a name; `row` is empty where the name has no '#', or is that of a file.
RowPlace row_place(const std::string& path);

/// The scenario of one row of a file as JSON text. Throws InputError, with the nearest name, for a
/// row that the file lacks, and for one of which no scenario can be made, with the reason.
std::string row_scenario_text(const RowPlace& place, std::string_view text,
                              const PresetStore& presets);

/// Whether this scenario, read as "rows.json#NAME", is a row with a measured step time. Its job
/// ran, so that its memory is no reason to refuse a prediction.
bool is_measured_row(const JsonCursor& scenario);

}  // namespace lockstep
