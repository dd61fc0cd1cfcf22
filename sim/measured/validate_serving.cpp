#include "sim/measured/validate_serving.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "models/generation/serving_replica.hpp"
#include "sim/measured/predict_serving.hpp"
#include "sim/measured/serving_intervals.hpp"
#include "sim/measured/serving_rows.hpp"
#include "sim/measured/serving_winners.hpp"

namespace lockstep {
namespace {

std::string concurrency_class(int of) {
  if (of <= 0) return "-";
  if (of <= 8) return "1 to 8";
  return of <= 64 ? "9 to 64" : "65 and more";
}

void add_row_points(const ServingRow& row, const ServingFigures& figures, PointTable& out) {
  for (const ServingMeasure& m : row.measured) {
    const double value = predicted_measure(m, row, figures);
    out.points.push_back({.identity = {{"metric", m.name},
                                       {"id", row.id},
                                       {"source", row.source},
                                       {"engine", row.engine},
                                       {"gpu", row.gpu},
                                       {"model", row.model_name},
                                       {"kind", std::string(serving_kind(row.model))},
                                       {"mode", row.decoding ? "two pools" : "one pool"},
                                       {"concurrency", concurrency_class(row.concurrency)}},
                          .measured = m.value,
                          .predicted = value,
                          .error = value / m.value - 1});
  }
}

/// A closed loop's row, where times to the first and to further tokens are measured.
std::optional<PacedRow> paced_row(const ServingRow& row, const ServingFigures& figures) {
  if (row.load != ServingLoad::closed_loop) return std::nullopt;
  constexpr double kInMs = 1e3;
  const double tokens = row.output * 0.5 * (row.shortest + row.longest);
  const auto pace_of = [&](const auto& value) -> std::optional<ServedPace> {
    std::optional<double> first, each;
    for (const ServingMeasure& m : row.measured) {
      if (m.name == "ttft_ms") first = value(m) / kInMs;
      if (m.name == "tpot_ms") each = value(m) / kInMs;
    }
    if (!first || !each) return std::nullopt;
    return ServedPace::of_clients(row.concurrency, tokens, *first, *each, row.gpus);
  };
  const auto measured = pace_of([](const ServingMeasure& m) { return m.value; });
  const auto predicted =
      pace_of([&](const ServingMeasure& m) { return predicted_measure(m, row, figures); });
  if (!measured || !predicted) return std::nullopt;
  return PacedRow{
      .configuration = fmt::format("{} {} {} {} {} {} {} {}", row.source, row.engine,
                                   row.model_name, row.gpu, static_cast<int>(row.weights),
                                   static_cast<int>(row.experts), row.input, row.output),
      .two_pools = row.decoding.has_value(),
      .measured = *measured,
      .predicted = *predicted};
}

/// Of each metric: all, then by what tells rows apart.
void summarise_metrics(PointTable& out) {
  std::map<std::string, std::vector<ValidationPoint>> by_metric;
  for (const ValidationPoint& p : out.points) by_metric[identity_of(p, "metric")].push_back(p);
  out.summary.push_back(summarise("all", out.points));
  for (const auto& [metric, points] : by_metric) {
    for (const char* key :
         {"", "mode", "source", "engine", "gpu", "model", "kind", "concurrency"}) {
      if (*key == '\0') {
        out.summary.push_back(summarise(metric, points));
        continue;
      }
      std::vector<PointSummary> groups = summarise_by(points, key);
      if (groups.size() <= 2) continue;
      for (std::size_t g = 1; g < groups.size(); ++g) {
        groups[g].group = fmt::format("{}, {}", metric, groups[g].group);
        out.summary.push_back(groups[g]);
      }
    }
  }
}

}  // namespace

PointTable validate_serving(const std::string& file, const PresetStore& presets) {
  PointTable out{.what = "serving", .unit = "", .points = {}, .summary = {}, .skipped = {}};
  std::map<std::string, int> skipped;
  std::vector<PacedRow> paced;
  for (const ServingRow& row : read_serving_rows(file, presets)) {
    if (!row.skipped.empty()) {
      ++skipped[row.skipped];
      continue;
    }
    const ServedRow result = predict_serving(row, presets);
    if (!result.skipped.empty()) {
      ++skipped[result.skipped];
      continue;
    }
    add_row_points(row, result.figures, out);
    if (const auto pace = paced_row(row, result.figures)) paced.push_back(*pace);
  }
  for (const auto& [why, count] : skipped) {
    out.skipped.push_back(fmt::format("{} rows: {}", count, why));
  }
  summarise_metrics(out);
  out.notes = interval_notes(out.points);
  if (std::string note = winner_note(paced); !note.empty()) out.notes.push_back(std::move(note));
  return out;
}

}  // namespace lockstep
