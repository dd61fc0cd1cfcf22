#include "sim/serving/serving_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/sort/spreadsort/float_sort.hpp>

namespace lockstep {
namespace {

double seconds(RunTime t) { return to_seconds(t).base_units(); }

double at_share(const std::vector<double>& sorted, double share) {
  const auto n = static_cast<double>(sorted.size());
  const auto index = static_cast<std::size_t>(std::max(0.0, std::ceil(share * n) - 1));
  return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace

ServingSpread spread_of(std::vector<double>& values) {
  if (values.empty()) return {};
  boost::sort::spreadsort::float_sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = at_share(values, 0.5),
          .p90 = at_share(values, 0.9),
          .p99 = at_share(values, 0.99),
          .most = values.back(),
          .any = true};
}

double tpot_s(const ServedRequest& r) {
  return r.output > 1 ? seconds(r.last - r.first) / (r.output - 1) : 0;
}

ServingFigures serving_figures(std::span<const ServedRequest> requests, const ServeResult& result) {
  ServingFigures out;
  std::vector<double> ttft, tpot, e2e;
  RunTime begin = std::numeric_limits<RunTime>::max(), end = 0;
  double in_system = 0;
  for (const ServedRequest& r : requests) {
    if (!r.served()) continue;
    ++out.served;
    out.input_tokens += r.input;
    out.output_tokens += r.output;
    ttft.push_back(seconds(r.time_to_first()));
    e2e.push_back(seconds(r.end_to_end()));
    if (r.output > 1) tpot.push_back(tpot_s(r));
    in_system += e2e.back();
    begin = std::min(begin, r.arrival);
    end = std::max(end, r.last);
  }
  if (out.served == 0) return out;
  out.span_s = seconds(end - begin);
  out.ttft_s = spread_of(ttft);
  out.tpot_s = spread_of(tpot);
  out.e2e_s = spread_of(e2e);
  IntervalHistogram itl = result.serving.intervals;
  itl.add(result.decoding.intervals);
  out.itl_s = {.mean = itl.mean_s(),
               .p50 = itl.quantile_s(0.5),
               .p90 = itl.quantile_s(0.9),
               .p99 = itl.quantile_s(0.99),
               .most = itl.quantile_s(0.999),
               .any = itl.mean_s() > 0};
  if (out.tpot_s.mean > 0) out.per_user = 1 / out.tpot_s.mean;
  if (out.span_s > 0) {
    out.output_per_s = out.output_tokens / out.span_s;
    out.in_system = in_system / out.span_s;
  }
  return out;
}

}  // namespace lockstep
