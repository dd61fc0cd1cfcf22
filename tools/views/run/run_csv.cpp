// CSV of steps and of runs: a header line and one line of values.
#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/answer_fields.hpp"
#include "tools/views/run/campaign_result.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {
namespace {

/// The columns with their values.
CsvText two_lines(const NamedNumbers& columns) {
  std::vector<std::string> names, values;
  for (const auto& [name, value] : columns) {
    names.push_back(name);
    values.push_back(number_text(value));
  }
  return csv_line(names) + csv_line(values);
}

}  // namespace

std::string interval_text(double step_s, const PredictionInterval& interval) {
  return fmt::format("{} to {} ({})", duration_text(step_s * interval.low),
                     duration_text(step_s * interval.high), words_of(interval));
}

CsvText result_csv(const RunResult& result) {
  NamedNumbers columns = step_fields().numbers(result);
  const std::vector<double> shares = bucket_shares(result.report.seconds);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    columns.emplace_back(std::string(buckets()[i].name) + "_share", shares[i]);
  }
  return two_lines(columns);
}

CsvText campaign_csv(const CampaignResult& result) { return two_lines(campaign_numbers(result)); }

}  // namespace lockstep
