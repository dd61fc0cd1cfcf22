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

/// Plans of trainings, and those of services.
inline constexpr std::string_view kPlanKind = "plan", kServingPlanKind = "serving_plan";

/// "traffic", "collective", "plan", "serving_plan" or "filling" of a document that another command
/// answers; else empty. Throws InputError for text that is no JSON.
std::string other_kind(const JsonCursor& root);

/// How such a document is answered.
DocumentQuestion document_question(const std::string& about, const PresetStore& presets);

/// All laws on such a document. `presets`: the folders that --presets gave.
std::vector<DocumentLaw> document_laws(std::string_view about,
                                       const std::vector<std::string>& presets);

/// The plan of a training has fewer samples than it says, where --deep does not ask for all.
std::vector<std::string> document_sets(const JsonCursor& root, const std::string& about,
                                       const ParsedOptions& options);

/// Random documents of other commands than `lockstep run`, by what --kind calls them.
struct DocumentKind {
  std::string_view name;            ///< "comm"
  std::vector<std::string> abouts;  ///< "traffic", "collective"
  std::string (*draw)(std::uint64_t seed, std::uint32_t number, const PresetStore& presets);
};

/// What --kind says: a kind of `lockstep run`, or of another command; neither: all of the former.
struct KindAsked {
  std::optional<AnswerKind> run{};
  const DocumentKind* document = nullptr;
};
/// Throws UsageError.
KindAsked kind_asked(const ParsedOptions& options);

/// Documents of one kind. All that it refers to outlives the trials.
RandomTrials document_trials(const DocumentKind& kind, const RandomCheck& check,
                             const std::vector<DocumentLaw>& laws, const PresetStore& presets);

}  // namespace lockstep
