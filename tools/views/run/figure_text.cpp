#include "tools/views/run/figure_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"

namespace lockstep {
namespace {

/// What numbers of a unit are printed in from some size on.
struct FigureUnit {
  std::string_view unit;  ///< of the declaration
  double from;            ///< without the sign
  double size;            ///< in `unit`
  std::string_view name;
  int digits = 3;
};
// The largest first. Watts change as in power_text(), dollars and hours as in compact(), and joules
// as in energy_text().
constexpr std::array kFigureUnits{FigureUnit{"W", 1e6, 1e6, "MW", 4},
                                  FigureUnit{"W", 1e4, 1e3, "kW", 4},
                                  FigureUnit{"W/s", 1e6, 1e6, "MW/s"},
                                  FigureUnit{"W/s", 1e4, 1e3, "kW/s"},
                                  FigureUnit{"J", 3.6e12, 3.6e12, "GWh"},
                                  FigureUnit{"J", 3.6e9, 3.6e9, "MWh"},
                                  FigureUnit{"J", 3.6e6, 3.6e6, "kWh"},
                                  FigureUnit{"J", 1e3, 1e3, "kJ"},
                                  FigureUnit{"kWh", 1e6, 1e6, "GWh"},
                                  FigureUnit{"kWh", 1e3, 1e3, "MWh"},
                                  FigureUnit{"USD", 1e12, 1e12, "T USD"},
                                  FigureUnit{"USD", 1e9, 1e9, "B USD"},
                                  FigureUnit{"USD", 1e6, 1e6, "M USD"},
                                  FigureUnit{"USD", 1e4, 1e3, "k USD"},
                                  FigureUnit{"h", 1e6, 1e6, "M GPU-hours"},
                                  FigureUnit{"h", 1e4, 1e3, "k GPU-hours"},
                                  FigureUnit{"h", 0, 1, "GPU-hours"},
                                  FigureUnit{"B", 1e12, 1e12, "TB"},
                                  FigureUnit{"B", 1e9, 1e9, "GB"},
                                  FigureUnit{"B", 1e6, 1e6, "MB"},
                                  FigureUnit{"B", 1e3, 1e3, "kB"},
                                  FigureUnit{"B/s", 1e12, 1e12, "TB/s"},
                                  FigureUnit{"B/s", 1e9, 1e9, "GB/s"},
                                  FigureUnit{"B/s", 1e6, 1e6, "MB/s"},
                                  FigureUnit{"B/day", 1e12, 1e12, "TB/day"},
                                  FigureUnit{"B/day", 1e9, 1e9, "GB/day"},
                                  FigureUnit{"FLOP/s", 1e18, 1e18, "EFLOP/s", 4},
                                  FigureUnit{"FLOP/s", 1e15, 1e15, "PFLOP/s", 4},
                                  FigureUnit{"FLOP/s", 1e12, 1e12, "TFLOP/s", 4},
                                  FigureUnit{"1/s", 0, 1, "requests/s"}};

FigureUnit unit_of_figure(std::string_view unit, double value) {
  if (unit == "s" && value != 0) {
    const TimeUnit time = duration_unit(value);
    return {"s", 0, time.seconds, time.name};
  }
  // What rounds to the next unit is in it.
  constexpr double kRounds = 1 - 5e-5;
  const auto* const fits = std::ranges::find_if(kFigureUnits, [&](const FigureUnit& each) {
    return each.unit == unit && std::abs(value) >= kRounds * each.from;
  });
  return fits == kFigureUnits.end() ? FigureUnit{unit, 0, 1, unit} : *fits;
}

/// Whole ones in full, others to four digits: "16,384", "6,765,000", "0.6231", "5.936e+20".
std::string rounded_text(double value) {
  if (std::abs(value) < 1e15 && value == std::round(value)) return grouped(value);
  return significant(std::strtod(fmt::format("{:.3e}", value).c_str(), nullptr), 4);
}

std::string share_figure(std::string_view last, double share) {
  if (share != 0 && std::abs(share) < 0.01) return significant(100 * share) + " %";
  return last == "goodput" ? fmt::format("{:.2f} %", 100 * share) : percent_text(share);
}

std::string with_name(const std::string& number, std::string_view name) {
  return name.empty() ? number : fmt::format("{} {}", number, name);
}

}  // namespace

std::string figure_title(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const FieldInfo part{.name = std::string(path.substr(0, end)), .kind = FieldKind::number};
    const std::string title = part.title();
    out += (out.empty() ? "" : " ") + (title == "gpus" ? std::string("GPUs") : title);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

bool is_share_figure(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::string_view last = path.substr(dot + 1);
  const bool is_chance = dot != std::string_view::npos && path.substr(0, dot).ends_with("chances");
  constexpr std::array<std::string_view, 8> kEnds{"mfu",   "mfu_causal", "mfu_full",    "hfu",
                                                  "share", "goodput",    "utilisation", "error"};
  return is_chance ||
         std::ranges::any_of(kEnds, [last](std::string_view end) { return last.ends_with(end); });
}

std::string figure_text(std::string_view path, double value) {
  if (is_share_figure(path)) return share_figure(path.substr(path.rfind('.') + 1), value);
  const std::string_view unit = unit_at(path);
  const FigureUnit in = unit_of_figure(unit, value);
  const bool prefixed = in.size != 1 || unit == "s";
  return with_name(prefixed ? significant(value / in.size, in.digits) : rounded_text(value),
                   in.name);
}

std::string bound_text(std::string_view path, double bound) {
  if (is_share_figure(path)) return plain_number(twelve_digits(100 * bound)) + " %";
  const FigureUnit in = unit_of_figure(unit_at(path), bound);
  const bool whole = in.size == 1 && bound == std::round(bound);
  const double shown = twelve_digits(bound / in.size);
  return with_name(whole ? rounded_text(bound) : plain_number(shown), in.name);
}

std::string missing_text(std::string_view path, double value, double bound) {
  const bool share = is_share_figure(path);
  const FigureUnit in = share ? FigureUnit{"", 0, 0.01, "%"} : unit_of_figure(unit_at(path), value);
  std::string text = figure_text(path, value);
  constexpr int kMost = 15;
  for (int digits = 4; digits <= kMost; ++digits) {
    std::string number = text;
    std::erase(number, ',');  // between thousands
    const double shown = std::strtod(number.c_str(), nullptr) * in.size;
    if ((shown > bound) == (value > bound) && twelve_digits(shown) != twelve_digits(bound)) break;
    text = with_name(significant(value / in.size, digits), in.name);
  }
  return text;
}

}  // namespace lockstep
