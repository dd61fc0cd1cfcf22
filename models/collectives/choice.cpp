#include "models/collectives/choice.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <utility>

namespace lockstep {

namespace {

/// "14.2 us", "1.31 ms".
std::string time_text(Seconds time) {
  const double us = time.base_units() * 1e6;
  if (us >= 1e6) return fmt::format("{:.3g} s", us / 1e6);
  return us >= 1e3 ? fmt::format("{:.3g} ms", us / 1e3) : fmt::format("{:.3g} us", us);
}

std::string name_of(const JudgedCandidate& candidate) {
  return fmt::format("{}/{}", candidate.algorithm, candidate.protocol);
}

/// Judges the candidates of one algorithm; appends the lines that may be taken to `lines`.
void judge(const CollectiveAlgorithm& algorithm, const CollectiveContext& context, Bytes payload,
           std::vector<CollectiveCandidate>& lines, std::vector<JudgedCandidate>& out) {
  const CollectiveOptions& options = context.options;
  const Availability available = availability_of(algorithm, context);
  if (available.offer == Offer::other_call) return;
  std::string why_not;
  if (available.offer == Offer::refused) why_not = available.reason;
  const bool asked = options.algorithms.asks_for(algorithm.name);
  if (available.offer == Offer::on_request && !asked) why_not = available.reason;
  if (why_not.empty() && !options.algorithms.allows(algorithm.name))
    why_not = "excluded by the user";
  if (available.offer == Offer::refused) {
    out.push_back({algorithm.name, {}, {}, {}, false, std::move(why_not)});
    return;
  }
  std::vector<CollectiveCandidate> candidates;
  add_candidates(algorithm, context, candidates);
  for (const CollectiveCandidate& candidate : candidates) {
    JudgedCandidate judged{
        candidate.algorithm,     candidate.protocol, candidate.latency_at(payload),
        candidate.time(payload), why_not.empty(),    why_not};
    if (judged.eligible && !options.protocols.allows(candidate.protocol)) {
      judged.eligible = false;
      judged.why_not = "protocol excluded by the user";
    }
    if (judged.eligible) lines.push_back(candidate);
    out.push_back(std::move(judged));
  }
}

/// Regimes of one algorithm and protocol (a preset may have several) become their fastest.
void merge_regimes(std::vector<JudgedCandidate>& candidates) {
  const auto before = [](const JudgedCandidate& a, const JudgedCandidate& b) {
    return a.eligible != b.eligible ? a.eligible : a.time < b.time;
  };
  // Few candidates: put each in its place, after its equals.
  std::vector<JudgedCandidate> sorted;
  for (JudgedCandidate& candidate : candidates) {
    const auto place = std::ranges::upper_bound(sorted, candidate, before);
    sorted.insert(place, std::move(candidate));
  }
  std::vector<JudgedCandidate> merged;
  for (JudgedCandidate& candidate : sorted) {
    const bool known = std::ranges::any_of(merged, [&](const JudgedCandidate& other) {
      return other.algorithm == candidate.algorithm && other.protocol == candidate.protocol;
    });
    if (!known) merged.push_back(std::move(candidate));
  }
  candidates = std::move(merged);
}

std::string reason_of(const std::vector<JudgedCandidate>& candidates) {
  const auto eligible = std::ranges::count_if(candidates, &JudgedCandidate::eligible);
  std::string text;
  if (eligible > 0) {
    const JudgedCandidate& best = candidates.front();
    text = fmt::format("{}: {}", name_of(best), time_text(best.time));
    // The best of another algorithm tells more than the same one's next protocol.
    const auto last = candidates.begin() + eligible;
    auto rival = std::find_if(candidates.begin(), last, [&](const JudgedCandidate& other) {
      return other.algorithm != best.algorithm;
    });
    if (rival == last && eligible > 1) rival = candidates.begin() + 1;
    if (rival != last) {
      text += fmt::format(" against {} of {}", time_text(rival->time), name_of(*rival));
    }
  }
  // Algorithms with the same reason together: "nvls, collnet_direct: SHARP is off in this fabric".
  std::vector<std::pair<std::string, std::string>> refusals;
  for (const JudgedCandidate& other : candidates) {
    if (other.eligible) continue;
    if (eligible > 0 && !other.protocol.empty()) continue;  // could run: the table shows it
    const auto same =
        std::ranges::find(refusals, other.why_not, &std::pair<std::string, std::string>::first);
    if (same == refusals.end()) {
      refusals.emplace_back(other.why_not, other.algorithm);
    } else if (!same->second.ends_with(other.algorithm)) {
      same->second += fmt::format(", {}", other.algorithm);
    }
  }
  for (const auto& [why, algorithms] : refusals) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", algorithms, why);
  }
  return text;
}

}  // namespace

CollectiveChoice choose_collective(const CollectiveCall& call, const GpuSpec& gpu,
                                   const TransportSpec& transport, NicShare nic,
                                   const CollectiveOptions& options) {
  assert(call.ranks >= 2 && call.ranks_per_node >= 1);
  const CollectiveContext context = unpack(call, gpu, transport, nic, options);
  CollectiveChoice choice;
  std::vector<CollectiveCandidate> lines;
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    judge(algorithm, context, call.payload, lines, choice.candidates);
  }
  merge_regimes(choice.candidates);
  choice.reason = reason_of(choice.candidates);
  if (lines.empty()) return choice;
  choice.cost = blend(context, lines, call.payload);
  choice.time = choice.cost->latency + call.payload / choice.cost->payload_rate;
  choice.channels =
      channels_used(context, choice.cost->algorithm, choice.cost->protocol, call.payload);
  return choice;
}

}  // namespace lockstep
