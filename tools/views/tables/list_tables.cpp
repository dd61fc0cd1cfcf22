#include "tools/views/tables/list_tables.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/tables/listing.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A cell as JSON: a number where the column holds numbers and the cell is not empty.
Json json_cell(const Listing::Column& column, const std::string& cell) {
  if (!column.number) return cell;
  return cell.empty() ? Json(nullptr) : Json::parse(cell);
}

std::string rows_table(const std::vector<PresetRow>& rows) {
  std::size_t path = 0, value = 0;
  constexpr std::size_t kLongValue = 24;  // wider values take a line of their own
  for (const PresetRow& row : rows) {
    path = std::max(path, row.path.size());
    if (row.value.size() <= kLongValue) value = std::max(value, row.value.size());
  }
  const int indent = static_cast<int>(path + value) + 4;
  std::string out;
  for (const PresetRow& row : rows) {
    std::string remark = row.source;
    if (!row.note.empty()) remark += (remark.empty() ? "" : "; ") + row.note;
    const int left = row.value.size() <= kLongValue ? indent : static_cast<int>(path) + 2;
    const std::string head = row.value.size() <= kLongValue
                                 ? fmt::format("{:<{}}  {:<{}}  ", row.path, path, row.value, value)
                                 : fmt::format("{:<{}}  ", row.path, path);
    const std::string body = row.value.size() <= kLongValue
                                 ? remark
                                 : row.value + (remark.empty() ? "" : " (" + remark + ")");
    out += head + wrap(body, std::max(30 + left, kTextColumns), left, left);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

/// "whole number; 1 to 1000000. How many": what a row of list_keys() says beside its name.
std::string key_entry(const std::vector<std::string>& row) {
  assert(row.size() == 7);
  const std::string &unit = row[3], &allowed = row[4], &rule = row[5], &sentence = row[6];
  std::string out = row[2];
  if (!unit.empty()) out += " in " + unit;
  if (!allowed.empty()) out += "; " + allowed;
  if (!rule.empty()) out += "; " + (rule == "required" ? rule : "default: " + rule);
  if (!sentence.empty()) out += ". " + sentence;
  return out;
}

/// "s; less is better. Time of one training step.": what a row of list_fields() says.
std::string field_entry(const std::vector<std::string>& row) {
  assert(row.size() == 5);
  const std::string &unit = row[2], &better = row[3], &sentence = row[4];
  std::string out = unit;
  if (!better.empty()) out += (out.empty() ? "" : "; ") + better + " is better";
  return out + (out.empty() ? "" : ". ") + sentence;
}

/// A row in two parts: "cluster.nodes (job, queue)", and below it what it is. Requires the columns
/// of list_keys() or of list_fields().
std::string entry_text(const std::vector<std::string>& row, std::size_t columns) {
  constexpr std::size_t kIndent = 4, kOfField = 5;
  return fmt::format("{} ({})\n{:{}}{}\n", row[0], row[1], "", kIndent,
                     wrap(columns == kOfField ? field_entry(row) : key_entry(row), kTextColumns,
                          kIndent, kIndent));
}

/// Whether `lockstep show` has a line for each column of what `lockstep list` prints.
bool has_columns(const ListKind& kind) {
  return kind.singular == "field" || kind.singular == "scenario" || kind.singular == "key";
}

/// Whether `beginning` may be continued to `name`, in which "*" stands for any number.
bool begins_with(std::string_view name, std::string_view beginning) {
  constexpr std::string_view kDigits = "0123456789";
  while (!beginning.empty()) {
    if (name.empty()) return false;
    const bool any = name.front() == '*' && kDigits.find(beginning.front()) != kDigits.npos;
    if (!any && name.front() != beginning.front()) return false;
    name.remove_prefix(1);
    const std::size_t read = any ? beginning.find_first_not_of(kDigits) : 1;
    beginning.remove_prefix(std::min(read, beginning.size()));
  }
  return true;
}

}  // namespace

Listing beginning_with(const ListKind& kind, Listing listing,
                       std::span<const std::string> beginnings) {
  for (const std::string& beginning : beginnings) {
    const auto begins_so = [&](const auto& row) { return begins_with(row[0], beginning); };
    if (std::ranges::any_of(listing.rows, begins_so)) continue;
    std::vector<std::string> names;
    for (const auto& row : listing.rows) names.push_back(row[0]);
    throw UsageError(fmt::format("no {} begins with {}; allowed: {}{}", kind.singular,
                                 in_quotes(beginning), listed(names),
                                 did_you_mean(beginning, names)));
  }
  std::erase_if(listing.rows, [&](const auto& row) {
    return std::ranges::none_of(
        beginnings, [&](const std::string& beginning) { return begins_with(row[0], beginning); });
  });
  return listing;
}

Answer listing_text(const Listing& listing, const std::string& format, const TextStyle& style) {
  const auto& columns = listing.columns;
  if (format == "json") {
    Json out = Json::array();
    for (const auto& row : listing.rows) {
      Json object;
      for (std::size_t c = 0; c < columns.size(); ++c) {
        object[columns[c].name] = json_cell(columns[c], row[c]);
      }
      out.push_back(std::move(object));
    }
    return JsonText(out);
  }
  if (format == "csv") {
    std::vector<std::string> names;
    names.reserve(columns.size());
    for (const auto& column : columns) names.push_back(column.name);
    CsvText out = csv_line(names);
    for (const auto& row : listing.rows) out += csv_line(row);
    return out;
  }
  if (listing.entries) {
    std::string out;
    for (const auto& row : listing.rows) out += entry_text(row, columns.size());
    return Answer::terminal(std::move(out));
  }
  std::vector<TextTable::Column> titles;
  titles.reserve(columns.size());
  for (const auto& column : columns) {
    const auto align = column.number ? TextTable::Align::right : TextTable::Align::left;
    titles.push_back({column.title, align, !column.number && &column == &columns.back()});
  }
  TextTable table(std::move(titles));
  for (const auto& row : listing.rows) table.add(row);
  return Answer::terminal(table.text(style, 0));
}

std::vector<PresetRow> built_in_rows(const ListKind& kind, const PresetStore& presets,
                                     const std::string& name) {
  const Listing listing = kind.list(presets);
  std::vector<std::string> names;
  for (const auto& row : listing.rows) {
    if (row[0] == name && has_columns(kind)) {
      std::vector<PresetRow> values;
      for (std::size_t c = 1; c < row.size(); ++c) {
        values.push_back({listing.columns[c].name, row[c], "", ""});
      }
      return values;
    }
    if (row[0] == name) return {{"summary", row[1], row[2], ""}};
    names.push_back(row[0]);
  }
  throw UsageError(fmt::format("unknown {} {}; allowed: {}{}", kind.singular, in_quotes(name),
                               listed(names), did_you_mean(name, names)));
}

Answer rows_text(const std::vector<PresetRow>& rows, const std::string& format) {
  if (format == "table") return Answer::terminal(rows_table(rows));
  if (format == "json") {
    Json out = Json::array();
    for (const PresetRow& row : rows) {
      out.push_back(
          {{"path", row.path}, {"value", row.value}, {"source", row.source}, {"note", row.note}});
    }
    return JsonText(out);
  }
  CsvText out = csv_line(std::array<std::string, 4>{"path", "value", "source", "note"});
  for (const PresetRow& row : rows) {
    out += csv_line(std::array<std::string, 4>{row.path, row.value, row.source, row.note});
  }
  return out;
}

}  // namespace lockstep
