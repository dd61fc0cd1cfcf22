/// Finds the minimum of a function of a few variables without derivatives.
#pragma once

#include <functional>
#include <vector>

namespace lockstep {

/// A point near a local minimum of `f`, starting from `start` with steps of `step` in each
/// direction. Nelder and Mead 1965, The Computer Journal 7, 308-313, with the usual coefficients
/// (1, 2, 1/2, 1/2), `restarts` times from the best point, each time with a fresh simplex, which
/// frees it from degenerate ones. Deterministic; calls `f` at most about restarts * evaluations
/// times.
std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& f,
                             std::vector<double> start, double step, int evaluations = 800,
                             int restarts = 3);

}  // namespace lockstep
