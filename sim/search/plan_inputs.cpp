#include "sim/search/plan_spec.hpp"

namespace lockstep {
namespace {

constexpr Distribution between(double low, double high) {
  return {.law = DistributionLaw::lognormal, .low = low, .likely = 1, .high = high};
}

constexpr std::array<PlanInputInfo, kPlanInputs> kInputs{{
    {PlanInput::efficiency, "efficiency", "Training speed", "steps a second over the prediction",
     Distribution{}, "models/accuracy/prediction_interval.hpp, for each candidate"},
    {PlanInput::power, "power", "Power draw", "watts over the prediction", between(0.893, 1.12),
     "nine in ten of the nodes that were measured draw within 12 % of their prediction "
     "(`lockstep validate --power`)"},
    {PlanInput::failure_rate, "failure_rate", "Failure rate", "failures over the rates given",
     between(0.5, 2),
     "two clusters of one operator differ 2.8 times (Kokolis et al. 2025, arXiv:2410.21680)"},
    {PlanInput::recovery, "recovery", "Recovery time",
     "detection, diagnosis, restart and repair over the times given", between(0.5, 2),
     "a guess: operators publish minutes to hours"},
    {PlanInput::price, "price", "Price",
     "of machines and building, or of a GPU-hour, over the list", between(0.8, 1.25),
     "a guess: discounts and shortages"},
    {PlanInput::tariff, "tariff", "Tariff", "price of energy over the one given",
     between(0.7, 1.43), "a guess: contracts and markets"},
    {PlanInput::value_loss, "value_loss", "Loss of value",
     "what machines that were bought lose a year, over the one given", between(0.7, 1.43),
     "a guess: what the next generation leaves of this one's price"},
}};

}  // namespace

std::span<const PlanInputInfo, kPlanInputs> plan_inputs() { return kInputs; }

}  // namespace lockstep
