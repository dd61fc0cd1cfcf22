/// In which order questions that need the same GPUs are answered earliest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Trials that have a result when all of them have ended: a campaign, or a bracket of one.
struct OrderedTrials {
  std::string name;         ///< of the campaign, or "bracket 0"
  double weight = 1;        ///< of all together 1: how much its result counts
  double alone_s = 0;       ///< that it takes at least with the GPUs its own
  double gpu_hours = 0;     ///< that it holds
  std::size_t written = 0;  ///< its place as written, from 0
  // In this order:
  double result_s = 0;           ///< from the first one's begin
  double by_then_gpu_hours = 0;  ///< that it and those before it held
  std::optional<double> by_then_usd{};
};

struct TrialOrder {
  std::vector<OrderedTrials> parts;  ///< the first one first
  double mean_result_s = 0;          ///< mean of result_s by weight
  double written_mean_s = 0;         ///< of the order as written

  [[nodiscard]] double saved_s() const { return written_mean_s - mean_result_s; }
};

/// One after another, those first whose weight over time is the largest: no order has a smaller
/// mean (Smith 1956, "Various optimizers for single-stage production", Naval Research Logistics
/// Quarterly 3, 59-66). Where weights are equal the shortest come first, and then no order has
/// more results at any deadline. Of equal ones the order stays. `written`: as written, with all but
/// what is "in this order".
TrialOrder earliest_results(std::vector<OrderedTrials> written,
                            std::optional<double> usd_per_gpu_hour);

}  // namespace lockstep
