/// `lockstep tune` of a scenario with "serving".
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

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
