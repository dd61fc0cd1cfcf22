#include "tools/views/diagnose/diagnosis_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/measured/diagnosis.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/diagnose/telemetry_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostRows = 12;

/// A call whose time is this multiple of the prediction is named.
constexpr double kSlowCall = 1.3;

constexpr double kEven = 0.005;  // shares of a step

/// Sums of a recording's times round: below a nanosecond nothing is left.
std::string time_text(double seconds) {
  constexpr double kLeastTime = 1e-9;
  return duration_text(std::abs(seconds) < kLeastTime ? 0 : seconds);
}

std::string signed_time(double seconds) {
  return (seconds < 0 ? "-" : "+") + duration_text(std::abs(seconds));
}

std::string verdict(const Diagnosis& d) {
  std::string out = fmt::format(
      "The recorded step takes {}, {} than the predicted {}", duration_text(d.recorded_s),
      fmt::format("{:.1f} % {}", 100 * std::abs(d.ratio() - 1), d.ratio() >= 1 ? "longer" : "less"),
      duration_text(d.predicted_s));
  if (d.predicted_high_s > d.predicted_low_s) {
    out += fmt::format(", {} its 90 % interval of {} to {}",
                       d.within_interval() ? "within" : "outside", duration_text(d.predicted_low_s),
                       duration_text(d.predicted_high_s));
  }
  const auto* const most = std::ranges::max_element(
      d.parts.data(), d.parts.data() + d.parts.size(), {},
      [](const DiagnosedPart& part) { return std::abs(part.difference_s()); });
  out += ".";
  if (std::abs(most->difference_s()) > kEven * d.predicted_s) {
    out += fmt::format(" Most of the difference lies in {}: {}.", most->title,
                       signed_time(most->difference_s()));
  }
  return wrap(out, kTextColumns, 0) + "\n";
}

std::string parts_table(const Diagnosis& d, const TextStyle& style) {
  TextTable table({{"part of the step", TextTable::Align::left},
                   {"predicted"},
                   {"recorded"},
                   {"difference"},
                   {"of the step"}});
  for (const DiagnosedPart& part : d.parts) {
    table.add({std::string(part.title), time_text(part.predicted_s), time_text(part.recorded_s),
               signed_time(part.difference_s()), error_text(part.difference_s() / d.predicted_s)});
  }
  return "\n" + table.text(style);
}

std::string operators_table(const Diagnosis& d, const TextStyle& style) {
  TextTable table({{"operator", TextTable::Align::left},
                   {"kernels"},
                   {"predicted"},
                   {"recorded"},
                   {"difference"},
                   {"of the step"}});
  for (const DiagnosedOperator& each : d.operators) {
    table.add({std::string(each.title), each.kernels > 0 ? significant(each.kernels) : "",
               time_text(each.predicted_s), time_text(each.recorded_s),
               signed_time(each.difference_s()), error_text(each.difference_s() / d.predicted_s)});
  }
  return "\n" + table.text(style);
}

std::string slowest_text(const Diagnosis& d) {
  if (d.ranks.size() < 2) {
    return wrap("One rank was recorded: whether another one is slower, only its trace can tell.",
                kTextColumns, 0) +
           "\n";
  }
  const RecordedRank& slowest = d.ranks[d.slowest];
  if (d.behind_s <= kEven * d.recorded_s) {
    return wrap(fmt::format("No rank of the {} stands out: the slowest works {} longer than the "
                            "median one.",
                            d.ranks.size(), duration_text(d.behind_s)),
                kTextColumns, 0) +
           "\n";
  }
  return wrap(fmt::format("Rank {} works longest: {} without its waits, {} more than the median "
                          "rank, which the others wait for in every step ({:.1f} % of it), most of "
                          "that in {}.",
                          slowest.rank, duration_text(slowest.own_s()), duration_text(d.behind_s),
                          100 * d.behind_s / d.recorded_s, d.parts[d.slowest_part].title),
              kTextColumns, 0) +
         "\n";
}

/// The ranks that work longest, each beside what its stage is predicted to take.
std::string ranks_table(const Diagnosis& d, const TextStyle& style) {
  constexpr std::size_t kMostRanks = 8;
  if (d.ranks.size() < 2) return {};
  TextTable table({{"rank"},
                   {"its own work"},
                   {"predicted"},
                   {"products"},
                   {"memory-bound"},
                   {"host"},
                   {"communication, waits"},
                   {"step"}});
  std::vector<std::size_t> order(d.ranks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return d.ranks[i].own_s(); });
  for (const std::size_t i : order) {
    if (table.rows() == kMostRanks) break;
    const RecordedRank& rank = d.ranks[i];
    table.add({std::to_string(rank.rank), time_text(rank.own_s()), time_text(d.predicted_own_s[i]),
               time_text(rank.of(RecordedPart::product)), time_text(rank.of(RecordedPart::memory)),
               time_text(rank.of(RecordedPart::idle)), time_text(rank.of(RecordedPart::exchange)),
               time_text(rank.step_s)});
  }
  std::string out = "\n" + table.text(style);
  if (d.ranks.size() > kMostRanks) {
    out += fmt::format("  {} more: --format json has them\n", d.ranks.size() - kMostRanks);
  }
  return out;
}

/// "0-7", "0, 8, 16, ...".
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 3;
  const bool in_row =
      ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size()) && ranks.size() > 2;
  if (in_row) return fmt::format("{}-{}", ranks.front(), ranks.back());
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, ranks.size()); ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() > kShown ? out + ", ..." : out;
}

/// Whose link it is, as far as the recording tells.
std::string slow_groups_text(const Diagnosis& d) {
  constexpr std::size_t kMostGroups = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(kMostGroups, d.slow_groups.size()); ++i) {
    const SlowGroup& group = d.slow_groups[i];
    const std::string link = group.spans_nodes ? "NIC or cable" : "NVLink or card";
    const std::string whose =
        group.suspects.size() == group.ranks.size()
            ? fmt::format("the {} of one of them is slow, and no other group tells which", link)
            : fmt::format("the {} of rank{} {}: the others are in groups that are not slow", link,
                          group.suspects.size() == 1 ? "" : "s", ranks_text(group.suspects));
    out += "\n" +
           wrap(fmt::format(
                    "The {} calls among ranks {}, {}, take {:.1f} times {}, even without waiting. "
                    "That costs up to {} of a step ({:.1f} %): {}.",
                    group.calls, ranks_text(group.ranks),
                    group.spans_nodes ? "between nodes" : "inside a node", group.ratio(),
                    group.peers > 0
                        ? fmt::format("as long as those of the {} groups like it", group.peers)
                        : std::string("as long as this cluster allows"),
                    duration_text(group.cost_s()), 100 * group.cost_s() / d.recorded_s, whose),
                kTextColumns, 0) +
           "\n";
  }
  if (d.slow_groups.size() > kMostGroups) {
    out += fmt::format("  {} more slow groups: --format json has them\n",
                       d.slow_groups.size() - kMostGroups);
  }
  return out;
}

/// What a step's calls take above the prediction, nobody waited for.
double lost_s(const DiagnosedCall& call) {
  return (call.shortest_s - call.predicted_s) * static_cast<double>(call.calls);
}

std::string calls_table(const Diagnosis& d, const TextStyle& style) {
  if (d.calls.empty()) return {};
  TextTable table({{"collective", TextTable::Align::left},
                   {"bytes"},
                   {"ranks", TextTable::Align::left},
                   {"calls"},
                   {"shortest"},
                   {"predicted"},
                   {"ratio"}});
  const DiagnosedCall* worst = nullptr;
  for (const DiagnosedCall& call : d.calls) {
    if (table.rows() < kMostRows) {
      table.add({call.call, compact(call.bytes), ranks_text(call.ranks),
                 grouped(static_cast<double>(call.calls)), duration_text(call.shortest_s),
                 duration_text(call.predicted_s), fmt::format("{:.2f}", call.ratio())});
    }
    const bool slow = call.ratio() > kSlowCall && lost_s(call) > kEven * d.recorded_s;
    if (slow && (worst == nullptr || lost_s(call) > lost_s(*worst))) worst = &call;
  }
  std::string out = "\n" + table.text(style);
  if (d.calls.size() > kMostRows) {
    out += fmt::format("  {} more: --format json has them\n", d.calls.size() - kMostRows);
  }
  if (worst != nullptr) {
    out += "\n" +
           wrap(fmt::format("The {} of {}B among ranks {} takes {:.1f} times what this cluster "
                            "allows even without waiting, which costs up to {} of a step: a slow "
                            "link, or another algorithm.",
                            worst->call, compact(worst->bytes), ranks_text(worst->ranks),
                            worst->ratio(), duration_text(lost_s(*worst))),
                kTextColumns, 0) +
           "\n";
  }
  return out + slow_groups_text(d);
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d, const TextStyle& style) {
  std::string out;
  if (!d.ranks.empty()) {
    out = verdict(d) + parts_table(d, style) + operators_table(d, style) + "\n" + slowest_text(d) +
          ranks_table(d, style) + calls_table(d, style);
  } else {
    out = fmt::format("The step is predicted to take {}.\n", duration_text(d.predicted_s));
  }
  if (d.telemetry) out += telemetry_text(*d.telemetry, style);
  for (const std::string& note : d.notes) out += wrap("note: " + note, kTextColumns, 2) + "\n";
  return out;
}

}  // namespace lockstep
