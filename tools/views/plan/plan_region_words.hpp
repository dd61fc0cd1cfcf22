/// What a plan says about its regions: rows that its forms share, and what decides between them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/views/plan/plan_output.hpp"

namespace lockstep {

inline constexpr std::array<std::string_view, 8> kRegionColumns{
    "candidate, by region", "data from", "moving", "done", "money",
    "of it egress",         "energy",    "CO2"};

/// A candidate in a region: cells by kRegionColumns, "-" for what there is none of.
struct RegionRow {
  std::size_t candidate = 0;
  std::array<std::string, kRegionColumns.size()> cells;
};
/// One for each candidate, in order; none where the plan has no regions.
std::vector<RegionRow> region_rows(const PlanAnswer& answer);

/// "day 93.1", or the date where the plan says when it begins. `seconds` from the start.
std::string plan_moment(const PlanAnswer& answer, double seconds);

/// When a candidate's dataset is given up, after staging began. Requires CampaignPlan::data.
Seconds data_until(const PlanResult& result);

/// The shown candidate against itself in the other regions: money and what most of it is, time,
/// carbon; and which regions are refused, with the reason.
std::vector<std::string> region_words(const PlanAnswer& answer);

}  // namespace lockstep
