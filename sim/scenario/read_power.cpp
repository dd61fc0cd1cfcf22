#include "sim/scenario/read_power.hpp"

#include <filesystem>

#include "models/input/text_file.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr Interval kUsd{0, 1e9};

/// A number, or the name of a CSV file with a value for each hour.
HourlySeries read_hourly(const JsonCursor& from, const std::string& scenario, double most) {
  if (!from.is_string()) return {.values = {from.number(Interval{0, most})}};
  const std::string written = from.string();
  if (written.find('\0') != std::string::npos) from.fail("a number, or the name of a CSV file");
  const std::string file = (std::filesystem::path(scenario).parent_path() / written).string();
  return parse_hourly(file, read_text_file(file), most);
}

void read_facility_choice(const JsonCursor& from, const PresetStore& presets, FacilitySpec& out) {
  const bool refines = from.is_object() && !from.find("preset");
  out = presets.facility(refines ? std::string(kDefaultFacility)
                                 : read_preset_name(from, "facilities", presets));
  if (!from.is_object()) return;
  read_facility(from, Extent::changes, out);
  from.finish();
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

PowerSpec read_power(const JsonCursor& from, const PresetStore& presets) {
  PowerSpec out;
  const MemberReader member(from, Extent::changes);
  constexpr Interval kGpuWatts{1, 1e5};
  out.facility = presets.facility(kDefaultFacility);
  member.optional("cap", [&](const JsonCursor& at) { out.cap = at.watts(kGpuWatts); });
  member.optional("facility",
                  [&](const JsonCursor& at) { read_facility_choice(at, presets, out.facility); });
  member.optional("outside_celsius", out.outside_celsius, Interval{-50, 60});
  member.optional("meter", out.meter, Interval{0, 3600});
  member.optional("ramp_window", out.ramp_window, Interval{1e-4, 3600});
  member.optional("smoothing", [&](const JsonCursor& at) { out.smoothing = read_smoothing(at); });
  member.optional("site_limit",
                  [&](const JsonCursor& at) { out.site_limit = at.watts(Interval{1, 1e12}); });
  from.finish();
  return out;
}

void read_cost(const JsonCursor& from, const std::string& file, CostSpec& out) {
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
  from.finish();
}

}  // namespace lockstep
