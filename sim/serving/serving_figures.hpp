/// What requests saw: times to the first token, between tokens, per token, end to end.
#pragma once

#include <span>
#include <vector>

#include "sim/serving/serve.hpp"

namespace lockstep {

struct ServingSpread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, most = 0;
  bool any = false;  ///< there are values; else all are 0
};
/// Of all values. Sorts them. All 0: there are none.
ServingSpread spread_of(std::vector<double>& values);

struct ServingFigures {
  std::size_t served = 0;
  double input_tokens = 0, output_tokens = 0;
  double span_s = 0;  ///< from the first arrival to the last token
  ServingSpread ttft_s, tpot_s, e2e_s;
  ServingSpread itl_s;      ///< `most` is the 99.9 % quantile
  double per_user = 0;      ///< output tokens a second that a user sees, 1 / TPOT on average
  double output_per_s = 0;  ///< output tokens a second, all
  double in_system = 0;     ///< requests, on average over the span
};

/// Time per output token behind the first; 0: there was one only.
double tpot_s(const ServedRequest& request);
ServingFigures serving_figures(std::span<const ServedRequest> requests, const ServeResult& result);

}  // namespace lockstep
