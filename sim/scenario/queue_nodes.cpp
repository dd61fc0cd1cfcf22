// Nodes that the scenario names: of partitions and reservations, and those that break at known
// times.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "sim/scenario/host_list.hpp"
#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_rules.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostReservations = 10'000, kMostBreaks = 1'000'000;

struct WrittenReservation {
  AdvanceReservation of;
  WrittenNodes nodes;
  Seconds start{}, announced{};
  std::optional<Seconds> duration, end;
};

void declare_reservation(const DeclaredMembers& member, WrittenReservation& out) {
  member.required("name", out.of.name, "As jobs name it; without jobs it is maintenance");
  member.optional("start", out.start, kQueueSpan, "Default: 0 s");
  member.optional("duration", out.duration, kPositiveQueueSpan,
                  "How long it lasts; instead of end");
  member.optional("end", out.end, kPositiveQueueSpan, "When it is over; instead of duration");
  declare_nodes(member, out.nodes);
  member.optional("flex", out.of.flex,
                  "Its jobs may begin before it, end after it, and have other nodes too; default: "
                  "false: its end stops them");
  member.optional("announced", out.announced, kQueueSpan,
                  "When the scheduler learns of it; default: 0 s");
}

void read_reservations(const JsonCursor& list, QueueSpec& out) {
  for (const JsonCursor& at : list.elements(kMostReservations)) {
    WrittenReservation written;
    declare_reservation({at, Extent::whole}, written);
    at.finish();
    AdvanceReservation& of = written.of;
    const auto same = [&](const AdvanceReservation& other) { return other.name == of.name; };
    if (std::ranges::any_of(out.reservations, same)) at.at("name").fail("a name that no other has");
    if (written.duration.has_value() == written.end.has_value()) {
      at.fail(R"(either "duration" or "end")");
    }
    of.start = to_run_time(written.start);
    of.end = written.end ? to_run_time(*written.end) : of.start + to_run_time(*written.duration);
    of.announced = to_run_time(written.announced);
    if (of.end <= of.start) at.at("end").fail("a time after its start");
    if (of.announced > of.start) at.at("announced").fail("a time before it begins");
    of.nodes = nodes_of(at, written.nodes, 0, out.cluster);
    out.reservations.push_back(std::move(of));
  }
}

struct WrittenBreak {
  int node = 0;
  Seconds at{}, repair{};
};

void declare_break(const DeclaredMembers& member, WrittenBreak& out) {
  member.required("node", out.node, 0, kMaxNodes, "Which one, counted from 0");
  member.required("at", out.at, kQueueSpan, "When: its jobs go, and wait again");
  member.required("repair", out.repair, kQueueSpan, "How long it is gone; 0 s: it is back at once");
}

}  // namespace

void declare_nodes(const DeclaredMembers& member, WrittenNodes& out) {
  member.optional("nodes", out.count, 1, kMaxNodes, "How many nodes it has");
  member.optional("first", out.first, 0, kMaxNodes, "The first of them; default: behind the last");
  member.optional("hosts", out.hosts, "Instead: which, counted from 1, as in \"n[1-4,7]\"");
}

std::vector<int> nodes_of(const JsonCursor& at, const WrittenNodes& written, int next,
                          const Cluster& cluster) {
  if (written.hosts.empty() == (written.count == 0)) at.fail(R"(either "nodes" or "hosts")");
  std::vector<int> out;
  if (written.hosts.empty()) {
    const int first = written.first >= 0 ? written.first : next;
    if (first + written.count > cluster.nodes) {
      at.at("nodes").fail(fmt::format("nodes of the cluster, which has {}; this begins at node {}",
                                      cluster.nodes, first));
    }
    out.resize(static_cast<std::size_t>(written.count));
    std::iota(out.begin(), out.end(), first);
    return out;
  }
  const auto numbers = host_numbers(written.hosts, static_cast<std::size_t>(cluster.nodes));
  const auto is_outside = [&](int number) { return number < 1 || number > cluster.nodes; };
  if (!numbers || std::ranges::any_of(*numbers, is_outside)) {
    at.at("hosts").fail(fmt::format("a host list such as n[1-4], of nodes 1 to {}", cluster.nodes));
  }
  for (const int number : *numbers) out.push_back(number - 1);
  std::ranges::sort(out);
  const auto rest = std::ranges::unique(out);
  out.erase(rest.begin(), rest.end());
  return out;
}

void declare_reservations(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "reservations", kMostReservations, "An advance reservation",
      "Nodes that are set aside for a while, for the jobs that name it",
      [](const DeclaredMembers& one) {
        WrittenReservation reservation;
        declare_reservation(one, reservation);
      },
      [&](const JsonCursor& list) { read_reservations(list, out); });
}

void declare_breaks(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "breaks", kMostBreaks, "A node that breaks", "Nodes that break at known times",
      [](const DeclaredMembers& one) {
        WrittenBreak written;
        declare_break(one, written);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostBreaks)) {
          WrittenBreak written;
          declare_break({at, Extent::whole}, written);
          at.finish();
          if (written.node >= out.cluster.nodes) {
            at.at("node").fail(fmt::format("below {}, the cluster's nodes", out.cluster.nodes));
          }
          out.breaks.push_back({.node = written.node,
                                .at = to_run_time(written.at),
                                .repair = to_run_time(written.repair)});
        }
      });
}

}  // namespace lockstep
