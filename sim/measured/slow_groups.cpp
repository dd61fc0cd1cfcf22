#include "sim/measured/slow_groups.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/measured/statistics.hpp"

namespace lockstep {
namespace {

/// From this multiple of what others take a group is slow; up to this one it is not.
constexpr double kSlowGroup = 1.3, kFastGroup = 1.15;
constexpr double kLeastShareOfStep = 0.005;
/// Of so many groups the median is what a call takes; of two, what the faster one does.
constexpr std::size_t kEnoughForMedian = 3;

/// Calls that ought to take as long as each other: kind, size, number of ranks, nodes or one.
using CallKind = std::tuple<std::string, double, std::size_t, bool>;

bool spans_nodes(const std::vector<int>& ranks, const Scenario& scenario) {
  return ranks.front() / scenario.node.gpus != ranks.back() / scenario.node.gpus;
}

double usual_time(std::vector<double> shortest, double predicted) {
  if (shortest.size() >= kEnoughForMedian) return median(std::move(shortest));
  return shortest.size() == 2 ? std::min(shortest[0], shortest[1]) : predicted;
}

/// Those of the slow group that share no link with a fast one of as far a reach. All of them where
/// nothing tells them apart.
std::vector<int> suspects_of(const SlowGroup& slow, const std::vector<SlowGroup>& groups) {
  std::set<int> cleared;
  for (const SlowGroup& other : groups) {
    if (other.spans_nodes != slow.spans_nodes || other.ratio() > kFastGroup) continue;
    cleared.insert(other.ranks.begin(), other.ranks.end());
  }
  std::vector<int> left;
  std::ranges::copy_if(slow.ranks, std::back_inserter(left),
                       [&](int rank) { return !cleared.contains(rank); });
  // Of several slow groups the ranks that they share are the likelier ones.
  std::vector<int> shared;
  for (const int rank : left) {
    const auto holds = [&](const SlowGroup& other) {
      return &other != &slow && other.ranks != slow.ranks &&
             other.spans_nodes == slow.spans_nodes && other.ratio() > kSlowGroup &&
             std::ranges::binary_search(other.ranks, rank);
    };
    if (std::ranges::any_of(groups, holds)) shared.push_back(rank);
  }
  if (!shared.empty()) return shared;
  return left.empty() ? slow.ranks : left;
}

}  // namespace

std::vector<SlowGroup> slow_groups(std::span<const DiagnosedCall> calls, const Scenario& scenario,
                                   double step_s) {
  std::map<CallKind, std::vector<double>> shortest;
  const auto kind_of = [&](const DiagnosedCall& call) {
    return CallKind{call.call, call.bytes, call.ranks.size(), spans_nodes(call.ranks, scenario)};
  };
  for (const DiagnosedCall& call : calls) shortest[kind_of(call)].push_back(call.shortest_s);
  std::map<std::vector<int>, SlowGroup> by_ranks;
  for (const DiagnosedCall& call : calls) {
    SlowGroup& group = by_ranks[call.ranks];
    const std::vector<double>& alike = shortest[kind_of(call)];
    const auto times = static_cast<double>(call.calls);
    group.ranks = call.ranks;
    group.spans_nodes = spans_nodes(call.ranks, scenario);
    group.calls += call.calls;
    group.peers = std::max(group.peers, alike.size() - 1);
    group.shortest_s += times * call.shortest_s;
    group.usual_s += times * usual_time(alike, call.predicted_s);
  }
  std::vector<SlowGroup> all, out;
  for (auto& [ranks, group] : by_ranks) all.push_back(std::move(group));
  for (const SlowGroup& group : all) {
    if (group.ratio() <= kSlowGroup || group.cost_s() < kLeastShareOfStep * step_s) continue;
    out.push_back(group);
    out.back().suspects = suspects_of(group, all);
  }
  std::ranges::stable_sort(out, std::greater<>(), &SlowGroup::cost_s);
  return out;
}

}  // namespace lockstep
