/// How a few measured steps correct what is predicted of their software: a normal model in
/// logarithms, whose prior is how software differs from its description.
///
///     y_i = log(measured_i / predicted_i) = J_i d + e_i,   d ~ N(0, prior^2),   e_i ~ N(0, s^2)
///
/// d is the logarithm of the level of kernels, J_i the share of step i that kernels decide.
/// Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, equations 2.7 and 2.8,
/// with one weight. s is what layouts of one team differ by, not what repeats do: those that repeat
/// a job share its misfit.
#pragma once

#include <span>
#include <string>

namespace lockstep {

/// What one measured step says.
struct LevelWitness {
  std::string job;       ///< steps of one job share it
  double log_ratio = 0;  ///< log(measured / predicted)
  double share = 1;      ///< d log(step) / d log(level)
};

/// Standard deviations in logarithms.
struct LevelNoise {
  double job = 0.098;    ///< between layouts of one team's software; with repeats 0.10 in all
  double repeat = 0.02;  ///< between runs of one job
};

struct LevelPosterior {
  double mean = 0;       ///< of the logarithm of the level
  double deviation = 0;  ///< of that
  int jobs = 0;          ///< distinct ones
};

/// Requires prior > 0. No steps: the prior. The order of steps is irrelevant.
LevelPosterior learn_level(std::span<const LevelWitness> steps, double prior,
                           const LevelNoise& noise = {});

}  // namespace lockstep
