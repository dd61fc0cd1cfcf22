#include "sim/search/vary_axes.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_override.hpp"
#include "models/base/usage_error.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostVaryAxes = 2;
constexpr std::size_t kMostVaryPoints = 400;

/// Whether --set takes both for the same value: equal as text, or numbers that are.
bool are_one_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto number = [](const std::string& text) {
    return nlohmann::json::parse(text, nullptr, false);
  };
  const nlohmann::json of_a = number(a);
  return of_a.is_number() && of_a == number(b);
}

/// "PATH=V1,V2".
VaryAxis parse_axis(const std::string& option) {
  const std::size_t equals = option.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw UsageError(fmt::format(
        "--vary: found {}; allowed: path=value,value,..., such as run.checkpoint.interval=\"5 "
        "min,10 min\"",
        in_quotes(option)));
  }
  VaryAxis axis{.path = option.substr(0, equals), .values = {}};
  for (std::size_t begin = equals + 1; begin <= option.size();) {
    const std::size_t end = std::min(option.find(',', begin), option.size());
    const std::string value = option.substr(begin, end - begin);
    if (value.empty()) {
      throw UsageError(fmt::format("--vary: found {}; allowed: no empty value", in_quotes(option)));
    }
    for (const std::string& before : axis.values) {
      if (!are_one_value(before, value)) continue;
      const std::string again = before == value ? in_quotes(value) + " twice"
                                                : fmt::format("{} and {}, which are one value",
                                                              in_quotes(before), in_quotes(value));
      throw UsageError(fmt::format("--vary: found {}, which has {}; allowed: each value once",
                                   in_quotes(option), again));
    }
    axis.values.push_back(value);
    begin = end + 1;
  }
  return axis;
}

}  // namespace

std::vector<VaryAxis> parse_axes(const std::vector<std::string>& options) {
  if (options.size() > kMostVaryAxes) {
    throw UsageError(fmt::format("--vary: found {} of them; allowed: one or two", options.size()));
  }
  std::vector<VaryAxis> axes;
  for (const std::string& option : options) axes.push_back(parse_axis(option));
  if (axes.size() == kMostVaryAxes &&
      pointer_of_path(axes.front().path) == pointer_of_path(axes.back().path)) {
    throw UsageError(fmt::format("--vary: found two of {}; allowed: all values in one of them",
                                 in_quotes(axes.front().path)));
  }
  if (const std::size_t count = points_of(axes); count > kMostVaryPoints) {
    throw UsageError(
        fmt::format("--vary: found {} points; allowed: at most {}", count, kMostVaryPoints));
  }
  return axes;
}

std::size_t points_of(const std::vector<VaryAxis>& axes) {
  std::size_t count = axes.empty() ? 0 : 1;
  for (const VaryAxis& axis : axes) count *= axis.values.size();
  return count;
}

std::vector<std::string> values_at(const std::vector<VaryAxis>& axes, std::size_t point) {
  std::vector<std::string> out(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    out[a] = axes[a].values[point % axes[a].values.size()];
    point /= axes[a].values.size();
  }
  return out;
}

std::vector<std::string> sets_at(const std::vector<VaryAxis>& axes, std::size_t point) {
  std::vector<std::string> sets = values_at(axes, point);
  for (std::size_t a = 0; a < axes.size(); ++a) sets[a] = axes[a].path + "=" + sets[a];
  return sets;
}

std::string lost_changes(const VaryAxis& axis, const nlohmann::ordered_json& written) {
  const nlohmann::ordered_json::json_pointer place(pointer_of_path(axis.path));
  const auto is_object = [](const std::string& value) { return value.starts_with('{'); };
  if (!written.contains(place) || std::ranges::all_of(axis.values, is_object)) return {};
  const nlohmann::ordered_json& there = written.at(place);
  if (!there.is_object() || !there.contains("preset")) return {};
  std::vector<std::string> lost;
  for (const auto& [key, value] : there.items()) {
    if (key != "preset") lost.push_back(key);
  }
  if (lost.empty()) return {};
  return fmt::format("--vary {} replaces what the scenario changes there ({}); {}{}preset keeps it",
                     axis.path, fmt::join(lost, ", "), axis.path,
                     axis.path.starts_with('/') ? '/' : '.');
}

InputError told_of_vary(InputError error, const std::vector<std::string>& sets) {
  for (const std::string& set : sets) error = told_of(error, "--set " + set, "--vary " + set);
  return error;
}

}  // namespace lockstep
