/// How far the predicted ratio of two step times may be off: what a source's runs are off by
/// together cancels in it.
#pragma once

#include <optional>

#include "models/accuracy/residuals.hpp"

namespace lockstep {

/// log of the factor within which nine of ten measured ratios of two runs lie around the predicted
/// one. Evidence: every pair of runs of one source and one stack, on the same kind of GPU
/// (`same_gpu`) or on two kinds, predicted with constants that no run of the source had a part in.
/// A source's pairs weigh 1 together, as its runs err alike. Nothing where fewer than two sources
/// have such a pair.
std::optional<double> paired_error(const ResidualTable& table, bool same_gpu);

}  // namespace lockstep
