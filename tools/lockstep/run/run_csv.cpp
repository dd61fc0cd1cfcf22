// CSV of steps and of runs: a header line and one line of values, or one for each point.
#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/answer_fields.hpp"
#include "tools/lockstep/run/campaign_result.hpp"
#include "tools/lockstep/run/run_result.hpp"

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

/// A line for each point: its values, then its numbers; what another point has alone is empty.
CsvText grid_lines(const GoodputGrid& grid) {
  std::vector<std::string> titles, names;
  for (const GoodputGrid::Axis& axis : grid.axes) titles.push_back(axis.path);
  for (const GridPoint& point : grid.points) {
    for (const auto& [name, value] : point.numbers) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  titles.insert(titles.end(), names.begin(), names.end());
  CsvText out = csv_line(titles);
  for (std::size_t i = 0; i < grid.points.size(); ++i) {
    std::vector<std::string> cells = values_at(grid.axes, i);
    for (const std::string& name : names) {
      const std::optional<double> number = grid.points[i].number(name);
      cells.push_back(number ? number_text(*number) : "");
    }
    out += csv_line(cells);
  }
  return out;
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

CsvText campaign_csv(const CampaignResult& result) {
  return result.grid ? grid_lines(*result.grid) : two_lines(campaign_numbers(result));
}

}  // namespace lockstep
