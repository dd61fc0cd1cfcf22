#include "sim/serving/objectives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace lockstep {
namespace {

const ServingSpread& spread_of_time(const ServingFigures& f, std::size_t time) {
  const ServingSpread* const all[] = {&f.ttft_s, &f.tpot_s, &f.itl_s, &f.e2e_s};
  return *all[time];
}

double quantile_at(const ServingSpread& s, int percent) {
  return percent == 50 ? s.p50 : percent == 90 ? s.p90 : s.p99;
}

bool keeps(const std::optional<Seconds>& limit, double value) {
  return !limit || value <= limit->base_units();
}
bool is_within(const ServedRequest& r, const ServingObjectives& o) {
  return keeps(o.ttft, to_seconds(r.time_to_first()).base_units()) && keeps(o.tpot, tpot_s(r)) &&
         keeps(o.e2e, to_seconds(r.end_to_end()).base_units());
}

/// A time of a request that has ended, in seconds; below 0 if the request has no such time.
double time_of(const ServedRequest& r, ServedTime time) {
  switch (time) {
    case ServedTime::ttft:
      return to_seconds(r.time_to_first()).base_units();
    case ServedTime::tpot:
      return r.output > 1 ? tpot_s(r) : -1;
    case ServedTime::e2e:
      return to_seconds(r.end_to_end()).base_units();
    case ServedTime::itl:
      break;
  }
  return -1;
}

/// Whether the quantile of `all` requests stays below a limit that `above` of them exceed. The
/// q-quantile of n values is the ceil(q n)-th, as in spread_of().
bool quantile_may_keep(double above, double all, int percent) {
  return above <= all - std::ceil(percent * all / 100.0 - 1e-9);
}

}  // namespace

double attained_share(const ServingSpec& spec, std::optional<std::size_t> population) {
  std::size_t within = 0, all = 0;
  for (const ServedRequest& r : spec.requests) {
    if (population && static_cast<std::size_t>(r.population) != *population) continue;
    ++all;
    within += r.served() && is_within(r, spec.limits_of(r));
  }
  return all > 0 ? static_cast<double>(within) / static_cast<double>(all) : 0;
}

std::vector<ObjectiveCheck> check_objectives(const ServingSpec& spec,
                                             const ServingFigures& figures) {
  const ServingObjectives& o = spec.objectives;
  std::vector<ObjectiveCheck> out;
  if (o.per_request()) {
    const double share = attained_share(spec);
    out.push_back({"attained", o.attained, share, share >= o.attained});
  }
  for (std::size_t p = 0; p < spec.populations.size(); ++p) {
    const ServingPopulation& of = spec.populations[p];
    if (!of.objectives.per_request()) continue;
    const double share = attained_share(spec, p), asked = of.objectives.attained;
    out.push_back({of.name + ".attained", asked, share, share >= asked});
  }
  const bool all_served = figures.served == spec.requests.size();
  for (std::size_t q = 0; q < kServedLimits; ++q) {
    if (!o.quantiles[q]) continue;
    const std::size_t time = q / kLimitedPercents.size();
    const int percent = kLimitedPercents[q % kLimitedPercents.size()];
    const double limit = o.quantiles[q]->base_units();
    const double value = quantile_at(spread_of_time(figures, time), percent);
    out.push_back({fmt::format("{}_p{}", kServedTimeNames[time], percent), limit, value,
                   all_served && value <= limit});
  }
  return out;
}

bool may_be_kept(const ServingSpec& spec) {
  const ServingObjectives& o = spec.objectives;
  const auto n = static_cast<double>(spec.requests.size());
  double outside = 0, with_tpot = 0;
  std::array<double, kServedLimits> above{};
  for (const ServedRequest& r : spec.requests) {
    with_tpot += r.output > 1;
    if (!r.served()) continue;
    outside += !is_within(r, spec.limits_of(r));
    for (std::size_t q = 0; q < kServedLimits; ++q) {
      const auto time = static_cast<ServedTime>(q / kLimitedPercents.size());
      above[q] += !keeps(o.quantiles[q], time_of(r, time));
    }
  }
  if (o.per_request() && (n - outside) / n < o.attained) return false;
  for (std::size_t q = 0; q < kServedLimits; ++q) {
    const bool tpot = static_cast<ServedTime>(q / kLimitedPercents.size()) == ServedTime::tpot;
    const int percent = kLimitedPercents[q % kLimitedPercents.size()];
    if (!quantile_may_keep(above[q], tpot ? with_tpot : n, percent)) return false;
  }
  return true;
}

ServingObjectives tightened(ServingObjectives of, double first_token, double per_token) {
  const std::array<double, 4> slower{first_token, per_token, per_token,
                                     std::max(first_token, per_token)};
  const auto divide = [](std::optional<Seconds>& limit, double by) {
    if (limit) limit = *limit / by;
  };
  for (std::size_t q = 0; q < kServedLimits; ++q) {
    divide(of.quantiles[q], slower[q / kLimitedPercents.size()]);
  }
  divide(of.ttft, slower[0]);
  divide(of.tpot, slower[1]);
  divide(of.e2e, slower[3]);
  return of;
}

bool all_kept(const std::vector<ObjectiveCheck>& checks) {
  return std::ranges::all_of(checks, &ObjectiveCheck::kept);
}

}  // namespace lockstep
