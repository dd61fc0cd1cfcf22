/// `lockstep tune` of a scenario with "serving".
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/search/tune_serving.hpp"
#include "tools/console/console.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/report/input_tables.hpp"

namespace lockstep {

struct ServingTuneStudy {
  const ServingSpec& base;
  const ServingTune& result;
  ServingGoal goal = ServingGoal::goodput;
};

/// For people, at most 100 columns wide where layouts are short.
std::string serving_tune_table(const ServingTuneStudy& study, const TextStyle& style);
/// tools/lockstep/README.md explains every field.
nlohmann::ordered_json serving_tune_json(const ServingTuneStudy& study);
/// A header line and a line for each of the best.
CsvText serving_tune_csv(const ServingTuneStudy& study);
/// The sections of what it rests on are there where the basis is given.
std::string serving_tune_page(const ServingTuneStudy& study, const AnswerBasis& basis = {});

/// The answer to a search of `root`, as JSON; nothing after Ctrl-C. Throws UsageError as below.
std::optional<nlohmann::ordered_json> serving_tune_point(const JsonCursor& root,
                                                         const PresetStore& presets,
                                                         const ParsedOptions& options,
                                                         Console& console);

/// Searches and prints; `root` is the scenario, of file `path`. Throws UsageError for options that
/// are about a training.
Exit answer_serving_tune(const JsonCursor& root, const std::string& path,
                         const PresetStore& presets, const ParsedOptions& options,
                         Console& console);

/// Throws UsageError for options that are about a service.
void refuse_serving_options(const ParsedOptions& options);

}  // namespace lockstep
