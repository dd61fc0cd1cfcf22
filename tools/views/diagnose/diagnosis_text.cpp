#include "tools/views/diagnose/diagnosis_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/measured/diagnosis.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/diagnose/diagnosis_words.hpp"
#include "tools/views/diagnose/telemetry_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostRows = 12, kMostGroups = 3;

/// Sums of a recording's times round: below a nanosecond nothing is left.
std::string time_text(double seconds) {
  constexpr double kLeastTime = 1e-9;
  return duration_text(std::abs(seconds) < kLeastTime ? 0 : seconds);
}

std::string parts_table(const Diagnosis& d, const TextStyle& style) {
  TextTable table({{"part of the step", TextTable::Align::left},
                   {"predicted"},
                   {"recorded"},
                   {"difference"},
                   {"of the step"}});
  for (const DiagnosedPart& part : d.parts) {
    table.add({std::string(part.title), time_text(part.predicted_s), time_text(part.recorded_s),
               signed_duration(part.difference_s()),
               error_text(part.difference_s() / d.predicted_s)});
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
               signed_duration(each.difference_s()),
               error_text(each.difference_s() / d.predicted_s)});
  }
  return "\n" + table.text(style);
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

/// A sentence on lines of its own; nothing of none.
std::string own_lines(const std::string& sentence) {
  return sentence.empty() ? "" : wrap(sentence, kTextColumns, 0) + "\n";
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
  for (const DiagnosedCall& call : d.calls) {
    if (table.rows() == kMostRows) break;
    table.add({call.call, compact(call.bytes), some_ranks_text(call.ranks),
               grouped(static_cast<double>(call.calls)), duration_text(call.shortest_s),
               duration_text(call.predicted_s), fmt::format("{:.2f}", call.ratio())});
  }
  std::string out = "\n" + table.text(style);
  if (d.calls.size() > kMostRows) {
    out += fmt::format("  {} more: --format json has them\n", d.calls.size() - kMostRows);
  }
  if (const std::string words = slow_call_words(d); !words.empty()) out += "\n" + own_lines(words);
  const std::vector<std::string> groups = slow_group_words(d);
  for (std::size_t i = 0; i < std::min(kMostGroups, groups.size()); ++i) {
    out += "\n" + own_lines(groups[i]);
  }
  if (groups.size() > kMostGroups) {
    out +=
        fmt::format("  {} more slow groups: --format json has them\n", groups.size() - kMostGroups);
  }
  return out;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d, const TextStyle& style) {
  const std::string slow = d.telemetry ? slow_gpu_verdict(*d.telemetry) : std::string();
  std::string out;
  if (!d.ranks.empty()) {
    out = own_lines(diagnosis_verdict(d) + slow) + parts_table(d, style) +
          operators_table(d, style) + "\n" + own_lines(slowest_rank_words(d)) +
          ranks_table(d, style) + calls_table(d, style);
  } else {
    out = own_lines(
        fmt::format("The step is predicted to take {}.{}", duration_text(d.predicted_s), slow));
  }
  if (d.telemetry) out += telemetry_text(*d.telemetry, style);
  for (const std::string& note : d.notes) out += wrap("note: " + note, kTextColumns, 2) + "\n";
  return out;
}

}  // namespace lockstep
