#include "sim/search/read_regions.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "sim/scenario/hourly_file.hpp"

namespace lockstep {
namespace {

constexpr Interval kRegionBandwidth{1e3, 1e16};
constexpr Interval kEgressUsd{0, 1e3};
constexpr std::string_view kMayLeave = R"({"anyOf": [
    {"description": "false: it stays where it lies; true: anywhere", "type": "boolean"},
    {"description": "Regions that it may go to", "type": "array", "maxItems": 32,
     "items": {"type": "string"}}]})";

void declare_region(const DeclaredMembers& member, PlanRegion& out) {
  member.required("name", out.name, "What answers call it");
  member.optional("about", out.about, "What it is, and where its values are from");
  member.optional("latency", out.latency, Interval{0, 3600},
                  "One way, to what joins the regions; default: 0");
  member.optional("bandwidth", out.bandwidth, kRegionBandwidth,
                  "In and out, each way; required beside \"data\" where there are several regions");
  member.optional("egress_usd_per_gb", out.egress_usd_per_gb, kEgressUsd,
                  "For 1e9 bytes that leave it; required beside \"data\" where there are several "
                  "regions");
  member.optional("price_factor", out.price_factor, Interval{0, 1e3, true},
                  "On prices of machines, building and GPU-hours; default: 1");
  member.optional("scenario", written_type(R"({"type": "object"})"),
                  "What differs there, over the candidate's own \"scenario\" (RFC 7396): cost, "
                  "power, price, run.site",
                  [](const JsonCursor&) {});  // by who puts a candidate's scenario together
}

void read_region_list(const JsonCursor& list, PlanSpec& out) {
  for (const JsonCursor& at : list.elements(kMostRegions)) {
    PlanRegion region;
    declare_region({at, Extent::whole}, region);
    region.pointer = at.pointer();
    region.unnamed = !at.find("name");
    at.finish();
    const auto same = std::ranges::find(out.regions, region.name, &PlanRegion::name);
    if (region.name.empty()) at.at("name").fail("a name");
    if (same != out.regions.end()) at.at("name").fail("a name that no other region has");
    out.regions.push_back(std::move(region));
  }
  if (out.regions.empty() && !list.is_missing()) list.fail("at least one region");
}

std::vector<std::string_view> names_of(const std::vector<PlanRegion>& regions) {
  std::vector<std::string_view> out;
  out.reserve(regions.size());
  for (const PlanRegion& region : regions) out.push_back(region.name);
  return out;
}

/// What the one without a name should be called is unknown elsewhere, and would be told again.
bool is_one_unnamed(const std::vector<PlanRegion>& regions) {
  return std::ranges::any_of(regions, &PlanRegion::unnamed);
}

void declare_plan_data(const DeclaredMembers& member, const std::vector<PlanRegion>& regions,
                       PlanData& out) {
  static constexpr ValueType kRegionName = text_type();
  member.required("bytes", out.bytes, Interval{1, 1e24}, "Of the dataset that is trained on");
  member.required("regions", list_type(kRegionName, kMostRegions, 1),
                  "Where all of it lies already", [&](const JsonCursor& at) {
                    out.in = read_region_names(at, regions);
                    if (out.in.empty() && !at.is_missing()) at.fail("at least one region");
                  });
  member.optional("may_leave", written_type(kMayLeave),
                  "Whether the law lets it go where it does not lie yet; default: true",
                  [&](const JsonCursor& at) {
                    if (at.is_array()) {
                      out.may_go = read_region_names(at, regions);
                    } else if (!at.boolean()) {
                      out.may_go.emplace();
                    }
                  });
  member.optional(
      "checkpoints_to", text_type(),
      "A region that the last checkpoint is brought to; default: it stays",
      [&](const JsonCursor& at) { out.checkpoints_to = read_region_name(at, regions); });
  member.optional("checkpoints_every", out.checkpoints_every, Interval{60, 1e9},
                  "A copy on the way, beside training; default: the last one alone");
  const JsonCursor* const from = member.object();
  if (from != nullptr && out.checkpoints_every) (void)from->at("checkpoints_to");
}

/// Names of the regions that candidates ask for, and the data may not be in.
std::vector<std::string_view> refused_regions(const PlanSpec& plan) {
  std::vector<std::string_view> out;
  for (const PlanCandidate& candidate : plan.candidates) {
    if (candidate.refused.empty()) continue;
    const std::string_view name = candidate.place->name;
    if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  }
  return out;
}

/// One dataset: what moves is what is staged then.
void check_dataset(const JsonCursor& root, const PlanSpec& plan) {
  if (!plan.data) return;
  for (const PlanCandidate& candidate : plan.candidates) {
    const std::optional<DataSpec>& read = candidate.run.data;
    if (!read || !read->dataset || *read->dataset == plan.data->bytes) continue;
    root.at("data").at("bytes").fail(fmt::format("the {:g} bytes of run.data.dataset of {}",
                                                 read->dataset->base_units(), candidate.name));
  }
}

bool pays_energy(const PlanCandidate& candidate) {
  return std::ranges::any_of(candidate.scenario.power->cost.usd_per_kwh.values,
                             [](double usd) { return usd != 0; });
}

/// Names of those in which the data may be, where it may not be everywhere.
std::vector<std::string_view> data_regions(const PlanSpec& plan, const PlanData& data) {
  std::vector<std::string_view> out;
  for (const auto* list : {&data.in, &*data.may_go}) {
    for (const std::size_t each : *list) out.push_back(plan.regions[each].name);
  }
  return out;
}

}  // namespace

std::size_t read_region_name(const JsonCursor& at, const std::vector<PlanRegion>& regions) {
  const std::vector<std::string_view> names = names_of(regions);
  const auto known = std::ranges::find(names, at.is_string() ? at.string() : std::string());
  if (known == names.end() && is_one_unnamed(regions)) return 0;
  return at.choice(names);
}

std::vector<std::size_t> read_region_names(const JsonCursor& list,
                                           const std::vector<PlanRegion>& regions) {
  const bool unnamed = is_one_unnamed(regions);
  std::vector<std::size_t> out;
  for (const JsonCursor& at : list.elements(kMostRegions)) {
    const std::size_t region = read_region_name(at, regions);
    if (!unnamed && std::ranges::find(out, region) != out.end()) at.fail("each region once");
    out.push_back(region);
  }
  return out;
}

void declare_regions(const DeclaredMembers& member, PlanSpec& out) {
  member.optional("start", text_type(),
                  "Local time at which the plan begins, such as 2027-01-04T00:00; default: answers "
                  "count days",
                  [&](const JsonCursor& at) {
                    const auto time = parse_civil_time(at.string());
                    if (!time) at.fail("a time like 2027-01-04T00:00");
                    out.start = time->local;
                  });
  member.optional(
      "regions", kMostRegions, "", "Where candidates may train",
      [](const DeclaredMembers& one) {
        PlanRegion region;
        declare_region(one, region);
      },
      [&](const JsonCursor& list) { read_region_list(list, out); });
  member.optional("data", out.data, "What is trained on, and in which regions it may be",
                  [&](const DeclaredMembers& inner, PlanData& data) {
                    // Names of regions that do not stand there would be told one by one.
                    if (inner.object() != nullptr && out.regions.empty()) {
                      inner.object()->fail("only beside \"regions\"");
                    }
                    declare_plan_data(inner, out.regions, data);
                  });
}

void settle_regions(const JsonCursor& root, PlanSpec& out) {
  if (!out.data || out.regions.size() < 2) return;
  const std::vector<JsonCursor> list = root.at("regions").elements(kMostRegions);
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.regions[i].bandwidth = list[i].at("bandwidth").data_rate(kRegionBandwidth);
    out.regions[i].egress_usd_per_gb = list[i].at("egress_usd_per_gb").number(kEgressUsd);
  }
}

void place_candidate(const PlanSpec& plan, std::size_t region, PlanCandidate& out) {
  const PlanData nothing;
  const PlanData& data = plan.data ? *plan.data : nothing;
  PlanPlace place = place_in(plan.regions, data, region);
  if (!data.may_be_in(region)) {
    out.refused = fmt::format("its data may be in {} alone (data.may_leave), not in {}",
                              fmt::join(data_regions(plan, data), ", "), place.name);
  }
  out.price_factor = plan.regions[region].price_factor;
  out.place = std::make_shared<const PlanPlace>(std::move(place));
}

void check_places(const JsonCursor& root, const PlanSpec& plan) {
  if (plan.regions.empty() || plan.candidates.empty()) return;
  check_dataset(root, plan);
  const bool none = std::ranges::none_of(
      plan.candidates, [](const PlanCandidate& candidate) { return candidate.refused.empty(); });
  if (none) {
    const JsonCursor at = root.at("data").at("may_leave");
    throw InputError({.file = at.file(),
                      .pointer = at.pointer(),
                      .found = fmt::format("{}, and no candidate trains in {}",
                                           at.is_array() ? "a list" : "false",
                                           fmt::join(data_regions(plan, *plan.data), ", ")),
                      .allowed = fmt::format(
                          "a region that one trains in ({}), or a candidate where the data may "
                          "be",
                          fmt::join(refused_regions(plan), ", ")),
                      .nearest = {}});
  }
  const auto owns = [](const PlanCandidate& of) { return !of.rented && of.refused.empty(); };
  const bool paid = std::ranges::any_of(
      plan.candidates, [&](const PlanCandidate& of) { return owns(of) && pays_energy(of); });
  for (const PlanCandidate& candidate : plan.candidates) {
    if (!paid || !owns(candidate) || pays_energy(candidate)) continue;
    throw InputError(
        {.file = root.file(),
         .pointer = plan.regions[candidate.place->region].pointer,
         .found = fmt::format("no price of energy for {}", candidate.name),
         .allowed = R"("scenario": {"cost": {"usd_per_kwh": ...}}, as others have one)",
         .nearest = {}});
  }
}

}  // namespace lockstep
