#include "sim/serving/region_report.hpp"

#include "sim/serving/objectives.hpp"
#include "sim/serving/serving_power.hpp"

namespace lockstep {
namespace {

ServingPopulationReport population_report(const ServingSpec& spec, const RegionPlan& regions,
                                          std::size_t population) {
  ServingPopulationReport out{.name = spec.populations[population].name, .figures = {}};
  std::vector<ServedRequest> theirs;
  for (const ServedRequest& r : spec.requests) {
    if (static_cast<std::size_t>(r.population) == population) theirs.push_back(r);
  }
  out.requests = static_cast<double>(theirs.size());
  out.figures = serving_figures(theirs, {});
  out.attained = attained_share(spec, population);
  if (!regions.any() || out.figures.served == 0) return out;
  const auto served = static_cast<double>(out.figures.served);
  for (const ServingRegion& region : spec.regions.all) out.regions.emplace_back(region.name, 0);
  for (const ServedRequest& r : theirs) {
    if (!r.served()) continue;
    out.regions[regions.region_of(static_cast<std::uint32_t>(r.replica))].second += 1 / served;
    out.away_s += 2 * to_seconds(regions.one_way(r)).base_units() / served;
  }
  return out;
}

}  // namespace

std::vector<ServingPopulationReport> population_reports(const ServingSpec& spec,
                                                        const RegionPlan& regions) {
  std::vector<ServingPopulationReport> out;
  for (std::size_t p = 0; p < spec.populations.size(); ++p) {
    out.push_back(population_report(spec, regions, p));
  }
  return out;
}

std::vector<ServingRegionReport> region_reports(const ServingSpec& spec, const RegionPlan& regions,
                                                const ServeResult& result, double span_s) {
  std::vector<ServingRegionReport> out;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const ServingRegion& of = spec.regions.all[r];
    ServingRegionReport report{
        .name = of.name, .replicas = of.replicas, .gpus = of.replicas * spec.pools[0].gpus()};
    const double busy = result.regions[r].busy.total().base_units();
    if (span_s > 0) report.busy = busy / (span_s * of.replicas);
    report.rent_usd = region_rent_usd(spec, result, r);
    if (spec.power) {
      const RegionPower power = region_power(spec, result, r);
      report.energy_j = energy(power.facility).base_units();
      report.energy_usd = power.cost.energy_usd;
      report.tonnes_co2 = power.cost.tonnes_co2;
    }
    out.push_back(std::move(report));
  }
  if (out.empty()) return out;
  for (const ServedRequest& r : spec.requests) {
    if (!r.served()) continue;
    ServingRegionReport& here = out[regions.region_of(static_cast<std::uint32_t>(r.replica))];
    here.requests += 1;
    here.output_tokens += r.output;
  }
  return out;
}

}  // namespace lockstep
