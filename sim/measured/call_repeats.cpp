#include "sim/measured/call_repeats.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "models/base/number_text.hpp"
#include "sim/measured/statistics.hpp"

namespace lockstep {
namespace {

/// Above this the repeats of a configuration explain an error.
constexpr double kUnlike = 0.2;

std::string configuration(const ValidationPoint& point, double nic_gb_s) {
  std::string out = fmt::format("{:.9g}", nic_gb_s);
  for (const auto& [key, value] : point.identity) {
    if (key != "system") out += "|" + value.text;
  }
  return out;
}

double bytes_of(const ValidationPoint& point) { return std::stod(identity_of(point, "bytes")); }

/// "512 MiB", "4 GiB".
std::string call_size(const ValidationPoint& point) {
  constexpr double kMebi = 1048576, kGibi = 1024 * kMebi;
  const double bytes = bytes_of(point);
  return bytes >= kGibi ? fmt::format("{:.4g} GiB", bytes / kGibi)
                        : fmt::format("{:.0f} MiB", bytes / kMebi);
}

std::string repeat_time(double us) { return duration_text(us / 1e6); }

/// Whether both are of one log: alike but for the size, which grows along a log.
bool follows(const ValidationPoint& before, const ValidationPoint& after) {
  for (const auto& [key, value] : before.identity) {
    if (key != "bytes" && identity_of(after, key) != value.text) return false;
  }
  return bytes_of(before) < bytes_of(after);
}

/// The errors of the sizes beside it in its log: "-49.3 % at 128 MiB and -29.0 % at 512 MiB".
std::string beside_text(const std::vector<ValidationPoint>& points, std::size_t index) {
  std::string out;
  const auto add = [&out](const ValidationPoint& point) {
    if (!out.empty()) out += " and ";
    out += fmt::format("{} at {}", error_text(point.error), call_size(point));
  };
  if (index > 0 && follows(points[index - 1], points[index])) add(points[index - 1]);
  if (index + 1 < points.size() && follows(points[index], points[index + 1])) {
    add(points[index + 1]);
  }
  return out;
}

std::string reason(const std::vector<ValidationPoint>& points, std::size_t index,
                   const CallRepeats& call) {
  if (call.spread() > kUnlike) {
    return fmt::format("{} repeats in {} take {} to {}", call.times_us.size(),
                       counted(static_cast<double>(call.logs), "log"), repeat_time(call.least_us()),
                       repeat_time(call.most_us()));
  }
  const std::string beside = beside_text(points, index);
  const std::string agree = call.times_us.size() > 1
                                ? fmt::format("{} repeats agree within {:.1f} %",
                                              call.times_us.size(), 100 * call.spread())
                                : std::string("measured once");
  return beside.empty() ? agree : agree + "; the same log: " + beside;
}

}  // namespace

double CallRepeats::least_us() const { return std::ranges::min(times_us); }
double CallRepeats::most_us() const { return std::ranges::max(times_us); }

void RepeatedCalls::add(const ValidationPoint& point, double nic_gb_s,
                        const std::vector<double>& times_us) {
  assert(!times_us.empty());
  call_of_point_.push_back(configuration(point, nic_gb_s));
  CallRepeats& call = calls_[call_of_point_.back()];
  call.point = point;
  call.times_us.insert(call.times_us.end(), times_us.begin(), times_us.end());
  ++call.logs;
  call.point.measured = median(call.times_us);
  call.point.error = point.predicted / call.point.measured - 1;
}

const CallRepeats& RepeatedCalls::of(std::size_t index) const {
  return calls_.at(call_of_point_.at(index));
}

std::vector<ValidationPoint> RepeatedCalls::medians(bool (*member)(const ValidationPoint&)) const {
  std::vector<ValidationPoint> out;
  for (const auto& [key, call] : calls_) {
    if (member(call.point)) out.push_back(call.point);
  }
  return out;
}

std::vector<ValidationPoint> RepeatedCalls::repeats(bool (*member)(const ValidationPoint&)) const {
  std::vector<ValidationPoint> out;
  for (const auto& [key, call] : calls_) {
    if (!member(call.point)) continue;
    for (const double time : call.times_us) {
      ValidationPoint& point = out.emplace_back(call.point);
      point.measured = time;
      point.error = point.predicted / time - 1;
    }
  }
  return out;
}

std::string RepeatedCalls::spread_text(const std::string& where,
                                       bool (*member)(const ValidationPoint&)) const {
  std::size_t configurations = 0, unlike = 0;
  std::vector<double> nearest;
  for (const auto& [key, call] : calls_) {
    if (!member(call.point)) continue;
    ++configurations;
    if (call.spread() > kUnlike) ++unlike;
    const double logarithms =
        std::accumulate(call.times_us.begin(), call.times_us.end(), 0.0,
                        [](double sum, double time) { return sum + std::log(time); });
    const double middle = std::exp(logarithms / static_cast<double>(call.times_us.size()));
    for (const double time : call.times_us) nearest.push_back(middle / time - 1);
  }
  const ErrorSummary best = summarise_errors(nearest);
  return fmt::format(
      "{}: {} repeats (out of place, in place, every log) of {} configurations, of which {} differ "
      "by more than {:.0f} % from one to another; one figure for each comes to within {:.1f} % "
      "(median) and {:.1f} % (p90) of all repeats at best",
      where, nearest.size(), configurations, unlike, 100 * kUnlike, 100 * best.median_abs,
      100 * best.p90_abs);
}

std::vector<WorstPoint> worst_calls(const std::vector<ValidationPoint>& points,
                                    const RepeatedCalls& calls, std::size_t count,
                                    bool (*member)(const ValidationPoint&)) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (member(points[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::abs(points[a].error) > std::abs(points[b].error);
  });
  if (order.size() > count) order.resize(count);
  std::vector<WorstPoint> out;
  for (const std::size_t i : order) {
    const CallRepeats& call = calls.of(i);
    out.push_back({.point = points[i],
                   .repeats = call.times_us.size(),
                   .logs = call.logs,
                   .least = call.least_us(),
                   .most = call.most_us(),
                   .reason = reason(points, i, call)});
  }
  return out;
}

std::string worst_call_line(const WorstPoint& worst) {
  const ValidationPoint& point = worst.point;
  return fmt::format("{}: {}, {}, {} nodes, {}: {} predicted, {} measured; {}",
                     error_text(point.error), identity_of(point, "system"),
                     identity_of(point, "op"), identity_of(point, "nodes"), call_size(point),
                     repeat_time(point.predicted), repeat_time(point.measured), worst.reason);
}

}  // namespace lockstep
