/// What `lockstep learn` prints.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/measured/learnt.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// How far what the steps say is from what was expected, in its deviations: "+1.3".
std::string deviations_text(const LearntKind& kind);
/// That the description does not fit the steps; empty where it does.
std::string misfit_words(const LearntKind& kind);
/// Why a step's interval is wider after it was learnt; empty where it is not.
std::string less_sure_words(const LearntKind& kind);
/// What was learnt of one kind of part, in a sentence.
std::string words_about(const LearntKind& kind);
/// For people: all kinds, as a table with words.
std::string words_about(const MeasuredSteps& steps, const Learnt& learnt, const TextStyle& style);

/// The same as JSON; `preset`: the stack that was corrected.
nlohmann::ordered_json learnt_json(const MeasuredSteps& steps, const Learnt& learnt,
                                   const std::string& preset);

}  // namespace lockstep
