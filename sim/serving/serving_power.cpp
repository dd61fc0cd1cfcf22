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

/// Power of all GPUs of a pool over the run, until `end`.
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

const PoolAccount& account_of(const ServeResult& result, std::size_t pool) {
  assert(pool < 2);
  return pool == 0 ? result.serving : result.decoding;
}

/// Nodes of one kind, each held whole, and the draw of the replicas' GPUs on them.
struct HeldNodes {
  const NodeSpec* node = nullptr;
  int gpus = 0;  ///< GPUs of the replicas
  PowerSeries drawn{};

  [[nodiscard]] double count() const { return nodes_held(gpus, *node); }
};

void add_pool(const ServingSpec& spec, const ServingPool& pool, const PowerSeries& series,
              std::vector<HeldNodes>& out) {
  const NodeSpec& node = spec.node_of(pool);
  const auto known = std::ranges::find(out, &node, &HeldNodes::node);
  if (known == out.end()) {
    out.push_back({&node, pool.replicas * pool.gpus(), series});
    return;
  }
  known->gpus += pool.replicas * pool.gpus();
  known->drawn = sum_of(known->drawn, series);
}

/// Power at the meters of the nodes.
PowerSeries metered_nodes(const HeldNodes& held) {
  const NodeSpec& node = *held.node;
  const double nodes = held.count();
  const Watts unused = (nodes * node.gpus - held.gpus) * node.gpu.power_idle;
  PowerSeries out = held.drawn;
  for (Watts& level : out.power) {
    level = nodes * node_power(node, (level + unused) / nodes, true).ac();
  }
  return out;
}

}  // namespace

double nodes_held(int gpus, const NodeSpec& node) {
  return std::ceil(static_cast<double>(gpus) / node.gpus);
}

Watts gpu_limit(const ServingSpec& spec) {
  if (spec.cluster.pools.empty()) return spec.cluster.node.gpu.power_limit;
  Watts sum;
  for (const ServingPool& pool : spec.pools) {
    sum += static_cast<double>(pool.replicas * pool.gpus()) * spec.node_of(pool).gpu.power_limit;
  }
  return sum / static_cast<double>(spec.gpus());
}

TokenPrice token_price(double usd, const ServingFigures& f) {
  TokenPrice out{.usd = usd};
  const double all = f.input_tokens + f.output_tokens;
  if (f.output_tokens > 0) out.per_million_output = kMillion * usd / f.output_tokens;
  if (all > 0) out.per_million = kMillion * usd / all;
  return out;
}

std::optional<double> pool_rent_usd(const ServingSpec& spec, const ServeResult& result,
                                    std::size_t pool) {
  const ServingPool& of = spec.pools[pool];
  const std::optional<double> hour = spec.gpu_hour_usd(of);
  if (!hour) return std::nullopt;
  const Seconds on = static_cast<double>(of.replicas) * to_seconds(result.end) -
                     to_seconds(account_of(result, pool).off);
  return *hour * (static_cast<double>(of.gpus()) * on).base_units() / kHour;
}

std::optional<TokenPrice> rent_of(const ServingSpec& spec, const ServeResult& result,
                                  const ServingFigures& figures) {
  double usd = 0;
  for (std::size_t p = 0; p < spec.pools.size(); ++p) {
    const std::optional<double> of_pool = pool_rent_usd(spec, result, p);
    if (!of_pool) return std::nullopt;
    usd += *of_pool;
  }
  return token_price(usd, figures);
}

ServingPower serving_power(const ServingSpec& spec, const ServeResult& result,
                           const ServingFigures& figures) {
  assert(spec.power);
  ServingPower out;
  std::vector<HeldNodes> held;
  for (std::size_t p = 0; p < spec.pools.size(); ++p) {
    const ServingPool& pool = spec.pools[p];
    const NodeSpec& node = spec.node_of(pool);
    assert(node.gpu.power && node.chassis);
    const PowerSeries series =
        pool_series(pool, account_of(result, p).over_time, node.gpu.power->awake, result.end);
    out.pools.push_back(mean_power(series) / static_cast<double>(pool.replicas * pool.gpus()));
    out.gpus = p == 0 ? series : sum_of(out.gpus, series);
    add_pool(spec, pool, series, held);
  }
  Holdings holdings;
  PowerSeries metered;
  for (const HeldNodes& of : held) {
    holdings.nodes += of.count();
    holdings.gpus += of.count() * of.node->gpus;
    metered = &of == held.data() ? metered_nodes(of) : sum_of(metered, metered_nodes(of));
  }
  const BytesPerSecond ports = holdings.nodes / spec.cluster.nodes * switch_ports(spec.cluster);
  holdings.ports_100g = ports / gigabits_per_second(100);
  const FacilitySpec& site = spec.power->facility;
  const Watts network = fabric_power(site, ports).total();
  out.pue = power_usage_effectiveness(site, spec.power->outside_celsius);
  for (std::size_t i = 0; i < metered.size(); ++i) {
    out.facility.add(metered.until(i) - metered.start[i], out.pue * (metered.power[i] + network));
  }
  holdings.facility_peak = peak_power(out.facility);
  const double joules = energy(out.facility).base_units();
  const double all = figures.input_tokens + figures.output_tokens;
  if (figures.output_tokens > 0) out.joules_per_output_token = joules / figures.output_tokens;
  if (all > 0) out.joules_per_token = joules / all;
  out.cost =
      cost_of(spec.power->cost, holdings, run_usage(out.facility, spec.power->cost, all, Flops{}));
  return out;
}

}  // namespace lockstep
