#include "sim/cluster/node_failures.hpp"

#include <algorithm>
#include <limits>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

// Purposes of draws; those of a queue's jobs are in sim/scenario.
constexpr std::uint32_t kFailureDraw = 1, kRepairDraw = 2;
constexpr double kLongest = 9e9;  // seconds that RunTime holds

RunTime exponential(double mean_s, std::uint64_t seed, std::uint32_t node, std::uint32_t number,
                    std::uint32_t purpose) {
  RandomStream stream({.seed = seed, .trajectory = number, .component = node, .purpose = purpose});
  return to_run_time(Seconds{std::min(mean_s * stream.exponential(), kLongest)});
}

}  // namespace

NodeFailureSource::NodeFailureSource(const NodeFailures& spec, int nodes, std::uint64_t seed,
                                     const std::vector<PlannedBreak>& breaks)
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
  for (std::uint32_t node = 0; node < count; ++node) draw_failure(node, 0);
}

void NodeFailureSource::draw_failure(std::uint32_t node, RunTime from) {
  const RunTime after =
      exponential(spec_.mean_time.base_units(), seed_, node, drawn_[node], kFailureDraw);
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
