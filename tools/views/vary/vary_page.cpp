#include "tools/views/vary/vary_page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/ask.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// Points that are compared with one another: all, but of several operations those of each, since
/// none of them is better than another. `op`: which; empty where all points are.
struct Compared {
  std::string op{};
  Varied varied{};
};

std::vector<Compared> compared_in(const Varied& varied) {
  std::vector<std::vector<VariedPoint>> points;
  std::vector<std::string> ops;
  bool several = false;
  for (const VariedPoint& point : varied.points) {
    points.push_back(points_by_operation(point));
    several = several || points.back().size() > 1;
    for (const VariedPoint& one : points.back()) {
      if (!one.op.empty() && std::ranges::find(ops, one.op) == ops.end()) ops.push_back(one.op);
    }
  }
  if (!several) ops = {""};
  std::vector<Compared> out;
  for (const std::string& op : ops) {
    Compared& one = out.emplace_back(op, Varied{varied.file, varied.axes, {}});
    for (const std::vector<VariedPoint>& of_point : points) {
      const auto at =
          several ? std::ranges::find(of_point, op, &VariedPoint::op) : of_point.begin();
      if (at != of_point.end()) {
        one.varied.points.push_back(*at);
      } else {
        VariedPoint& lacking = one.varied.points.emplace_back();
        lacking.values = of_point.front().values;
        lacking.error = of_point.front().error;
      }
    }
  }
  return out;
}

/// Whether values have an order of their own, as sizes have and names of presets have not.
bool are_amounts(const std::vector<std::string>& values) {
  return std::ranges::all_of(values, [](const std::string& value) {
    return value.find_first_of("0123456789") == value.find_first_not_of("-+.");
  });
}

/// Whether the axis of the number begins at 0: where values differ by little, that would not show.
bool begins_at_zero(const Varied& varied, const ShownNumber& number) {
  constexpr double kClose = 0.5;  // of the largest
  double least = INFINITY, most = -INFINITY;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> value = number_at_point(point, number.field);
    if (!value) continue;
    least = std::min(least, *value);
    most = std::max(most, *value);
  }
  return least <= kClose * most;
}

/// "micro 2", of batch.micro: the last word of a key, before one of its values.
std::string value_with_key(const VaryAxis& axis, const std::string& value) {
  return axis.path.substr(axis.path.find_last_of('.') + 1) + " " + value;
}

/// A line for each value of the second axis over those of the first; points alone over names,
/// between which there is nothing.
json lines_over(const Varied& varied, const ShownNumber& number) {
  const std::vector<std::string>& along = varied.axes[0].values;
  const bool two = varied.axes.size() > 1;
  const std::size_t lines = two ? varied.axes[1].values.size() : 1;
  const bool joined = are_amounts(along);
  json series = json::array();
  for (std::size_t line = 0; line < lines; ++line) {
    json data = json::array();
    for (std::size_t i = 0; i < along.size(); ++i) {
      const std::optional<double> value =
          number_at_point(varied.points[i * lines + line], number.field);
      data.push_back(value ? json(four_digits(*value / number.scale.size)) : json("-"));
    }
    series.push_back({{"type", "line"},
                      {"name", two ? value_with_key(varied.axes[1], varied.axes[1].values[line])
                                   : std::string(number.title)},
                      {"symbol", "circle"},
                      {"symbolSize", joined ? 8 : 11},
                      {"lineStyle", {{"width", joined ? 2 : 0}, {"color", chart_colour(line)}}},
                      {"itemStyle", {{"color", chart_colour(line)}}},
                      {"data", std::move(data)}});
  }
  json out{
      {"lockstep", {{"unit", number.scale.unit}}},
      {"grid", plot_grid(two ? 40 : 14, 4)},
      {"tooltip", {{"trigger", "axis"}, {"valueFormatter", "@amount"}, {"confine", true}}},
      {"xAxis", {{"type", "category"}, {"data", along}, {"axisLabel", {{"hideOverlap", true}}}}},
      {"yAxis",
       {{"type", "value"},
        {"scale", !begins_at_zero(varied, number)},
        {"axisLabel", {{"formatter", fmt::format("{{value}} {}", number.scale.unit)}}}}},
      {"series", std::move(series)}};
  if (two) out["legend"] = {{"top", 0}, {"left", 0}};
  return out;
}

/// Whether a point's job can run where it is: it fits in memory and draws what its site has.
bool can_be(const VariedPoint& point) {
  return point.ok() && point.answer.value("memory_fits", true) &&
         number_at_point(point, "site_excess_w").value_or(0) <= 0;
}

/// Whether several points all have the number, and the same.
bool are_equal(const Varied& varied, const ShownNumber& main) {
  const std::optional<double> first = number_at_point(varied.points.front(), main.field);
  return first && varied.points.size() > 1 &&
         std::ranges::all_of(varied.points, [&](const VariedPoint& point) {
           return number_at_point(point, main.field) == first;
         });
}

/// Whether points are about different amounts: the time of a larger collective is no worse a time.
bool differ_in_size(const Varied& varied) {
  std::optional<double> first;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> size = number_at_point(point, "size_bytes");
    if (size && first && *size != *first) return true;
    if (size) first = size;
  }
  return false;
}

/// The best of the points that can be, or, where none draws what its site has, of those that fit;
/// null: none fits, all are equal, or they are not to be compared.
const VariedPoint* best_point(const Varied& varied, const ShownNumber& main) {
  if (are_equal(varied, main) || differ_in_size(varied)) return nullptr;
  const bool some_can = std::ranges::any_of(varied.points, can_be);
  const VariedPoint* best = nullptr;
  double least = 0;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> value = number_at_point(point, main.field);
    if (!value || !point.answer.value("memory_fits", true)) continue;
    if (some_can && !can_be(point)) continue;
    const double rank = main.better == Better::more ? -*value : *value;
    if (best != nullptr && rank >= least) continue;
    best = &point;
    least = rank;
  }
  return best;
}

/// Points beside the best that can be as it can, and whose number is printed as its is.
std::vector<const VariedPoint*> printed_as(const Varied& varied, const ShownNumber& main,
                                           const VariedPoint& best) {
  const auto printed = [&](const VariedPoint& point) {
    const std::optional<double> value = number_at_point(point, main.field);
    return value ? main.scale.page_text(*value) : std::string();
  };
  std::vector<const VariedPoint*> out;
  for (const VariedPoint& point : varied.points) {
    if (!point.ok() || &point == &best || !point.answer.value("memory_fits", true)) continue;
    if (can_be(point) == can_be(best) && printed(point) == printed(best)) out.push_back(&point);
  }
  return out;
}

/// "all_reduce of 1 GiB"; empty for what is no collective.
std::string operation_text(const VariedPoint& point) {
  const std::optional<double> size = number_at_point(point, "size_bytes");
  return size ? fmt::format("{} of {}", point.op, format_quantity(*size, Dimension::data))
              : point.op;
}

/// point_name(), where of several numbers each has the last word of its key: "tensor 8, data 4".
std::string bar_name(const Varied& varied, const VariedPoint& point) {
  if (point.values.size() < 2) return point_name(point);
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < point.values.size(); ++axis) {
    const std::string& value = point.values[axis];
    const bool bare = value.find_first_not_of("0123456789.") == std::string::npos;
    parts.push_back(bare ? value_with_key(varied.axes[axis], value) : value);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_main_bars(Page& page, const Varied& varied, const ShownNumber& main,
                   const VariedPoint* best) {
  std::vector<IntervalBar> bars;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> value = number_at_point(point, main.field);
    if (!value) continue;
    const std::string name = bar_name(varied, point);
    IntervalBar bar{
        .name = name,
        .value = *value / main.scale.size,
        .words = {name, fmt::format("{}: {}", main.title, main.scale.page_text(*value))},
        .marked = &point == best};
    if (!point.op.empty()) bar.words.push_back(operation_text(point));
    if (const std::optional<NumberInterval> interval = interval_at_point(point, main)) {
      bar.low = interval->low / main.scale.size;
      bar.high = interval->high / main.scale.size;
      bar.words.push_back(fmt::format("{}: {}", main.interval.words,
                                      interval_words(point, main, main.scale.page_text)));
    }
    bars.push_back(std::move(bar));
  }
  const bool has_whiskers =
      std::ranges::any_of(bars, [](const IntervalBar& bar) { return bar.low.has_value(); });
  page.chart(
      {.title = fmt::format("{} at each value", main.title),
       .about = has_whiskers ? fmt::format("Whiskers: the {}, where there is one. The points share "
                                           "most of their error, so that whiskers which overlap do "
                                           "not say that two points are alike.",
                                           main.interval.words)
                             : std::string(),
       .summary = fmt::format("Bars of {}; the table has the same.",
                              counted(static_cast<double>(bars.size()), "point")),
       .height_px = bars_height(bars.size())},
      interval_bars(bars, std::string(main.scale.unit)));
}

/// The title of a section about these points.
std::string titled_for(std::string_view title, const Compared& of) {
  return of.op.empty() ? std::string(title) : fmt::format("{}: {}", title, of.op);
}

void add_small_lines(Page& page, const Compared& of,
                     const std::vector<const ShownNumber*>& numbers) {
  const Varied& varied = of.varied;
  if (varied.axes[0].values.size() < 2) return;
  // Of a number that is the same at all points, as it is printed, the line says nothing.
  std::vector<const ShownNumber*> drawn;
  for (const ShownNumber* number : numbers) {
    std::set<std::string> printed;
    for (const VariedPoint& point : varied.points) {
      const std::optional<double> value = number_at_point(point, number->field);
      printed.insert(value ? number->scale.page_text(*value) : std::string());
    }
    if (number->better != Better::neither && printed.size() > 1) drawn.push_back(number);
  }
  if (drawn.empty()) return;
  page.section(titled_for(fmt::format("Over {}", varied.axes[0].path), of),
               varied.axes.size() > 1 ? fmt::format("A colour for each {}.", varied.axes[1].path)
                                      : std::string());
  page.begin_row();
  for (const ShownNumber* number : drawn) {
    page.chart({.title = std::string(number->title),
                .about = begins_at_zero(varied, *number) ? "" : "The axis does not begin at 0.",
                .summary = fmt::format("{} over {}.", number->title, varied.axes[0].path),
                .height_px = 240},
               lines_over(varied, *number));
  }
  page.end_row();
}

PageTable points_rows(const Varied& varied, std::vector<const ShownNumber*> numbers) {
  PageTable table{.first_rows = 40};
  for (const VaryAxis& axis : varied.axes) table.columns.push_back({.title = axis.path});
  const bool ops = !std::ranges::all_of(varied.points, &std::string::empty, &VariedPoint::op);
  if (ops) {
    table.columns.push_back({.title = "Operation"});
    // Which size it is of is said with the operation.
    std::erase_if(numbers, [](const ShownNumber* each) { return each->field == "size_bytes"; });
  }
  for (const ShownNumber* number : numbers) {
    table.columns.push_back({.title = std::string(number->title), .numeric = true});
    if (has_interval(varied, *number))
      table.columns.push_back({.title = std::string(number->interval.words)});
  }
  const std::string_view layout = layout_column(varied);
  if (!layout.empty()) table.columns.push_back({.title = layout == "layout" ? "Layout" : "Choice"});
  for (const VariedPoint& point : varied.points) {
    std::vector<PageCell> row;
    for (const std::string& value : point.values) row.push_back(PageCell::text(value));
    if (ops) row.push_back(PageCell::text(operation_text(point)));
    for (const ShownNumber* number : numbers) {
      const std::optional<double> value = number_at_point(point, number->field);
      const bool full = number->field == "needed_memory_gib" && point.ok() &&
                        !point.answer.value("memory_fits", true);
      row.push_back(value
                        ? PageCell::number(
                              number->scale.page_text(*value) + (full ? " (too much)" : ""), *value)
                        : PageCell::unknown());
      if (has_interval(varied, *number))
        row.push_back(PageCell::text(interval_words(point, *number, number->scale.page_text)));
    }
    if (!layout.empty()) row.push_back(PageCell::text(point.ok() ? layout_words(point) : ""));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// "40 points"; "the 4 of 40 points that have an answer".
std::string compared_points(const Varied& varied) {
  const auto all = static_cast<double>(varied.points.size());
  const auto answered = std::ranges::count_if(varied.points, &VariedPoint::ok);
  return answered == std::ssize(varied.points)
             ? counted(all, "point")
             : fmt::format("the {} of {} that {} an answer", answered, counted(all, "point"),
                           answered == 1 ? "has" : "have");
}

/// "cluster.nodes = 64, batch.micro = 1", the values strong.
Html strong_point(const Varied& varied, const VariedPoint& point) {
  Html out;
  for (std::size_t axis = 0; axis < point.values.size(); ++axis) {
    out += escaped((axis > 0 ? ", " : "") + varied.axes[axis].path + " = ") +
           strong(point.values[axis]);
  }
  return out;
}

/// Which of these points has the best number, and which number that is.
Html best_sentence(const Compared& of, const ShownNumber& main, const VariedPoint* best) {
  const std::string whose = of.op.empty() ? "" : " for " + of.op;
  if (are_equal(of.varied, main)) {
    const double value = *number_at_point(of.varied.points.front(), main.field);
    const std::size_t points = of.varied.points.size();
    return escaped(fmt::format(
        "{} are equal{}: {} {}.",
        points == 2 ? "Both points"
                    : fmt::format("All {}", counted(static_cast<double>(points), "point")),
        whose, in_sentence(main.title), main.scale.page_text(value)));
  }
  if (differ_in_size(of.varied)) {
    return escaped(fmt::format("The points{} are about different sizes: none is the best.", whose));
  }
  if (best == nullptr) return escaped("No point fits in memory" + whose + ".");
  Html out = strong_point(of.varied, *best) +
             escaped(fmt::format(" has {} of {}{}: {}", main.best, compared_points(of.varied),
                                 whose, main.scale.page_text(*number_at_point(*best, main.field))));
  const std::vector<const VariedPoint*> alike = printed_as(of.varied, main, *best);
  constexpr std::size_t kMostNamed = 3;
  if (alike.size() > kMostNamed) {
    return out + escaped(fmt::format("; {} others are printed alike.", alike.size()));
  }
  for (const VariedPoint* const point : alike) {
    out += escaped(point == alike.front() ? "; as printed, so has " : ", and ") +
           strong_point(of.varied, *point);
  }
  return out + escaped(".");
}

/// Bars, a table and lines; nothing where no point has a number.
void add_compared(Page& page, const Compared& of) {
  const std::vector<const ShownNumber*> numbers = shown_numbers(of.varied);
  if (numbers.empty()) return;
  const ShownNumber& main = *leading_number(numbers);
  page.section(titled_for("All points", of));
  add_main_bars(page, of.varied, main, best_point(of.varied, main));
  page.table(points_rows(of.varied, numbers));
  add_small_lines(page, of, numbers);
}

/// Of all that is compared, a sentence each.
Html headline_of(const std::vector<Compared>& all) {
  Html out;
  for (const Compared& of : all) {
    const std::vector<const ShownNumber*> numbers = shown_numbers(of.varied);
    if (numbers.empty()) continue;
    const ShownNumber& main = *leading_number(numbers);
    if (!out.empty()) out += escaped(" ");
    out += best_sentence(of, main, best_point(of.varied, main));
  }
  return out.empty() ? escaped("No point has a number to compare.") : out;
}

/// What a value is at the points, where they do not agree: "per point: 8, 4, 8"; of many that it
/// is.
std::string per_point(const std::vector<nlohmann::ordered_json>& values) {
  constexpr std::size_t kMostListed = 8;
  if (values.size() > kMostListed) return "another at other points";
  std::vector<std::string> texts;
  for (const nlohmann::ordered_json& value : values) {
    texts.push_back(value.is_string() ? value.get<std::string>()
                    : value.is_null() ? "not said"
                                      : write_json(value));
  }
  return fmt::format("per point: {}", fmt::join(texts, ", "));
}

/// What the points have at one place in common; a member on which they differ says it of each.
/// `points`: null of one that has nothing there.
nlohmann::ordered_json common_to(const std::vector<nlohmann::ordered_json>& points) {
  const auto is_object = [](const nlohmann::ordered_json& each) { return each.is_object(); };
  if (!std::ranges::all_of(points, is_object)) {
    const bool same = std::ranges::adjacent_find(points, std::not_equal_to{}) == points.end();
    return same ? points.front() : nlohmann::ordered_json(per_point(points));
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const nlohmann::ordered_json& point : points) {
    for (const auto& [key, value] : point.items()) {
      if (out.contains(key)) continue;
      std::vector<nlohmann::ordered_json> members;
      for (const nlohmann::ordered_json& each : points)
        members.emplace_back(each.value(key, json()));
      out[key] = common_to(members);
    }
  }
  return out;
}

/// The scenario that the points with an answer were asked with: of a layout that was searched for
/// each of them all are there. Null: answers have none.
nlohmann::ordered_json written_of_points(const Varied& varied) {
  std::vector<nlohmann::ordered_json> scenarios;
  for (const VariedPoint& point : varied.points) {
    if (point.ok() && point.answer.contains("scenario"))
      scenarios.push_back(point.answer.at("scenario"));
  }
  return scenarios.empty() ? nlohmann::ordered_json() : common_to(scenarios);
}

/// With the list of an axis's values in place of any value that it has there; null stays null.
WrittenScenario with_all_values(const Varied& varied, nlohmann::ordered_json scenario) {
  if (!scenario.is_object()) return nullptr;
  for (const VaryAxis& axis : varied.axes) {
    std::string pointer = axis.path;
    if (!pointer.starts_with('/')) {
      std::ranges::replace(pointer, '.', '/');
      pointer.insert(0, 1, '/');
    }
    const nlohmann::ordered_json::json_pointer at(pointer);
    if (scenario.contains(at)) scenario[at] = axis.values;
  }
  return std::make_shared<const nlohmann::ordered_json>(std::move(scenario));
}

std::vector<std::string> assumed_for_points(const Varied& varied) {
  std::vector<std::string> out;
  for (const VariedPoint& point : varied.points) {
    const auto assumed = point.answer.find("assumptions");
    if (!point.ok() || assumed == point.answer.end() || !assumed->is_array()) continue;
    for (const nlohmann::ordered_json& each : *assumed) {
      const auto text = each.get<std::string>();
      if (std::ranges::find(out, text) == out.end()) out.push_back(text);
    }
  }
  return out;
}

/// Presets that a point's scenario names, and those that were assumed for its job or cluster.
std::vector<NamedPreset> presets_of_point(const std::string& file,
                                          const nlohmann::ordered_json& scenario,
                                          const PresetStore& presets) {
  std::vector<NamedPreset> out = presets_named(scenario, presets);
  const ParsedScenario parsed = parse_scenario(file, write_json(scenario));
  const bool trains = parsed.kind == ScenarioKind::step || parsed.kind == ScenarioKind::run;
  try {
    std::vector<NamedPreset> more;
    if (trains) {
      const JobFile job = read_job_file(parsed.root, presets);
      more = presets_of(complete_measured(job.draft, presets, {}), presets);
    } else if (const auto cluster = parsed.root.find("cluster")) {
      more = presets_of(read_cluster(*cluster, presets, NodeKinds::several), presets);
    }
    out.insert(out.end(), more.begin(), more.end());
  } catch (const InputError&) {
    // A part of a scenario, from which nothing more follows.
  }
  return out;
}

}  // namespace

AnswerBasis varied_basis(const Varied& varied, const WrittenScenario& written,
                         const PresetStore& presets) {
  AnswerBasis basis{
      .title = "What was varied",
      .simulated = {{"Scenario", varied.file}},
      .written = with_all_values(varied, written ? *written : written_of_points(varied)),
      .assumptions = assumed_for_points(varied),
      .presets = &presets};
  for (const VaryAxis& axis : varied.axes) {
    basis.simulated.push_back({axis.path, fmt::format("{}", fmt::join(axis.values, ", "))});
    nlohmann::ordered_json of_key = nlohmann::ordered_json::object();
    of_key[axis.path.substr(axis.path.find_last_of("./") + 1)] = axis.values;
    const std::vector<NamedPreset> named = presets_named(of_key, presets);
    basis.named.insert(basis.named.end(), named.begin(), named.end());
  }
  if (written) {
    const std::vector<NamedPreset> named = presets_of_point(varied.file, *written, presets);
    basis.named.insert(basis.named.end(), named.begin(), named.end());
    return basis;
  }
  for (const VariedPoint& point : varied.points) {
    if (!point.ok() || !point.answer.contains("scenario")) continue;
    const std::vector<NamedPreset> named =
        presets_of_point(varied.file, point.answer.at("scenario"), presets);
    basis.named.insert(basis.named.end(), named.begin(), named.end());
  }
  return basis;
}

std::string vary_page(const Varied& varied, const AnswerBasis& basis) {
  Page page("What if", varied.file == kAskedFile
                           ? varied_subject(varied)
                           : fmt::format("{} of {}", axes_words(varied),
                                         std::filesystem::path(varied.file).filename().string()));
  if (varied.file == kAskedFile) {
    if (const std::string about = varied_about(varied); !about.empty()) page.about(about);
  }
  const std::vector<Compared> all = compared_in(varied);
  page.headline(headline_of(all) + limit_sentence(exceeded_rows(varied)));
  for (const Compared& of : all) add_compared(page, of);
  const std::vector<std::string> errors = missing_points(varied);
  if (const auto fabrics = fabric_of_points(varied); !fabrics.empty()) {
    page.section("What the fabric is at some points alone",
                 fmt::format("By the points' {}.", axes_words(varied)));
    page.list(fabrics);
  }
  if (!errors.empty()) {
    page.section("Without an answer");
    page.list(errors);
  }
  add_basis(page, basis);
  page.foot("Scenario: " + varied.file + ".");
  return page.html(chart_library());
}

}  // namespace lockstep
