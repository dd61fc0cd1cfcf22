#include "sim/scenario/serving_regions.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostRegions = 256;
constexpr Interval kTokens{1, kMaxTokens};
constexpr Interval kAway{0, 10};
constexpr Interval kHourly{0, 1e9};
constexpr std::string_view kHoursSchema =
    R"({"type": "array", "minItems": 24, "maxItems": 24,
        "items": {"type": "number", "minimum": 0}})";
constexpr std::string_view kLatencySchema =
    R"({"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/time"}})";

void read_hours(const JsonCursor& list, std::vector<double>& out) {
  const std::vector<JsonCursor> hours = list.elements(kHoursOfDay);
  if (hours.size() != kHoursOfDay) list.fail("24 numbers, from the hour after midnight on");
  out.clear();
  for (const JsonCursor& hour : hours) out.push_back(hour.number(kHourly));
  if (std::reduce(out.begin(), out.end()) <= 0) list.fail("24 numbers, not all of them 0");
}

void declare_region(const DeclaredMembers& member, ServingRegion& out) {
  member.required("name", out.name, "Of the region");
  member.required("replicas", out.replicas, 1, kMaxGpus, "There, on whole nodes");
  member.optional("usd_per_gpu_hour", out.usd_per_gpu_hour, Interval{0, 1e6},
                  "Rent of a GPU there; default: the scenario's");
  member.optional("usd_per_kwh", out.usd_per_kwh, Interval{-10, 100},
                  "Energy there; default: the scenario's");
  member.optional("grams_per_kwh", out.grams_per_kwh, Interval{0, 1e4},
                  "Carbon dioxide of the grid there; default: the scenario's");
  member.optional("outside_celsius", out.outside_celsius, Interval{-60, 60},
                  "Outside, which moves the PUE there; default: the scenario's");
}

template <class Named>
void check_names(const JsonCursor& list, const std::vector<Named>& all) {
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const JsonCursor& one : list.elements(kMostPopulations)) {
    if (i == all.size()) return;  // an example stands for the list
    if (!seen.insert(all[i++].name).second) one.at("name").fail("a name that no other one has");
  }
}

/// Puts the latencies of a population in the order of the regions.
void settle_away(const JsonCursor& at, const std::vector<std::string>& regions,
                 ServingPopulation& out) {
  out.away.assign(regions.size(), std::nullopt);
  for (const auto& [name, time] : out.latency) {
    const auto found = std::ranges::find(regions, name);
    if (found == regions.end()) {
      at.at("latency").at(name).fail(
          fmt::format("a region in front of it: {}", fmt::join(regions, ", ")),
          nearest_name(name, regions));
    }
    out.away[static_cast<std::size_t>(found - regions.begin())] = to_run_time(time);
  }
}

void check_region_keys(const JsonCursor& serving, const ServingSpec& spec) {
  const JsonCursor regions = serving.at("regions");
  if (spec.pools.size() > 1) {
    regions.fail(R"(no such key beside two pools: each region has replicas of "both")");
  }
  const ServingPool& pool = spec.pools.front();
  if (pool.autoscale) {
    serving.at("pools").at("both").at("autoscale").fail("no such key beside \"regions\"");
  }
  const int sum = replicas_of(spec.regions);
  if (pool.replicas != sum) {
    serving.at("pools")
        .at("both")
        .at("replicas")
        .fail(fmt::format("{}: so many have the regions together, or no such key", sum));
  }
}

void check_region(const JsonCursor& at, const ServingRegion& region, const ServingSpec& spec) {
  const ServingPool& pool = spec.pools.front();
  const int node = spec.node_of(pool).gpus;
  if (region.replicas * pool.gpus() % node != 0) {
    at.at("replicas")
        .fail(fmt::format("a multiple of {}: replicas of {} fill whole nodes of {}",
                          node / std::gcd(node, pool.gpus()), counted(pool.gpus(), "GPU"), node));
  }
  if (spec.power) return;
  for (const std::string_view key : {"usd_per_kwh", "grams_per_kwh", "outside_celsius"}) {
    if (const auto given = at.find(key)) given->fail("no such key where there is no \"power\"");
  }
}

/// Whether every region has the figure that the order goes by.
void check_region_order(const JsonCursor& serving, const ServingSpec& spec) {
  for (const ServingRegion& region : spec.regions.all) {
    const bool priced = region.usd_per_gpu_hour || spec.gpu_hour_usd(spec.pools.front()) ||
                        region.usd_per_kwh || (spec.power && has_prices(spec.power->cost));
    const bool carbon = region.grams_per_kwh || (spec.power && spec.power->cost.grams_per_kwh);
    if (spec.regions.order == RegionOrder::cheapest && !priced) {
      serving.at("region_order")
          .fail(fmt::format("nearest, as nothing has a price in {}", region.name));
    }
    if (spec.regions.order == RegionOrder::cleanest && !carbon) {
      serving.at("region_order")
          .fail(fmt::format("nearest, as nobody says grams_per_kwh of {}", region.name));
    }
  }
}

/// What regions are put in order by, the less the better.
std::pair<double, double> rank_of(const ServingSpec& spec, const ServingRegion& region) {
  const auto mean = [](const HourlySeries& of) {
    return std::reduce(of.values.begin(), of.values.end()) / static_cast<double>(of.values.size());
  };
  switch (spec.regions.order) {
    case RegionOrder::cheapest: {
      const double rent =
          region.usd_per_gpu_hour.value_or(spec.gpu_hour_usd(spec.pools.front()).value_or(0));
      const double energy =
          region.usd_per_kwh.value_or(spec.power ? mean(spec.power->cost.usd_per_kwh) : 0);
      return {rent, energy};
    }
    case RegionOrder::cleanest: {
      const bool given = spec.power && spec.power->cost.grams_per_kwh;
      return {region.grams_per_kwh.value_or(given ? mean(*spec.power->cost.grams_per_kwh) : 0), 0};
    }
    case RegionOrder::nearest:
      break;
  }
  return {0, 0};
}

}  // namespace

void declare_lengths(const DeclaredMembers& member, ServingLengths& out) {
  member.optional("mean", out.mean, kTokens, "Tokens");
  member.optional("sigma", out.sigma, Interval{0, 4},
                  "Of the logarithm of a length; default: 0, all are of mean length");
  member.optional("most", out.most, 1, kMaxTokens, "Longer ones are cut");
  member.optional("low", out.low, 1, kMaxTokens, "Uniform from this length");
  member.optional("high", out.high, 1, kMaxTokens, "up to this one, instead");
}

void check_lengths(const JsonCursor& at, const ServingLengths& of) {
  if (of.low > 0 || of.high > 0) {
    if (of.mean > 0) at.at("mean").fail(R"(no mean beside "low" and "high")");
    const int high = at.at("high").integer(1, kMaxTokens);
    if (at.at("low").integer(1, kMaxTokens) > high) at.at("low").fail("at most \"high\"");
    return;
  }
  if (of.mean == 0) (void)at.at("mean").number(kTokens);
  if (of.most > 0 && of.most < of.mean) {
    at.at("most").fail(fmt::format("at least the mean, {}", plain_number(of.mean)));
  }
}

void declare_population(const DeclaredMembers& member, ServingPopulation& out) {
  member.required("name", out.name, "Of these users");
  member.optional("share", out.share, Interval{0, 1e9, true},
                  "Of the requests, in proportion to the others' shares; default: 1");
  member.optional("hours", written_type(kHoursSchema),
                  "How many ask in each hour of the day, in proportion: 24 numbers, by the clock "
                  "that start_hour is of; default: all hours alike",
                  [&](const JsonCursor& list) { read_hours(list, out.hours); });
  member.optional("input", out.input, "Tokens of their prompts; default: the load's",
                  declare_lengths);
  member.optional("output", out.output, "Tokens of their answers; default: the load's",
                  declare_lengths);
  member.optional("latency", written_type(kLatencySchema),
                  "Of the network, there and back, to each region that may serve them: "
                  "{\"Frankfurt\": \"20 ms\"}; requests go to none that is not named",
                  [&](const JsonCursor& at) {
                    out.latency.clear();
                    for (const std::string& name : at.keys()) {
                      out.latency.emplace_back(
                          name, Seconds{at.at(name).quantity(Dimension::time, kAway)});
                    }
                    if (out.latency.empty()) at.fail("at least one region");
                  });
  member.optional("objectives", out.objectives,
                  "What each of their requests should keep; default: as the service's",
                  declare_request_limits);
}

void declare_regions(const DeclaredMembers& member, ServingRegions& out) {
  member.optional("regions", kMostRegions, "A region",
                  "Where the replicas are, of one pool in several places; users say how far these "
                  "are (load.populations)",
                  out.all, declare_region, [&](const JsonCursor& list) {
                    out.all.clear();
                    for (const JsonCursor& one : list.elements(kMostRegions)) {
                      declare_region({one, Extent::whole}, out.all.emplace_back());
                      one.finish();
                    }
                    if (out.all.empty()) list.fail("at least one region");
                  });
  member.optional("region_order", out.order, kRegionOrderNames,
                  "Which region a request goes to first, of those that may take it; default: "
                  "nearest");
  member.optional(
      "region_spill", out.spill, 1, 1 << 24,
      "Requests of the least loaded replica of a region, waiting or worked on, from "
      "which on the next region takes them; default: as many as a replica runs at once");
}

int replicas_of(const ServingRegions& regions) {
  int sum = 0;
  for (const ServingRegion& region : regions.all) sum += region.replicas;
  return sum;
}

void settle_regions(const JsonCursor& serving, bool searched, ServingSpec& out) {
  const JsonCursor load = serving.at("load");
  const auto populations = load.find("populations");
  if (populations) check_names(*populations, out.populations);
  std::vector<std::string> names;
  for (const ServingRegion& region : out.regions.all) names.push_back(region.name);
  if (names.empty()) {
    for (const std::string_view key : {"region_order", "region_spill"}) {
      if (const auto at = serving.find(key)) at->fail("no such key without \"regions\"");
    }
    if (!populations) return;
    for (const JsonCursor& one : populations->elements(kMostPopulations)) {
      if (const auto at = one.find("latency")) at->fail("no such key without \"regions\"");
    }
    return;
  }
  const JsonCursor regions = serving.at("regions");
  if (searched) regions.fail("no such key where pools are searched for");
  check_region_keys(serving, out);
  check_names(regions, out.regions.all);
  std::size_t i = 0;
  for (const JsonCursor& one : regions.elements(kMostRegions)) {
    if (i == out.regions.all.size()) break;  // an example stands for the list
    check_region(one, out.regions.all[i++], out);
  }
  check_region_order(serving, out);
  // Nothing goes by the temperature of the whole where each region has its own.
  const auto has_own = [](const ServingRegion& of) { return of.outside_celsius.has_value(); };
  if (std::ranges::all_of(out.regions.all, has_own)) {
    std::erase_if(out.assumptions, [](const std::string& line) {
      return line.starts_with("power.outside_celsius: ");
    });
  }
  i = 0;
  for (const JsonCursor& one : load.at("populations").elements(kMostPopulations)) {
    if (i == out.populations.size()) break;
    (void)one.at("latency");
    settle_away(one, names, out.populations[i++]);
  }
  if (out.regions.spill > 0) return;
  out.regions.spill = out.pools.front().engine.serving->most_sequences;
  out.assumptions.push_back(
      fmt::format("region_spill: {} of every replica, as many as one runs at once (not given)",
                  counted(out.regions.spill, "request")));
}

std::vector<std::uint32_t> region_order(const ServingSpec& spec, const ServingPopulation& of) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t r = 0; r < of.away.size(); ++r) {
    if (of.away[r]) out.push_back(r);
  }
  std::ranges::stable_sort(out, {}, [&](std::uint32_t r) {
    return std::pair(rank_of(spec, spec.regions.all[r]), *of.away[r]);
  });
  return out;
}

}  // namespace lockstep
