/// The page of `lockstep queue fill`: what each policy allocates, over how much was asked for.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "sim/cluster/fill_cluster.hpp"

namespace lockstep {

/// Requires the whole of the result; where it was stopped, at least one policy is drawn if it is
/// there. `written`: the document as it was parsed.
std::string filling_page(const FillingSpec& spec, const FillingResult& result,
                         const WrittenScenario& written);

}  // namespace lockstep
