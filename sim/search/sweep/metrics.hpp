/// The numbers of an answer that a results table has columns for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/answer/member_names.hpp"
#include "sim/search/sweep/sql_value.hpp"

namespace lockstep {

/// The column of steps that is 0 where a job does not fit in memory, and else 1.
constexpr std::string_view kMemoryFits = "memory_fits";

struct SweepMetric {
  std::string name;                            ///< of the column, with its unit
  nlohmann::ordered_json::json_pointer place;  ///< in the JSON of `lockstep run`
  int better = 0;                              ///< 1: more of it, -1: less, 0: neither
};

/// Of scenarios with "run", or of single steps. The same for all scenarios of a kind; what does not
/// apply to one stays empty.
const std::vector<SweepMetric>& sweep_metrics(bool of_run);

/// The members of an answer's first level that these are in.
MemberNames members_of(const std::vector<SweepMetric>& metrics);

/// A value for each metric.
std::vector<SqlValue> metric_values(const std::vector<SweepMetric>& metrics,
                                    const nlohmann::ordered_json& answer);

}  // namespace lockstep
