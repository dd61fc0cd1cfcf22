#include "tools/views/tables/referee_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

std::string port_name(const RefereeCase& of, PortNumber port) {
  std::string name = fmt::format("node {}", port / of.nics);
  if (of.nics > 1) name += fmt::format(" nic {}", port % of.nics);
  return name;
}
std::string transfer_name(const RefereeCase& of, std::size_t number) {
  const RefereeTransfer& transfer = of.transfers[number];
  if (!transfer.name.empty()) return transfer.name;
  const RefereeMessage& m = of.messages[transfer.first];
  return fmt::format("{} to {}", port_name(of, m.from), port_name(of, m.to));
}
std::string microseconds_text(Seconds time) {
  return fmt::format("{:.1f}", time.base_units() * 1e6);
}
double end_error(const RefereeRow& row) {
  return row.flow_level_end() / row.packet_level_end() - 1;
}

/// A row as CSV and JSON have it: a name with its unit, and a number or text.
std::vector<std::pair<std::string, Json>> fields_of(const RefereeRow& row) {
  const std::size_t worst = row.worst();
  return {{"layer", row.layer->name},
          {"case", row.of->name},
          {"messages", row.transfers.size()},
          {"flow_level_end_s", twelve_digits(row.flow_level_end().base_units())},
          {"packet_level_end_s", twelve_digits(row.packet_level_end().base_units())},
          {"end_error", twelve_digits(end_error(row))},
          {"median_error", twelve_digits(row.median_error())},
          {"worst_error", twelve_digits(row.transfers[worst].error())},
          {"worst_message", transfer_name(*row.of, worst)},
          {"packet_hops", row.packet_hops}};
}
std::vector<std::pair<std::string, Json>> fields_of(const RefereeRow& row, std::size_t number) {
  const RefereeTimes& times = row.transfers[number];
  const RefereeTransfer& of = row.of->transfers[number];
  const RefereeMessage& m = row.of->messages[of.first];
  const bool alone = of.members.empty();
  return {{"layer", row.layer->name},
          {"case", row.of->name},
          {"from", alone ? port_name(*row.of, m.from) : of.members},
          {"to", alone ? port_name(*row.of, m.to) : of.members},
          {"bytes", of.bytes},
          {"start_s", twelve_digits(times.flow_level_start.base_units())},
          {"packet_level_start_s", twelve_digits(times.packet_level_start.base_units())},
          {"flow_level_end_s", twelve_digits(times.flow_level.base_units())},
          {"packet_level_end_s", twelve_digits(times.packet_level.base_units())},
          {"error", twelve_digits(times.error())}};
}

using Fields = std::vector<std::vector<std::pair<std::string, Json>>>;

JsonText json_text(const Fields& rows) {
  Json out = Json::array();
  for (const auto& fields : rows) {
    Json object;
    for (const auto& [name, value] : fields) object[name] = value;
    out.push_back(std::move(object));
  }
  return JsonText(out);
}

std::string cell_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? number_text(value.get<double>()) : write_json(value);
}
CsvText csv_text(const Fields& rows) {
  std::vector<std::string> cells;
  for (const auto& field : rows.front()) cells.push_back(field.first);
  CsvText out = csv_line(cells);
  for (const auto& fields : rows) {
    cells.clear();
    for (const auto& field : fields) cells.push_back(cell_text(field.second));
    out += csv_line(cells);
  }
  return out;
}

std::string summary_text(const RefereeSummary& s) {
  return fmt::format(
      "  {} messages of {}. Error of completion times: median {:.2f} %, 90th percentile {};\n"
      "  median of the cases' medians {:.2f} %, of the cases' ends {:.2f} %. Worst {}: \"{}\".\n",
      grouped(static_cast<double>(s.messages)),
      s.cases == 1 ? "1 case" : fmt::format("{} cases", s.cases), 100 * s.median_of_messages,
      percent_text(s.ninetieth_of_messages), 100 * s.median_of_cases, 100 * s.median_of_ends,
      error_text(s.worst), s.worst_case->name);
}

std::string layer_table(std::span<const RefereeRow> rows, const TextStyle& style) {
  TextTable table({{"case", Align::left},
                   {"messages", Align::right},
                   {"flows, us", Align::right},
                   {"packets, us", Align::right},
                   {"end", Align::right},
                   {"median", Align::right},
                   {"worst", Align::right},
                   {"worst message", Align::left}});
  for (const RefereeRow& row : rows) {
    const std::size_t worst = row.worst();
    table.add({row.of->name, std::to_string(row.transfers.size()),
               microseconds_text(row.flow_level_end()), microseconds_text(row.packet_level_end()),
               error_text(end_error(row)), percent_text(row.median_error()),
               error_text(row.transfers[worst].error()), transfer_name(*row.of, worst)});
  }
  const RefereeLayer& layer = *rows.front().layer;
  return style.bold(fmt::format("{}: {}", layer.name, layer.summary)) + "\n" + table.text(style) +
         summary_text(summary_of(rows)) + "\n";
}

std::string messages_table(const Fields& rows, const TextStyle& style) {
  std::vector<TextTable::Column> columns;
  for (const auto& [name, value] : rows.front()) {
    columns.push_back({name, value.is_string() ? TextTable::Align::left : TextTable::Align::right});
  }
  TextTable table(std::move(columns));
  for (const auto& fields : rows) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : fields) {
      const bool is_time = name.ends_with("_s");
      cells.push_back(is_time           ? duration_text(value.get<double>())
                      : name == "error" ? error_text(value.get<double>())
                                        : cell_text(value));
    }
    table.add(std::move(cells));
  }
  return table.text(style, 0);
}

}  // namespace

RefereeSummary summary_of(std::span<const RefereeRow> rows) {
  RefereeSummary summary;
  summary.cases = rows.size();
  summary.worst_case = rows.front().of;
  std::vector<double> errors, medians, ends;
  for (const RefereeRow& row : rows) {
    for (const RefereeTimes& times : row.transfers) {
      errors.push_back(times.error());
      if (std::abs(errors.back()) <= std::abs(summary.worst)) continue;
      summary.worst = errors.back();
      summary.worst_case = row.of;
    }
    medians.push_back(row.median_error());
    ends.push_back(end_error(row));
  }
  summary.messages = errors.size();
  summary.ninetieth_of_messages = absolute_quantile(errors, 0.9);
  summary.median_of_messages = median_absolute(std::move(errors));
  summary.median_of_cases = median_absolute(std::move(medians));
  summary.median_of_ends = median_absolute(std::move(ends));
  return summary;
}

Answer referee_text(std::span<const RefereeRow> rows, std::string_view format,
                    const TextStyle& style) {
  if (format != "table") {
    Fields fields;
    for (const RefereeRow& row : rows) fields.push_back(fields_of(row));
    if (format == "json") return json_text(fields);
    return csv_text(fields);
  }
  std::string out;
  std::size_t layers = 0;
  for (std::size_t first = 0; first < rows.size(); ++layers) {
    std::size_t last = first;
    while (last < rows.size() && rows[last].layer == rows[first].layer) ++last;
    out += layer_table(rows.subspan(first, last - first), style);
    first = last;
  }
  if (layers > 1) out += style.bold("all link layers") + "\n" + summary_text(summary_of(rows));
  return Answer::terminal(out);
}

Answer referee_messages_text(std::span<const RefereeRow> rows, std::string_view format,
                             const TextStyle& style) {
  Fields fields;
  for (const RefereeRow& row : rows) {
    for (std::size_t i = 0; i < row.transfers.size(); ++i) fields.push_back(fields_of(row, i));
  }
  if (format == "json") return json_text(fields);
  if (format == "csv") return csv_text(fields);
  return Answer::terminal(messages_table(fields, style));
}

}  // namespace lockstep
