#include "sim/scenario/read_health.hpp"

#include <cmath>
#include <fmt/format.h>

#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_rules.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostDrains = 100'000;

struct WrittenDrain {
  NodeDrain of;
  WrittenNodes nodes;
  Seconds at{}, lasts{};
  std::optional<Seconds> deadline;
};

void declare_drain(const DeclaredMembers& member, WrittenDrain& out) {
  declare_nodes(member, out.nodes);
  member.required("at", out.at, kQueueSpan, "From then on its nodes take no new jobs");
  member.required("lasts", out.lasts, kPositiveQueueSpan,
                  "How long a node is gone, from when its last job has ended");
  member.optional("deadline", out.deadline, kQueueSpan,
                  "Jobs that still run on a node so long after \"at\" go, and wait again; default: "
                  "they run to their ends");
}

void read_drains(const JsonCursor& list, QueueSpec& out) {
  for (const JsonCursor& at : list.elements(kMostDrains)) {
    WrittenDrain written;
    declare_drain({at, Extent::whole}, written);
    at.finish();
    written.of.at = to_run_time(written.at);
    written.of.lasts = to_run_time(written.lasts);
    if (written.deadline) written.of.deadline = to_run_time(*written.deadline);
    written.of.nodes = nodes_of(at, written.nodes, 0, out.cluster);
    out.health.drains.push_back(std::move(written.of));
  }
}

void declare_lemons(const DeclaredMembers& member, LemonNodes& out) {
  member.required("share", out.share, Interval{0, 1, true},
                  "Of all nodes, drawn; at least one node");
  member.required("times", out.times, Interval{1, 1e6, true},
                  "They fail so many times as often as the others; the mean of all nodes is that "
                  "of \"reliability\"");
}

void declare_detection(const DeclaredMembers& member, LemonDetection& out) {
  Seconds within = to_seconds(out.within), repair = to_seconds(out.repair);
  member.required("failures", out.failures, 1, 1000, "A node that broke so often ...");
  member.required("within", within, kPositiveQueueSpan,
                  "... in so long a time is gone for \"repair\"");
  member.required("repair", repair, kPositiveQueueSpan,
                  "How long it is gone, in place of \"repair\" of the queue; it is as good as any "
                  "other afterwards");
  out.within = to_run_time(within);
  out.repair = to_run_time(repair);
}

void declare_health_members(const DeclaredMembers& member, QueueSpec& spec) {
  QueueHealth& out = spec.health;
  member.optional(
      "drains", kMostDrains, "A drain",
      "Nodes that are taken out for maintenance: they take no new jobs, and are gone when their "
      "last job has ended",
      [](const DeclaredMembers& one) {
        WrittenDrain drain;
        declare_drain(one, drain);
      },
      [&](const JsonCursor& list) { read_drains(list, spec); });
  member.optional("lemons", out.lemons, false, "Nodes that fail much more often than others",
                  declare_lemons);
  member.optional("detection", out.detection, false,
                  "Which nodes are taken out for good repairs, by how often they broke",
                  declare_detection);
  declare_run_time(member, "burn_in", out.burn_in, kQueueSpan,
                   "A node is tested so long before it takes jobs, after a repair or a drain; a "
                   "new node is one that is drained from 0 s on; default: 0 s");
}

}  // namespace

void declare_health(const DeclaredMembers& member, QueueSpec& out) {
  member.optional("health", out, "How nodes are looked after: drains, lemon nodes, burn-in",
                  declare_health_members);
}

void check_health(const JsonCursor& queue, QueueSpec& out) {
  const auto health = queue.find("health");
  if (!health) return;
  const QueueHealth& of = out.health;
  const bool drawn = out.failures.mean_time > Seconds{};
  const bool fails = drawn || !out.breaks.empty();
  if (of.lemons.share > 0 && !drawn) {
    health->at("lemons").fail(R"(no such key without "reliability", by which nodes fail)");
  }
  if (of.lemons.share > 0 && std::llround(of.lemons.share * out.cluster.nodes) == 0) {
    health->at("lemons").at("share").fail(
        fmt::format("a share that is a node at least of {}", out.cluster.nodes));
  }
  if (of.detection.failures > 0 && !fails) {
    health->at("detection").fail(R"(no such key where no node breaks: no "reliability")");
  }
  if (of.burn_in > 0 && !fails && of.drains.empty()) {
    health->at("burn_in").fail("0 s where no node breaks and none is drained");
  }
  if (!of.any()) return;
  if (out.preemption.suspends) {
    queue.at("preemption")
        .at("suspends")
        .fail(R"(false beside "health": a suspended job stays on its nodes and never leaves them)");
  }
  if (out.elastic.policy == ElasticPolicy::goodput) {
    queue.at("elastic").at("policy").fail(R"(fixed or shrink beside "health")");
  }
  if (of.detection.failures > 0 && of.lemons.share > 0) {
    out.assumptions.emplace_back(
        "queue.health.detection: a lemon that was found and repaired fails no more often than "
        "other nodes");
  }
}

}  // namespace lockstep
