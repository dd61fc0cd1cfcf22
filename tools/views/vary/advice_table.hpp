/// What `lockstep run --advise` prints.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/advice.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

struct ShownNumber;
/// What tables and pages have beside the gain: of AdviceGoal::shown the first, and what of the
/// others a change moves.
std::vector<const ShownNumber*> numbers_beside(const Advice& advice);

/// Whether it, as it is or with a change, draws more than the site has; empty where none does.
std::string advice_limit_warning(const Advice& advice);

/// Why a change cannot be made, for a reader of its name: the error line without the file that all
/// share and without the option that tried it: "parallelism.tensor: found 16; allowed: ...".
std::string refusal_words(const RefusedChange& refused, const std::string& file);

/// Changes that help, by gain, those that do not in a line, and why the others cannot be.
std::string advice_table(const Advice& advice, const TextStyle& style);
/// A header line and a line for each change: its words, what --set takes, numbers, the gain;
/// refused ones last.
CsvText advice_csv(const Advice& advice);

}  // namespace lockstep
