#include "tools/lockstep/vary/vary.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "tools/lockstep/run/site_limit.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVaryBar = 20;  // columns

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string gib(double number) { return fmt::format("{:.1f} GiB", number); }
std::string times(double number) { return fmt::format("{:.3f}", number); }
std::string usd(double number) { return compact(number) + " USD"; }
std::string watts(double number) { return compact(number) + "W"; }
std::string rate(double number) { return fmt::format("{:.2f} GB/s", number / 1e9); }
std::string grouped_count(double number) { return grouped(number); }
std::string size_text_of(double bytes) { return format_quantity(bytes, Dimension::data); }

/// A number of answers that the table shows where they have it.
struct ShownNumber {
  std::string_view field, title;
  std::string (*text)(double);
  bool if_any = false;  ///< left out where it is 0 at all points
};
constexpr std::array kShown{ShownNumber{"step_s", "step", duration_text},
                            ShownNumber{"mfu", "MFU", percent},
                            ShownNumber{"training_mfu", "MFU", percent},
                            ShownNumber{"generation_s", "generation", duration_text},
                            ShownNumber{"training_s", "training", duration_text},
                            ShownNumber{"tokens_per_s_per_gpu", "tokens/s/GPU", compact},
                            ShownNumber{"needed_memory_gib", "memory", gib},
                            ShownNumber{"facility_mean_w", "facility", watts},
                            ShownNumber{"price_usd", "price", usd},
                            ShownNumber{"wait_mean_s", "mean wait", duration_text},
                            ShownNumber{"wait_p99_s", "99 % wait", duration_text},
                            ShownNumber{"never_started", "never started", grouped_count, true},
                            ShownNumber{"completion_mean_s", "mean completion", duration_text},
                            ShownNumber{"ttft_mean_s", "first token", duration_text},
                            ShownNumber{"tpot_mean_s", "per token", duration_text},
                            ShownNumber{"output_tokens_per_s_per_gpu", "tokens/s/GPU", compact},
                            ShownNumber{"attained_share", "attained", percent},
                            ShownNumber{"utilisation", "utilisation", percent},
                            ShownNumber{"slowdown_max", "worst slowdown", times},
                            ShownNumber{"simulated_s", "simulated", duration_text},
                            ShownNumber{"end_s", "end", duration_text},
                            ShownNumber{"choice_time_s", "time", duration_text},
                            ShownNumber{"choice_usd", "money", usd},
                            ShownNumber{"choice_chance", "chance", percent},
                            ShownNumber{"size_bytes", "size", size_text_of},
                            ShownNumber{"busbw_bytes_per_s", "busbw", rate},
                            ShownNumber{"time_s", "time", duration_text}};

/// What the bars show: the first of these that the answers have.
constexpr std::array<std::string_view, 7> kBarred{
    "step_s", "completion_mean_s", "tpot_mean_s", "slowdown_max", "end_s",
    "time_s", "choice_time_s"};

std::optional<double> number_of(const VariedPoint& point, std::string_view field) {
  if (!point.ok()) return std::nullopt;
  const auto at = point.answer.find(std::string(field));
  if (at == point.answer.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

/// Whether the point has no answer, or one in which there is nothing to take the number of (null).
bool is_missing(const VariedPoint& point, std::string_view field) {
  if (!point.ok()) return true;
  const auto at = point.answer.find(std::string(field));
  return at != point.answer.end() && at->is_null();
}

bool some_have(const Varied& varied, std::string_view field) {
  return std::ranges::any_of(varied.points, [field](const VariedPoint& point) {
    return number_of(point, field).has_value();
  });
}

bool is_shown(const Varied& varied, const ShownNumber& shown) {
  if (!shown.if_any) return some_have(varied, shown.field);
  return std::ranges::any_of(varied.points, [&shown](const VariedPoint& point) {
    return number_of(point, shown.field).value_or(0) > 0;
  });
}

/// What has the layout of an answer: its scenario, or the best of those that were searched.
const Json* layout_holder(const Json& answer) {
  const auto scenario = answer.find("scenario");
  if (scenario != answer.end() && scenario->is_object()) return &*scenario;
  const auto best = answer.find("best");
  const bool searched = best != answer.end() && best->is_array() && !best->empty();
  return searched ? &best->front() : nullptr;
}

bool chooses(const Varied& varied) {
  return std::ranges::any_of(
      varied.points, [](const VariedPoint& point) { return point.answer.contains("choice"); });
}

bool layouts_differ(const Varied& varied) {
  std::vector<std::string> layouts;
  for (const VariedPoint& point : varied.points) {
    if (point.ok()) layouts.push_back(layout_words(point));
  }
  return std::ranges::adjacent_find(layouts, std::not_equal_to{}) != layouts.end();
}

/// Of a collective study's first level, what is not of one row: beside the numbers of an operation
/// it would be read as that operation's.
constexpr std::array<std::string_view, 2> kOverRows{"largest_time_s", "best_busbw_bytes_per_s"};

/// What holds of all operations beside the numbers of one.
Json answer_of_operation(const Json& operation, const Json& answer) {
  Json out = operation;
  for (const auto& [name, value] : answer.items()) {
    if (!value.is_primitive() || out.contains(name)) continue;
    if (std::ranges::find(kOverRows, name) == kOverRows.end()) out[name] = value;
  }
  return out;
}

/// With a point for each row.
Varied by_operation(const Varied& varied) {
  Varied out{.file = varied.file, .axes = varied.axes, .points = {}};
  for (const VariedPoint& point : varied.points) {
    for (VariedPoint& one : points_by_operation(point)) out.points.push_back(std::move(one));
  }
  return out;
}

bool some_have_op(const Varied& varied) {
  return !std::ranges::all_of(varied.points, &std::string::empty, &VariedPoint::op);
}

/// What the table has beside the axes.
struct TableParts {
  std::vector<const ShownNumber*> numbers;
  bool ops = false;
  bool intervals = false;
  std::string_view layout;
  std::string_view barred;
  double most = 0;  ///< of `barred`
};

TableParts parts_of(const Varied& varied) {
  TableParts parts;
  for (const ShownNumber& shown : kShown) {
    if (is_shown(varied, shown)) parts.numbers.push_back(&shown);
  }
  parts.ops = some_have_op(varied);
  parts.intervals = has_intervals(varied);
  parts.layout = layout_column(varied);
  for (const std::string_view field : kBarred) {
    if (!parts.barred.empty() || !some_have(varied, field)) continue;
    parts.barred = field;
    for (const VariedPoint& point : varied.points)
      parts.most = std::max(parts.most, number_of(point, field).value_or(0));
  }
  return parts;
}

std::vector<TextTable::Column> columns_of(const Varied& varied, const TableParts& parts) {
  std::vector<TextTable::Column> columns;
  for (const VaryAxis& axis : varied.axes) columns.push_back({axis.path});
  if (parts.ops) columns.push_back({"op", TextTable::Align::left});
  for (const ShownNumber* shown : parts.numbers) {
    columns.push_back({std::string(shown->title)});
    if (shown->field == "step_s" && parts.intervals) columns.push_back({"90 % interval"});
  }
  if (!parts.layout.empty()) {
    columns.push_back({std::string(parts.layout), TextTable::Align::left});
  }
  columns.push_back({"", TextTable::Align::left});
  return columns;
}

std::vector<std::string> cells_of(const VariedPoint& point, const TableParts& parts,
                                  const TextStyle& style) {
  std::vector<std::string> cells = point.values;
  if (parts.ops) cells.push_back(point.op);
  for (const ShownNumber* shown : parts.numbers) {
    const std::optional<double> number = number_of(point, shown->field);
    cells.push_back(number ? shown->text(*number) : is_missing(point, shown->field) ? "-" : "");
    if (shown->field == "needed_memory_gib" && point.ok() &&
        !point.answer.value("memory_fits", true))
      cells.back() += "!";
    if (shown->field == "step_s" && parts.intervals) cells.push_back(interval_words(point));
  }
  if (!parts.layout.empty()) cells.push_back(point.ok() ? layout_words(point) : "");
  const std::optional<double> barred = number_of(point, parts.barred);
  cells.push_back(barred && parts.most > 0 ? bar(*barred / parts.most, kVaryBar, style) : "");
  return cells;
}

/// What the scenario says of itself, by the first answer that has it.
std::string about_of(const Varied& varied) {
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) continue;
    // Collectives have it on their first level.
    const Json& scenario =
        point.answer.contains("scenario") ? point.answer.at("scenario") : point.answer;
    return scenario.is_object() ? scenario.value("about", std::string()) : std::string();
  }
  return {};
}

bool some_too_large(const Varied& varied) {
  return std::ranges::any_of(varied.points, [](const VariedPoint& point) {
    return point.ok() && !point.answer.value("memory_fits", true);
  });
}

/// Whether several points have an answer, and their rows say the same.
bool all_alike(const Varied& varied) {
  const auto answered = [](const VariedPoint& point) { return point.ok(); };
  if (std::ranges::count_if(varied.points, answered) < 2) return false;
  const VariedPoint& first = *std::ranges::find_if(varied.points, answered);
  const auto same = [&first](const VariedPoint& point) {
    if (!point.ok()) return true;
    return std::ranges::all_of(first.answer.items(), [&point](const auto& field) {
      return !field.value().is_number() ||
             (point.answer.contains(field.key()) && point.answer.at(field.key()) == field.value());
    });
  };
  return std::ranges::all_of(varied.points, same);
}

}  // namespace

std::string interval_words(const VariedPoint& point) {
  const auto low = number_of(point, "step_s_low"), high = number_of(point, "step_s_high");
  if (!low || !high) return {};
  return fmt::format("{} to {}", duration_text(*low), duration_text(*high));
}

bool has_intervals(const Varied& varied) { return some_have(varied, "step_s_low"); }

std::string layout_words(const VariedPoint& point) {
  const auto choice = point.answer.find("choice");
  if (choice != point.answer.end()) {
    return choice->is_string() ? choice->get<std::string>() : std::string("none");
  }
  const Json* const holder = layout_holder(point.answer);
  if (holder == nullptr) return {};
  const auto layout = holder->find("parallelism");
  if (layout == holder->end() || !layout->is_object()) return {};
  std::string out;
  constexpr std::array<std::pair<const char*, const char*>, 5> kWidths{
      {{"tensor", "TP"}, {"context", "CP"}, {"pipeline", "PP"}, {"expert", "EP"}, {"data", "DP"}}};
  for (const auto& [key, word] : kWidths) {
    const auto width = layout->find(key);
    if (width == layout->end() || !width->is_number_integer() || *width == 1) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : " ", word, width->get<int>());
  }
  return out;
}

std::string_view layout_column(const Varied& varied) {
  if (chooses(varied)) return "choice";
  return layouts_differ(varied) ? "layout" : "";
}

Varied vary(std::string file, std::vector<VaryAxis> axes,
            const std::function<Json(const std::vector<std::string>&)>& answer_to,
            const std::function<void()>& done) {
  Varied out{.file = std::move(file), .axes = std::move(axes), .points = {}};
  std::optional<InputError> last;
  for (std::size_t i = 0; i < points_of(out.axes); ++i) {
    VariedPoint point{.values = values_at(out.axes, i)};
    const std::vector<std::string> sets = sets_at(out.axes, i);
    try {
      point.answer = answer_to(sets);
    } catch (const InputError& error) {
      last = told_of_vary(error, sets);
      point.error = last->what();
    }
    out.points.push_back(std::move(point));
    done();
  }
  if (last && std::ranges::none_of(out.points, &VariedPoint::ok)) throw InputError(*last);
  return out;
}

std::vector<VariedPoint> points_by_operation(const VariedPoint& point) {
  const auto operations = point.answer.find("operations");
  if (operations == point.answer.end()) return {point};
  std::vector<VariedPoint> out;
  for (const Json& operation : *operations) {
    out.push_back({.values = point.values,
                   .answer = answer_of_operation(operation, point.answer),
                   .op = operation.at("op").get<std::string>()});
  }
  return out;
}

std::string exceeded_rows(const Varied& varied) {
  LimitTally limits;
  for (const VariedPoint& point : varied.points) {
    if (point.ok()) limits.add(number_of(point, "site_excess_w"), number_of(point, "site_limit_w"));
  }
  return limits.warning();
}

std::string varied_table(const Varied& by_point, const TextStyle& style) {
  const Varied varied = by_operation(by_point);
  const TableParts parts = parts_of(varied);
  TextTable table(columns_of(varied, parts));
  std::string errors;
  for (const VariedPoint& point : varied.points) {
    table.add(cells_of(point, parts, style));
    if (!point.ok()) errors += wrap(point.error, kTextColumns, 2) + "\n";
  }
  std::string out = style.bold(varied.file) + "\n";
  if (const std::string about = about_of(varied); !about.empty())
    out += wrap(about, kTextColumns, 0) + "\n";
  if (const std::string over = exceeded_rows(varied); !over.empty()) out += over + ".\n";
  out += "\n" + table.text(style);
  if (all_alike(varied)) out += "\nNothing that this shows depends on it.\n";
  if (some_too_large(varied)) out += "\n!: more than the GPU has.\n";
  if (!errors.empty()) out += "\nWithout an answer:\n" + errors;
  return out;
}

Json varied_json(const Varied& varied) {
  Json axes = Json::array(), points = Json::array();
  for (const VaryAxis& axis : varied.axes) {
    axes.push_back({{"path", axis.path}, {"values", axis.values}});
  }
  for (const VariedPoint& point : varied.points) {
    points.push_back({{"values", point.values},
                      {"status", point.ok() ? "ok" : "error"},
                      {"error", point.ok() ? Json() : Json(point.error)},
                      {"answer", point.ok() ? point.answer : Json()}});
  }
  return {{"file", varied.file}, {"axes", std::move(axes)}, {"points", std::move(points)}};
}

CsvText varied_csv(const Varied& by_point) {
  const Varied varied = by_operation(by_point);
  const bool ops = some_have_op(varied);
  std::vector<std::string> fields;
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) continue;
    for (const auto& [name, value] : point.answer.items()) {
      if (value.is_number() && std::ranges::find(fields, name) == fields.end())
        fields.push_back(name);
    }
  }
  std::vector<std::string> titles;
  for (const VaryAxis& axis : varied.axes) titles.push_back(axis.path);
  if (ops) titles.emplace_back("op");
  titles.insert(titles.end(), {"status", "error"});
  titles.insert(titles.end(), fields.begin(), fields.end());
  CsvText out = csv_line(titles);
  for (const VariedPoint& point : varied.points) {
    std::vector<std::string> cells = point.values;
    if (ops) cells.push_back(point.op);
    cells.insert(cells.end(), {point.ok() ? "ok" : "error", point.error});
    for (const std::string& field : fields) {
      const std::optional<double> number = number_of(point, field);
      const bool without = point.ok() && is_missing(point, field);
      cells.push_back(number ? number_text(*number) : without ? "-" : "");
    }
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
