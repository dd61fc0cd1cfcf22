#include "sim/scenario/read_power.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr Interval kUsd{0, 1e9};

std::string of_preset(const ClusterSite& site) {
  return " (of the cluster preset " + site.name + ")";
}

/// A number, or the name of a CSV file with a value for each hour.
HourlySeries read_hourly(const JsonCursor& from, const std::string& scenario,
                         const Interval& allowed) {
  if (!from.is_string()) return {.values = {from.number(allowed)}};
  const std::string written = from.string();
  if (written.find('\0') != std::string::npos) from.fail("a number, or the name of a CSV file");
  const std::string file = (std::filesystem::path(scenario).parent_path() / written).string();
  return parse_hourly(file, read_text_file(file), allowed.high, allowed.low);
}

/// The facility that a scenario has when it says nothing, or only changes it; says so.
std::string facility_left_open(const ClusterSite& site, std::vector<std::string>& assumptions) {
  std::string name = site.facility.empty() ? std::string(kDefaultFacility) : site.facility;
  assumptions.push_back("power.facility: " + name +
                        (site.facility.empty() ? std::string(" (not given)") : of_preset(site)));
  return name;
}

FacilitySpec read_facility_choice(const std::optional<JsonCursor>& from, const PresetStore& presets,
                                  const ClusterSite& site, std::vector<std::string>& assumptions) {
  const bool open = !from || (from->is_object() && !from->find("preset"));
  FacilitySpec out = presets.facility(open ? facility_left_open(site, assumptions)
                                           : read_preset_name(*from, "facilities", presets));
  if (!from || !from->is_object()) return out;
  declare_facility({*from, Extent::changes}, out);
  from->finish();
  return out;
}

constexpr int kMostGroups = 256;

void declare_stagger(const DeclaredMembers& member, StaggerSpec& out) {
  member.optional("over", out.over, Interval{1e-6, 3600},
                  "From the first group's begin to the last one's: a step takes as much longer, as "
                  "its gradients need all of them");
  member.optional("groups", out.groups, 2, kMostGroups,
                  "That replicas of data parallelism fall into, at most as many as there are");
}

void declare_smoothing(const DeclaredMembers& member, SmoothingSpec& out) {
  member.optional("floor", out.floor, Interval{0, 1e5},
                  "The card burns up to this while the job runs");
  member.optional("capacitor_joules", out.capacitor, Interval{0, 1e6},
                  "Energy storage in the supply, per GPU");
  member.optional("ramp_w_per_s", out.ramp_w_per_s, Interval{1, 1e18},
                  "A card's power changes by no more in a second: clocks follow it up, and it "
                  "burns what it does not need on the way down. Default: it follows at once");
  member.optional("stagger", out.stagger,
                  "Replicas begin their step one group after the other: power rises and falls in "
                  "stairs",
                  declare_stagger);
}

}  // namespace

void declare_site_power(const DeclaredMembers& member, PowerSpec& out) {
  member.optional(
      "facility", "facilities",
      "The site around the machines; default: that of the cluster's preset, else air_chiller",
      "A preset with changes",
      [](const DeclaredMembers& facility) {
        FacilitySpec spec;
        declare_facility(facility, spec);
      },
      [](const JsonCursor&) {});  // read_power(), also where none is given
  member.optional("outside_celsius", out.outside_celsius, Interval{-50, 60},
                  "Temperature of the air outside; default: 20");
}

void declare_limited_site(const DeclaredMembers& member, PowerSpec& out) {
  declare_site_power(member, out);
  member.optional("site_limit", out.site_limit, Interval{1, 1e12},
                  "A peak above it is said first, and site_excess_w is by how much. Default: the "
                  "power_limit of the cluster's preset");
}

void declare_power(const DeclaredMembers& member, PowerSpec& out) {
  member.optional("cap", out.cap, Interval{1, 1e5}, "Power cap of each GPU; lowers its clock");
  declare_site_power(member, out);
  member.optional("meter", out.meter, Interval{0, 3600},
                  "Averaging time of the meter whose readings are reported; default: 2 s");
  member.optional("ramp_window", out.ramp_window, Interval{1e-4, 3600},
                  "Ramp rates are differences over this time; default: 100 ms");
  member.optional("smoothing", out.smoothing, "What evens out the swing of a step",
                  declare_smoothing);
  member.optional("site_limit", out.site_limit, Interval{1, 1e12},
                  "How many nodes fit under it is reported; a job that draws more says so first, "
                  "and site_excess_w is by how much. Default: the power_limit of the cluster's "
                  "preset");
}

void declare_cost(const DeclaredMembers& member, const std::string& scenario, CostSpec& out) {
  constexpr ValueType kHourly =
      written_type(R"({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]})");
  constexpr ValueType kTariff =
      written_type(R"({"anyOf": [{"type": "number"}, {"type": "string"}]})");
  constexpr Interval kUsdPerKwh{-1e3, 1e3};  // markets have hours below zero
  member.optional("usd_per_gpu", out.usd_per_gpu, kUsd,
                  "Capital; without it and usd_per_node there is no cost of owning");
  member.optional("usd_per_node", out.usd_per_node, kUsd, "A server without its GPUs");
  member.optional("usd_per_100g_port", out.usd_per_100g_port, kUsd,
                  "A switch port with its plug, per 100 Gb/s");
  member.optional("usd_per_facility_w", out.usd_per_facility_w, kUsd,
                  "Building, power and cooling, by peak facility power");
  member.optional("years", out.years, Interval{0.1, 100},
                  "In which all of that is written off; default: 5");
  member.optional("utilisation", out.utilisation, Interval{0.01, 1},
                  "Of those years, in use; default: 1");
  member.optional(
      "usd_per_kwh", kTariff,
      "Energy tariff, which may be below 0: a number, or a CSV file with a line per hour",
      [&](const JsonCursor& at) { out.usd_per_kwh = read_hourly(at, scenario, kUsdPerKwh); });
  member.optional(
      "grams_per_kwh", kHourly,
      "Carbon dioxide of the grid: a number, or a CSV file with a line per hour; without, the "
      "answer has none",
      [&](const JsonCursor& at) { out.grams_per_kwh = read_hourly(at, scenario, {0, 1e4}); });
  member.optional("people_usd_per_hour", out.people_usd_per_hour, kUsd, "All people together");
  member.optional("hosting_usd_per_kw_month", out.hosting_usd_per_kw_month, kUsd,
                  "By peak facility power");
}

namespace {

void settle_site(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site,
                 PowerSpec& out, std::vector<std::string>& assumptions) {
  out.facility = read_facility_choice(from.find("facility"), presets, site, assumptions);
  if (!from.find("outside_celsius")) {
    assumptions.push_back(
        fmt::format("power.outside_celsius: {:g} (not given)", out.outside_celsius));
  }
}

void settle_site_limit(const ClusterSite& site, PowerSpec& out,
                       std::vector<std::string>& assumptions) {
  if (out.site_limit || !site.power_limit) return;
  out.site_limit = site.power_limit;
  assumptions.push_back(
      "power.site_limit: " + format_quantity(site.power_limit->base_units(), Dimension::power) +
      of_preset(site));
}

}  // namespace

PowerSpec read_site_power(const JsonCursor& from, const PresetStore& presets,
                          const ClusterSite& site, std::vector<std::string>& assumptions) {
  PowerSpec out;
  declare_site_power({from, Extent::changes}, out);
  settle_site(from, presets, site, out, assumptions);
  from.finish();
  return out;
}

PowerSpec read_limited_site(const JsonCursor& from, const PresetStore& presets,
                            const ClusterSite& site, std::vector<std::string>& assumptions) {
  PowerSpec out;
  declare_limited_site({from, Extent::changes}, out);
  settle_site(from, presets, site, out, assumptions);
  settle_site_limit(site, out, assumptions);
  from.finish();
  return out;
}

PowerSpec read_power(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site,
                     std::vector<std::string>& assumptions) {
  PowerSpec out;
  declare_power({from, Extent::changes}, out);
  settle_site(from, presets, site, out, assumptions);
  settle_site_limit(site, out, assumptions);
  from.finish();
  return out;
}

void read_cost(const JsonCursor& from, const std::string& file, CostSpec& out,
               std::vector<std::string>& assumptions) {
  declare_cost({from, Extent::changes}, file, out);
  const bool buys = out.usd_per_gpu > 0 || out.usd_per_node > 0 || out.usd_per_100g_port > 0 ||
                    out.usd_per_facility_w > 0;
  if (buys && !from.find("years")) {
    assumptions.push_back(fmt::format("cost.years: {:g} (not given)", out.years));
  }
  if (buys && !from.find("utilisation")) {
    assumptions.push_back(fmt::format("cost.utilisation: {:g} (not given)", out.utilisation));
  }
  from.finish();
}

}  // namespace lockstep
