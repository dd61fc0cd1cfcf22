#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/advice.hpp"
#include "sim/scenario/queue_order_extension.hpp"
#include "sim/scenario/queue_policy_extension.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {
namespace {

using QueueChanges = std::vector<StandardChange>;

/// Each of the names but the one that it is, and those that need more than a name.
void add_choices(QueueChanges& out, std::string_view words, const std::string& path,
                 std::string_view now, std::span<const std::string_view> names,
                 std::span<const std::string_view> needy = {}) {
  for (const std::string_view name : names) {
    if (name == now || std::ranges::find(needy, name) != needy.end()) continue;
    out.push_back({.words = fmt::format("{} {} -> {}", words, now, name),
                   .sets = {fmt::format("{}={}", path, name)}});
  }
}

void add_rules(QueueChanges& out, const QueueSpec& queue) {
  const auto name = [](const auto& names, auto value) {
    return names[static_cast<std::size_t>(value)];
  };
  // They need levels, or weights and associations.
  constexpr std::array<std::string_view, 3> kNeedyOrders{"las", "gittins", "multifactor"};
  const std::span<const std::string_view> needy = kNeedyOrders;
  add_choices(out, "order", "queue.order", name_of(queue.order), kQueueOrderNames,
              queue.levels.empty() ? needy : needy.last(1));
  // They need partitions and their cycles, or ClusterQueues.
  constexpr std::array<std::string_view, 2> kOtherSchedulers{"slurm", "kueue"};
  add_choices(out, "admission", "queue.admission", name_of(queue.admission), kAdmissionNames,
              kOtherSchedulers);
  // They need lists of what goes for what.
  constexpr std::array<std::string_view, 3> kByLists{"qos", "partition", "kueue"};
  add_choices(out, "preemption", "queue.preemption.mode",
              name(kPreemptionNames, queue.preemption.mode), kPreemptionNames, kByLists);
  add_choices(out, "whole nodes", "queue.placement.across",
              name(kAcrossNodesNames, queue.placement.across), kAcrossNodesNames);
  add_choices(out, "parts of nodes", "queue.placement.within_node",
              name(kWithinNodeNames, queue.placement.within_node), kWithinNodeNames);
  if (!queue.user_quotas.empty() || !queue.account_quotas.empty()) {
    out.push_back({.words = "quotas lifted", .sets = {"queue.quotas=[]"}});
  }
}

/// Passes of Slurm's schedulers twice as often, and twice as deep.
void add_cycles(QueueChanges& out, const SlurmCycles& slurm) {
  const auto half = [&out](std::string_view key, RunTime now) {
    const double to = static_cast<double>(now) / 2e9;
    out.push_back(
        {.words = fmt::format("{} {} -> {}", key, duration_text(2 * to), duration_text(to)),
         .sets = {fmt::format("queue.slurm.{}={} s", key, number_text(to))}});
  };
  const auto twice = [&out](std::string_view key, int now) {
    out.push_back({.words = fmt::format("{} {} -> {}", key, now, 2 * now),
                   .sets = {fmt::format("queue.slurm.{}={}", key, 2 * now)}});
  };
  half("bf_interval", slurm.bf_interval);
  half("sched_interval", slurm.sched_interval);
  twice("bf_max_job_test", slurm.bf_max_job_test);
  twice("default_queue_depth", slurm.default_queue_depth);
}

/// More to rent, and sooner.
void add_bursts(QueueChanges& out, const QueueBurst& burst) {
  if (burst.nodes > 0) {
    out.push_back({.words = fmt::format("rented nodes {} -> {}", burst.nodes, 2 * burst.nodes),
                   .sets = {fmt::format("queue.burst.nodes={}", 2 * burst.nodes)}});
  }
  if (burst.after > 0) {
    const double to = to_seconds(burst.after).base_units() / 2;
    out.push_back(
        {.words = fmt::format("burst after {} -> {}", duration_text(2 * to), duration_text(to)),
         .sets = {fmt::format("queue.burst.after={} s", number_text(to))}});
  }
}

void add_nodes(QueueChanges& out, const QueueSpec& queue, const PresetStore& presets) {
  if (!queue.cluster.pools.empty()) return;
  const int now = queue.cluster.nodes, more = std::max(1, now / 10);
  out.push_back({.words = fmt::format("nodes {} -> {} ({} more GPUs)", now, now + more,
                                      grouped(1.0 * more * queue.cluster.node.gpus)),
                 .sets = {fmt::format("cluster.nodes={}", now + more)}});
  if (queue.trainings.empty()) return;  // else durations stay as they are given
  add_newer_cards(queue.cluster.node.gpu, presets, out);
}

}  // namespace

std::vector<StandardChange> queue_changes(const QueueSpec& queue, const PresetStore& presets) {
  QueueChanges out;
  add_rules(out, queue);
  if (queue.admission == QueueAdmission::slurm) add_cycles(out, queue.slurm);
  if (queue.burst) add_bursts(out, *queue.burst);
  add_nodes(out, queue, presets);
  return out;
}

}  // namespace lockstep
