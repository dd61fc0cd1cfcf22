#include "sim/search/compute_optimal.hpp"

#include <array>
#include <cassert>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr double kFlopsPerWeightAndToken = 6;

constexpr std::array kLaws{
    ScalingLaw{"besiroglu_2024",
               "Hoffmann's third approach, fitted again to the data read off its figures.",
               "Besiroglu, Erdil, Barnett and You 2024, arXiv:2404.10102, equation 2", 1.8172,
               482.01, 0.3478, 2085.43, 0.3658},
    ScalingLaw{
        "hoffmann_2022",
        "Chinchilla's third approach as printed: fewer weights, more tokens than its others.",
        "Hoffmann et al. 2022, arXiv:2203.15556, section D.3, equation 10", 1.69, 406.4, 0.34,
        410.7, 0.28},
};

double power(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

/// G: N over (C / 6)^(beta / (alpha + beta)).
double balance(const ScalingLaw& law) {
  return power(law.alpha * law.a / (law.beta * law.b), 1 / (law.alpha + law.beta));
}

}  // namespace

std::span<const ScalingLaw> scaling_laws() { return kLaws; }

Flops training_compute(double parameters, double tokens) {
  return Flops{kFlopsPerWeightAndToken * parameters * tokens};
}

ComputeOptimum optimum_of(const ScalingLaw& law, Flops budget) {
  assert(budget > Flops{});
  const double product = budget.base_units() / kFlopsPerWeightAndToken;
  const double parameters = balance(law) * power(product, law.beta / (law.alpha + law.beta));
  return {.parameters = parameters, .tokens = product / parameters};
}

double optimal_tokens(const ScalingLaw& law, double parameters) {
  assert(parameters >= 1);
  // N = G (N D)^(beta / (alpha + beta)), solved for D.
  const double product = power(parameters / balance(law), (law.alpha + law.beta) / law.beta);
  return product / parameters;
}

double expected_loss(const ScalingLaw& law, double parameters, double tokens) {
  assert(parameters >= 1 && tokens >= 1);
  return law.irreducible + law.a / power(parameters, law.alpha) + law.b / power(tokens, law.beta);
}

}  // namespace lockstep
