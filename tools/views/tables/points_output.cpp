#include <fmt/format.h>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const PointSummary& summary) {
  return {{"n", summary.n},
          {"median_abs_error", twelve_digits(summary.median_abs)},
          {"p90_abs_error", twelve_digits(summary.p90_abs)},
          {"bias", twelve_digits(summary.bias)}};
}

/// "measured_us"; "measured" where the unit differs from point to point.
std::string with_unit(std::string_view name, char between, const PointTable& table) {
  return table.unit.empty() ? std::string(name) : fmt::format("{}{}{}", name, between, table.unit);
}

std::string value_cell(double value, const PointTable& table) {
  return table.fine ? fmt::format("{:.9g}", value) : significant(value, 4);
}
std::string error_cell(double error, const PointTable& table) {
  if (!table.fine) return error_text(error);
  const std::string text = fmt::format("{:+.4f} %", 100 * error);
  return text == "-0.0000 %" ? "+0.0000 %" : text;
}

Json point_json(const ValidationPoint& point, const PointTable& table) {
  Json object = Json::object();
  for (const auto& [key, value] : point.identity) {
    object[key] = value.is_number ? Json::parse(value.text) : Json(value.text);
  }
  object[with_unit("measured", '_', table)] = twelve_digits(point.measured);
  object[with_unit("predicted", '_', table)] = twelve_digits(point.predicted);
  object["error"] = twelve_digits(point.error);
  for (const auto& [key, value] : point.details) object[key] = value.text;
  return object;
}

}  // namespace

JsonText points_json(const PointTable& table) {
  Json points = Json::array(), worst = Json::array();
  for (const ValidationPoint& point : table.points) points.push_back(point_json(point, table));
  for (const WorstPoint& each : table.worst) {
    Json object = point_json(each.point, table);
    object["repeats"] = each.repeats;
    object["logs"] = each.logs;
    object[with_unit("repeat_least", '_', table)] = twelve_digits(each.least);
    object[with_unit("repeat_most", '_', table)] = twelve_digits(each.most);
    object["reason"] = each.reason;
    worst.push_back(std::move(object));
  }
  Json summary = Json::object();
  for (const PointSummary& group : table.summary) summary[group.group] = summary_json(group);
  summary["skipped"] = table.skipped;
  if (!table.notes.empty()) summary["notes"] = table.notes;
  if (!table.missed.empty()) summary["missed"] = table.missed;
  Json out{{"points", std::move(points)}, {"summary", std::move(summary)}};
  if (!table.worst.empty()) out["worst"] = std::move(worst);
  return JsonText(out, 1);
}

CsvText points_csv(const PointTable& table) {
  std::vector<std::string> header;
  if (!table.points.empty()) {
    for (const auto& part : table.points.front().identity) header.push_back(part.first);
  }
  header.insert(header.end(),
                {with_unit("measured", '_', table), with_unit("predicted", '_', table), "error"});
  if (!table.points.empty()) {
    for (const auto& part : table.points.front().details) header.push_back(part.first);
  }
  CsvText out = csv_line(header);
  for (const ValidationPoint& point : table.points) {
    std::vector<std::string> cells;
    for (const auto& part : point.identity) cells.push_back(part.second.text);
    cells.insert(cells.end(), {number_text(point.measured), number_text(point.predicted),
                               number_text(point.error)});
    for (const auto& part : point.details) cells.push_back(part.second.text);
    out += csv_line(cells);
  }
  return out;
}

std::string points_table(const PointTable& table, const TextStyle& style) {
  using enum TextTable::Align;
  std::string out;
  if (!table.points.empty()) {
    std::vector<TextTable::Column> columns;
    for (const auto& part : table.points.front().identity) columns.push_back({part.first, left});
    columns.insert(
        columns.end(),
        {{with_unit("measured", ' ', table)}, {with_unit("predicted", ' ', table)}, {"error"}});
    TextTable points(std::move(columns));
    for (const ValidationPoint& point : table.points) {
      std::vector<std::string> cells;
      for (const auto& part : point.identity) cells.push_back(part.second.text);
      cells.insert(cells.end(),
                   {value_cell(point.measured, table), value_cell(point.predicted, table),
                    error_cell(point.error, table)});
      points.add(std::move(cells));
    }
    out += points.text(style, 0) + "\n";
  }
  TextTable summary(
      {{table.what.empty() ? "points" : table.what, left}, {"n"}, {"median"}, {"p90"}, {"bias"}});
  for (const PointSummary& group : table.summary) {
    summary.add({group.group, fmt::format("{}", group.n),
                 fmt::format("{:.1f} %", 100 * group.median_abs),
                 fmt::format("{:.1f} %", 100 * group.p90_abs), error_text(group.bias)});
  }
  out += summary.text(style, 0);
  for (const std::string& note : table.notes) out += note + "\n";
  for (const std::string& reason : table.skipped) out += "skipped: " + reason + "\n";
  return out;
}

}  // namespace lockstep
