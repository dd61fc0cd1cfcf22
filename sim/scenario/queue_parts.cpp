#include "sim/scenario/queue_parts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/queue_policy_extension.hpp"
#include "sim/scenario/queue_rules.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep {
namespace {

constexpr Interval kCycle{1e-3, 1e6};  // seconds
constexpr std::size_t kMostPartitions = 10'000, kMostQuotas = 60'000;
constexpr int kMostQuotaGpus = 10'000'000;

void declare_overhead(const DeclaredMembers& member, ReplanOverhead& out, QueueSpec& spec) {
  std::string model;
  member.required("model", model, "As the trace calls it");
  member.required("gpus", written_type(R"({"type": "array", "minItems": 1,
                                           "items": {"type": "integer", "minimum": 1}})"),
                  "Widths, rising", [&](const JsonCursor& at) {
                    for (const JsonCursor& width : at.elements(1000)) {
                      out.gpus.push_back(width.integer(1, kMostQuotaGpus));
                    }
                    if (out.gpus.empty() || !std::ranges::is_sorted(out.gpus)) {
                      at.fail("at least one width, in rising order");
                    }
                  });
  member.required("times", written_type(R"({"type": "array", "minItems": 1,
                                            "items": {"$ref": "#/$defs/time"}})"),
                  "What each of them loses", [&](const JsonCursor& at) {
                    for (const JsonCursor& time : at.elements(1000)) {
                      out.cost.push_back(to_run_time(time.seconds(kQueueSpan)));
                    }
                    if (out.cost.size() != out.gpus.size()) at.fail("one for each of \"gpus\"");
                  });
  if (member.object() != nullptr) out.model = label_of(model, spec.models, spec.file);
}

void declare_preemption_members(const DeclaredMembers& member, QueueSpec& spec) {
  QueuePreemption& out = spec.preemption;
  member.required(
      "mode", out.mode, kPreemptionNames,
      "none: who runs goes on; evict: a job takes the GPUs of those that come after it; "
      "replan: at every submission and end all are placed anew; qos and partition: by Slurm's "
      "rules, by the lists of qualities of service or by the tiers of partitions; kueue: by the "
      "rules of \"cluster_queues\"");
  declare_run_time(member, "exempt", out.exempt, kQueueSpan,
                   "evict, qos, partition: nobody goes who has run less");
  member.optional(
      "victims", choice_type(victim_rule_names()),
      "evict: who goes first of those that come after a job; default: last, the last in "
      "the order; others are added by programs that link the library",
      [&](const JsonCursor& at) {
        out.victims = static_cast<std::uint8_t>(at.choice(victim_rule_names()));
      });
  member.optional("cancels", out.cancels,
                  "qos, partition: who is preempted is cancelled; default: false, requeued");
  member.optional(
      "suspends", out.suspends,
      "qos, partition: who is preempted is suspended: it stays on its nodes, in memory, "
      "and goes on when its GPUs there are free again; graces do not count; default: "
      "false");
  member.optional("youngest_first", out.youngest_first,
                  "qos, partition: whoever started last goes first; default: false, the smallest "
                  "of the lowest priority");
  member.optional("strict_order", out.strict_order,
                  "qos, partition: candidates are not sorted by the nodes found; default: false");
  member.optional("reorder_count", out.reorder_count, 0, 1000,
                  "qos, partition: how often they are sorted anew; default: 1");
  declare_run_time(member, "restart", out.restart, kQueueSpan,
                   "GPUs are held so long before work goes on, after an eviction or a failure");
  std::optional<Seconds> checkpoint;
  if (out.checkpoint) checkpoint = to_seconds(*out.checkpoint);
  member.optional("checkpoint", checkpoint, kQueueSpan,
                  "Work is kept in multiples of this; 0: all of it. Default: an eviction keeps all "
                  "of it, and a job that a failure stops starts again from its beginning");
  if (checkpoint) out.checkpoint = to_run_time(*checkpoint);
  declare_run_time(member, "overhead", out.overhead, kQueueSpan,
                   "replan: what a running job loses each time, where \"overheads\" does not say");
  member.optional(
      "overheads", std::size_t{10'000}, "Of a model", "replan: the same by model and width",
      [&](const DeclaredMembers& one) {
        ReplanOverhead overhead;
        declare_overhead(one, overhead, spec);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(10'000)) {
          declare_overhead({at, Extent::whole}, out.overheads.emplace_back(), spec);
          at.finish();
        }
      });
}

/// A partition as it stands in a file.
struct WrittenPartition {
  QueuePartition of;
  std::string qos;
  WrittenNodes nodes;
};

void declare_partition(const DeclaredMembers& member, WrittenPartition& out) {
  constexpr int kMostTier = 65'533, kMostJobFactor = 65'533;
  member.required("name", out.of.name, "As jobs name it");
  declare_nodes(member, out.nodes);
  member.optional("tier", out.of.tier, 0, kMostTier,
                  "Jobs of a higher one come first, and may preempt: PriorityTier; default: 1");
  member.optional("priority", out.of.priority, 0, kMostJobFactor,
                  "For the factor \"partition\": PriorityJobFactor; default: 1");
  member.optional("qos", out.qos, "The quality of service whose limits come first for its jobs");
  declare_run_time(member, "grace", out.of.grace, kQueueSpan,
                   "Its jobs go so long after they were preempted: GraceTime; default: 0 s");
}

void read_partitions(const JsonCursor& list, QueueSpec& out) {
  int next = 0;
  for (const JsonCursor& at : list.elements(kMostPartitions)) {
    WrittenPartition written;
    declare_partition({at, Extent::whole}, written);
    at.finish();
    for (const QueuePartition& other : out.partitions) {
      if (other.name == written.of.name) at.at("name").fail("a name that no other partition has");
    }
    if (const auto qos = at.find("qos")) written.of.qos = qos_number(*qos, written.qos, out);
    written.of.nodes = nodes_of(at, written.nodes, next, out.cluster);
    next = written.of.nodes.back() + 1;
    out.partitions.push_back(std::move(written.of));
  }
}

struct WrittenQuota {
  std::string user, account;
  int gpus = 0;
};

void declare_quota(const DeclaredMembers& member, WrittenQuota& out) {
  member.optional("user", out.user, "The user whose it is; instead of account");
  member.optional("account", out.account, "The account whose it is; instead of user");
  member.required("gpus", out.gpus, 0, kMostQuotaGpus, "The most that its running jobs hold");
}

void read_quotas(const JsonCursor& list, QueueSpec& out) {
  for (const JsonCursor& at : list.elements(kMostQuotas)) {
    WrittenQuota written;
    declare_quota({at, Extent::whole}, written);
    at.finish();
    if (written.user.empty() == written.account.empty()) at.fail(R"(either "user" or "account")");
    const bool of_user = !written.user.empty();
    NameTable& names = of_user ? out.users : out.accounts;
    const std::uint16_t number =
        label_of(of_user ? written.user : written.account, names, out.file);
    auto& quotas = of_user ? out.user_quotas : out.account_quotas;
    const auto same = [number](const QueueQuota& quota) { return quota.of == number; };
    if (std::ranges::any_of(quotas, same)) at.fail("one quota for each name");
    quotas.push_back({number, written.gpus});
  }
}

}  // namespace

void declare_run_time(const DeclaredMembers& member, std::string_view key, RunTime& out,
                      const Interval& allowed, std::string_view sentence) {
  Seconds time = to_seconds(out);
  member.optional(key, time, allowed, sentence);
  if (member.object() != nullptr) out = to_run_time(time);
}

void declare_preemption(const DeclaredMembers& member, QueueSpec& out) {
  member.optional("preemption", out, "Who has to go for whom; default: nobody",
                  declare_preemption_members);
}

void declare_placement(const DeclaredMembers& member, QueuePlacement& out) {
  member.optional("within_node", out.within_node, kWithinNodeNames,
                  "Which node gets a job of less than one: the first, the fullest or the emptiest "
                  "that has room; or by fragmentation gradient descent the one whose free GPUs "
                  "become least useless to the scenario's jobs; default: best_fit");
  member.optional(
      "across", out.across, kAcrossNodesNames,
      "Which whole nodes a larger job gets: the first idle ones; on few leaves, as Slurm's "
      "topology/tree; a node of each leaf in turn; in the smallest block of blocks that has "
      "room, as Slurm's topology/block; or those whose busiest link between switches carries least "
      "of what other trainings send; default: first_fit");
  member.optional("leaf_nodes", out.leaf_nodes, 1, kMaxNodes,
                  "Nodes of a leaf switch; default: those of the cluster's fabric");
  member.optional("block_nodes", out.block_nodes, 1, kMaxNodes,
                  "block: nodes of the smallest blocks, such as an NVLink domain; twice as many, "
                  "four times and so on are blocks, too; default: those of a leaf");
}

void declare_slurm(const DeclaredMembers& member, SlurmCycles& out) {
  declare_run_time(member, "opens", out.opens, kQueueSpan,
                   "When the partition is up; default: at once");
  declare_run_time(member, "sched_interval", out.sched_interval, kCycle,
                   "From one pass of the main scheduler over all jobs to the next; default: 60 s");
  declare_run_time(member, "batch_sched_delay", out.batch_sched_delay, kQueueSpan,
                   "Least time between its passes for a submission or an end; default: 3 s");
  member.optional("default_queue_depth", out.default_queue_depth, 1, 1'000'000,
                  "Jobs that such a pass tries; default: 100");
  declare_run_time(member, "bf_interval", out.bf_interval, kCycle,
                   "From one pass of backfill to the next; default: 30 s");
  std::optional<Seconds> first;
  if (out.bf_first) first = to_seconds(*out.bf_first);
  member.optional("bf_first", first, kQueueSpan,
                  "When backfill passes first; default: bf_interval after the partition is up");
  if (first) out.bf_first = to_run_time(*first);
  declare_run_time(member, "bf_resolution", out.bf_resolution, kCycle,
                   "Reservations begin and end at multiples of this; default: 60 s");
  declare_run_time(member, "bf_window", out.bf_window, kCycle,
                   "How far ahead backfill plans; default: 1 d");
  member.optional("bf_max_job_test", out.bf_max_job_test, 1, 1'000'000,
                  "Jobs that a pass of backfill tries; default: 500");
  member.optional("bf_max_job_array_resv", out.bf_max_job_array_resv, 1, 1'000'000,
                  "Tasks of an array that a pass of backfill plans; default: 20");
  declare_run_time(member, "requeue_delay", out.requeue_delay, kQueueSpan,
                   "Until a requeued job is looked at again; default: 121 s");
  declare_run_time(
      member, "epoch", out.epoch, kQueueSpan,
      "What the clock shows, since a full minute, when the queue begins: reservations are "
      "rounded on it; default: 0 s");
}

void declare_partitions(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "partitions", kMostPartitions, "Nodes that some jobs are bound to",
      "Jobs that name none may have all nodes",
      [](const DeclaredMembers& one) {
        WrittenPartition partition;
        declare_partition(one, partition);
      },
      [&](const JsonCursor& list) { read_partitions(list, out); });
}

void declare_quotas(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "quotas", kMostQuotas, "Of a user or an account",
      "A job that would exceed one waits, and nobody behind it has to",
      [](const DeclaredMembers& one) {
        WrittenQuota quota;
        declare_quota(one, quota);
      },
      [&](const JsonCursor& list) { read_quotas(list, out); });
}

}  // namespace lockstep
