// A ring all-reduce as ASTRA-sim's analytical backend times it: against the end that ASTRA-sim's
// own regression test records, as GOAL by LogGOPS, and as Chakra's sends and receives on a cluster.
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "models/collectives/algorithms.hpp"
#include "sim/trace/formats/read_chakra.hpp"
#include "sim/trace/loggops/loggops.hpp"
#include "tests/sim/trace/sample_traces.hpp"

using namespace lockstep;

namespace {

/// What ASTRA-sim does on each rank, in nanoseconds. Splits run one after another
/// (active-chunks-per-dimension 1). Of each, a bundle goes to memory before every message and after
/// the last one; those of the first n - 1 messages that came are added up.
///
/// Source: github.com/astra-sim/astra-sim, astra-sim/system/: collective/Ring.cc at 019586d8f509
/// (insert_packet, ready, iteratable), PacketBundle.cc at 2d23891867fc (call), MemBus.cc at
/// 168ba31976ef (10 ns a bundle in a local ring).
struct AstraRing {
  int ranks = 8, splits = 4;
  std::uint64_t message_bytes = 0;
  std::uint64_t bundle_ns = 10;
  std::uint64_t reduction_ns = 0;  ///< a write and two reads of a message

  [[nodiscard]] int messages() const { return 2 * (ranks - 1); }
  [[nodiscard]] double end_ns(double message_ns) const {
    return splits * (messages() * message_ns + (messages() + 1) * static_cast<double>(bundle_ns) +
                     (ranks - 1) * static_cast<double>(reduction_ns));
  }
};

/// A node of a rank, which waits for one that stands before it.
struct RingNode {
  TraceNodeKind kind = TraceNodeKind::compute;
  std::uint64_t size = 0;  ///< ns or bytes
  int waits_for = -1;
  int tag = 0;
};
std::vector<RingNode> nodes_of(const AstraRing& ring) {
  std::vector<RingNode> out;
  int last = -1;
  for (int split = 0; split < ring.splits; ++split) {
    for (int step = 0; step <= ring.messages(); ++step) {
      const bool adds = step > 0 && step < ring.ranks;
      out.push_back({.kind = TraceNodeKind::compute,
                     .size = ring.bundle_ns + (adds ? ring.reduction_ns : 0),
                     .waits_for = last});
      last = static_cast<int>(out.size()) - 1;
      if (step == ring.messages()) break;
      const int tag = split * ring.messages() + step;
      for (const TraceNodeKind kind : {TraceNodeKind::send, TraceNodeKind::receive}) {
        out.push_back({.kind = kind, .size = ring.message_bytes, .waits_for = last, .tag = tag});
      }
      last = static_cast<int>(out.size()) - 1;
    }
  }
  return out;
}

std::string goal_of(const AstraRing& ring) {
  std::string out = fmt::format("num_ranks {}\n", ring.ranks);
  const std::vector<RingNode> nodes = nodes_of(ring);
  for (int r = 0; r < ring.ranks; ++r) {
    out += fmt::format("rank {} {{\n", r);
    const int to = (r + 1) % ring.ranks, from = (r + ring.ranks - 1) % ring.ranks;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& [kind, size, waits_for, tag] = nodes[i];
      out += kind == TraceNodeKind::compute ? fmt::format("l{}: calc {}\n", i, size)
             : kind == TraceNodeKind::send
                 ? fmt::format("l{}: send {}b to {} tag {}\n", i, size, to, tag)
                 : fmt::format("l{}: recv {}b from {} tag {}\n", i, size, from, tag);
      if (waits_for >= 0) out += fmt::format("l{} requires l{}\n", i, waits_for);
    }
    out += "}\n";
  }
  return out;
}

/// Chakra counts whole microseconds.
std::string chakra_of(const AstraRing& ring, int rank) {
  std::string out = R"({"version": "0.0.4"})";
  const std::vector<RingNode> nodes = nodes_of(ring);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& [kind, size, waits_for, tag] = nodes[i];
    const bool sends = kind == TraceNodeKind::send;
    const int peer = (rank + (sends ? 1 : ring.ranks - 1)) % ring.ranks;
    out += fmt::format("\n{{\"id\": \"{}\", \"name\": \"n{}\", ", i + 1, i + 1);
    if (waits_for >= 0) out += fmt::format("\"dataDeps\": [\"{}\"], ", waits_for + 1);
    if (kind == TraceNodeKind::compute) {
      REQUIRE(size % 1000 == 0);
      out += fmt::format(R"("type": "COMP_NODE", "durationMicros": "{}"}})", size / 1000);
      continue;
    }
    out += fmt::format(R"("type": "{0}", "attr": [{{"name": "comm_size", "int64Val": "{1}"}}, )"
                       R"({{"name": "{2}", "int64Val": "{3}"}}, )"
                       R"({{"name": "comm_tag", "int64Val": "{4}"}}]}})",
                       sends ? "COMM_SEND_NODE" : "COMM_RECV_NODE", size,
                       sends ? "comm_dst" : "comm_src", peer, tag);
  }
  return out;
}

}  // namespace

// Recorded: tests/rt_template/refs/stdout.txt of astra-sim at 59be67429c53, "sys[0] finished,
// 117780 cycles" and so for all of its 8 ranks (a cycle is a nanosecond), by run.sh at
// 2ad88b8d9c46: AstraSim_Analytical_Congestion_Aware --workload-configuration=.../chakra_trace
// --system-configuration=.../system_cfg.json --network-configuration=.../network_cfg.json
// --remote-memory-configuration=.../remote_memory_cfg.json. The trace is an all-reduce of 1,048,576
// bytes; the network a ring of 50 GB/s and 500 ns, of which a message takes whole nanoseconds and
// GB are 2^30 (astra-network-analytical, Link.cc at 047ef653f16a, NetworkFunction.cc at
// 0f6d65e7de09); the system has 4 splits, memory of 50 bytes a nanosecond (local-mem-bw), in whole
// ones too.
TEST_CASE("a ring all-reduce ends as in ASTRA-sim's regression test: to the cycle by its rules") {
  constexpr double kRecordedNs = 117'780;
  constexpr double kBytesPerNs = 50 * 1.073741824;
  const AstraRing ring{.message_bytes = 1'048'576 / 4 / 8, .reduction_ns = 3 * (32'768 / 50)};
  const double message_ns = std::floor(500 + 32'768 / kBytesPerNs);
  CHECK(ring.end_ns(message_ns) == kRecordedNs);

  // ASTRA-sim cuts off 0.35 ns of each message, and LogGOPS a byte.
  const LogGopsParameters wire{.latency = StepTime{500'000},
                               .overhead = {},
                               .gap = {},
                               .gap_per_byte_ps = 1000 / kBytesPerNs,
                               .overhead_per_byte_ps = 0,
                               .largest_eager = kMostGoalMessage};
  const LogGopsReplay replay =
      replay_loggops("ring.goal", read_goal_ranks("ring.goal", goal_of(ring)), wire);
  for (const StepTime end : replay.ends) {
    CHECK(std::abs(static_cast<double>(end.ps) / 1000 / kRecordedNs - 1) <= 0.002);
  }
}

TEST_CASE("replay_trace: Chakra's sends and receives of a ring end as ASTRA-sim's rules say") {
  const AstraRing ring{.message_bytes = 4'000'000, .bundle_ns = 1000, .reduction_ns = 20'000};
  const Cluster cluster = test::trace_cluster();
  std::vector<RankTrace> ranks;
  for (int r = 0; r < ring.ranks; ++r) {
    ranks.push_back(read_chakra_json(fmt::format("ring.{}.json", r), r, chakra_of(ring, r),
                                     {.gpu = cluster.node.gpu, .groups = {}, .ranks = 0}));
  }
  const double bytes = static_cast<double>(ring.message_bytes);
  const CollectiveCost cost = collective_cost(
      {.op = CollectiveOp::send_receive, .payload = Bytes{bytes}, .ranks = 2, .ranks_per_node = 2},
      cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth);
  const double message_ns = 1e9 * (cost.latency + Bytes{bytes} / cost.payload_rate).base_units();
  const double end_ns =
      static_cast<double>(test::replayed(std::move(ranks), cluster).end.ps) / 1000;
  CHECK(std::abs(end_ns / ring.end_ns(message_ns) - 1) <= 0.002);
}
