#include "sim/measured/imported.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using PointJson = nlohmann::ordered_json;

/// Without ".0" where it is whole; means of widths are not.
PointJson size_json(double size) {
  const double whole = std::floor(size);
  return whole == size ? PointJson(static_cast<std::int64_t>(whole)) : PointJson(size);
}

}  // namespace

void note_left_out(const LeftOut& why, const char* what, const std::string& file,
                   std::vector<std::string>& lines) {
  for (const auto& [reason, count] : why) {
    lines.push_back(fmt::format("{} {}{} of {} left out: {}", count, what, count == 1 ? "" : "s",
                                file, reason));
  }
}

std::string profile_json_text(const PointJson& profile) {
  std::string out = "{";
  std::string_view separator = "\n";
  for (const auto& [key, value] : profile.items()) {
    out += fmt::format("{} {}: ", separator, json_string(key));
    separator = ",\n";
    if (!value.is_array()) {
      out += write_json(value);
      continue;
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      out += (i == 0 ? "[\n  " : ",\n  ") + write_json(value[i]);
    }
    out += value.empty() ? "[]" : "\n ]";
  }
  return out + "\n}\n";
}

std::string product_text(const GemmPoint& point) {
  PointJson json{{"m", size_json(point.shape.m)},
                 {"n", size_json(point.shape.n)},
                 {"k", size_json(point.shape.k)}};
  if (point.shape.count > 1) json["count"] = size_json(point.shape.count);
  json["precision"] = name_of(point.precision);
  if (point.load == Load::sustained) json["load"] = "sustained";
  return write_json(json);
}

std::string attention_text(const AttentionPoint& point) {
  const AttentionShape& s = point.shape;
  PointJson json{{"kernel", name_of(point.kernel)},
                 {"direction", s.direction == Direction::forward ? "forward" : "backward"},
                 {"causal", s.causal},
                 {"sequences", size_json(s.sequences)},
                 {"tokens", size_json(s.tokens)},
                 {"heads", size_json(s.heads)}};
  if (s.kv_heads != s.heads) json["kv_heads"] = size_json(s.kv_heads);
  json["head_dim"] = size_json(s.head_dim);
  return write_json(json);
}

void add_points(std::string_view key, const TimesByPoint& points, bool waits, PointJson& out) {
  for (const auto& [text, times] : points) {
    PointJson point = PointJson::parse(text);
    const double middle = median(times);
    point["time"] = number_text(waits ? *std::ranges::min_element(times) : middle) + " us";
    if (!waits && times.size() > 1) {
      constexpr double kMostSpread = 10;
      const double spread = (quantile(times, 0.75) - quantile(times, 0.25)) / middle;
      point["spread"] = twelve_digits(std::min(spread, kMostSpread));
    }
    out[std::string(key)].push_back(std::move(point));
  }
}

}  // namespace lockstep
