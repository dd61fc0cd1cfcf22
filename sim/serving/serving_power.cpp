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

/// Power of all GPUs of so many replicas of a pool over the run, until `end`.
PowerSeries pool_series(const ServingPool& pool, int replicas, const PassBins& of, Watts awake,
                        RunTime end) {
  const Seconds width = to_seconds(of.width());
  const Watts idle = static_cast<double>(replicas * pool.gpus()) * awake;
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

/// Nodes with their share of the fabric, and what surrounds them.
struct ServedSite {
  PowerSeries facility;
  double pue = 1;
  Holdings holdings;
};

ServedSite served_site(const ServingSpec& spec, const std::vector<HeldNodes>& held,
                       const FacilitySpec& facility, double outside_celsius) {
  ServedSite out;
  PowerSeries metered;
  for (const HeldNodes& of : held) {
    out.holdings.nodes += of.count();
    out.holdings.gpus += of.count() * of.node->gpus;
    metered = &of == held.data() ? metered_nodes(of) : sum_of(metered, metered_nodes(of));
  }
  const BytesPerSecond ports = out.holdings.nodes / spec.cluster.nodes * switch_ports(spec.cluster);
  out.holdings.ports_100g = ports / gigabits_per_second(100);
  const Watts network = fabric_power(facility, ports).total();
  out.pue = power_usage_effectiveness(facility, outside_celsius);
  for (std::size_t i = 0; i < metered.size(); ++i) {
    out.facility.add(metered.until(i) - metered.start[i], out.pue * (metered.power[i] + network));
  }
  out.holdings.facility_peak = peak_power(out.facility);
  return out;
}

/// Adds up what regions cost, but for what is counted by token.
void add_cost(const CostReport& of, CostReport& out) {
  for (const auto member :
       {&CapitalReport::machines_usd, &CapitalReport::network_usd, &CapitalReport::building_usd}) {
    out.capital.*member += of.capital.*member;
  }
  for (const auto member : {&CostReport::gpus_usd, &CostReport::nodes_usd, &CostReport::network_usd,
                            &CostReport::building_usd, &CostReport::energy_usd,
                            &CostReport::people_usd, &CostReport::hosting_usd}) {
    out.*member += of.*member;
  }
  if (of.cloud_usd) out.cloud_usd = out.cloud_usd.value_or(0) + *of.cloud_usd;
  if (of.tonnes_co2) out.tonnes_co2 = out.tonnes_co2.value_or(0) + *of.tonnes_co2;
}

/// The scenario's prices, where a region has none of its own. People are counted once, with the
/// first region.
CostSpec prices_of(const ServingSpec& spec, std::size_t region) {
  const ServingRegion& of = spec.regions.all[region];
  CostSpec out = spec.power->cost;
  if (of.usd_per_kwh) out.usd_per_kwh.values = {*of.usd_per_kwh};
  if (of.grams_per_kwh) out.grams_per_kwh = HourlySeries{{*of.grams_per_kwh}};
  if (of.usd_per_gpu_hour) out.usd_per_gpu_hour = of.usd_per_gpu_hour;
  if (region > 0) out.people_usd_per_hour = 0;
  return out;
}

/// The sum of all regions. Carbon is known where it is known of all of them.
void add_regions(const ServingSpec& spec, const ServeResult& result, double tokens,
                 ServingPower& out) {
  Joules it;
  bool carbon = true;
  for (std::size_t r = 0; r < spec.regions.all.size(); ++r) {
    const RegionPower of = region_power(spec, result, r);
    out.facility = r == 0 ? of.facility : sum_of(out.facility, of.facility);
    it += energy(of.facility) / of.pue;
    carbon = carbon && of.cost.tonnes_co2;
    add_cost(of.cost, out.cost);
  }
  out.pue = energy(out.facility) / it;
  if (!carbon) out.cost.tonnes_co2.reset();
  if (tokens > 0) out.cost.usd_per_trillion_tokens = out.cost.total_usd() / tokens * 1e12;
}

}  // namespace

RegionPower region_power(const ServingSpec& spec, const ServeResult& result, std::size_t region) {
  assert(spec.power);
  const ServingPool& pool = spec.pools.front();
  const NodeSpec& node = spec.node_of(pool);
  assert(node.gpu.power && node.chassis);
  const ServingRegion& of = spec.regions.all[region];
  RegionPower out;
  out.gpus = pool_series(pool, of.replicas, result.regions[region].over_time, node.gpu.power->awake,
                         result.end);
  const double outside = of.outside_celsius.value_or(spec.power->outside_celsius);
  ServedSite site = served_site(spec, {{&node, of.replicas * pool.gpus(), out.gpus}},
                                spec.power->facility, outside);
  const CostSpec prices = prices_of(spec, region);
  out.pue = site.pue;
  out.facility = std::move(site.facility);
  out.cost = cost_of(prices, site.holdings, run_usage(out.facility, prices, 0, Flops{}));
  return out;
}

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

std::optional<double> region_rent_usd(const ServingSpec& spec, const ServeResult& result,
                                      std::size_t region) {
  const ServingPool& pool = spec.pools.front();
  const ServingRegion& of = spec.regions.all[region];
  const std::optional<double> hour =
      of.usd_per_gpu_hour ? of.usd_per_gpu_hour : spec.gpu_hour_usd(pool);
  if (!hour) return std::nullopt;
  return *hour * of.replicas * pool.gpus() * to_seconds(result.end).base_units() / kHour;
}

std::optional<TokenPrice> rent_of(const ServingSpec& spec, const ServeResult& result,
                                  const ServingFigures& figures) {
  double usd = 0;
  for (std::size_t r = 0; r < spec.regions.all.size(); ++r) {
    const std::optional<double> of_region = region_rent_usd(spec, result, r);
    if (!of_region) return std::nullopt;
    usd += *of_region;
  }
  if (!spec.regions.all.empty()) return token_price(usd, figures);
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
    const PowerSeries series = pool_series(pool, pool.replicas, account_of(result, p).over_time,
                                           node.gpu.power->awake, result.end);
    out.pools.push_back(mean_power(series) / static_cast<double>(pool.replicas * pool.gpus()));
    out.gpus = p == 0 ? series : sum_of(out.gpus, series);
    add_pool(spec, pool, series, held);
  }
  const double all = figures.input_tokens + figures.output_tokens;
  if (spec.regions.all.empty()) {
    ServedSite site = served_site(spec, held, spec.power->facility, spec.power->outside_celsius);
    out.pue = site.pue;
    out.facility = std::move(site.facility);
    out.cost = cost_of(spec.power->cost, site.holdings,
                       run_usage(out.facility, spec.power->cost, all, Flops{}));
  } else {
    add_regions(spec, result, all, out);
  }
  const double joules = energy(out.facility).base_units();
  if (figures.output_tokens > 0) out.joules_per_output_token = joules / figures.output_tokens;
  if (all > 0) out.joules_per_token = joules / all;
  return out;
}

}  // namespace lockstep
