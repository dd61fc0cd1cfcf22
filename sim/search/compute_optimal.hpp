/// How large a model and how many tokens a budget of compute should go into.
#pragma once

#include <span>
#include <string_view>

#include "models/base/units.hpp"

namespace lockstep {

/// A published law: the loss of a model of N weights after D tokens is
///
///     L = E + A / N^alpha + B / D^beta
///
/// so that with C = 6 N D (Kaplan et al. 2020, arXiv:2001.08361, section 2.1) it is least at
/// N = G (C / 6)^(beta / (alpha + beta)), G = (alpha A / (beta B))^(1 / (alpha + beta)).
/// Source: Hoffmann et al. 2022, arXiv:2203.15556, section 3.3, equation 4.
struct ScalingLaw {
  std::string_view name, summary, source;
  double irreducible, a, alpha, b, beta;  ///< E, A, alpha, B, beta; loss in nats per token
};
/// To add one: a row in compute_optimal.cpp.
std::span<const ScalingLaw> scaling_laws();

struct ComputeOptimum {
  double parameters = 0, tokens = 0;
};
ComputeOptimum optimum_of(const ScalingLaw& law, Flops budget);
/// The tokens with which a model of that many weights (at least 1) is the best use of its compute.
double optimal_tokens(const ScalingLaw& law, double parameters);
double expected_loss(const ScalingLaw& law, double parameters, double tokens);
/// C = 6 N D.
Flops training_compute(double parameters, double tokens);

}  // namespace lockstep
