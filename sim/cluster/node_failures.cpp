#include "sim/cluster/node_failures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

// Purposes of draws; those of a queue's jobs are in sim/scenario.
constexpr std::uint32_t kFailureDraw = 1, kRepairDraw = 2, kLemonDraw = 62;
constexpr double kLongest = 9e9;  // seconds that RunTime holds

RunTime exponential(double mean_s, std::uint64_t seed, std::uint32_t node, std::uint32_t number,
                    std::uint32_t purpose) {
  RandomStream stream({.seed = seed, .trajectory = number, .component = node, .purpose = purpose});
  return to_run_time(Seconds{std::min(mean_s * stream.exponential(), kLongest)});
}

/// So many of the nodes, those with the least of uniform draws, by number.
std::vector<int> drawn_lemons(const LemonNodes& lemons, int nodes, std::uint64_t seed) {
  std::vector<std::pair<double, int>> draws;
  for (int node = 0; node < nodes; ++node) {
    RandomStream stream({.seed = seed,
                         .trajectory = 0,
                         .component = static_cast<std::uint32_t>(node),
                         .purpose = kLemonDraw});
    draws.emplace_back(stream.uniform(), node);
  }
  std::ranges::sort(draws);
  std::vector<int> out;
  const auto count = static_cast<std::size_t>(std::llround(lemons.share * nodes));
  for (std::size_t d = 0; d < count; ++d) out.push_back(draws[d].second);
  std::ranges::sort(out);
  return out;
}

}  // namespace

NodeFailureSource::NodeFailureSource(const NodeFailures& spec, int nodes, std::uint64_t seed,
                                     const std::vector<PlannedBreak>& breaks,
                                     const LemonNodes& lemons)
    : spec_(spec), seed_(seed) {
  for (const PlannedBreak& of : breaks) {
    planned_.push_back(
        {.at = of.at, .node = of.node, .breaks = true, .stays_broken = of.repair > 0});
    if (of.repair == 0) continue;
    planned_.push_back(
        {.at = of.at + of.repair, .node = of.node, .breaks = false, .stays_broken = false});
  }
  std::ranges::stable_sort(planned_, std::ranges::greater{}, &Event::at);
  if (spec.mean_time <= Seconds{}) return;
  const auto count = static_cast<std::uint32_t>(nodes);
  next_.fit(count);
  drawn_.resize(count);
  broken_.resize(count);
  if (lemons.share > 0) {
    lemons_ = drawn_lemons(lemons, nodes, seed);
    // The sum of all nodes' rates is what it would be if all were alike.
    const double share = static_cast<double>(lemons_.size()) / nodes;
    good_mean_s_ = spec.mean_time.base_units() * (1 - share + share * lemons.times);
    mean_s_.resize(count, good_mean_s_);
    for (const int node : lemons_) mean_s_[static_cast<std::size_t>(node)] /= lemons.times;
  }
  for (std::uint32_t node = 0; node < count; ++node) draw_failure(node, 0);
}

void NodeFailureSource::pause(int node) {
  if (broken_.empty()) return;
  broken_[static_cast<std::size_t>(node)] = false;
  next_.remove(static_cast<std::uint32_t>(node));
}

void NodeFailureSource::resume(int node, RunTime at) {
  if (!broken_.empty()) draw_failure(static_cast<std::uint32_t>(node), at);
}

void NodeFailureSource::cure(int node) {
  if (!mean_s_.empty()) mean_s_[static_cast<std::size_t>(node)] = good_mean_s_;
}

void NodeFailureSource::draw_failure(std::uint32_t node, RunTime from) {
  const double mean_s = mean_s_.empty() ? spec_.mean_time.base_units() : mean_s_[node];
  const RunTime after = exponential(mean_s, seed_, node, drawn_[node], kFailureDraw);
  if (after > std::numeric_limits<RunTime>::max() - from) return next_.remove(node);
  next_.set(node, from + after);
}

RunTime NodeFailureSource::next_at() const {
  constexpr RunTime kNever = std::numeric_limits<RunTime>::max();
  return std::min(next_.empty() ? kNever : next_.top().key,
                  planned_.empty() ? kNever : planned_.back().at);
}

NodeFailureSource::Event NodeFailureSource::take() {
  if (!planned_.empty() && planned_.back().at == next_at()) {
    const Event event = planned_.back();
    planned_.pop_back();
    return event;
  }
  const auto [at, node] = next_.top();
  Event event{
      .at = at, .node = static_cast<int>(node), .breaks = !broken_[node], .stays_broken = false};
  if (broken_[node]) {
    broken_[node] = false;
    draw_failure(node, at);
    return event;
  }
  const std::uint32_t number = drawn_[node]++;
  RandomStream stream(
      {.seed = seed_, .trajectory = number, .component = node, .purpose = kRepairDraw});
  event.stays_broken = stream.uniform() < spec_.replaced;
  if (event.stays_broken) {
    broken_[node] = true;
    const double repair_s = to_seconds(spec_.repair).base_units() * stream.exponential();
    next_.set(node, at + to_run_time(Seconds{std::min(repair_s, kLongest)}));
  } else {
    draw_failure(node, at);
  }
  return event;
}

}  // namespace lockstep
