#include "sim/scenario/read_queue.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/feature_rules.hpp"
#include "sim/scenario/job_licenses.hpp"
#include "sim/scenario/listed_jobs.hpp"
#include "sim/scenario/queue_campaigns.hpp"
#include "sim/scenario/queue_order_extension.hpp"
#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_policy_extension.hpp"
#include "sim/scenario/queue_rules.hpp"
#include "sim/scenario/queue_trace.hpp"
#include "sim/scenario/queue_trainings.hpp"
#include "sim/scenario/read_burst.hpp"
#include "sim/scenario/read_cluster_queues.hpp"
#include "sim/scenario/read_elastic.hpp"
#include "sim/scenario/read_health.hpp"
#include "sim/scenario/read_machine_power.hpp"
#include "sim/scenario/recorded_path.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/spec_schemas.hpp"
#include "topologies/fabrics/fabric_counts.hpp"

namespace lockstep {
namespace {

constexpr int kMostEntriesOfJobs = 10'000;

/// The rate at which a node loses its jobs, of the failures that are a node's own.
NodeFailures node_failures(const ReliabilitySpec& rates, const QueueSpec& spec) {
  NodeFailures out;
  out.name = rates.name;
  double per_second = 0, replaced = 0;
  std::vector<std::string> left_out;
  for (const ReliabilityMode& of : rates.modes) {
    const double gpus = spec.cluster.node.gpus, nics = spec.cluster.node.nics;
    const auto& chassis = spec.cluster.node.chassis;
    double components = 0;
    switch (of.component) {
      case FailingComponent::gpu:
        components = gpus;
        break;
      case FailingComponent::nic:
        components = nics;
        break;
      case FailingComponent::cpu:
        components = chassis ? chassis->cpus : 2;
        break;
      case FailingComponent::node:
        components = 1;
        break;
      default:
        break;
    }
    const bool stops = of.mode.effect == FailureEffect::crash ||
                       of.mode.effect == FailureEffect::hang ||
                       of.mode.effect == FailureEffect::planned;
    if (components == 0 || !stops) {
      left_out.push_back(of.mode.name);
      continue;
    }
    const double rate = components / of.mode.mean_time.base_units();
    per_second += rate;
    replaced += rate * of.mode.replaced;
  }
  if (per_second > 0) {
    out.mean_time = Seconds{1 / per_second};
    out.replaced = replaced / per_second;
  }
  if (!left_out.empty()) {
    out.assumptions.push_back(fmt::format(
        "reliability: only what stops the jobs of one node; left out: {}", listed(left_out)));
  }
  return out;
}

void read_failures(const JsonCursor& at, const PresetStore& presets, QueueSpec& out) {
  ReliabilitySpec rates;
  if (at.is_object()) {
    rates.name = "rates of the scenario";
    declare_reliability({at, Extent::whole}, rates);
    at.finish();
    if (!rates.log.empty()) at.at("log").fail("no such key: failures of a queue's nodes are drawn");
  } else {
    rates = presets.reliability(read_preset_name(at, "reliability", presets));
  }
  const RunTime repair = out.failures.repair;
  out.failures = node_failures(rates, out);
  out.failures.repair = repair;
  for (const std::string& text : rates.assumptions) {
    constexpr std::string_view kOfRun = "run.";  // where the rates of a run stand
    out.assumptions.push_back(text.starts_with(kOfRun) ? text.substr(kOfRun.size()) : text);
  }
  for (const std::string& text : out.failures.assumptions) out.assumptions.push_back(text);
}

/// Where jobs come from, as the scenario lists it.
struct JobSource {
  std::optional<JobTrace> trace;
  std::optional<DrawnJobs> generate, stand_in;
  std::optional<ListedJob> job;
  std::optional<JsonCursor> training;
};

void declare_source(const DeclaredMembers& member, JobSource& out) {
  member.optional("trace", out.trace, "Jobs of a real cluster", declare_trace);
  member.optional("generate", out.generate, "Jobs that are drawn", declare_drawn_jobs);
  member.optional("stand_in", out.stand_in,
                  "Drawn in place of the trace where its file is not at hand; the answer says so",
                  declare_drawn_jobs);
  member.optional("job", out.job, "One job, or an array of jobs", declare_listed_job);
  if (member.object() != nullptr) {
    out.training = member.object()->find("training");
    return;
  }
  std::optional<QueuedTraining> described;
  member.optional(
      "training", described,
      "A job of this model and layout: its step is simulated where it is placed, beside "
      "its neighbours",
      declare_queue_training);
}

/// The name of a file alone does not say which columns hold what.
void check_trace_form(const JsonCursor& at) {
  const auto trace = at.find("trace");
  if (!trace || !trace->is_string()) return;
  trace->fail(fmt::format(R"({{"file": {}, "columns": {{"submit": "submit_s", "runs": "run_s", )"
                          R"("gpus": "gpus"}}}} with the names of its columns)",
                          in_quotes(trace->string())));
}

void add_traced(const JsonCursor& at, const JobSource& source, std::uint32_t number,
                QueueSpec& out) {
  const std::string& file = source.trace->file;
  const std::optional<std::string> path = recorded_path(out.file, file);
  if (path) return read_trace(at.at("trace"), *path, *source.trace, out);
  if (!source.stand_in) {
    at.at("trace").at("file").fail(
        "a file in the scenario's folder, or in the one that the environment variable "
        "LOCKSTEP_DATA names; else a \"stand_in\"");
  }
  draw_jobs(*source.stand_in, number, out);
  out.assumptions.push_back(
      fmt::format("jobs: {} drawn ones stand in for the trace {}, which is neither beside the "
                  "scenario nor in a "
                  "folder that LOCKSTEP_DATA names",
                  source.stand_in->count, file));
}

void add_jobs(const JsonCursor& list, const PresetStore& presets, QueueSpec& out) {
  std::uint32_t number = 0;
  for (const JsonCursor& at : list.elements(kMostEntriesOfJobs)) {
    check_trace_form(at);
    JobSource source;
    declare_source({at, Extent::whole}, source);
    at.finish();
    const int kinds =
        static_cast<int>(source.trace.has_value()) + static_cast<int>(source.generate.has_value()) +
        static_cast<int>(source.job.has_value()) + static_cast<int>(source.training.has_value());
    if (kinds != 1) at.fail(R"(one of "trace", "generate", "job" and "training")");
    if (source.stand_in && !source.trace) at.at("stand_in").fail("no such key without \"trace\"");
    if (source.trace) {
      add_traced(at, source, number, out);
    } else if (source.generate) {
      draw_jobs(*source.generate, number, out);
    } else if (source.job) {
      add_listed_job(at.at("job"), *source.job, out);
    } else {
      add_trainings(*source.training, presets, out);
    }
    ++number;
  }
  if (out.jobs.empty()) list.fail("at least one job");
}

/// Campaigns come first, so that a job can wait for one.
void declare_jobs(const DeclaredMembers& member, const PresetStore& presets, QueueSpec& out) {
  declare_campaigns(member, presets, out);
  if (member.object() != nullptr && out.campaigns.empty()) {
    (void)member.object()->at("jobs");  // required here
  }
  member.optional(
      "jobs", static_cast<std::size_t>(kMostEntriesOfJobs), "Where jobs come from",
      "All that is submitted beside \"campaigns\"; required unless there are some",
      [](const DeclaredMembers& one) {
        JobSource source;
        declare_source(one, source);
      },
      [&](const JsonCursor& list) { add_jobs(list, presets, out); });
}

/// Puts all jobs in the order of their submission.
void sort_jobs(QueueSpec& out) {
  std::vector<std::uint32_t> order(out.jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto submit = [&](std::uint32_t j) { return out.jobs[j].submit; };
  if (std::ranges::is_sorted(order, {}, submit)) return;
  std::ranges::stable_sort(order, {}, submit);
  const auto sorted = [&](const auto& from) {
    std::remove_cvref_t<decltype(from)> to(from.size());
    for (std::size_t j = 0; j < order.size(); ++j) to[j] = from[order[j]];
    return to;
  };
  out.jobs = sorted(out.jobs);
  if (!out.names.empty()) {
    out.names.resize(order.size());
    out.names = sorted(out.names);
  }
  if (!out.recorded.empty()) {
    out.recorded.resize(order.size());
    out.recorded = sorted(out.recorded);
  }
  if (!out.terms.empty()) {
    out.terms.resize(order.size());
    out.terms = sorted(out.terms);
  }
  if (!out.places.empty()) {
    out.places.resize(order.size());
    out.places = sorted(out.places);
  }
}

/// Nodes of a partition.
std::int64_t node_count(const QueueSpec& spec, std::uint16_t partition) {
  const auto nodes = static_cast<std::int64_t>(spec.partitions[partition].nodes.size());
  return nodes == 0 ? spec.cluster.nodes : nodes;
}

/// Components that do not fit in their partitions, even alone.
void check_components(const JsonCursor& queue, const QueueSpec& out) {
  for (std::size_t j = 0; j < out.jobs.size(); ++j) {
    std::map<std::uint16_t, std::int64_t> gpus;  // by partition
    for (const JobPart& part : out.shapes[out.jobs[j].shape]) {
      gpus[part.partition] += part.gpus;
      const std::int64_t nodes = node_count(out, part.partition);
      const std::int64_t most = nodes * out.cluster.node.gpus;
      if (out.nodes_of(part.gpus, 0) <= nodes && gpus[part.partition] <= most) continue;
      throw InputError({.file = queue.file(),
                        .pointer = queue.at("jobs").pointer(),
                        .found = fmt::format("job {} with components of {} GPUs in partition {}",
                                             out.job_name(j), gpus[part.partition],
                                             in_quotes(out.partitions[part.partition].name)),
                        .allowed = fmt::format("at most {}, which it has", most),
                        .nearest = {}});
    }
  }
}

/// A job that fits on its nodes in no way would wait for ever.
void check_widths(const JsonCursor& queue, const QueueSpec& out) {
  const int node_gpus = out.cluster.node.gpus;
  for (std::size_t j = 0; j < out.jobs.size(); ++j) {
    const QueueJob& job = out.jobs[j];
    const QueuePartition& partition = out.partitions[job.partition];
    const std::int64_t nodes = partition.nodes.empty()
                                   ? out.cluster.nodes
                                   : static_cast<std::int64_t>(partition.nodes.size());
    const std::int64_t needs = (job.gpus + node_gpus - 1) / node_gpus;  // at least
    const JobTerms* const terms = out.terms_of(j);
    const std::uint16_t number = terms == nullptr ? std::uint16_t{0} : terms->reservation;
    const AdvanceReservation* const reservation =
        number == 0 ? nullptr : &out.reservations[number - std::size_t{1}];
    const bool bound = reservation != nullptr && !reservation->flex;
    const std::int64_t reserved =
        bound ? static_cast<std::int64_t>(reservation->nodes.size()) : nodes;
    if (needs <= std::min(nodes, reserved)) continue;
    const std::string where = reserved < nodes         ? "its reservation"
                              : partition.name.empty() ? "the cluster"
                                                       : "partition " + partition.name;
    const JsonCursor list = queue.at(out.place_of(j) == nullptr ? "jobs" : "campaigns");
    throw InputError({.file = list.file(),
                      .pointer = list.pointer(),
                      .found = fmt::format("job {} of {} GPUs", out.job_name(j), job.gpus),
                      .allowed = fmt::format("at most {}, which {} has",
                                             std::min(nodes, reserved) * node_gpus, where),
                      .nearest = {}});
  }
}

/// Of whom drf knows nothing: it weighs each account by itself.
void check_drf_shares(const JsonCursor& of_user) {
  if (of_user.find("shares")) {
    of_user.at("shares").fail(R"(no such key of a user where "order" is "drf")");
  }
}

void check_drf_accounts(const JsonCursor& queue) {
  constexpr std::size_t kMostLines = 100'000;
  if (!queue.find("accounts")) return;
  for (const JsonCursor& account : queue.at("accounts").elements(kMostLines)) {
    if (account.find("parent")) {
      account.at("parent").fail(
          R"(no such key where "order" is "drf": accounts are weighed alone)");
    }
    if (account.find("shares") && account.at("shares").is_string()) {
      account.at("shares").fail(R"(a number where "order" is "drf")");
    }
    if (!account.find("users")) continue;
    for (const JsonCursor& user : account.at("users").elements(kMostLines)) check_drf_shares(user);
  }
}

/// Whoever starts changes who comes next.
void check_drf(const JsonCursor& queue, const QueueSpec& out) {
  if (out.order != QueueOrder::drf) return;
  if (out.admission != QueueAdmission::strict && out.admission != QueueAdmission::best_effort) {
    queue.at("admission").fail(R"(strict or best_effort where "order" is "drf")");
  }
  if (out.preemption.mode != PreemptionMode::none) {
    queue.at("preemption").at("mode").fail(R"(none where "order" is "drf")");
  }
  check_drf_accounts(queue);
}

void check_themis(const JsonCursor& queue, const QueueSpec& out) {
  if (out.order != QueueOrder::themis) {
    if (queue.find("auction"))
      queue.at("auction").fail(R"(no such key unless "order" is "themis")");
    return;
  }
  if (out.admission != QueueAdmission::strict && out.admission != QueueAdmission::best_effort) {
    queue.at("admission").fail(R"(strict or best_effort where "order" is "themis")");
  }
  const PreemptionMode mode = out.preemption.mode;
  if (mode != PreemptionMode::none && mode != PreemptionMode::replan) {
    queue.at("preemption").at("mode").fail(R"(none or replan where "order" is "themis")");
  }
}

/// It goes by what trainings send over the links of leaves and pods.
void check_least_contended(const JsonCursor& queue, const QueueSpec& out) {
  if (out.placement.across != AcrossNodes::least_contended) return;
  const JsonCursor placement = queue.at("placement");
  const auto fail = [&](const std::string& why) {
    placement.at("across").fail("another rule, such as packed, " + why);
  };
  if (out.trainings.empty()) fail(R"(where no job is a "training": nobody is known to send)");
  if (out.speed == QueueSpeed::exact) fail(R"(where "speed" is "exact")");
  if (out.cluster.fabric.kind == FabricKind::ideal || is_drawn(out.cluster.fabric)) {
    fail("where the fabric is no whole tree of switches");
  }
  if (out.preemption.mode == PreemptionMode::replan) {
    fail(R"(where "preemption" is "replan", which moves all at once)");
  }
  if (placement.find("leaf_nodes")) {
    placement.at("leaf_nodes").fail(R"(no such key where "across" is "least_contended")");
  }
}

void check_rules(const JsonCursor& queue, const QueueSpec& out) {
  const QueuePreemption& preemption = out.preemption;
  const bool evicts = preemption.mode == PreemptionMode::evict;
  const bool by_slurm = preemption.by_slurm();
  const bool stays = out.order == QueueOrder::fifo || out.order == QueueOrder::sjf ||
                     out.order == QueueOrder::qssf;
  if (evicts && stays) {
    queue.at("preemption")
        .at("mode")
        .fail(
            R"(none with "fifo", "sjf" and "qssf", whose order does not change while a job runs)");
  }
  if (evicts && is_extension(out.order)) {
    queue.at("preemption")
        .at("mode")
        .fail("none with an order of an extension, which does not change while a job runs");
  }
  check_drf(queue, out);
  check_themis(queue, out);
  const bool plain =
      out.admission == QueueAdmission::strict || out.admission == QueueAdmission::best_effort;
  const bool slurm = out.admission == QueueAdmission::slurm;
  const bool by_kueue = out.admission == QueueAdmission::kueue;  // checked with its queues
  if (preemption.mode != PreemptionMode::none && !plain && !(slurm && by_slurm) && !by_kueue) {
    queue.at("preemption")
        .at("mode")
        .fail(slurm                         ? "none, qos or partition, which Slurm has"
              : is_extension(out.admission) ? "none with an admission of an extension"
                                            : "none with backfilling, which counts on those that "
                                              "run going on");
  }
  if (!evicts && queue.find("preemption") && queue.at("preemption").find("victims")) {
    queue.at("preemption").at("victims").fail(R"(no such key unless "mode" is "evict")");
  }
  if (preemption.exempt > 0 && !evicts && !by_slurm) {
    queue.at("preemption")
        .at("exempt")
        .fail(R"(no such key unless "mode" is "evict", "qos" or "partition")");
  }
  for (const std::string_view key :
       {"cancels", "suspends", "youngest_first", "strict_order", "reorder_count"}) {
    if (by_slurm || !queue.find("preemption") || !queue.at("preemption").find(key)) continue;
    queue.at("preemption").at(key).fail(R"(no such key unless "mode" is "qos" or "partition")");
  }
  if (preemption.mode == PreemptionMode::replan && queue.find("licenses")) {
    queue.at("licenses").fail(R"(no such key where "preemption" is "replan")");
  }
  if (preemption.suspends && preemption.cancels) {
    queue.at("preemption").at("suspends").fail(R"(false where "cancels" is true)");
  }
  if (out.order != QueueOrder::multifactor && queue.find("priority")) {
    queue.at("priority").fail(R"(no such key unless "order" is "multifactor")");
  }
  if (preemption.mode == PreemptionMode::qos &&
      std::ranges::all_of(out.qos, [](const auto& of) { return of.preempts.empty(); })) {
    queue.at("preemption").at("mode").fail("qos with one that \"preempts\" another");
  }
  if (out.placement.across != AcrossNodes::block && queue.find("placement") &&
      queue.at("placement").find("block_nodes")) {
    queue.at("placement").at("block_nodes").fail(R"(no such key unless "across" is "block")");
  }
  check_least_contended(queue, out);
  if (out.order != QueueOrder::qssf && queue.find("estimate_sigma")) {
    queue.at("estimate_sigma").fail(R"(no such key unless "order" is "qssf")");
  }
  const bool by_levels = out.order == QueueOrder::las || out.order == QueueOrder::gittins;
  if (by_levels && out.levels.empty()) {
    (void)queue.at("levels");  // required here
  }
  if (out.snapshot > 0 && !out.campaigns.empty()) {
    queue.at("snapshot").fail("no such key beside \"campaigns\": who goes on is not recorded");
  }
  if (out.admission != QueueAdmission::slurm && queue.find("slurm")) {
    queue.at("slurm").fail(R"(no such key unless "admission" is "slurm")");
  }
}

void declare_queue(const DeclaredMembers& member, const PresetStore& presets, QueueSpec& out) {
  member.required("order", out.order, queue_order_names(),
                  "Who comes first: fifo, first in first out; sjf, shortest job; srtf, shortest "
                  "remaining time; srsf, the same times GPUs; las, least attained service, in "
                  "\"levels\"; priority, the trace's; multifactor, Slurm's, by the weights in "
                  "\"priority\"; gittins, the highest Gittins index of attained service, in "
                  "\"levels\"; qssf, least predicted service, by \"estimate_sigma\"; drf, the "
                  "account with the least dominant share; themis, whose finish since its "
                  "submission is latest by what it takes alone, every \"auction\"");
  member.required("admission", out.admission, queue_admission_names(),
                  "Behind a job that cannot start: strict, all wait; best_effort, whoever fits "
                  "starts; easy, whoever does not delay the first; conservative, whoever delays "
                  "nobody; slurm, as Slurm's main and backfill schedulers do it; kueue, as each of "
                  "\"cluster_queues\" says");
  member.optional("levels", written_type(R"({"type": "array", "minItems": 1,
                                             "items": {"$ref": "#/$defs/time"}})"),
                  "las, gittins: GPU time (of one GPU) at which a job falls a level, rising",
                  [&](const JsonCursor& at) {
                    for (const JsonCursor& level : at.elements(100)) {
                      out.levels.push_back(to_run_time(level.seconds(kPositiveQueueSpan)));
                    }
                    const bool rises = std::ranges::is_sorted(out.levels);
                    if (out.levels.empty() || !rises) at.fail("at least one time, in rising order");
                  });
  member.optional("estimate_sigma", out.estimate_sigma, Interval{0, 10},
                  "qssf: by how much predictions are off: the standard deviation of the logarithm "
                  "of predicted over true duration; default: 0, they are right");
  declare_run_time(member, "auction", out.auction, kPositiveQueueSpan,
                   "themis: from auction to auction, at which \"replan\" places all jobs anew; "
                   "default: 20 min");
  declare_preemption(member, out);
  member.optional("elastic", out.elastic, "Who changes the widths of jobs that have \"widths\"",
                  declare_elastic);
  member.optional("placement", out.placement, "Where jobs go", declare_placement);
  member.optional("speed", out.speed, kQueueSpeedNames,
                  "How fast trainings run beside each other: simulated, those that meet on links "
                  "which could fill are simulated together, and replicas that are alike once; "
                  "exact, all that can share a link together, every replica on its own. Default: "
                  "simulated");
  member.optional("slurm", out.slurm, "Its cycles, by the names of SchedulerParameters",
                  declare_slurm);
  member.optional("priority", out.priorities, "Weights of the factors of \"multifactor\"",
                  declare_priority_rules);
  declare_qos(member, out);
  declare_accounts(member, out);
  declare_partitions(member, out);
  declare_quotas(member, out);
  declare_licenses(member, out);
  declare_cluster_queues(member, out);
  declare_reservations(member, out);
  declare_breaks(member, out);
  declare_health(member, out);
  declare_burst(member, presets, out);
  constexpr Interval kCpus{0, 1e6, true};
  std::optional<double> node_cpus, cpus_per_gpu;
  member.optional("node_cpus", node_cpus, kCpus,
                  "CPUs of a node, for limits and priorities; default: one for each GPU");
  member.optional("cpus_per_gpu", cpus_per_gpu, kCpus,
                  "CPUs that jobs ask for with a GPU; default: the node's over its GPUs");
  out.node_cpus = node_cpus.value_or(out.node_cpus);
  out.cpus_per_gpu = cpus_per_gpu.value_or(out.cpus_per_gpu);
  member.optional("power_cap", out.power_cap, Interval{0, 1e12, true},
                  "What the site may draw, at its meter; beside \"power\". A job starts only while "
                  "all held GPUs and those that are free, with their nodes, the fabric and the "
                  "cooling, draw no more; nobody behind it waits for that. Default: no cap");
  member.optional("gpu_draw", out.gpu_draw, Interval{0, 1e5},
                  "What a GPU draws on average while a job whose duration is given holds it; "
                  "beside \"power\". Default: halfway between a process that waits and the card's "
                  "limit, with the band of both");
  member.optional(
      "cancel_unsatisfiable", out.cancel_unsatisfiable,
      "Jobs whose dependency cannot be met are cancelled: kill_invalid_depend; default: "
      "false, they wait for ever");
  declare_run_time(member, "repair", out.failures.repair, kQueueSpan,
                   "Mean time until a broken node is back, exponential; default: 1 d");
  member.optional("reliability", written_type(R"({"anyOf": [
                    {"description": "Name of a preset: lockstep list reliability",
                     "type": "string"},
                    {"$ref": "#/$defs/reliability"}]})"),
                  "How often nodes break, and their jobs with them; default: never",
                  [&](const JsonCursor& at) { read_failures(at, presets, out); });
  declare_run_time(member, "until", out.until, kPositiveQueueSpan,
                   "When the simulation ends; default: with the last job");
  declare_run_time(member, "snapshot", out.snapshot, kPositiveQueueSpan,
                   "When the record of a trace ends, with jobs that wait and run: lockstep queue "
                   "forecast goes on from there");
  int seed = static_cast<int>(out.seed);
  member.optional("seed", seed, 0, 1'000'000'000, "Of all draws; default: 1");
  if (member.object() != nullptr) out.seed = static_cast<std::uint64_t>(seed);
  declare_jobs(member, presets, out);
}

int leaf_nodes_of(const Cluster& cluster) {
  const NicPorts ports = nic_ports(cluster.node);
  if (cluster.fabric.kind == FabricKind::ideal || ports.count == 0) return cluster.nodes;
  return std::min(
      cluster.nodes,
      fabric_counts(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth).unit_nodes);
}

void declare_expected_of_queue(const DeclaredMembers& member, QueueSpec& out) {
  member.optional("expect", out.expect, "Bounds on the answer, and where they are from",
                  declare_bounds_expectation);
}

/// What a failure or an eviction leaves of a job is said where the scenario does not say it.
void tell_of_lost_work(QueueSpec& out) {
  const bool fails = out.failures.mean_time > Seconds{} || !out.breaks.empty();
  const QueuePreemption& how = out.preemption;
  const auto stops = [](const NodeDrain& of) { return of.deadline.has_value(); };
  const bool evicts = (how.mode != PreemptionMode::none && how.mode != PreemptionMode::replan &&
                       !how.cancels && !how.suspends) ||
                      std::ranges::any_of(out.health.drains, stops);
  if (how.checkpoint || (!fails && !evicts)) return;
  std::string said;
  if (fails) {
    said = fmt::format("a job that a failure stops starts again {}",
                       evicts ? "as it last started, and " : "from its beginning");
  }
  if (evicts) said += "a job that is evicted keeps all of its work";
  out.assumptions.push_back("queue.preemption.checkpoint: none (not given); " + said);
}

/// Defaults that nobody would guess from the answer, and that it hangs on.
void tell_of_queue_defaults(const JsonCursor& queue, QueueSpec& out) {
  if (out.failures.mean_time > Seconds{} && !queue.find("repair")) {
    out.assumptions.emplace_back(
        "queue.repair: 1 d on average until a broken node is back (not given)");
  }
  if (out.order == QueueOrder::qssf && !queue.find("estimate_sigma")) {
    out.assumptions.emplace_back(
        "queue.estimate_sigma: 0 (not given); durations are predicted without error");
  }
}

/// las and gittins go by what jobs have attained, which is nothing of those that wait unless
/// something sends jobs back.
void tell_of_levels(const JsonCursor& queue, QueueSpec& out) {
  const bool by_levels = out.order == QueueOrder::las || out.order == QueueOrder::gittins;
  const QueuePreemption& how = out.preemption;
  const bool evicts = how.mode != PreemptionMode::none && !how.cancels && !how.suspends;
  const bool fails = out.failures.mean_time > Seconds{} || !out.breaks.empty();
  if (!by_levels || evicts || fails) return;
  const std::string_view mode = how.cancels ? "it cancels" : how.suspends ? "it suspends" : "none";
  out.assumptions.push_back(fmt::format(
      "queue.preemption: {}{}; no job is sent back, so that jobs that wait have attained nothing: "
      "{} orders them by their submission, and \"levels\" changes nothing",
      mode, queue.find("preemption") ? "" : " (not given)", name_of(out.order)));
}

/// A job whose nodes hardly ever go without a failure for as long as it takes from checkpoint to
/// checkpoint would be started again for ever.
void check_that_jobs_end(const JsonCursor& queue, const QueueSpec& out) {
  constexpr double kMostFailures = 14;  // expected of a stretch: one start in 1.2e6 goes without
  if (out.failures.mean_time <= Seconds{} || out.until > 0) return;
  const std::optional<RunTime>& every = out.preemption.checkpoint;
  if (every && *every == 0) return;
  for (std::size_t j = 0; j < out.jobs.size(); ++j) {
    const QueueJob& job = out.jobs[j];
    const Seconds stretch = to_seconds(every ? std::min(*every, job.runs) : job.runs);
    const double failures =
        stretch / out.failures.mean_time * static_cast<double>(out.nodes_of(job));
    if (job.training >= 0 || failures <= kMostFailures) continue;
    queue.at("reliability")
        .fail(fmt::format("nodes that fail more rarely, \"preemption\" with a shorter "
                          "\"checkpoint\", or \"until\": job {} works {} at a stretch, in which "
                          "{} of its nodes fail on average, and would never end",
                          out.job_name(j), format_quantity(stretch.base_units(), Dimension::time),
                          std::round(failures)));
  }
}

/// It holds where a start alone can raise what is drawn.
void check_power_cap(const JsonCursor& queue, const QueueSpec& out) {
  if (!out.power_cap) return;
  if (!out.power) queue.at("power_cap").fail("no such key, unless there is \"power\"");
  if (out.preemption.mode == PreemptionMode::replan) {
    queue.at("preemption").at("mode").fail(R"(any but replan beside "power_cap")");
  }
  if (out.preemption.suspends) {
    queue.at("preemption")
        .at("suspends")
        .fail(R"(false beside "power_cap": a suspended job goes on without asking)");
  }
  if (out.elastic.policy != ElasticPolicy::fixed) {
    queue.at("elastic").at("policy").fail(R"(fixed beside "power_cap")");
  }
}

void read_queue_power(const JsonCursor& root, const PresetStore& presets, QueueSpec& out) {
  MachinePower drawn =
      read_machine_power(root, presets, out.cluster, PowerKeys::limited_site, out.assumptions);
  out.power = std::move(drawn.power);
  out.usd_per_gpu_hour = drawn.usd_per_gpu_hour;
  check_power_cap(root.at("queue"), out);
  if (!out.gpu_draw) {
    const auto is_given = [](const QueueJob& job) { return job.training < 0; };
    if (out.power && std::ranges::any_of(out.jobs, is_given)) {
      out.assumptions.emplace_back(
          "queue.gpu_draw: GPUs of jobs whose duration is given draw what is halfway between a "
          "waiting process and the card's limit (not given)");
    }
    return;
  }
  const JsonCursor at = root.at("queue").at("gpu_draw");
  if (!out.power) at.fail("no such key, unless there is \"power\"");
  const GpuSpec& gpu = out.cluster.node.gpu;
  if (*out.gpu_draw > gpu.power_limit) {
    at.fail(fmt::format("at most {}, the limit of {}",
                        format_quantity(gpu.power_limit.base_units(), Dimension::power), gpu.name));
  }
}

QueueSpec queue_of(const JsonCursor& root, const PresetStore& presets) {
  constexpr RunTime kDay = 86'400'000'000'000;
  QueueSpec out;
  out.file = root.file();
  out.failures.repair = kDay;
  const JsonCursor cluster = root.at("cluster");
  check_features(root, cluster.is_object() && cluster.find("pools"), false);
  if (const auto schema = root.find("$schema")) (void)schema->string();
  if (const auto about = root.find("about")) out.about = about->string();
  out.cluster = read_cluster(cluster, presets);
  out.assumptions = out.cluster.assumptions;
  const JsonCursor queue = root.at("queue");
  declare_queue({queue, Extent::whole}, presets, out);
  queue.finish();
  read_queue_power(root, presets, out);
  declare_expected_of_queue({root, Extent::whole}, out);
  root.finish();
  check_rules(queue, out);
  if (out.placement.leaf_nodes == 0) out.placement.leaf_nodes = leaf_nodes_of(out.cluster);
  sort_jobs(out);
  resolve_dependencies(out);
  check_cluster_queues(queue, out);
  check_elastic(queue, out);
  check_health(queue, out);
  check_burst(queue, out);
  check_widths(queue, out);
  check_that_jobs_end(queue, out);
  tell_of_lost_work(out);
  tell_of_queue_defaults(queue, out);
  tell_of_levels(queue, out);
  check_components(queue, out);
  root.tell_unitless_sets(out.assumptions);
  return out;
}

}  // namespace

QueueSpec read_queue(const JsonCursor& root, const PresetStore& presets) {
  return root.read_whole([&] { return queue_of(root, presets); });
}

namespace {

/// What a training has in common with a scenario of one job is described there.
void refer_to_job_members(nlohmann::ordered_json& properties) {
  for (const std::string_view key : queue_training_keys()) {
    properties[std::string(key)] = {
        {"$ref", fmt::format("scenario.schema.json#/properties/{}", key)}};
  }
}

}  // namespace

nlohmann::ordered_json queue_schema(const PresetStore& presets, QuantityBounds bounds) {
  using SchemaJson = nlohmann::ordered_json;
  SchemaJson described = SchemaJson::object();
  const DeclaredMembers member(described, Extent::whole, bounds);
  QueueSpec spec;
  std::string text;
  member.optional("$schema", text, "Path to this schema, for editors");
  member.optional("about", text, "What the queue is, in a sentence");
  member.required("cluster", written_type(R"({"$ref": "#/properties/cluster"})"),
                  "The machine; \"nodes\" is required", [](const JsonCursor&) {});
  member.required(
      "queue", spec, "Who asks for what and when, and the scheduler's rules",
      [&](const DeclaredMembers& of, QueueSpec& out) { declare_queue(of, presets, out); });
  describe_machine_power(member, "What the cluster draws is reported; {} is enough",
                         PowerKeys::limited_site);
  declare_expected_of_queue(member, spec);
  refer_to_job_schema(described);
  for (const std::string_view list : {"jobs", "campaigns"}) {
    const nlohmann::ordered_json::json_pointer training(
        fmt::format("/properties/queue/properties/{}/items/properties/training/properties", list));
    refer_to_job_members(described.at(training));
  }
  SchemaJson schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "A queue of jobs on a cluster, for `lockstep run`"},
                    {"description", "Generated from the declarations of the reader."}};
  schema.update(described);
  return schema;
}

}  // namespace lockstep
