// What a trace takes, by hand: chains, streams, messages, collectives, and what no order lets end.
#include "sim/trace/replay_trace.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/collectives/algorithms.hpp"
#include "sim/core/random.hpp"
#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/dcqcn_collective.hpp"
#include "tests/sim/trace/sample_traces.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

using test::replayed;
using test::replayed_goal;
using test::trace_cluster;

constexpr std::uint64_t kNano = 1000;  // picoseconds

/// A rank whose nodes a test adds one by one.
RankTrace trace_rank(int rank) {
  RankTrace out;
  out.rank = rank;
  out.file = fmt::format("rank{}", rank);
  return out;
}
void add_compute(RankTrace& rank, std::uint64_t id, std::uint64_t nanos, std::uint16_t stream,
                 const std::vector<std::uint64_t>& after = {}) {
  RankTrace::Node& node = rank.add(id, "kernel");
  node.duration = {nanos * kNano};
  node.stream = stream;
  for (const std::uint64_t id_before : after) rank.depends_on(id_before);
}
void add_call(RankTrace& rank, std::uint64_t id, CollectiveOp op, Bytes payload, int ranks,
              const std::vector<std::uint64_t>& after = {}, const std::string& group = "world") {
  RankTrace::Node& node = rank.add(id, "call");
  node.kind = TraceNodeKind::collective;
  node.op = op;
  node.size = payload;
  RankTrace::Group members{group, {}, false};
  for (int r = 0; r < ranks; ++r) members.ranks.push_back(r);
  node.group = rank.group(std::move(members));
  for (const std::uint64_t id_before : after) rank.depends_on(id_before);
}

std::string mistake_of(std::vector<RankTrace> ranks) {
  try {
    (void)replayed(std::move(ranks), trace_cluster());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no mistake";
}

Seconds message_time(Bytes size, int ranks_per_node) {
  const Cluster cluster = trace_cluster();
  return collective_time({.op = CollectiveOp::send_receive,
                          .payload = size,
                          .ranks = 2,
                          .ranks_per_node = ranks_per_node},
                         cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth);
}

}  // namespace

TEST_CASE("replay_trace: a chain takes the sum of its nodes, whatever their streams") {
  RankTrace rank = trace_rank(0);
  add_compute(rank, 1, 100, 0);
  add_compute(rank, 2, 50, 1, {1});
  add_compute(rank, 3, 25, 0, {2});
  CHECK(replayed({rank}, trace_cluster()).end == StepTime{175 * kNano});
}

TEST_CASE("replay_trace: nodes of one stream run one by one, of several beside each other") {
  for (const bool same : {true, false}) {
    RankTrace rank = trace_rank(0);
    add_compute(rank, 1, 100, 0);
    add_compute(rank, 2, 70, same ? 0 : 1);
    const TraceReplay replay = replayed({rank}, trace_cluster());
    CHECK(replay.end == StepTime{(same ? 170 : 100) * kNano});
    CHECK(replay.longest_path == StepTime{100 * kNano});
    CHECK(replay.ranks[0].compute == replay.end);
  }
}

TEST_CASE("replay_trace: of ready nodes of a stream the one with the lowest number goes first") {
  RankTrace rank = trace_rank(0);
  add_compute(rank, 1, 10, 0);
  add_compute(rank, 5, 40, 0, {1});
  add_compute(rank, 3, 20, 0, {1});
  const Trace trace = join({rank});
  const TraceReplay replay =
      replayed(trace, trace_cluster(), {.collectives = {}, .record_times = true});
  REQUIRE(trace.ids.size() == 3);
  CHECK(trace.ids[0] == 1);
  CHECK(trace.ids[1] == 3);
  CHECK(trace.ids[2] == 5);
  CHECK(replay.starts[1] == StepTime{10 * kNano});
  CHECK(replay.starts[2] == StepTime{30 * kNano});
}

TEST_CASE("replay_trace: where ranks begin apart, the step is the longest that one takes itself") {
  // The second begins 3 us later, has as much less to do before their call, and more after it.
  const Bytes size{1e6};
  RankTrace first = trace_rank(0), second = trace_rank(1);
  add_compute(first, 1, 7000, 0);
  add_call(first, 2, CollectiveOp::all_reduce, size, 2, {1});
  second.begin = {3000 * kNano};
  add_compute(second, 1, 4000, 0);
  add_call(second, 2, CollectiveOp::all_reduce, size, 2, {1});
  add_compute(second, 3, 3000, 0, {2});
  const auto together = [&] {
    RankTrace a = trace_rank(0), b = trace_rank(1);
    add_call(a, 2, CollectiveOp::all_reduce, size, 2);
    add_call(b, 2, CollectiveOp::all_reduce, size, 2);
    return replayed({a, b}, trace_cluster()).end;
  }();
  const TraceReplay replay = replayed({first, second}, trace_cluster());
  CHECK(replay.end == together + StepTime{7000 * kNano});
  for (const TraceRankTimes& rank : replay.ranks) {
    CHECK(rank.total() == replay.end);
    CHECK(rank.compute == StepTime{7000 * kNano});
    CHECK(rank.communication == together);
    CHECK(rank.idle + rank.waiting == StepTime{});
  }
}

TEST_CASE("replay_trace: what is left of the step after a rank's own end is not time of the host") {
  // The first computes for 7 us, of which 2 are the host's; the second for 4 us and has ended.
  RankTrace first = trace_rank(0), second = trace_rank(1);
  add_compute(first, 1, 5000, 0);
  add_compute(first, 2, 2000, TraceNode::kNoStream, {1});
  first.nodes.back().kind = TraceNodeKind::host;
  add_compute(second, 1, 4000, 0);
  const TraceReplay replay = replayed({first, second}, trace_cluster());
  REQUIRE(replay.end == StepTime{7000 * kNano});
  CHECK(replay.ranks[0].idle == StepTime{2000 * kNano});
  CHECK(replay.ranks[0].after_end == StepTime{});
  CHECK(replay.ranks[1].idle == StepTime{});
  CHECK(replay.ranks[1].after_end == StepTime{3000 * kNano});
  CHECK(replay.ranks[1].total() == replay.end);
}

TEST_CASE("replay_trace: a message takes what the model of send and receive says, near and far") {
  const Bytes size{1e6};
  const std::string near =
      "num_ranks 2\nrank 0 { send 1000000b to 1 }\nrank 1 { recv 1000000b from 0 }";
  std::string far = "num_ranks 9\nrank 0 { send 1000000b to 8 }\n";
  for (int r = 1; r < 8; ++r) far += fmt::format("rank {} {{ calc 0 }}\n", r);
  far += "rank 8 { recv 1000000b from 0 }";
  const auto seconds = [](const TraceReplay& replay) {
    return to_seconds(replay.end).base_units();
  };
  constexpr double kTick = 1e-12;  // latency and transfer are whole ones
  CHECK(std::abs(seconds(replayed_goal(near, trace_cluster())) -
                 message_time(size, 2).base_units()) <= kTick);
  CHECK(std::abs(seconds(replayed_goal(far, trace_cluster(2))) -
                 message_time(size, 1).base_units()) <= kTick);
}

TEST_CASE("replay_trace: around a ring of sends, each waiting for the one before, times add up") {
  constexpr int kRanks = 8;
  std::string text = fmt::format("num_ranks {}\n", kRanks);
  for (int r = 0; r < kRanks; ++r) {
    text += fmt::format("rank {} {{\n", r);
    if (r > 0) text += fmt::format("r: recv 5000000b from {}\n", r - 1);
    text += fmt::format("s: send 5000000b to {}\n", (r + 1) % kRanks);
    if (r > 0) text += "s requires r\n";
    if (r == 0) text += fmt::format("r: recv 5000000b from {}\n", kRanks - 1);
    text += "}\n";
  }
  const TraceReplay replay = replayed_goal(text, trace_cluster());
  // Each is off by a picosecond at most.
  CHECK(std::abs(to_seconds(replay.end).base_units() -
                 kRanks * message_time(Bytes{5e6}, 2).base_units()) <= kRanks * 1e-12);
  CHECK(replay.messages == kRanks);
}

TEST_CASE("replay_trace: a collective starts with its last rank and costs what the model says") {
  const Cluster cluster = trace_cluster(2);
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                CollectiveOp::reduce_scatter, CollectiveOp::all_to_all}) {
    CAPTURE(static_cast<int>(op));
    std::vector<RankTrace> ranks;
    for (int r = 0; r < 16; ++r) {
      ranks.push_back(trace_rank(r));
      add_compute(ranks.back(), 1, 1000 * static_cast<std::uint64_t>(r), 0);
      add_call(ranks.back(), 2, op, Bytes{256e6}, 16, {1});
    }
    const TraceReplay replay = replayed(ranks, cluster);
    const Seconds alone =
        collective_time({.op = op, .payload = Bytes{256e6}, .ranks = 16, .ranks_per_node = 8},
                        cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth);
    CHECK(to_seconds(replay.end).base_units() ==
          test::near(15e-6 + alone.base_units()).epsilon(1e-6));
    REQUIRE(replay.calls.size() == 1);
    CHECK(replay.calls[0].waiting.base_units() == test::near(15e-6));
    // Rank 0 waited for the last one; all of them then moved bytes.
    CHECK(replay.ranks[0].waiting == StepTime{15'000 * kNano});
    CHECK(replay.ranks[15].waiting == StepTime{});
    CHECK(replay.ranks[3].communication == replay.ranks[15].communication);
  }
}

TEST_CASE("replay_trace: all-to-all over hashed paths has the connections that comm gives it") {
  constexpr int kNodes = 4, kGpus = 32;
  const Bytes payload{1e9};
  const std::string text = R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": {
      "kind": "fat_tree", "levels": 2, "leaf_ports_down": 8, "leaf_oversubscription": 4,
      "routing": "ecmp"}}})";
  const Cluster cluster =
      read_cluster(JsonCursor::parse("test", text).at("cluster"), test::presets());
  std::vector<RankTrace> ranks;
  std::vector<FabricMember> members;
  for (int r = 0; r < kGpus; ++r) {
    ranks.push_back(trace_rank(r));
    add_call(ranks.back(), 1, CollectiveOp::all_to_all, payload, kGpus);
    members.push_back(fabric_member(cluster.node, r));
  }
  const CollectiveCall call{
      .op = CollectiveOp::all_to_all, .payload = payload, .ranks = kGpus, .ranks_per_node = 8};
  const BytesPerSecond nic = cluster.node.nic_bandwidth;
  const CollectiveCost cost = collective_cost(call, cluster.node.gpu, cluster.transport, nic);
  const Fabric fabric(cluster.fabric, kNodes, 8, nic);
  const auto slowest = [&](int peers) {
    CollectiveLoad load(fabric);
    load.add(collective_shape(call.op, cost.algorithm, places_of(members), 1, peers), members,
             kFirstHashSeed);
    return load.slowest(cluster.transport.efficiency).per_byte;
  };
  const int peers =
      peer_channels(unpack(call, cluster.node.gpu, cluster.transport, nic, CollectiveOptions{}));
  REQUIRE(slowest(peers) != slowest(1));
  CHECK(to_seconds(replayed(std::move(ranks), cluster).end).base_units() ==
        test::near((cost.latency + payload * slowest(peers)).base_units()).epsilon(1e-6));
}

TEST_CASE("replay_trace: over DCQCN a collective starts as slowly as comm says") {
  constexpr int kGpus = 32;
  const Bytes payload{64e6};
  for (const char* const routing : {"spray", "ecmp"}) {
    CAPTURE(routing);
    const std::string text = fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": 4,
        "fabric": {{"kind": "fat_tree", "levels": 2, "leaf_ports_down": 16, "routing": "{}",
        "leaf_oversubscription": 2, "transport": "roce_dcqcn"}}}}}})",
                                         routing);
    const Cluster cluster =
        read_cluster(JsonCursor::parse("test", text).at("cluster"), test::presets());
    std::vector<RankTrace> ranks;
    std::vector<FabricMember> members;
    for (int r = 0; r < kGpus; ++r) {
      ranks.push_back(trace_rank(r));
      add_call(ranks.back(), 1, CollectiveOp::all_to_all, payload, kGpus);
      members.push_back(fabric_member(cluster.node, r));
    }
    const CollectiveCall call{
        .op = CollectiveOp::all_to_all, .payload = payload, .ranks = kGpus, .ranks_per_node = 8};
    const BytesPerSecond nic = cluster.node.nic_bandwidth;
    const CollectiveCost cost = collective_cost(call, cluster.node.gpu, cluster.transport, nic);
    const int peers =
        peer_channels(unpack(call, cluster.node.gpu, cluster.transport, nic, CollectiveOptions{}));
    const std::vector<StartedGroup> group{
        {collective_shape(call.op, cost.algorithm, places_of(members), 1, peers), members}};
    const Fabric fabric(cluster.fabric, 4, 8, nic);
    CollectiveLoad load(fabric);
    load.add(group.front().shape, members, kFirstHashSeed);
    const Seconds moving =
        move_with_dcqcn(fabric, group,
                        {.op = call.op, .algorithm = cost.algorithm, .peer_channels = peers},
                        cost.payload_rate, payload, cluster.transport.efficiency)
            .moving;
    CHECK(moving > 1.02 * (payload * load.slowest(cluster.transport.efficiency).per_byte));
    CHECK(to_seconds(replayed(std::move(ranks), cluster).end).base_units() ==
          test::near((cost.latency + moving).base_units()).epsilon(1e-6));
  }
}

TEST_CASE("replay_trace: collectives of one group run one after another, of several at once") {
  const auto time_of = [](const std::string& second) {
    std::vector<RankTrace> ranks;
    for (int r = 0; r < 2; ++r) {
      ranks.push_back(trace_rank(r));
      add_call(ranks.back(), 1, CollectiveOp::all_reduce, Bytes{8}, 2);
      add_call(ranks.back(), 2, CollectiveOp::all_reduce, Bytes{8}, 2, {}, second);
    }
    return replayed(std::move(ranks), trace_cluster()).end.ps;
  };
  CHECK(time_of("world") == test::near(2.0 * static_cast<double>(time_of("other"))).epsilon(0.01));
}

TEST_CASE("replay_trace: random graphs without communication end with their longest path") {
  constexpr std::uint64_t kSeed = 7;
  CAPTURE(kSeed);
  for (std::uint64_t round = 0; round < 50; ++round) {
    RandomStream random({.seed = kSeed, .purpose = static_cast<std::uint32_t>(round)});
    const std::uint32_t count = 1 + random.below(60);
    for (const bool one_stream : {false, true}) {
      RankTrace rank = trace_rank(0);
      std::vector<std::uint64_t> done;
      std::uint64_t sum = 0;
      for (std::uint32_t n = 0; n < count; ++n) {
        const std::uint64_t nanos = random.below(1000);
        std::vector<std::uint64_t> after;
        for (std::uint32_t d = 0; d < n; ++d) {
          if (random.below(10) == 0) after.push_back(d);
        }
        std::uint64_t start = 0;
        for (const std::uint64_t d : after) start = std::max(start, done[d]);
        done.push_back(start + nanos);
        sum += nanos;
        add_compute(rank, n, nanos, one_stream ? std::uint16_t{0} : TraceNode::kNoStream, after);
      }
      const StepTime longest{*std::ranges::max_element(done) * kNano};
      const TraceReplay replay = replayed({rank}, trace_cluster());
      // The second graph has other draws than the first; its own longest path stands beside it.
      CHECK(replay.longest_path == longest);
      if (one_stream) {
        CHECK(replay.end == StepTime{sum * kNano});
        CHECK(replay.end >= longest);
      } else {
        CHECK(replay.end == longest);
      }
      CHECK(replay.ranks[0].total() == replay.end);
    }
  }
}

TEST_CASE(
    "replay_trace: the same trace gives the same times, and ranks' times add up to the step") {
  std::vector<RankTrace> ranks;
  for (int r = 0; r < 8; ++r) {
    ranks.push_back(trace_rank(r));
    RandomStream random({.seed = 3, .purpose = static_cast<std::uint32_t>(r)});
    for (std::uint64_t i = 0; i < 40; ++i) {
      add_compute(ranks.back(), 2 * i, 500 + random.below(500), 0,
                  i == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{2 * i - 1});
      add_call(ranks.back(), 2 * i + 1, CollectiveOp::all_reduce, Bytes{1e5}, 8, {2 * i});
    }
  }
  const TraceReplay once = replayed(ranks, trace_cluster()),
                    again = replayed(ranks, trace_cluster());
  CHECK(once.end == again.end);
  for (std::size_t r = 0; r < 8; ++r) {
    CHECK(once.ranks[r].total() == once.end);
    CHECK(once.ranks[r].waiting == again.ranks[r].waiting);
  }
}

TEST_CASE("match: a circle is named, node by node") {
  RankTrace rank = trace_rank(0);
  add_compute(rank, 1, 10, 0);
  add_compute(rank, 2, 10, 0, {1, 4});
  add_compute(rank, 3, 10, 0, {2});
  add_compute(rank, 4, 10, 0, {3});
  CHECK(mistake_of({rank}) ==
        R"(rank0: found node 2 ("kernel") waits for node 4 ("kernel") waits for node 3 ("kernel") )"
        R"(waits for the first; allowed: dependencies without a circle)");
}

TEST_CASE("match: a rank that never joins, or joins in something else, is named") {
  std::vector<RankTrace> ranks{trace_rank(0), trace_rank(1)};
  add_call(ranks[0], 1, CollectiveOp::all_reduce, Bytes{64}, 2);
  add_compute(ranks[1], 1, 10, 0);
  CHECK(
      mistake_of(ranks) ==
      R"(rank1: found no call by rank 1 to go with node 1 ("call") of rank 0, all_reduce of 64 )"
      R"(bytes among 2 ranks; allowed: every rank of a process group in each of its collectives)");
  add_call(ranks[1], 2, CollectiveOp::all_reduce, Bytes{65}, 2);
  CHECK(
      mistake_of(ranks) ==
      R"(rank1: found node 2 ("call"), all_reduce of 65 bytes among 2 ranks; allowed: what rank 0 )"
      R"(calls at that place, node 1 ("call"): all_reduce of 64 bytes among 2 ranks)");
}

TEST_CASE("match: a message without its other end is named") {
  CHECK_THROWS_WITH_AS(
      replayed_goal("num_ranks 2\nrank 0 { send 5b to 1 tag 3 }\nrank 1 { calc 1 }",
                    trace_cluster()),
      R"(plan.goal: found node 1 ("send"), a message to rank 1 with tag 3; allowed: as many )"
      R"(receives on that rank; one is missing)",
      InputError);
}

TEST_CASE("replay_trace: ranks that wait for each other for ever are named with where they stand") {
  std::vector<RankTrace> ranks{trace_rank(0), trace_rank(1)};
  add_call(ranks[0], 1, CollectiveOp::all_reduce, Bytes{64}, 2, {}, "a");
  add_call(ranks[0], 2, CollectiveOp::all_reduce, Bytes{64}, 2, {1}, "b");
  add_call(ranks[1], 1, CollectiveOp::all_reduce, Bytes{64}, 2, {}, "b");
  add_call(ranks[1], 2, CollectiveOp::all_reduce, Bytes{64}, 2, {1}, "a");
  CHECK(
      mistake_of(ranks) ==
      R"(rank0: found rank 0 at node 1 ("call"), where it waits for node 2 ("call") of rank 1, )"
      R"(which stands at node 1 ("call"); allowed: ranks that come to collectives and messages in )"
      R"(an order that lets all go on)");
}

TEST_CASE(
    "join: dependencies on nodes that the files lack are left out, counted, the first named") {
  RankTrace rank = trace_rank(0);
  add_compute(rank, 1, 100, 0);
  add_compute(rank, 2, 50, 0, {9, 1});
  add_compute(rank, 3, 50, 1, {8});
  const Trace trace = join({rank});
  REQUIRE(trace.repaired.size() == 1);
  CHECK(trace.repaired[0] ==
        R"(2 dependencies left out on nodes that the files lack; the first is that of node 2 )"
        R"(("kernel") on node 9 in rank0)");
  CHECK(trace.dependencies.size() == 1);
}

TEST_CASE("join: ranks without a gap, and numbers once") {
  RankTrace second = trace_rank(2);
  add_compute(second, 1, 1, 0);
  RankTrace first = trace_rank(0);
  add_compute(first, 1, 1, 0);
  CHECK(mistake_of({first, second}) ==
        "rank2: found rank 2; allowed: ranks from 0 without a gap; rank 1 is missing");
  CHECK(mistake_of({first, first}) ==
        "rank0: found rank 0; allowed: each rank once; rank0 is of the same rank");
  RankTrace twice = first;
  add_compute(twice, 1, 1, 0);
  CHECK(mistake_of({twice}) ==
        R"(rank0: found node 1 ("kernel") twice; allowed: each number once in a rank)");
}

}  // namespace lockstep
