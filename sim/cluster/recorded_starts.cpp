#include "sim/cluster/recorded_starts.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr RunTime kNoStart = std::numeric_limits<RunTime>::max();

/// The recorded nodes, as a job of that width holds them; nothing where they are not free.
std::optional<Holding> recorded_holding(const QueueState& state, const QueueJob& job,
                                        const std::vector<int>& from_one) {
  const int whole = state.free().gpus_per_node();
  if (job.shape != 0) return std::nullopt;  // which component had which node is not recorded
  Holding out;
  int left = job.gpus;
  for (const int number : from_one) {
    const int node = number - 1;
    if (left <= 0 || node >= state.free().nodes()) return std::nullopt;
    const int takes = std::min(left, whole);
    if (state.free().on(node) < takes) return std::nullopt;
    out.push_back({node, takes});
    left -= takes;
  }
  if (left > 0) return std::nullopt;
  return out;
}

}  // namespace

RecordedStarts::RecordedStarts(const QueueSpec& spec, RunTime until) : spec_(&spec), until_(until) {
  for (std::size_t j = 0; j < spec.recorded.size(); ++j) {
    const RunTime start = spec.recorded[j].start;
    if (start >= 0 && start < until) order_.push_back(static_cast<std::uint32_t>(j));
  }
  std::ranges::stable_sort(order_, {}, [&](std::uint32_t j) { return spec.recorded[j].start; });
}

RunTime RecordedStarts::next_at(RunTime now) const {
  if (now >= until_) return kNoStart;
  if (next_ == order_.size()) return until_;
  return std::max(now, spec_->recorded[order_[next_]].start);
}

bool RecordedStarts::start(QueueState& state, std::uint32_t j) const {
  const JobPhase phase = state.state(j).phase;
  if (phase == JobPhase::future || phase == JobPhase::kept) return false;
  if (phase != JobPhase::pending) return true;
  const QueueJob& job = state.job(j);
  std::optional<Holding> where = recorded_holding(state, job, spec_->recorded[j].nodes);
  if (!where) {
    NodeSet scratch;
    where = state.place(state.free(), j, state.nodes_for(j, state.now(), job.limit, scratch));
  }
  if (!where) return false;
  state.start(j, *std::move(where));
  return true;
}

void RecordedStarts::run(QueueState& state) {
  while (next_ < order_.size() && spec_->recorded[order_[next_]].start <= state.now()) {
    late_.push_back(order_[next_++]);
  }
  std::erase_if(late_, [&](std::uint32_t j) { return start(state, j); });
}

}  // namespace lockstep
