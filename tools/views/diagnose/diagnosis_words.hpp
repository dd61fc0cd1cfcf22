/// What a diagnosis says in sentences, the same in a terminal and on a page.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/diagnosis.hpp"

namespace lockstep {

/// "The recorded step takes 1.20 s, 12.0 % longer than the predicted 1.07 s, ..." Requires parts.
std::string diagnosis_verdict(const Diagnosis& d);
/// Which rank the others wait for, or that none stands out. Requires ranks.
std::string slowest_rank_words(const Diagnosis& d);
/// Whose links are slow as far as the recording tells, the dearest first, a sentence for each
/// group.
std::vector<std::string> slow_group_words(const Diagnosis& d);
/// The call that costs most above its price; empty: none stands out.
std::string slow_call_words(const Diagnosis& d);

/// What a step's calls take above the prediction, nobody waited for.
double lost_in_calls_s(const DiagnosedCall& call);
/// "0-7", "0, 8, 16, ...".
std::string some_ranks_text(const std::vector<int>& ranks);
/// "+12.0 ms".
std::string signed_duration(double seconds);

}  // namespace lockstep
