#include "sim/serving/serving_power.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/power/site_power.hpp"
#include "sim/power/run_power.hpp"
#include "sim/power/switch_ports.hpp"

namespace lockstep {
namespace {

constexpr double kHour = 3600;
constexpr double kMillion = 1e6;

/// All GPUs of a pool over the run, until `end`.
PowerSeries pool_series(const ServingPool& pool, const PassBins& of, Watts awake, RunTime end) {
  const Seconds width = to_seconds(of.width());
  const Watts idle = static_cast<double>(pool.replicas * pool.gpus()) * awake;
  PowerSeries out;
  for (std::size_t b = 0; b < of.bins().size(); ++b) {
    const RunTime begin = static_cast<RunTime>(b) * of.width();
    const Seconds length = std::min(width, to_seconds(end - begin));
    if (length <= Seconds{}) break;
    const PassBins::Bin& bin = of.bins()[b];
    const Joules above = pool.gpus() * (bin.drawn - Seconds{bin.busy_s} * awake);
    out.add(length, idle + above / length);
  }
  const Seconds rest = to_seconds(end) - out.end;
  if (rest > Seconds{}) out.add(rest, idle);
  return out;
}

/// Two series over the same time.
PowerSeries sum_of(const PowerSeries& a, const PowerSeries& b) {
  PowerSeries out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Seconds until = std::min(a.until(i), b.until(j));
    out.add(until - out.end, a.power[i] + b.power[j]);
    if (a.until(i) <= until) ++i;
    if (b.until(j) <= until) ++j;
  }
  return out;
}

const PoolAccount& account_of(const ServeResult& result, std::size_t pool) {
  assert(pool < 2);
  return pool == 0 ? result.serving : result.decoding;
}

}  // namespace

double nodes_held(int gpus, const NodeSpec& node) {
  return std::ceil(static_cast<double>(gpus) / node.gpus);
}

TokenPrice token_price(double usd, const ServingFigures& f) {
  TokenPrice out{.usd = usd};
  const double all = f.input_tokens + f.output_tokens;
  if (f.output_tokens > 0) out.per_million_output = kMillion * usd / f.output_tokens;
  if (all > 0) out.per_million = kMillion * usd / all;
  return out;
}

std::optional<TokenPrice> rent_of(const ServingSpec& spec, const ServeResult& result,
                                  const ServingFigures& figures) {
  if (!spec.usd_per_gpu_hour) return std::nullopt;
  Seconds gpu_time;
  for (std::size_t p = 0; p < spec.pools.size(); ++p) {
    const ServingPool& pool = spec.pools[p];
    const Seconds on = static_cast<double>(pool.replicas) * to_seconds(result.end) -
                       to_seconds(account_of(result, p).off);
    gpu_time += static_cast<double>(pool.gpus()) * on;
  }
  return token_price(*spec.usd_per_gpu_hour * gpu_time.base_units() / kHour, figures);
}

ServingPower serving_power(const ServingSpec& spec, const ServeResult& result,
                           const ServingFigures& figures) {
  assert(spec.power && spec.cluster.node.gpu.power && spec.cluster.node.chassis);
  const NodeSpec& node = spec.cluster.node;
  const double nodes = nodes_held(spec.gpus(), node);
  const BytesPerSecond ports = nodes / spec.cluster.nodes * switch_ports(spec.cluster);
  ServingPower out;
  for (std::size_t p = 0; p < spec.pools.size(); ++p) {
    const ServingPool& pool = spec.pools[p];
    const PowerSeries series =
        pool_series(pool, account_of(result, p).over_time, node.gpu.power->awake, result.end);
    out.pools.push_back(mean_power(series) / static_cast<double>(pool.replicas * pool.gpus()));
    out.gpus = p == 0 ? series : sum_of(out.gpus, series);
  }
  const FacilitySpec& site = spec.power->facility;
  out.pue = power_usage_effectiveness(site, spec.power->outside_celsius);
  const Watts unused = (nodes * node.gpus - spec.gpus()) * node.gpu.power_idle;
  const Watts network = fabric_power(site, ports).total();
  for (std::size_t i = 0; i < out.gpus.size(); ++i) {
    const Watts each = (out.gpus.power[i] + unused) / nodes;
    out.facility.add(out.gpus.until(i) - out.gpus.start[i],
                     out.pue * (nodes * node_power(node, each, true).ac() + network));
  }
  const double joules = energy(out.facility).base_units();
  const double all = figures.input_tokens + figures.output_tokens;
  if (figures.output_tokens > 0) out.joules_per_output_token = joules / figures.output_tokens;
  if (all > 0) out.joules_per_token = joules / all;
  const Holdings holdings{.gpus = nodes * node.gpus,
                          .nodes = nodes,
                          .ports_100g = ports / gigabits_per_second(100),
                          .facility_peak = peak_power(out.facility)};
  out.cost =
      cost_of(spec.power->cost, holdings, run_usage(out.facility, spec.power->cost, all, Flops{}));
  return out;
}

}  // namespace lockstep
