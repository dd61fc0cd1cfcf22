/// Which numbers of answers a what-if shows, and how: one table for terminals, pages and CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/fields.hpp"
#include "tools/views/vary/vary.hpp"

namespace lockstep {

/// How numbers of a unit are written.
struct NumberScale {
  std::string (*text)(double);       ///< in a terminal
  std::string (*page_text)(double);  ///< on a page
  std::string_view unit;             ///< of a chart's axis
  double size = 1;                   ///< of that unit in the answer's
};

/// Where an answer has the interval of a number, as number_at() takes paths: both ends, or how far
/// they are from the number. Without any there is none.
struct IntervalPlace {
  std::string_view low{}, high{}, half_width{};
  std::string_view words = "90 % interval";
};

/// When a number is shown that answers have.
enum class ShownWhen : std::uint8_t {
  always,
  above_zero,    ///< at some point
  differing,     ///< where it differs between points
  not_in_weeks,  ///< but where it differs: a run of weeks has it of each of its steps
  unlike_steps,  ///< where steps train on unlike amounts: a shorter one is no better then
  alike_steps,   ///< where they train on the same
};

/// A number that answers may have, of a kind of answer or of several.
struct ShownNumber {
  std::string_view field;   ///< as number_at() takes it
  std::string_view column;  ///< its title in a terminal
  std::string_view title;   ///< on a page
  NumberScale scale;
  Better better = Better::less;
  std::string_view best{};  ///< what the best point has: "the lowest price"
  bool leads = false;       ///< what the kind of answer is about: it has the bars
  IntervalPlace interval{};
  ShownWhen when = ShownWhen::always;
};

/// Those that the points have, in the order of the table.
std::vector<const ShownNumber*> shown_numbers(const Varied& varied);
/// The number of that path; null if no answer shows one.
const ShownNumber* shown_number(std::string_view field);
/// The first of these that leads, or else the first; null where there are none.
const ShownNumber* leading_number(const std::vector<const ShownNumber*>& shown);

/// The number of a point; nothing without an answer, or where that has none.
std::optional<double> number_at_point(const VariedPoint& point, std::string_view path);

struct NumberInterval {
  double low = 0, high = 0;
};
std::optional<NumberInterval> interval_at_point(const VariedPoint& point,
                                                const ShownNumber& number);
/// Whether any point has one.
bool has_interval(const Varied& varied, const ShownNumber& number);

/// Paths beyond the answers' first level that CSV has too: of shown numbers and their intervals.
std::vector<std::string> deeper_paths(const Varied& varied);

}  // namespace lockstep
