#include "sim/trace/formats/goal_dependencies.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

void sort_and_unify(std::vector<std::uint32_t>& numbers) {
  std::ranges::sort(numbers);
  const auto twice = std::ranges::unique(numbers);
  numbers.erase(twice.begin(), twice.end());
}

}  // namespace

/// Chains of starts from their beginning, so that each operation is complete when others take from
/// it, wherever the file says what.
void GoalDependencies::add_starts(const std::string& place) {
  std::ranges::stable_sort(with_, {}, &Start::other);
  std::vector<std::uint32_t> open(before_.size());  // starts that an operation still waits for
  for (const Start& start : with_) ++open[start.operation];
  std::vector<std::uint32_t> complete;
  for (const Start& start : with_) {
    if (open[start.other] == 0) complete.push_back(start.other);
  }
  sort_and_unify(complete);
  std::size_t taken = 0, total = 0;
  while (!complete.empty()) {
    const std::uint32_t other = complete.back();
    complete.pop_back();
    for (const Start& start : std::ranges::equal_range(with_, other, {}, &Start::other)) {
      std::vector<std::uint32_t>& own = before_[start.operation];
      own.insert(own.end(), before_[other].begin(), before_[other].end());
      ++taken;
      total += before_[other].size();
      if (total > kMost) {
        fail_trace(place, "operations that start with others which wait for many",
                   fmt::format("at most {} dependencies", kMost));
      }
      if (--open[start.operation] > 0) continue;
      sort_and_unify(own);
      complete.push_back(start.operation);
    }
  }
  if (taken == with_.size()) return;
  const auto stuck =
      std::ranges::find_if(with_, [&](const Start& start) { return open[start.operation] > 0; });
  fail_trace(place,
             fmt::format("operation {} that starts with others in a circle", stuck->operation + 1),
             "irequires without circles");
}

void GoalDependencies::give_to(RankTrace& rank, const std::string& place) {
  if (with_.empty()) return give_ends(rank);
  before_.resize(operations_);
  for (const auto& [own, other] : ends_) before_[own].push_back(other);
  add_starts(place);
  for (std::size_t i = 0; i < rank.nodes.size(); ++i) {
    rank.nodes[i].dependencies = static_cast<std::uint32_t>(before_[i].size());
    for (const std::uint32_t other : before_[i]) {
      rank.dependencies.push_back(other + std::uint64_t{1});
    }
  }
}

/// By operation, those of one in the order in which the file has them.
void GoalDependencies::give_ends(RankTrace& rank) const {
  for (const auto& [own, other] : ends_) ++rank.nodes[own].dependencies;
  const std::size_t first = rank.dependencies.size();
  rank.dependencies.resize(first + ends_.size());
  if (std::ranges::is_sorted(ends_, {}, &GoalRank::Wait::operation)) {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      rank.dependencies[first + i] = ends_[i].other + std::uint64_t{1};
    }
    return;
  }
  std::vector<std::size_t> next;
  next.reserve(operations_);
  std::size_t sum = first;
  for (const RankTrace::Node& node : rank.nodes) {
    next.push_back(sum);
    sum += node.dependencies;
  }
  for (const auto& [own, other] : ends_) {
    rank.dependencies[next[own]++] = other + std::uint64_t{1};
  }
}

RankTrace trace_of_goal(const std::string& file, const GoalRank& rank) {
  RankTrace out;
  trace_of_goal(file, rank, out);
  return out;
}

void trace_of_goal(const std::string& file, const GoalRank& rank, RankTrace& out) {
  constexpr std::array<std::string_view, 3> kNames{"send", "recv", "calc"};
  std::vector<RankTrace::Node> nodes = std::move(out.nodes);
  std::vector<std::uint64_t> dependencies = std::move(out.dependencies);
  nodes.clear();
  dependencies.clear();
  out = {};
  out.nodes = std::move(nodes);
  out.dependencies = std::move(dependencies);
  out.file = file;
  out.rank = rank.rank;
  out.nodes.reserve(rank.operations.size());
  std::array<std::optional<std::uint32_t>, kNames.size()> names;
  for (const GoalRank::Operation& own : rank.operations) {
    std::optional<std::uint32_t>& name = names[static_cast<std::size_t>(own.kind)];
    if (!name) name = out.name(kNames[static_cast<std::size_t>(own.kind)]);
    RankTrace::Node& node = out.nodes.emplace_back();
    node.id = out.nodes.size();
    node.name = *name;
    if (own.kind == GoalRank::Kind::calculation) {
      node.kind = TraceNodeKind::compute;
      node.duration = {own.size * 1000};
      node.stream = own.cpu;
      continue;
    }
    assert(own.peer != GoalRank::kAny && "a trace's messages have two ends");
    node.kind = own.kind == GoalRank::Kind::send ? TraceNodeKind::send : TraceNodeKind::receive;
    node.size = Bytes{static_cast<double>(own.size)};
    node.peer = static_cast<int>(own.peer);
    node.tag = own.tag;
  }
  GoalDependencies(rank.operations.size(), rank.ends, rank.starts)
      .give_to(out, fmt::format("{}, rank {}", file, rank.rank));
}

}  // namespace lockstep
