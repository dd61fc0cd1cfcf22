/// The answer to whatever a document asks, for its numbers to be explained.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/explanation.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Of a scenario as `lockstep run` answers it, of collectives and traffic as `comm`, of a plan as
/// `plan`. `sets`: changes of the document. Throws InputError, UsageError for `allow_oom` of what
/// has no job.
ExplainedAnswer answer_to_document(const std::string& path, const std::string& text,
                                   const std::vector<std::string>& sets, const PresetStore& presets,
                                   bool allow_oom);

/// Of a trace as `lockstep replay` answers it, with that command's options. Throws InputError or
/// UsageError.
ExplainedAnswer replay_to_explain(const ParsedOptions& options, const PresetStore& presets,
                                  Console& console);

}  // namespace lockstep
