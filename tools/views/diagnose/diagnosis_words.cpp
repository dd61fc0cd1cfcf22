#include "tools/views/diagnose/diagnosis_words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

/// A call whose time is this multiple of the prediction is named.
constexpr double kSlowCall = 1.3;

constexpr double kEven = 0.005;  ///< of a step: as good as nothing

}  // namespace

std::string signed_duration(double seconds) {
  return (seconds < 0 ? "-" : "+") + duration_text(std::abs(seconds));
}

double lost_in_calls_s(const DiagnosedCall& call) {
  return (call.shortest_s - call.predicted_s) * static_cast<double>(call.calls);
}

std::string some_ranks_text(const std::vector<int>& ranks) {
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

std::string diagnosis_verdict(const Diagnosis& d) {
  std::string out;
  if (d.of_other_job()) {
    out = fmt::format(
        "This may not be the recorded job: {} of the time in recorded matrix products is in sizes "
        "that none of its products has. What follows compares two different jobs. ",
        percent_text(*d.other_products_share));
  }
  out += fmt::format(
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
    out += fmt::format(" The largest difference lies in {}: {}.", most->title,
                       signed_duration(most->difference_s()));
  }
  return out;
}

std::string slowest_rank_words(const Diagnosis& d) {
  if (d.ranks.size() < 2) {
    return "One rank was recorded: whether another one is slower, only its trace can tell.";
  }
  const RecordedRank& slowest = d.ranks[d.slowest];
  if (d.behind_s <= kEven * d.recorded_s) {
    return fmt::format(
        "No rank of the {} stands out: the slowest works {} longer than the median one.",
        d.ranks.size(), duration_text(d.behind_s));
  }
  return fmt::format(
      "Rank {} works longest: {} without its waits, {} more than the median rank, which the others "
      "wait for in every step ({:.1f} % of it), most of that in {}.",
      slowest.rank, duration_text(slowest.own_s()), duration_text(d.behind_s),
      100 * d.behind_s / d.recorded_s, d.parts[d.slowest_part].title);
}

std::vector<std::string> slow_group_words(const Diagnosis& d) {
  std::vector<std::string> out;
  for (const SlowGroup& group : d.slow_groups) {
    const std::string link = group.spans_nodes ? "NIC or cable" : "NVLink or card";
    const std::string whose =
        group.suspects.size() == group.ranks.size()
            ? fmt::format("the {} of one of them is slow, and no other group tells which", link)
            : fmt::format("the {} of rank{} {}: the others are in groups that are not slow", link,
                          group.suspects.size() == 1 ? "" : "s", some_ranks_text(group.suspects));
    out.push_back(fmt::format(
        "The {} among ranks {}, {}, take{} {:.1f} times {}, even without waiting. That costs "
        "up to {} of a step ({:.1f} %): {}.",
        group.calls == 1 ? "call" : fmt::format("{} calls", group.calls),
        some_ranks_text(group.ranks), group.spans_nodes ? "between nodes" : "inside a node",
        group.calls == 1 ? "s" : "", group.ratio(),
        group.peers == 1  ? std::string("as long as those of the other group like it")
        : group.peers > 1 ? fmt::format("as long as those of the {} groups like it", group.peers)
                          : std::string("as long as this cluster allows"),
        duration_text(group.cost_s()), 100 * group.cost_s() / d.recorded_s, whose));
  }
  return out;
}

std::string slow_call_words(const Diagnosis& d) {
  const DiagnosedCall* worst = nullptr;
  for (const DiagnosedCall& call : d.calls) {
    const bool slow = call.ratio() > kSlowCall && lost_in_calls_s(call) > kEven * d.recorded_s;
    if (slow && (worst == nullptr || lost_in_calls_s(call) > lost_in_calls_s(*worst))) {
      worst = &call;
    }
  }
  if (worst == nullptr) return {};
  return fmt::format(
      "The {} of {}B among ranks {} takes {:.1f} times what this cluster allows even without "
      "waiting, which costs up to {} of a step: a slow link, or another algorithm.",
      worst->call, compact(worst->bytes), some_ranks_text(worst->ranks), worst->ratio(),
      duration_text(lost_in_calls_s(*worst)));
}

}  // namespace lockstep
