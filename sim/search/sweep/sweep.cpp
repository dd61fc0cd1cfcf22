#include "sim/search/sweep/sweep.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/core/random.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

/// Six significant digits: enough for a drawn value, and short to read.
double rounded(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

Json SweepVariable::at_share(double u) const {
  if (law == Law::choice) {
    return choices[static_cast<std::size_t>(u * static_cast<double>(choices.size()))];
  }
  const double width = whole ? high - low + 1 : high - low;
  double value = low + u * width;
  if (law == Law::log_uniform) {
    const double top = whole ? high + 1 : high;
    value = low * portable_exp(u * portable_log(top / low));
  }
  if (whole) value = std::clamp(std::floor(value), low, high);
  value = rounded(value);
  if (!unit.empty()) return number_text(value) + " " + unit;
  if (whole) return static_cast<std::int64_t>(value);
  return value;
}

std::vector<std::string> Sweep::columns() const {
  std::vector<std::string> names;
  for (const SweepAxis& axis : axes) {
    for (const SweepVariable& variable : axis.variables) names.push_back(variable.name);
  }
  for (const DerivedValue& value : derived) names.push_back(value.name);
  if (repeats > 0) names.insert(names.end(), {"repeat", "seed"});
  return names;
}

std::uint64_t Sweep::candidates() const {
  std::uint64_t count = static_cast<std::uint64_t>(std::max(repeats, 1));
  for (const SweepAxis& axis : axes) {
    if (axis.size() == 0) return 0;
    if (count > kMostCandidates) return count;  // and more
    count *= axis.size();
  }
  return count;
}

}  // namespace lockstep
