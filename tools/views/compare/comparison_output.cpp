#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/accuracy/prediction_interval.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/fields.hpp"
#include "sim/search/compare/comparison.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 16;
constexpr std::size_t kValueWidth = 24;

std::string value_text(const Json& value) {
  if (value.is_discarded()) return "(open)";
  const std::string text = value.is_string() ? value.get<std::string>() : write_json(value);
  return text.size() <= kValueWidth ? text : text.substr(0, kValueWidth - 3) + "...";
}

std::string difference_text(const Difference& difference) {
  std::string path = difference.pointer.substr(1);
  std::ranges::replace(path, '/', '.');
  return fmt::format("{}: {} -> {}", path, value_text(difference.from), value_text(difference.to));
}

/// A value in the unit of the metric's name.
std::string metric_text(const std::string& metric, double value) {
  if (metric.ends_with("_s")) return duration_text(value);
  for (const char* share : {"mfu", "hfu", "goodput", "_share", "mfu_causal"}) {
    if (metric.ends_with(share)) return percent_text(value);
  }
  return significant(value, 4);
}
/// A bar from the metric before a change to that after it, over the range of the whole comparison.
std::string step_bar(const Comparison& c, double before, double after, const TextStyle& style) {
  double low = std::min(c.from, c.to), high = std::max(c.from, c.to);
  for (const ComparedChange& row : c.changes) {
    low = std::min(low, row.value);
    high = std::max(high, row.value);
  }
  if (high <= low) return {};
  const auto column = [&](double value) {
    return static_cast<int>(std::lround((value - low) / (high - low) * kBarWidth));
  };
  const int first = std::min(column(before), column(after));
  const int width = std::max(1, std::abs(column(after) - column(before)));
  return std::string(static_cast<std::size_t>(first), ' ') + bar(1, width, style);
}

const FieldTable<ComparedStep>& step_fields_of_comparison() {
  using Of = ComparedStep;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("step_s", Better::less, "Time of a step.", [](const Of& s) { return s.step_s; })
          .add("step_s_low", Better::less, "Lower end of the 90 % interval.",
               [](const Of& s) { return s.low_s; })
          .add("step_s_high", Better::less, "Upper end of the same.",
               [](const Of& s) { return s.high_s; })
          .add("why", "What the interval is made from.", [](const Of& s) { return s.why; });
  return fields;
}
Value value_of_step(const std::optional<ComparedStep>& step) {
  return step ? Value(step_fields_of_comparison().values(*step)) : Value(NoValue{});
}

/// A value of a file; a value that the file leaves open gives no member.
Value said(const Json& value) { return value.is_discarded() ? Value() : Value::document(value); }

const FieldTable<Difference>& difference_fields() {
  static const FieldTable<Difference> fields =
      FieldTable<Difference>()
          .add("pointer", "Place in the scenario, as a JSON pointer.",
               [](const Difference& d) { return d.pointer; })
          .add("from", "What the first file says; left out where it says nothing.",
               [](const Difference& d) { return said(d.from); })
          .add("to", "What the second file says; left out where it says nothing.",
               [](const Difference& d) { return said(d.to); });
  return fields;
}

const FieldTable<ComparedChange>& change_fields() {
  using Of = ComparedChange;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .list("differences", "What is changed together.", difference_fields(),
                [](const Of& c) -> const Change& { return c.differences; })
          .add("change", "Of the metric, against the one before; all add up to the whole.",
               [](const Of& c) { return c.change; })
          .add("value", "The metric after this and all changes before.",
               [](const Of& c) { return c.value; })
          .add("alone", "Change of the metric with this alone; null where that is not valid.",
               [](const Of& c) { return OrNull<double>{c.alone}; })
          .add("bucket", "Part of the time that moved most; empty where none did.",
               [](const Of& c) { return c.bucket; })
          .add("bucket_change", "By how much, in shares of the first scenario's time.",
               [](const Of& c) { return c.bucket_change; });
  return fields;
}

const FieldTable<Comparison>& comparison_table_of_fields() {
  using Of = Comparison;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("a", "The first file.", [](const Of& c) { return c.a; })
          .add("b", "The second file.", [](const Of& c) { return c.b; })
          .add("metric", "The number that is explained: a member of the answer of `run`.",
               [](const Of& c) { return c.metric; })
          .add("from", "Its value in the first scenario.", [](const Of& c) { return c.from; })
          .add("to", "Its value in the second one.", [](const Of& c) { return c.to; })
          .add("from_step", "Step time of the first with its interval; null without one.",
               [](const Of& c) { return value_of_step(c.from_step); })
          .add("to_step", "Step time of the second with its interval; null without one.",
               [](const Of& c) { return value_of_step(c.to_step); })
          .list("changes", "In the order in which they are made; those that move nothing last.",
                change_fields(), [](const Of& c) -> const auto& { return c.changes; })
          .add("notes", "What holds for the comparison as a whole.",
               [](const Of& c) { return c.notes; });
  return fields;
}

std::string share_text(const Comparison& c, double change) {
  return c.from == 0 ? "-" : error_text(change / std::abs(c.from));
}

/// The differences that do not move the metric: all of them, or those that move the site's excess
/// draw.
std::string still_text(const Comparison& c, bool moves_excess) {
  std::string words;
  for (const ComparedChange& row : c.changes) {
    if (row.change != 0 || row.moves_excess != moves_excess) continue;
    for (const Difference& difference : row.differences) {
      words += (words.empty() ? "" : "; ") + difference_text(difference);
    }
  }
  if (words.empty()) return {};
  const char* title = moves_excess ? "Moves site_excess_w alone: " : "Moves nothing: ";
  return "\n" + wrap(title + words, kTextColumns, 2) + "\n";
}

}  // namespace

std::string comparison_table(const Comparison& c, const TextStyle& style) {
  const auto text = [&](double value) { return metric_text(c.metric, value); };
  std::string out = style.bold(fmt::format("{}: {} -> {}", c.metric, text(c.from), text(c.to))) +
                    fmt::format(" ({})\n", share_text(c, c.to - c.from));
  out += fmt::format("from {}\nto   {}\n", c.a, c.b);
  for (const auto& [name, step] : {std::pair{"from", &c.from_step}, std::pair{"to", &c.to_step}}) {
    if (!*step) continue;
    out += wrap(fmt::format("{:<5}step {}; {:.0f} % interval: {} to {} ({})", name,
                            duration_text((*step)->step_s), 100 * kCoverage,
                            duration_text((*step)->low_s), duration_text((*step)->high_s),
                            (*step)->why),
                kTextColumns, 5) +
           "\n";
  }
  for (const std::string& note : c.notes) out += wrap("note: " + note, kTextColumns, 2) + "\n";
  if (c.changes.empty()) return out + "\nThey say the same.\n";

  TextTable table({{"difference", TextTable::Align::left},
                   {"change"},
                   {c.metric},
                   {"alone"},
                   {"mostly", TextTable::Align::left},
                   {"", TextTable::Align::left}});
  double before = c.from;
  for (const ComparedChange& row : c.changes) {
    if (row.change == 0) continue;
    const std::string alone = row.alone ? share_text(c, *row.alone) : std::string("-");
    table.add(
        {difference_text(row.differences.front()), share_text(c, row.change), text(row.value),
         alone,
         row.bucket.empty() ? "" : fmt::format("{} {}", row.bucket, error_text(row.bucket_change)),
         step_bar(c, before, row.value, style)});
    for (std::size_t i = 1; i < row.differences.size(); ++i) {
      table.add({"+ " + difference_text(row.differences[i]), "", "", "", "", ""});
    }
    before = row.value;
  }
  if (table.rows() > 0) out += "\n" + table.text(style);
  out += still_text(c, true) + still_text(c, false);
  return out +
         "\nDifferences are made in this order, + what belongs to one or is valid only with it; "
         "alone: "
         "made in\nthe first scenario by itself. Per cent of the first scenario's value.\n";
}

nlohmann::ordered_json comparison_json(const Comparison& c) {
  return Value(comparison_table_of_fields().values(c)).json();
}

std::vector<FieldInfo> comparison_fields() { return comparison_table_of_fields().infos(); }

CsvText comparison_csv(const Comparison& c) {
  const std::vector<std::string> titles{"step",  "pointer", "from",  "to",
                                        "value", "change",  "alone", "metric"};
  CsvText out = csv_line(titles);
  for (std::size_t i = 0; i < c.changes.size(); ++i) {
    const ComparedChange& row = c.changes[i];
    for (const Difference& difference : row.differences) {
      const auto text = [](const Json& value) {
        return value.is_discarded() ? std::string() : write_json(value);
      };
      const std::vector<std::string> cells{std::to_string(i + 1),
                                           difference.pointer,
                                           text(difference.from),
                                           text(difference.to),
                                           number_text(row.value),
                                           number_text(row.change),
                                           row.alone ? number_text(*row.alone) : std::string(),
                                           c.metric};
      out += csv_line(cells);
    }
  }
  return out;
}

}  // namespace lockstep
