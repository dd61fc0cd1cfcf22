/// The laws that the library knows, by what they are about. A law is a function, and a row in the
/// table of its file.
#pragma once

#include <vector>

#include "sim/laws/law.hpp"

namespace lockstep {

/// Answers have 12 significant digits, so that a sum of some twenty such numbers is off by less.
inline constexpr double kDigits = 1e-10;

std::vector<Law> conservation_laws();  ///< read off an answer alone
std::vector<Law> step_laws();          ///< of a replay, looked at from inside
std::vector<Law> run_laws();           ///< of the trajectories of a run of weeks
std::vector<Law> site_laws();          ///< of what surrounds the racks of such a run
std::vector<Law> exactness_laws();
std::vector<Law> hardware_laws();
std::vector<Law> closed_form_laws();

}  // namespace lockstep
