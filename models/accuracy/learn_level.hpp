/// How a few measured steps correct what is predicted of their software, in logarithms, with a
/// prior that is how software differs from its description.
///
///     y_i = log(measured_i / predicted_i) = J_i d + e_i,   d ~ N(0, prior^2),   e_i ~ s t(4)
///
/// d is the logarithm of the level of kernels, J_i the share of step i that kernels decide. Rows of
/// a team have tails that a normal law has not (half of them lie within 4 % of their team's level,
/// one of ten beyond 24 %), so that their errors are Student's, of four degrees, and a step that
/// others contradict counts for less. The mode, by expectation and maximisation, and the expected
/// information: Lange, Little and Taylor 1989, J. Am. Stat. Assoc. 84, 881-896.
/// s is what layouts of one team differ by, not what repeats do: those that repeat a job share its
/// misfit.
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

/// Scales of errors in logarithms.
struct LevelNoise {
  double job = 0.098;    ///< between layouts of one team's software; with repeats 0.10 in all
  double repeat = 0.02;  ///< between runs of one job
};

struct LevelPosterior {
  double mean = 0;           ///< of the logarithm of the level
  double deviation = 0;      ///< of that
  int jobs = 0;              ///< distinct ones
  double least_squares = 0;  ///< the mean, were all steps believed alike
};

/// Variance of a normal error that says as much as that of a step whose error has this scale.
double informative_variance(double scale_squared);

/// Requires prior > 0. No steps: the prior. The order of steps is irrelevant.
LevelPosterior learn_level(std::span<const LevelWitness> steps, double prior,
                           const LevelNoise& noise = {});

}  // namespace lockstep
