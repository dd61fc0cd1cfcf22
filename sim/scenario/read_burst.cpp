#include "sim/scenario/read_burst.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "models/base/input_error.hpp"
#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_rules.hpp"
#include "sim/scenario/queue_trace.hpp"
#include "sim/scenario/queue_trainings.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostBurstNames = 60'000;
constexpr int kMostBurstPriority = 1'000'000, kWidestBurst = 8'000'000;
constexpr Interval kPrice{0, 1e6}, kBudget{0, 1e15}, kBurstSpeed{0, 1000, true};
constexpr double kLongestMove = 365 * 86'400.0;  // seconds
constexpr Interval kMovedBytes{0, 1e18}, kMovingRate{1, 1e15};
constexpr ValueType kBurstNames =
    written_type(R"({"type": "array", "minItems": 1, "items": {"type": "string"}})");

constexpr ValueType kNodeOfCluster =
    written_type(R"({"$ref": "#/properties/cluster/anyOf/1/properties/node"})");

/// Names of who may burst, each with its place.
using WrittenNames = std::vector<JsonCursor>;

struct WrittenBurst {
  QueueBurst of;
  std::optional<NodeSpec> node;
  std::optional<FabricSpec> fabric;
  Seconds after{}, starts{}, keeps{};
  std::optional<double> price;
  std::optional<BytesPerSecond> data_rate;
  WrittenNames accounts, partitions, qos;
};

void declare_names(const DeclaredMembers& member, std::string_view key, WrittenNames& out,
                   std::string_view sentence) {
  member.optional(key, kBurstNames, sentence,
                  [&](const JsonCursor& at) { out = at.elements(kMostBurstNames); });
}

void declare_moved_data(const DeclaredMembers& member, WrittenBurst& out) {
  member.optional("in", out.of.data_in, kMovedBytes,
                  "What a job moves to its rented nodes before it works; default: 0 B");
  member.optional("out", out.of.data_out, kMovedBytes,
                  "What it moves back before it ends; default: 0 B");
  member.required("rate", out.data_rate, kMovingRate,
                  "At which each job moves it, whoever else does");
  member.optional("usd_per_gb_out", out.of.usd_per_gb_out, kPrice,
                  "What the cloud asks for 1e9 bytes that leave it; default: 0");
}

void declare_who(const DeclaredMembers& member, WrittenBurst& out) {
  declare_names(member, "accounts", out.accounts, "Whose jobs may; default: everybody's");
  declare_names(member, "partitions", out.partitions, "Of which partitions; default: of any");
  declare_names(member, "qos", out.qos, "Of which qualities of service; default: of any");
  member.optional("least_gpus", out.of.least_gpus, 1, kWidestBurst,
                  "Jobs of fewer GPUs stay; default: 1");
  std::optional<int> most;
  member.optional("most_gpus", most, 1, kWidestBurst, "Jobs of more GPUs stay; default: none does");
  if (most) out.of.most_gpus = *most;
  member.optional("least_priority", out.of.least_priority, -kMostBurstPriority, kMostBurstPriority,
                  "Jobs of a lower priority stay; default: none does");
}

void declare_rented_node(const DeclaredMembers& member, const PresetStore& presets,
                         WrittenBurst& out) {
  member.optional(
      "node", kNodeOfCluster,
      "What is rented, one of a cloud's presets for example; default: the cluster's node",
      [&](const JsonCursor& at) { read_node_choice(at, presets, out.node.emplace()); });
  member.optional(
      "fabric", text_type(),
      "Name of a fabric's preset, between rented nodes of a kind of their own; default: "
      "rail_optimised, or fat_tree for nodes with one NIC",
      [&](const JsonCursor& at) {
        out.fabric = presets.fabric(read_preset_name(at, "fabrics", presets));
      });
}

void declare_burst_members(const DeclaredMembers& member, const PresetStore& presets,
                           WrittenBurst& out) {
  member.required("nodes", out.of.nodes, 0, kMaxNodes, "Rented at a time, at most; 0: none");
  declare_rented_node(member, presets, out);
  member.required("after", out.after, kQueueSpan,
                  "A job that has waited so long since nothing but the scheduler kept it, or since "
                  "it was sent back, starts on rented nodes when the cluster has no place for it");
  member.required("starts", out.starts, kQueueSpan,
                  "From when a node is rented until it serves; it is paid for meanwhile");
  member.optional("keeps", out.keeps, kQueueSpan,
                  "How long a node that nobody uses is kept for the next job; default: 0 s");
  member.optional("usd_per_gpu_hour", out.price, kPrice,
                  "What each GPU of a rented node costs from when it is rented until it is given "
                  "back; default: the price of the node's preset");
  member.optional("speed", out.of.speed, kBurstSpeed,
                  "How fast jobs of given duration work there, as a share of that on the cluster; "
                  "default: 1. The step of a training is simulated there");
  member.optional(
      "data", out, "What a job moves to the cloud and back",
      [](const DeclaredMembers& data, WrittenBurst& to) { declare_moved_data(data, to); });
  member.optional(
      "most_usd", out.of.most_usd, kBudget,
      "A job bursts only while all bursts, it and the others by their time limits, cost "
      "no more; default: they may cost anything");
  declare_who(member, out);
}

std::uint16_t partition_number(const JsonCursor& at, const QueueSpec& spec) {
  std::vector<std::string> names;
  for (const QueuePartition& of : spec.partitions) names.push_back(of.name);
  const auto found = std::ranges::find(names, at.string());
  if (found == names.end() || found->empty()) at.fail_name(std::span(names).subspan(1));
  return static_cast<std::uint16_t>(found - names.begin());
}

/// The machines that are rented, as a cluster of their own.
Cluster rented_cluster(const JsonCursor& at, const WrittenBurst& written, const QueueSpec& spec,
                       const PresetStore& presets) {
  Cluster out = spec.cluster;
  out.pools.clear();
  out.assumptions.clear();
  out.nodes = std::max(1, written.of.nodes);
  if (!written.node) return out;
  out.node = *written.node;
  out.fabric = written.fabric ? *written.fabric : default_fabric(out.node, presets);
  out.transport = transport_of(out.node, out.fabric, presets);
  if (out.gpus() > kWidestBurst) {
    at.at("nodes").fail(
        fmt::format("at most {} nodes of {} GPUs", kWidestBurst / out.node.gpus, out.node.gpus));
  }
  return out;
}

QueueBurst burst_of(const JsonCursor& at, WrittenBurst& written, const PresetStore& presets,
                    QueueSpec& spec) {
  QueueBurst out = std::move(written.of);
  out.after = to_run_time(written.after);
  out.starts = to_run_time(written.starts);
  out.keeps = to_run_time(written.keeps);
  if (written.fabric && !written.node) at.at("fabric").fail("no such key without \"node\"");
  out.unlike = written.node.has_value();
  written.of.nodes = out.nodes;
  out.rented = rented_cluster(at, written, spec, presets);
  const std::optional<double>& listed = out.rented.node.usd_per_gpu_hour;
  if (!written.price && !listed) (void)at.at("usd_per_gpu_hour");  // required here
  out.usd_per_gpu_hour = written.price ? *written.price : *listed;
  if (written.data_rate) {
    out.data_rate = *written.data_rate;
    const Seconds slowest = std::max(out.data_in, out.data_out) / out.data_rate;
    if (slowest > Seconds{kLongestMove}) {
      at.at("data").at("rate").fail(fmt::format(
          "at least {}, at which it takes a year",
          format_quantity((slowest / Seconds{kLongestMove}) * out.data_rate.base_units(),
                          Dimension::data_rate)));
    }
  }
  for (const JsonCursor& name : written.accounts) {
    out.accounts.push_back(label_of(name.string(), spec.accounts, spec.file));
  }
  for (const JsonCursor& name : written.partitions) {
    out.partitions.push_back(partition_number(name, spec));
  }
  for (const JsonCursor& name : written.qos) {
    out.qos.push_back(qos_number(name, name.string(), spec));
  }
  if (out.least_gpus > out.most_gpus) {
    at.at("least_gpus").fail(fmt::format("at most \"most_gpus\", {}", out.most_gpus));
  }
  return out;
}

}  // namespace

void declare_burst(const DeclaredMembers& member, const PresetStore& presets, QueueSpec& out) {
  std::optional<WrittenBurst> written;
  member.optional(
      "burst", written, "Jobs that have waited too long start on nodes that are rented by the hour",
      [&](const DeclaredMembers& of, WrittenBurst& to) { declare_burst_members(of, presets, to); });
  if (written && member.object() != nullptr) {
    out.burst = burst_of(member.object()->at("burst"), *written, presets, out);
  }
}

void check_burst(const JsonCursor& queue, QueueSpec& out) {
  if (!out.burst) return;
  const QueueBurst& of = *out.burst;
  const JsonCursor burst = queue.at("burst");
  if (out.snapshot > 0) {
    queue.at("snapshot").fail("no such key beside \"burst\": what was rented is not recorded");
  }
  for (const std::uint16_t account : of.accounts) {
    const auto has = [account](const QueueJob& job) { return job.account == account; };
    if (std::ranges::any_of(out.jobs, has)) continue;
    std::vector<std::string> names;
    for (std::size_t a = 1; a < out.accounts.size(); ++a) {
      const auto is_of = [a](const QueueJob& job) { return job.account == a; };
      if (std::ranges::any_of(out.jobs, is_of)) names.push_back(out.accounts[a]);
    }
    for (const JsonCursor& name : burst.at("accounts").elements(kMostBurstNames)) {
      if (name.string() == out.accounts[account]) name.fail_name(names);
    }
  }
  if (of.nodes == 0) return;
  out.assumptions.emplace_back(
      "queue.burst: rented nodes are there when they are asked for, and none of them fails");
  if (of.data_out > Bytes{} && !burst.at("data").find("usd_per_gb_out")) {
    out.assumptions.emplace_back(
        "queue.burst.data.usd_per_gb_out: 0 (not given); what leaves the cloud costs nothing");
  }
}

}  // namespace lockstep
