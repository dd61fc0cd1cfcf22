#include "tools/lockstep/vary/vary_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/lockstep/report/assets.hpp"
#include "tools/lockstep/report/chart_kit.hpp"
#include "tools/lockstep/report/chart_options.hpp"
#include "tools/lockstep/report/page.hpp"
#include "tools/lockstep/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// A number that answers may have, in the unit of its chart.
struct VariedNumber {
  std::string_view field, title;
  std::string (*text)(double);
  std::string_view unit;
  double scale = 1;  ///< of the chart's unit in the field's
  bool more_is_better = false;
};

std::string share_text_of(double value) { return page_percent(value, 1); }
std::string gib_text_of(double value) { return page_with(value, "GiB"); }
std::string times_text_of(double value) { return page_times(value); }
std::string rate_text_of(double value) { return page_with(value / 1e9, "GB/s"); }

constexpr std::array kVariedNumbers{
    VariedNumber{"step_s", "Step time", page_duration, "s"},
    VariedNumber{"slowdown_max", "Worst slowdown", times_text_of, "×"},
    VariedNumber{"mfu", "MFU", share_text_of, "%", 0.01, true},
    VariedNumber{"training_mfu", "MFU of training", share_text_of, "%", 0.01, true},
    VariedNumber{"goodput", "Goodput", share_text_of, "%", 0.01, true},
    VariedNumber{"generation_s", "Generation", page_duration, "s"},
    VariedNumber{"training_s", "Training", page_duration, "s"},
    VariedNumber{"tokens_per_s_per_gpu", "Tokens/s per GPU", page_count, "", 1, true},
    VariedNumber{"needed_memory_gib", "Memory", gib_text_of, "GiB"},
    VariedNumber{"facility_mean_w", "Power of the site", page_watts, "MW", 1e6},
    VariedNumber{"time_to_train_s", "Whole training", page_setting, "days", 86'400},
    VariedNumber{"price_usd", "Price", page_usd, "M USD", 1e6},
    VariedNumber{"end_s", "End of all traffic", page_duration, "ms", 1e-3},
    VariedNumber{"largest_time_s", "Time of the largest size", page_duration, "ms", 1e-3},
    VariedNumber{"best_busbw_bytes_per_s", "Best bus bandwidth", rate_text_of, "GB/s", 1e9, true}};

std::optional<double> varied_number(const VariedPoint& point, std::string_view field) {
  if (!point.ok()) return std::nullopt;
  const auto at = point.answer.find(std::string(field));
  if (at == point.answer.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::vector<const VariedNumber*> numbers_shown(const Varied& varied) {
  std::vector<const VariedNumber*> out;
  for (const VariedNumber& number : kVariedNumbers) {
    if (std::ranges::any_of(varied.points, [&](const VariedPoint& point) {
          return varied_number(point, number.field).has_value();
        })) {
      out.push_back(&number);
    }
  }
  return out;
}

/// A line for each value of the second axis over those of the first.
json lines_over(const Varied& varied, const VariedNumber& number) {
  const std::vector<std::string>& along = varied.axes[0].values;
  const bool two = varied.axes.size() > 1;
  const std::size_t lines = two ? varied.axes[1].values.size() : 1;
  json series = json::array();
  for (std::size_t line = 0; line < lines; ++line) {
    json data = json::array();
    for (std::size_t i = 0; i < along.size(); ++i) {
      const std::optional<double> value =
          varied_number(varied.points[i * lines + line], number.field);
      data.push_back(value ? json(four_digits(*value / number.scale)) : json("-"));
    }
    series.push_back({{"type", "line"},
                      {"name", two ? varied.axes[1].values[line] : std::string(number.title)},
                      {"symbol", "circle"},
                      {"symbolSize", 8},
                      {"lineStyle", {{"width", 2}, {"color", chart_colour(line)}}},
                      {"itemStyle", {{"color", chart_colour(line)}}},
                      {"data", std::move(data)}});
  }
  json out{
      {"lockstep", {{"unit", number.unit}}},
      {"grid", plot_grid(two ? 40 : 14, 4)},
      {"tooltip", {{"trigger", "axis"}, {"valueFormatter", "@amount"}, {"confine", true}}},
      {"xAxis", {{"type", "category"}, {"data", along}, {"axisLabel", {{"hideOverlap", true}}}}},
      {"yAxis",
       {{"type", "value"},
        {"scale", true},
        {"axisLabel", {{"formatter", fmt::format("{{value}} {}", number.unit)}}}}},
      {"series", std::move(series)}};
  if (two) out["legend"] = {{"type", "scroll"}, {"top", 0}, {"left", 0}};
  return out;
}

std::string point_name(const VariedPoint& point) {
  return fmt::format("{}", fmt::join(point.values, ", "));
}

/// The point whose main number is best; nothing where none has it.
const VariedPoint* best_point(const Varied& varied, const VariedNumber& main) {
  const VariedPoint* best = nullptr;
  double least = 0;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> value = varied_number(point, main.field);
    if (!value || !point.answer.value("memory_fits", true)) continue;
    const double rank = main.more_is_better ? -*value : *value;
    if (best != nullptr && rank >= least) continue;
    best = &point;
    least = rank;
  }
  return best;
}

void add_main_bars(Page& page, const Varied& varied, const VariedNumber& main,
                   const VariedPoint* best) {
  std::vector<IntervalBar> bars;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> value = varied_number(point, main.field);
    if (!value) continue;
    IntervalBar bar{
        .name = point_name(point),
        .value = *value / main.scale,
        .words = {point_name(point), fmt::format("{}: {}", main.title, main.text(*value))},
        .marked = &point == best};
    const auto low = varied_number(point, fmt::format("{}_low", main.field));
    const auto high = varied_number(point, fmt::format("{}_high", main.field));
    if (low && high) {
      bar.low = *low / main.scale;
      bar.high = *high / main.scale;
      bar.words.push_back(
          fmt::format("90 % interval: {} to {}", main.text(*low), main.text(*high)));
    }
    bars.push_back(std::move(bar));
  }
  page.chart({.title = fmt::format("{} at each value", main.title),
              .about = "Whiskers: the 90 % interval, where there is one; it is about all points "
                       "together more than about which is better.",
              .summary = fmt::format("Bars of {} points; the table has the same.", bars.size()),
              .height_px = bars_height(bars.size())},
             interval_bars(bars, std::string(main.unit)));
}

void add_small_lines(Page& page, const Varied& varied,
                     const std::vector<const VariedNumber*>& numbers) {
  if (varied.axes[0].values.size() < 2) return;
  page.section(fmt::format("Over {}", varied.axes[0].path),
               varied.axes.size() > 1 ? fmt::format("A line for each {}.", varied.axes[1].path)
                                      : std::string());
  page.begin_row();
  for (const VariedNumber* number : numbers) {
    page.chart({.title = std::string(number->title),
                .about = {},
                .summary = fmt::format("{} over {}.", number->title, varied.axes[0].path),
                .height_px = 240},
               lines_over(varied, *number));
  }
  page.end_row();
}

PageTable points_rows(const Varied& varied, const std::vector<const VariedNumber*>& numbers) {
  PageTable table{.first_rows = 40};
  for (const VaryAxis& axis : varied.axes) table.columns.push_back({.title = axis.path});
  for (const VariedNumber* number : numbers) {
    table.columns.push_back({.title = std::string(number->title), .numeric = true});
  }
  for (const VariedPoint& point : varied.points) {
    std::vector<PageCell> row;
    for (const std::string& value : point.values) row.push_back(PageCell::text(value));
    for (const VariedNumber* number : numbers) {
      const std::optional<double> value = varied_number(point, number->field);
      const bool full = number->field == "needed_memory_gib" && point.ok() &&
                        !point.answer.value("memory_fits", true);
      row.push_back(
          value ? PageCell::number(number->text(*value) + (full ? " (too much)" : ""), *value)
                : PageCell::unknown());
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string axes_words(const Varied& varied) {
  std::vector<std::string> paths;
  for (const VaryAxis& axis : varied.axes) paths.push_back(axis.path);
  return fmt::format("{}", fmt::join(paths, " and "));
}

}  // namespace

std::string vary_page(const Varied& varied) {
  Page page("What if", fmt::format("{} of {}", axes_words(varied), varied.file));
  const std::vector<const VariedNumber*> numbers = numbers_shown(varied);
  if (numbers.empty()) {
    page.headline(escaped("No point has a number to compare."));
  } else {
    const VariedNumber& main = *numbers.front();
    const VariedPoint* best = best_point(varied, main);
    if (best == nullptr) {
      page.headline(escaped("No point fits in memory."));
    } else {
      page.headline(escaped(axes_words(varied) + " = ") + strong(point_name(*best)) +
                    escaped(fmt::format(" is best of {} points: {} {}.", varied.points.size(),
                                        main.title, main.text(*varied_number(*best, main.field)))));
    }
    page.section("All points");
    add_main_bars(page, varied, main, best);
    page.table(points_rows(varied, numbers));
    add_small_lines(page, varied, numbers);
  }
  std::vector<std::string> errors;
  for (const VariedPoint& point : varied.points) {
    if (!point.ok()) errors.push_back(point_name(point) + ": " + point.error);
  }
  if (!errors.empty()) {
    page.section("Without an answer");
    page.list(errors);
  }
  page.foot("Scenario: " + varied.file + ".");
  return page.html(chart_library());
}

}  // namespace lockstep
