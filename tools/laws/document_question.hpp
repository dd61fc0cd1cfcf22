/// Questions about what `lockstep comm`, `plan` and `queue fill` answer, for laws between commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/laws/check_laws.hpp"
#include "sim/laws/check_random.hpp"
#include "tools/console/options.hpp"
#include "tools/laws/comm_laws.hpp"

namespace lockstep {

/// For what goes on until Ctrl-C.
bool not_interrupted();

/// A cluster that pods fill, which `lockstep queue fill` answers.
inline constexpr std::string_view kFillingKind = "filling";

/// "traffic", "collective", "plan" or "filling" of a document that another command answers; else
/// empty. Throws InputError for text that is no JSON.
std::string other_kind(const JsonCursor& root);

/// How such a document is answered.
DocumentQuestion document_question(const std::string& about, const PresetStore& presets);

/// A plan has fewer samples than it says, where --deep does not ask for all.
std::vector<std::string> document_sets(const JsonCursor& root, const std::string& about,
                                       const ParsedOptions& options);

/// Random traffic and collectives, beside the kinds of `lockstep run`.
inline constexpr std::string_view kCommKind = "comm";

/// What --kind says; nothing: all kinds. Throws UsageError.
std::optional<AnswerKind> kind_asked(const ParsedOptions& options);

/// Traffic and collectives. All that it refers to outlives the trials.
RandomTrials comm_trials(const RandomCheck& check, const std::vector<DocumentLaw>& laws,
                         const PresetStore& presets);

}  // namespace lockstep
