#include "sim/scenario/read_power.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr Interval kUsd{0, 1e9};

std::string of_preset(const ClusterSite& site) {
  return " (of the cluster preset " + site.name + ")";
}

/// A number, or the name of a CSV file with a value for each hour.
HourlySeries read_hourly(const JsonCursor& from, const std::string& scenario, double most) {
  if (!from.is_string()) return {.values = {from.number(Interval{0, most})}};
  const std::string written = from.string();
  if (written.find('\0') != std::string::npos) from.fail("a number, or the name of a CSV file");
  const std::string file = (std::filesystem::path(scenario).parent_path() / written).string();
  return parse_hourly(file, read_text_file(file), most);
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

SmoothingSpec read_smoothing(const JsonCursor& from) {
  SmoothingSpec out;
  const MemberReader member(from, Extent::changes);
  member.optional("floor", out.floor, Interval{0, 1e5});
  member.optional("capacitor_joules", out.capacitor, Interval{0, 1e6});
  from.finish();
  return out;
}

}  // namespace

PowerSpec read_power(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site,
                     std::vector<std::string>& assumptions) {
  PowerSpec out;
  const MemberReader member(from, Extent::changes);
  constexpr Interval kGpuWatts{1, 1e5};
  member.optional("cap", [&](const JsonCursor& at) { out.cap = at.watts(kGpuWatts); });
  out.facility = read_facility_choice(from.find("facility"), presets, site, assumptions);
  member.optional("outside_celsius", out.outside_celsius, Interval{-50, 60});
  if (!from.find("outside_celsius")) {
    assumptions.push_back(
        fmt::format("power.outside_celsius: {:g} (not given)", out.outside_celsius));
  }
  member.optional("meter", out.meter, Interval{0, 3600});
  member.optional("ramp_window", out.ramp_window, Interval{1e-4, 3600});
  member.optional("smoothing", [&](const JsonCursor& at) { out.smoothing = read_smoothing(at); });
  member.optional("site_limit",
                  [&](const JsonCursor& at) { out.site_limit = at.watts(Interval{1, 1e12}); });
  if (!out.site_limit && site.power_limit) {
    out.site_limit = site.power_limit;
    assumptions.push_back(
        "power.site_limit: " + format_quantity(site.power_limit->base_units(), Dimension::power) +
        of_preset(site));
  }
  from.finish();
  return out;
}

void read_cost(const JsonCursor& from, const std::string& file, CostSpec& out,
               std::vector<std::string>& assumptions) {
  const MemberReader member(from, Extent::changes);
  member.optional("usd_per_gpu", out.usd_per_gpu, kUsd);
  member.optional("usd_per_node", out.usd_per_node, kUsd);
  member.optional("usd_per_100g_port", out.usd_per_100g_port, kUsd);
  member.optional("usd_per_facility_w", out.usd_per_facility_w, kUsd);
  member.optional("years", out.years, Interval{0.1, 100});
  member.optional("utilisation", out.utilisation, Interval{0.01, 1});
  member.optional("usd_per_kwh",
                  [&](const JsonCursor& at) { out.usd_per_kwh = read_hourly(at, file, 1e3); });
  member.optional("grams_per_kwh",
                  [&](const JsonCursor& at) { out.grams_per_kwh = read_hourly(at, file, 1e4); });
  member.optional("people_usd_per_hour", out.people_usd_per_hour, kUsd);
  member.optional("hosting_usd_per_kw_month", out.hosting_usd_per_kw_month, kUsd);
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
