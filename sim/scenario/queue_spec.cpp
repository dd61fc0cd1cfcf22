#include "sim/scenario/queue_spec.hpp"

#include <algorithm>

namespace lockstep {

std::optional<std::uint16_t> NameTable::number_of(const std::string& name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  if (names_.size() == kMost) return std::nullopt;
  const auto number = static_cast<std::uint16_t>(names_.size());
  names_.push_back(name);
  numbers_.emplace(name, number);
  return number;
}

std::int32_t QueueSpec::training_at(const QueueJob& job, int gpus) const {
  const WidthTable& table = width_tables[job.widths];
  if (table.trainings.empty()) return job.training;
  const auto at = std::ranges::find(table.gpus, gpus) - table.gpus.begin();
  return table.trainings[static_cast<std::size_t>(at)];
}

RunTime QueueSpec::overhead_of(const QueueJob& job) const {
  for (const ReplanOverhead& overhead : preemption.overheads) {
    if (overhead.model != job.model) continue;
    const auto at = std::ranges::lower_bound(overhead.gpus, job.gpus);
    const auto index =
        std::min(at - overhead.gpus.begin(), static_cast<std::ptrdiff_t>(overhead.cost.size()) - 1);
    return overhead.cost[static_cast<std::size_t>(index)];
  }
  return preemption.overhead;
}

}  // namespace lockstep
