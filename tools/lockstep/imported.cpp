#include "tools/lockstep/imported.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/scenario/names.hpp"
#include "tools/lockstep/statistics.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {
namespace {

using PointJson = nlohmann::ordered_json;

std::int64_t whole(double count) { return static_cast<std::int64_t>(count); }

}  // namespace

void note_left_out(const LeftOut& why, const char* what, const std::string& file,
                   std::vector<std::string>& lines) {
  for (const auto& [reason, count] : why) {
    lines.push_back(fmt::format("{} {}{} of {} left out: {}", count, what, count == 1 ? "" : "s",
                                file, reason));
  }
}

std::string product_text(const GemmPoint& point) {
  PointJson json{
      {"m", whole(point.shape.m)}, {"n", whole(point.shape.n)}, {"k", whole(point.shape.k)}};
  if (point.shape.count > 1) json["count"] = whole(point.shape.count);
  json["precision"] = name_of(point.precision);
  if (point.load == Load::sustained) json["load"] = "sustained";
  return json.dump();
}

std::string attention_text(const AttentionPoint& point) {
  const AttentionShape& s = point.shape;
  PointJson json{{"kernel", name_of(point.kernel)},
                 {"direction", s.direction == Direction::forward ? "forward" : "backward"},
                 {"causal", s.causal},
                 {"sequences", whole(s.sequences)},
                 {"tokens", whole(s.tokens)},
                 {"heads", whole(s.heads)}};
  if (s.kv_heads != s.heads) json["kv_heads"] = whole(s.kv_heads);
  json["head_dim"] = whole(s.head_dim);
  return json.dump();
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
