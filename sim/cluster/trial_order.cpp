#include "sim/cluster/trial_order.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// Fills in what follows from the order; returns the mean.
double take_in_turn(std::vector<OrderedTrials>& parts, std::optional<double> usd_per_gpu_hour) {
  double at_s = 0, held = 0, mean = 0;
  for (OrderedTrials& part : parts) {
    at_s += part.alone_s;
    held += part.gpu_hours;
    part.result_s = at_s;
    part.by_then_gpu_hours = held;
    if (usd_per_gpu_hour) part.by_then_usd = held * *usd_per_gpu_hour;
    mean += part.weight * at_s;
  }
  return mean;
}

}  // namespace

TrialOrder earliest_results(std::vector<OrderedTrials> written,
                            std::optional<double> usd_per_gpu_hour) {
  for (std::size_t i = 0; i < written.size(); ++i) written[i].written = i;
  TrialOrder out;
  out.written_mean_s = take_in_turn(written, usd_per_gpu_hour);
  // By cross products: a time may be 0.
  std::ranges::stable_sort(written, [](const OrderedTrials& a, const OrderedTrials& b) {
    return a.weight * b.alone_s > b.weight * a.alone_s;
  });
  out.mean_result_s = take_in_turn(written, usd_per_gpu_hour);
  out.parts = std::move(written);
  return out;
}

}  // namespace lockstep
