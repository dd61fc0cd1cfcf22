#include "tools/views/vary/vary.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/json_override.hpp"
#include "models/base/number_text.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/search/ask.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVaryBar = 20, kLeastVaryBar = 6;  // columns

/// Whether the point has no answer, or one in which there is nothing to take the number of (null).
bool is_missing(const VariedPoint& point, std::string_view field) {
  return !point.ok() || is_null_at(point.answer, field);
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

/// A column of CSV.
struct CsvNumber {
  std::string title;
  std::string path;  ///< as number_at() takes it
};

void add_if_new(std::vector<CsvNumber>& out, CsvNumber number) {
  if (std::ranges::find(out, number.title, &CsvNumber::title) == out.end())
    out.push_back(std::move(number));
}

/// The shares of the time, as `lockstep run --format csv` has them.
void add_shares(const Json& answer, std::vector<CsvNumber>& out) {
  for (const char* list : {"waterfall", "wall_time"}) {
    const auto shares = answer.find(list);
    if (shares == answer.end() || !shares->is_array()) continue;
    for (const Json& part : *shares) {
      const std::string bucket = part.value("bucket", std::string());
      add_if_new(out, {bucket + "_share", fmt::format("{}.{}.share", list, bucket)});
    }
  }
}

/// Every number of the answers' first level, then what the table shows beyond it, then shares.
std::vector<CsvNumber> csv_numbers(const Varied& varied) {
  std::vector<CsvNumber> out;
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) continue;
    for (const auto& [name, value] : point.answer.items()) {
      if (value.is_number()) add_if_new(out, {name, name});
    }
  }
  for (const std::string& path : deeper_paths(varied)) add_if_new(out, {path, path});
  for (const VariedPoint& point : varied.points) {
    if (point.ok()) add_shares(point.answer, out);
  }
  return out;
}

/// What the table has beside the axes.
struct TableParts {
  std::vector<const ShownNumber*> numbers;
  bool ops = false;
  std::string_view layout{};
  const ShownNumber* barred = nullptr;
  double most = 0;  ///< of `barred`
  int bar = kVaryBar;
};

TableParts parts_of(const Varied& varied) {
  TableParts parts;
  parts.numbers = shown_numbers(varied);
  parts.ops = some_have_op(varied);
  parts.layout = layout_column(varied);
  parts.barred = leading_number(parts.numbers);
  for (const VariedPoint& point : varied.points) {
    if (parts.barred == nullptr) break;
    parts.most = std::max(parts.most, number_at_point(point, parts.barred->field).value_or(0));
  }
  if (!(parts.most > 0)) parts.bar = 0;
  return parts;
}

std::vector<TextTable::Column> columns_of(const Varied& varied, const TableParts& parts) {
  std::vector<TextTable::Column> columns;
  for (const VaryAxis& axis : varied.axes) columns.push_back({axis.path});
  if (parts.ops) columns.push_back({"op", TextTable::Align::left});
  for (const ShownNumber* shown : parts.numbers) {
    columns.push_back({std::string(shown->column)});
    if (has_interval(varied, *shown)) columns.push_back({std::string(shown->interval.words)});
  }
  if (!parts.layout.empty()) {
    columns.push_back({std::string(parts.layout), TextTable::Align::left});
  }
  columns.push_back({"", TextTable::Align::left});
  return columns;
}

std::string bar_of(const VariedPoint& point, const TableParts& parts, const TextStyle& style) {
  if (parts.barred == nullptr || !(parts.most > 0)) return {};
  const std::optional<double> barred = number_at_point(point, parts.barred->field);
  return barred ? bar(*barred / parts.most, parts.bar, style) : std::string();
}

std::vector<std::string> cells_of(const Varied& varied, const VariedPoint& point,
                                  const TableParts& parts, const TextStyle& style) {
  std::vector<std::string> cells = point.values;
  if (parts.ops) cells.push_back(point.op);
  for (const ShownNumber* shown : parts.numbers) {
    const std::optional<double> number = number_at_point(point, shown->field);
    cells.push_back(number                            ? shown->scale.text(*number)
                    : is_missing(point, shown->field) ? "-"
                                                      : "");
    if (shown->field == "needed_memory_gib" && point.ok() &&
        !point.answer.value("memory_fits", true))
      cells.back() += "!";
    if (has_interval(varied, *shown)) {
      cells.push_back(interval_words(point, *shown, shown->scale.text));
    }
  }
  if (!parts.layout.empty()) cells.push_back(point.ok() ? layout_words(point) : "");
  cells.push_back(bar_of(point, parts, style));
  return cells;
}

TextTable table_of(const Varied& varied, const TableParts& parts, const TextStyle& style) {
  TextTable table(columns_of(varied, parts));
  for (const VariedPoint& point : varied.points) {
    table.add(cells_of(varied, point, parts, style));
  }
  return table;
}

/// Gives the bars what the other columns leave of `most`: nothing, or kLeastVaryBar to kVaryBar.
void fit_bar(const TextTable& table, int most, TableParts& parts) {
  const int longest = parts.bar + most - table.width();
  parts.bar = longest < kLeastVaryBar ? 0 : std::min(longest, kVaryBar);
}

/// The table, no wider than `most` as far as it can be: first bars get shorter, then titles go over
/// two lines, then the last numbers go from `parts` to `rest`.
TextTable table_within(int most, const Varied& varied, TableParts& parts, const TextStyle& style,
                       std::vector<const ShownNumber*>& rest) {
  TextTable table = table_of(varied, parts, style);
  if (table.width() <= most) return table;
  TableParts shorter = parts;
  fit_bar(table, most, shorter);
  if (shorter.bar > 0) return table_of(varied, shorter, style);
  const auto make = [&] {
    table = table_of(varied, parts, style);
    table.fold_titles();
  };
  parts.bar = 0;
  make();
  while (table.width() > most && parts.numbers.size() > 1 && parts.numbers.back() != parts.barred) {
    rest.insert(rest.begin(), parts.numbers.back());
    parts.numbers.pop_back();
    make();
  }
  constexpr int kBeforeBar = 2;
  parts.bar = most - table.width() - kBeforeBar;
  if (parts.bar < kLeastVaryBar) return table;
  parts.bar = std::min(parts.bar, kVaryBar);
  make();
  return table;
}

/// One table, or where it would be wider than the terminal or than kTextColumns several, each with
/// the values of its points and a part of their numbers.
std::string tables_text(const Varied& varied, const TextStyle& style) {
  const int most = style.columns > 0 ? style.columns : kTextColumns;
  TableParts parts = parts_of(varied);
  std::string out;
  while (true) {
    std::vector<const ShownNumber*> rest;
    out += "\n" + table_within(most, varied, parts, style, rest).text(style);
    if (rest.empty()) return out;
    parts = {.numbers = std::move(rest), .ops = parts.ops, .bar = 0};
  }
}

/// What the scenario of a point says of itself; empty where it says nothing or there is no answer.
std::string about_at(const VariedPoint& point) {
  if (!point.ok()) return {};
  // Collectives have it on their first level.
  const Json& scenario =
      point.answer.contains("scenario") ? point.answer.at("scenario") : point.answer;
  return scenario.is_object() ? scenario.value("about", std::string()) : std::string();
}

/// Words at a place of the points' scenarios, where all that have an answer agree.
std::string common_words(const Varied& varied, const char* pointer) {
  std::string out;
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) continue;
    const auto scenario = point.answer.find("scenario");
    if (scenario == point.answer.end()) return {};
    const Json::json_pointer at(pointer);
    if (!scenario->contains(at) || !scenario->at(at).is_string()) return {};
    const auto& words = scenario->at(at).get_ref<const std::string&>();
    if (!out.empty() && words != out) return {};
    out = words;
  }
  return out;
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
  // Numbers of either answer: a plan that chooses nothing has fewer than one that does.
  const auto within = [](const Json& one, const Json& other) {
    return std::ranges::all_of(one.items(), [&other](const auto& field) {
      return !field.value().is_number() ||
             (other.contains(field.key()) && other.at(field.key()) == field.value());
    });
  };
  const auto same = [&](const VariedPoint& point) {
    if (!point.ok()) return true;
    return within(first.answer, point.answer) && within(point.answer, first.answer);
  };
  return std::ranges::all_of(varied.points, same);
}

/// With one sign in place of each number.
std::string error_pattern(std::string_view text) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    // "1,024" and "2.5" are one number each.
    const bool joins = (text[i] == ',' || text[i] == '.') && inside && is_digit(i + 1);
    if (is_digit(i) || joins) {
      if (!inside) out += '#';
      inside = true;
    } else {
      out += text[i];
      inside = false;
    }
  }
  return out;
}

/// A key of a path that nothing reads is unknown whatever the value is: one problem of all points.
void tell_of_path(const std::vector<std::string>& sets, InputProblem& problem) {
  if (!problem.found.starts_with("the unknown key")) return;
  for (const std::string& set : sets) {
    const std::string path = set.substr(0, set.find('='));
    const std::string told = fmt::format("(--vary {})", set);
    const std::size_t place = problem.found.find(told);
    if (place == std::string::npos) continue;
    if (!(pointer_of_path(path) + "/").starts_with(problem.pointer + "/")) continue;
    problem.found.replace(place, told.size(), fmt::format("(--vary {})", path));
  }
}

}  // namespace

std::string axes_words(const Varied& varied) {
  std::vector<std::string> paths;
  for (const VaryAxis& axis : varied.axes) paths.push_back(axis.path);
  return fmt::format("{}", fmt::join(paths, " and "));
}

std::string point_name(const VariedPoint& point) {
  return fmt::format("{}", fmt::join(point.values, ", "));
}

std::string named_point(const Varied& varied, const VariedPoint& point) {
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < point.values.size(); ++axis) {
    parts.push_back(fmt::format("{} = {}", varied.axes[axis].path, point.values[axis]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> missing_points(const Varied& varied) {
  struct Reason {
    std::string pattern;
    const VariedPoint* first;
    std::size_t points = 0;
    bool same = true;  ///< to the last digit
  };
  std::vector<Reason> reasons;
  for (const VariedPoint& point : varied.points) {
    if (point.ok()) continue;
    const std::string text = error_pattern(point.error);
    auto at = std::ranges::find(reasons, text, &Reason::pattern);
    if (at == reasons.end()) at = reasons.insert(at, {text, &point});
    at->points++;
    at->same = at->same && point.error == at->first->error;
  }
  std::vector<std::string> out;
  for (const Reason& reason : reasons) {
    std::string name = named_point(varied, *reason.first);
    if (reason.points > 1) {
      name = fmt::format("{} points, {} and {} more{}", reason.points, name, reason.points - 1,
                         reason.same ? "" : "; of the first");
    }
    out.push_back(name + ": " + reason.first->error);
  }
  return out;
}

std::string interval_words(const VariedPoint& point, const ShownNumber& number,
                           std::string (*text)(double)) {
  const std::optional<NumberInterval> interval = interval_at_point(point, number);
  return interval ? fmt::format("{} to {}", text(interval->low), text(interval->high)) : "";
}

std::string layout_words(const VariedPoint& point) {
  // Of a service's plan "choice" is a number.
  for (const char* key : {"choice_words", "choice"}) {
    const auto choice = point.answer.find(key);
    if (choice == point.answer.end()) continue;
    return choice->is_string() ? choice->get<std::string>() : std::string("none");
  }
  const Json* const holder = layout_holder(point.answer);
  if (holder == nullptr) return {};
  if (const auto way = holder->find("way"); way != holder->end()) return way->get<std::string>();
  const auto layout = holder->find("parallelism");
  if (layout == holder->end() || !layout->is_object()) return {};
  std::string out;
  constexpr std::array<std::pair<const char*, const char*>, 5> kWidths{
      {{"tensor", "TP"}, {"context", "CP"}, {"pipeline", "PP"}, {"expert", "EP"}, {"data", "DP"}}};
  for (const auto& [key, word] : kWidths) {
    const auto width = layout->find(key);
    if (width == layout->end() || !width->is_number_integer() || *width == 1) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : " ", word, width->get<int>());
    const int chunks = layout->value("virtual_stages", 1);
    if (key == std::string_view("pipeline") && chunks > 1) out += fmt::format("x{}", chunks);
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
  std::vector<InputProblem> problems;  // each once: what no value changes is the same at all points
  for (std::size_t i = 0; i < points_of(out.axes); ++i) {
    VariedPoint point{.values = values_at(out.axes, i)};
    const std::vector<std::string> sets = sets_at(out.axes, i);
    try {
      point.answer = answer_to(sets);
    } catch (const InputError& error) {
      const InputError told = told_of_vary(error, sets);
      point.error = told.what();
      const auto keep = [&](InputProblem problem) {
        tell_of_path(sets, problem);
        const bool is_new = std::ranges::find(problems, problem) == problems.end();
        if (is_new && problems.size() < kMostMistakes) problems.push_back(std::move(problem));
      };
      keep(told.problem());
      for (const InputProblem& also : told.also()) keep(also);
    }
    out.points.push_back(std::move(point));
    done();
  }
  if (!problems.empty() && std::ranges::none_of(out.points, &VariedPoint::ok)) {
    InputProblem first = problems.front();
    problems.erase(problems.begin());
    throw InputError(std::move(first), std::move(problems));
  }
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
    if (!point.ok()) continue;
    limits.add(number_at_point(point, "site_excess_w"), number_at_point(point, "site_limit_w"));
  }
  return limits.warning();
}

std::vector<std::string> fabric_of_points(const Varied& varied) {
  constexpr std::string_view kSubject = "fabric";
  constexpr std::size_t kMost = 8;
  std::vector<std::pair<std::string, std::vector<std::string>>> said;  // with the points that do
  std::size_t answered = 0;
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) continue;
    answered++;
    const auto assumed = point.answer.find("assumptions");
    if (assumed == point.answer.end() || !assumed->is_array()) continue;
    for (const Json& each : *assumed) {
      const std::string text = each.is_string() ? each.get<std::string>() : std::string();
      if (!text.starts_with(kSubject)) continue;
      auto of_text =
          std::ranges::find(said, text, [](const auto& one) -> const auto& { return one.first; });
      if (of_text == said.end()) of_text = said.insert(said.end(), {text, {}});
      of_text->second.push_back(point_name(point));
    }
  }
  std::vector<std::string> out;
  for (const auto& [text, points] : said) {
    if (points.size() == answered || out.size() == kMost) continue;
    const std::string names =
        fmt::format("{}", fmt::join(points, varied.axes.size() == 1 ? ", " : "; "));
    constexpr std::string_view kItself = "fabric: ";
    out.push_back(names + ": " + (text.starts_with(kItself) ? text.substr(kItself.size()) : text));
  }
  return out;
}

std::string varied_about(const Varied& varied) {
  std::optional<std::string> out;
  std::vector<std::string> layouts;  // how those of points were chosen, each once
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) continue;
    std::string about = about_at(point);
    if (const std::size_t layout = about.find(kLayoutIs); layout != std::string::npos) {
      std::string chosen = about.substr(layout + kLayoutIs.size());
      if (chosen.ends_with('.')) chosen.pop_back();
      if (std::ranges::find(layouts, chosen) == layouts.end()) layouts.push_back(std::move(chosen));
      about.resize(layout);
    }
    if (!out) out = about;
    if (about.starts_with(*out)) continue;
    const auto unlike =
        static_cast<std::size_t>(std::ranges::mismatch(*out, about).in1 - out->begin());
    const std::size_t stop = unlike > 0 ? out->rfind(". ", unlike - 1) : std::string::npos;
    out->resize(stop == std::string::npos ? 0 : stop + 2);
  }
  std::string words = out.value_or("");
  if (!layouts.empty()) {
    words += fmt::format("Each point has a layout of its own: {}.", fmt::join(layouts, ", or "));
  }
  while (words.ends_with(' ')) words.pop_back();
  return words;
}

std::string varied_subject(const Varied& varied) {
  if (varied.file != kAskedFile) return varied.file;
  std::string asked = common_words(varied, "/model");
  std::string node = common_words(varied, "/cluster/node");
  if (node.empty()) node = common_words(varied, "/cluster/node/preset");
  if (!node.empty()) asked += asked.empty() ? node : " on " + node;
  return fmt::format("{}, with other values of {}", asked.empty() ? "What was asked" : asked,
                     axes_words(varied));
}

std::string varied_table(const Varied& by_point, const TextStyle& style) {
  const Varied varied = by_operation(by_point);
  std::string errors;
  for (const std::string& each : missing_points(varied)) {
    errors += wrap(each, kTextColumns, 2) + "\n";
  }
  std::string out = style.bold(varied_subject(varied)) + "\n";
  if (const std::string about = varied_about(varied); !about.empty())
    out += wrap(about, kTextColumns, 0) + "\n";
  if (const std::string over = exceeded_rows(varied); !over.empty()) out += over + ".\n";
  out += tables_text(varied, style);
  if (all_alike(varied)) out += "\nNothing that this shows depends on it.\n";
  if (some_too_large(varied)) out += "\n!: more than the GPU has.\n";
  const std::vector<std::string> fabrics = fabric_of_points(by_point);
  if (!fabrics.empty()) {
    out += fmt::format("\nThe fabric at some points alone, by {}:\n", axes_words(varied));
    for (const std::string& each : fabrics) out += "  " + wrap(each, kTextColumns, 4, 2) + "\n";
  }
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
  const std::vector<CsvNumber> numbers = csv_numbers(varied);
  std::vector<std::string> titles;
  for (const VaryAxis& axis : varied.axes) titles.push_back(axis.path);
  if (ops) titles.emplace_back("op");
  titles.insert(titles.end(), {"status", "error"});
  for (const CsvNumber& number : numbers) titles.push_back(number.title);
  CsvText out = csv_line(titles);
  for (const VariedPoint& point : varied.points) {
    std::vector<std::string> cells = point.values;
    if (ops) cells.push_back(point.op);
    cells.insert(cells.end(), {point.ok() ? "ok" : "error", point.error});
    for (const CsvNumber& each : numbers) {
      const std::optional<double> number = number_at_point(point, each.path);
      const bool without = point.ok() && is_missing(point, each.path);
      cells.push_back(number ? number_text(*number) : without ? "-" : "");
    }
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
