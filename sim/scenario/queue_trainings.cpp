#include "sim/scenario/queue_trainings.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_rules.hpp"
#include "sim/scenario/queue_trace.hpp"
#include "sim/scenario/read_elastic.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {
namespace {

constexpr ValueType kOfJob = written_type(R"({"description": "As in a scenario of one job"})");
/// Keys of a training that draft_training() reads.
constexpr std::array<std::string_view, 10> kTrainingKeys{
    "model",   "parallelism", "batch",  "precision", "recompute",
    "offload", "lora",        "frozen", "routing",   "stack"};

std::uint16_t training_partition(const JsonCursor& at, const std::string& name,
                                 const QueueSpec& out) {
  std::vector<std::string> names;
  for (const QueuePartition& partition : out.partitions) names.push_back(partition.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end() || name.empty()) {
    at.fail_name(std::span(names).subspan(1));
  }
  return static_cast<std::uint16_t>(found - names.begin());
}

/// The training on rented nodes of another kind than the cluster's, if it fills as many of them as
/// there are at most.
std::optional<Scenario> rented_training(const JsonCursor& at, const PresetStore& presets, int gpus,
                                        const QueueSpec& spec) {
  if (!spec.burst || !spec.burst->unlike) return std::nullopt;
  const Cluster& rented = spec.burst->rented;
  const int nodes = gpus / rented.node.gpus;
  if (nodes * rented.node.gpus != gpus || nodes > spec.burst->nodes) return std::nullopt;
  ScenarioDraft draft = draft_training(at, rented, nodes, presets);
  return complete_training(draft, rented, presets);
}

/// The last training on each of its numbers of nodes, and the number of its table. How fast it is
/// there is known when it is timed.
std::uint16_t add_training_widths(const JsonCursor& at, const PresetStore& presets,
                                  const QueuedTraining& written, QueueSpec& out) {
  constexpr std::size_t kMostTables = 65'535;
  const JsonCursor list = at.at("widths");
  const std::vector<JsonCursor> elements = list.elements(written.widths.size());
  if (std::ranges::find(written.widths, written.nodes) == written.widths.end()) {
    list.fail(
        fmt::format("widths of which one has the training's own {} \"nodes\"", written.nodes));
  }
  if (out.width_tables.size() > kMostTables) list.fail("fewer trainings with widths");
  const auto own = static_cast<std::int32_t>(out.trainings.size()) - 1;
  WidthTable table;
  for (std::size_t w = 0; w < written.widths.size(); ++w) {
    const int nodes = written.widths[w];
    const JsonCursor place = elements[w].at("nodes");
    if (nodes > out.cluster.nodes) {
      place.fail(fmt::format("at most {}, which the cluster has", out.cluster.nodes));
    }
    table.gpus.push_back(nodes * out.cluster.node.gpus);
    table.speeds.push_back(1);
    table.trainings.push_back(own);
    if (nodes == written.nodes) continue;
    ScenarioDraft draft = draft_training(at, out.cluster, nodes, presets);
    if (draft.data) {
      const int replica_nodes = *draft.data * nodes;
      if (replica_nodes % written.nodes != 0) {
        place.fail(
            fmt::format("nodes that {} data-parallel replicas on {} nodes are a whole "
                        "number of replicas on",
                        *draft.data, written.nodes));
      }
      draft.data = replica_nodes / written.nodes;
    }
    table.trainings.back() = static_cast<std::int32_t>(out.trainings.size());
    out.trainings.push_back({.name = fmt::format("{} on {} nodes", written.name, nodes),
                             .pointer = at.pointer(),
                             .scenario = complete_training(draft, out.cluster, presets),
                             .steps = written.steps,
                             .reference_step = {},
                             .variant_of = own});
  }
  out.width_tables.push_back(std::move(table));
  return static_cast<std::uint16_t>(out.width_tables.size() - 1);
}

}  // namespace

std::span<const std::string_view> queue_training_keys() { return kTrainingKeys; }

void declare_queue_training(const DeclaredMembers& member, QueuedTraining& out) {
  constexpr int kMostPriority = 1'000'000;
  member.required("name", out.name, "How the answer calls it");
  member.required("nodes", out.nodes, 1, kMaxNodes, "How many whole nodes it takes");
  member.required("steps", out.steps, Dimension::count, Interval{1, 1e12},
                  "Training steps; how long one takes follows from where the job is placed, and "
                  "from who is beside it");
  member.optional("submit", out.submit, kQueueSpan, "Default: 0 s");
  member.optional("count", out.count, 1, 1'000'000, "Jobs like this; default: 1");
  member.optional("every", out.every, kQueueSpan, "From one submission to the next; default: 0 s");
  member.optional(
      "limit", out.limit, kQueueSpan,
      "Its time limit, which backfilling counts on; default: as long as it takes alone");
  member.optional("user", out.user, "Whose it is");
  member.optional("account", out.account, "Which account pays");
  member.optional("priority", out.priority, -kMostPriority, kMostPriority,
                  "Higher first; default: 0");
  member.optional("partition", out.partition, "Nodes that it is bound to");
  member.optional("qos", out.qos, "Its quality of service");
  declare_training_widths(member, out.widths);
  if (member.object() != nullptr) return;  // the rest is read by draft_training()
  const auto later = [](const JsonCursor&) {};
  member.required("model", kOfJob, "", later);
  member.required("batch", kOfJob, "", later);
  for (const std::string_view key : kTrainingKeys) {
    if (key != "model" && key != "batch") member.optional(key, kOfJob, "", later);
  }
}

QueueJob add_training(const JsonCursor& at, const PresetStore& presets, QueuedTraining& written,
                      QueueSpec& out) {
  declare_queue_training({at, Extent::whole}, written);
  if (written.nodes > out.cluster.nodes) {
    at.at("nodes").fail(fmt::format("at most {}, which the cluster has", out.cluster.nodes));
  }
  ScenarioDraft draft = draft_training(at, out.cluster, written.nodes, presets);
  QueueTraining training{.name = written.name,
                         .pointer = at.pointer(),
                         .scenario = complete_training(draft, out.cluster, presets),
                         .steps = written.steps,
                         .reference_step = {}};
  for (const std::string& text : training.scenario.assumptions) {
    out.assumptions.push_back(written.name + ": " + text);
  }
  training.rented = rented_training(at, presets, written.nodes * out.cluster.node.gpus, out);
  QueueJob job;
  job.submit = to_run_time(written.submit);
  job.training = static_cast<std::int32_t>(out.trainings.size());
  job.gpus = written.nodes * out.cluster.node.gpus;
  job.limit = to_run_time(written.limit);
  job.priority = written.priority;
  if (!written.user.empty()) job.user = label_of(written.user, out.users, out.file);
  if (!written.account.empty()) job.account = label_of(written.account, out.accounts, out.file);
  if (const auto partition = at.find("partition")) {
    job.partition = training_partition(*partition, written.partition, out);
  }
  if (const auto qos = at.find("qos")) job.qos = qos_number(*qos, written.qos, out);
  out.trainings.push_back(std::move(training));
  if (!written.widths.empty()) job.widths = add_training_widths(at, presets, written, out);
  return job;
}

void add_trainings(const JsonCursor& at, const PresetStore& presets, QueueSpec& out) {
  QueuedTraining written;
  QueueJob job = add_training(at, presets, written, out);
  out.names.resize(out.jobs.size());
  for (int i = 0; i < written.count; ++i) {
    job.submit = to_run_time(written.submit) + i * to_run_time(written.every);
    out.jobs.push_back(job);
    out.names.push_back(written.count == 1 ? written.name : fmt::format("{} {}", written.name, i));
  }
}

}  // namespace lockstep
