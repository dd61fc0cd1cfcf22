/// Charts that answers of several kinds show: bars with intervals, bars of parts, dots with a
/// front, parallel axes. Each gives options for Page::chart().
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace lockstep {

/// A value, and between which it may lie.
struct IntervalBar {
  std::string name;
  double value = 0;  ///< in the chart's unit
  std::optional<double> low{}, high{};
  std::vector<std::string> words{};  ///< where the pointer rests: a title, then lines
  bool marked = false;               ///< in the page's accent
};
/// Bars from 0, the first on top, with a whisker each. Requires at least one.
nlohmann::json interval_bars(std::span<const IntervalBar> bars, const std::string& unit);
/// How high a chart of that many bars is.
int bars_height(std::size_t bars);

/// What all bars have a part of, in the chart's unit; one value a bar.
struct BarPart {
  std::string name;
  std::string colour;  ///< "@colour-0"
  std::vector<double> values;
};
/// Bars of parts side by side, the first bar on top.
nlohmann::json stacked_bars(std::span<const std::string> names, std::span<const BarPart> parts,
                            const std::string& unit);

/// The same parts of each bar beside one another instead: two or three, to be compared.
nlohmann::json paired_bars(std::span<const std::string> names, std::span<const BarPart> parts,
                           const std::string& unit);
/// How high a chart of so many of them is, its legend in one line.
int paired_height(std::size_t names, std::size_t parts);

/// A dot, and what is said of it.
struct ChartDot {
  double x = 0, y = 0;  ///< in the units of the axes
  std::vector<std::string> words{};
  std::size_t colour = 0;
  bool marked = false;  ///< larger, in the page's accent
};
/// Of an axis: the unit that stands behind its numbers, or a function of the page that writes them
/// ("@bytes").
struct DotAxis {
  std::string unit;
  bool logarithmic = false;
  bool from_zero = false;
};
/// Dots of named groups (the index is ChartDot::colour), and a line through `front`.
nlohmann::json dots_chart(std::span<const ChartDot> dots, std::span<const std::string> groups,
                          const DotAxis& x, const DotAxis& y, std::span<const ChartDot> front = {});

/// Which of the points no other is at least as good as in both numbers, smaller being better, by
/// rising x. Of equals the first.
std::vector<std::size_t> front_of(std::span<const double> x, std::span<const double> y);

/// An axis of a parallel chart: a name, and a place from 0 to 1 for each line; nothing: unknown.
struct ChartAxis {
  std::string name;
  std::string low, high;           ///< what its ends mean
  std::vector<std::string> marks;  ///< of values that are names: evenly from low to high
  std::vector<std::optional<double>> places;
};
/// What the ends of a scale of colours mean.
struct ColourScale {
  std::string worst, best;
};
/// A line for each point through all axes. `goodness`: 0 to 1, by which lines are coloured, as the
/// scale above says; the `best` line stands out. Requires two axes.
nlohmann::json parallel_axes(std::span<const ChartAxis> axes, std::span<const double> goodness,
                             std::optional<std::size_t> best, const ColourScale& scale);

/// "@colour-3"; beyond the colours "@others".
std::string chart_colour(std::size_t number);

}  // namespace lockstep
