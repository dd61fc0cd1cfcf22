// The laws of the algorithms, hop by hop: what a node more costs, and what parts add up to.
#include "models/collectives/laws.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>

#include "models/collectives/algorithms.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

/// Round numbers: 100 GB/s around a node's ring, whatever the collective, and 20 us to start it.
GpuSpec ring_gpu() {
  GpuSpec gpu;
  gpu.architecture = "hopper";
  gpu.nvlink_bandwidth = gigabytes_per_second(450);
  const std::vector<CollectiveRegime> ring{
      {"simple_ring", microseconds(20), Seconds{}, gigabytes_per_second(100), 2}};
  gpu.collectives.all_reduce = gpu.collectives.all_gather = ring;
  gpu.collectives.reduce_scatter = gpu.collectives.all_to_all = ring;
  return gpu;
}

/// Hops that tell themselves apart: 1 ms, 10 ms and so on are far above what NVLink hops take.
TransportSpec slow_hops() {
  TransportSpec transport;
  transport.efficiency = 0.5;
  transport.hop_latency = Seconds{1e-3};
  transport.ring_hop_latency = Seconds{1e-2};
  transport.ll128_latency = Seconds{1e-1};
  transport.simple_latency = Seconds{1};
  return transport;
}

using Law = void (*)(const CollectiveContext&, std::vector<CollectiveCandidate>&);

/// What the law says of a call whose members' NICs carry 10 GB/s each.
CollectiveCandidate by_law(Law law, const CollectiveCall& call, std::string_view protocol) {
  const GpuSpec gpu = ring_gpu();
  const TransportSpec transport = slow_hops();
  const CollectiveOptions options;
  const CollectiveContext context = unpack(call, gpu, transport, gigabytes_per_second(10), options);
  std::vector<CollectiveCandidate> lines;
  law(context, lines);
  const auto found = std::ranges::find(lines, protocol, &CollectiveCandidate::protocol);
  REQUIRE(found != lines.end());
  return *found;
}
/// Of `nodes` nodes with `per_node` members each.
CollectiveCandidate by_law(Law law, CollectiveOp op, int nodes, int per_node,
                           std::string_view protocol) {
  return by_law(law,
                {.op = op, .payload = {}, .ranks = nodes * per_node, .ranks_per_node = per_node},
                protocol);
}
double latency(Law law, CollectiveOp op, int nodes, int per_node, std::string_view protocol) {
  return by_law(law, op, nodes, per_node, protocol).latency.base_units();
}

// NCCL's src/graph/tuning.cc: a hop over NVLink takes 0.6 us in LL, 1.9 us in LL128 and in Simple.
constexpr double kHopLl = 0.6e-6, kHop = 1.9e-6;

}  // namespace

TEST_CASE("ring law: a node more is two hops of the network, and two over NVLink a GPU beside") {
  // Reduce-scatter, then all-gather: twice around. A node of eight is entered once in a round, and
  // seven hops lead to its last GPU. What LL128 takes longer is counted once per node.
  const auto more = [](int per_node, std::string_view protocol) {
    return latency(ring_law, CollectiveOp::all_reduce, 4, per_node, protocol) -
           latency(ring_law, CollectiveOp::all_reduce, 3, per_node, protocol);
  };
  CHECK(more(1, "ll") == test::near(2 * 1e-3));
  CHECK(more(8, "ll") == test::near(2 * 1e-3 + 14 * kHopLl));
  CHECK(more(8, "ll128") == test::near(2 * 1e-3 + 1e-1 + 14 * kHop));
  // In Simple the network's part is fitted per node, and no hop of the transport; NVLink's is not.
  CHECK(more(8, "simple") - more(1, "simple") == test::near(14 * kHop).epsilon(1e-6));
  CHECK(more(8, "simple") < 1e-3);
}

TEST_CASE("ring law: GPUs that are alone on their nodes start, and have no hop inside") {
  const GpuSpec gpu = ring_gpu();
  const TransportSpec transport = slow_hops();
  const CollectiveOptions options;
  const CollectiveCall call{
      .op = CollectiveOp::all_reduce, .payload = {}, .ranks = 4, .ranks_per_node = 1};
  const CollectiveContext context = unpack(call, gpu, transport, gigabytes_per_second(10), options);
  // To a microsecond: the start takes 20, a hop over NVLink 0.6.
  CHECK(by_law(ring_law, call, "ll").latency.base_units() - context.start.base_units() ==
        doctest::Approx(2 * 3 * 1e-3).epsilon(1e-6));
}

TEST_CASE("ring law: of an uneven group the fullest node starts, and every other member is a hop") {
  // Eight and two: a hop into the second node and one to its other GPU, twice around.
  const CollectiveCall uneven{.op = CollectiveOp::all_reduce,
                              .payload = {},
                              .ranks = 10,
                              .ranks_per_node = 2,
                              .nodes = 2,
                              .ranks_per_node_max = 8};
  const double start =
      latency(ring_law, CollectiveOp::all_reduce, 2, 8, "ll") - 2 * 1e-3 - 14 * kHopLl;
  CHECK(by_law(ring_law, uneven, "ll").latency.base_units() ==
        test::near(start + 2 * 1e-3 + 2 * kHopLl));
  // Nobody says how many the fullest has: at least the mean.
  CollectiveCall mean = uneven;
  mean.ranks_per_node_max = 0;
  CHECK(by_law(ring_law, mean, "ll").latency.base_units() ==
        test::near(latency(ring_law, CollectiveOp::all_reduce, 2, 5, "ll")));
}

TEST_CASE("ring law: an all-gather goes around once, and k nodes are k - 1 hops apart") {
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    CAPTURE(static_cast<int>(op));
    const auto of = [op](int nodes, int per_node, std::string_view protocol) {
      return latency(ring_law, op, nodes, per_node, protocol);
    };
    CHECK(of(2, 8, "ll") == test::near(20e-6 + 1e-2));
    CHECK(of(5, 8, "ll") == test::near(20e-6 + 4e-2));
    // Seven hops over NVLink in a node more.
    const double wide = of(5, 8, "simple") - of(4, 8, "simple");
    const double narrow = of(5, 1, "simple") - of(4, 1, "simple");
    CHECK(wide - narrow == test::near(7 * kHop).epsilon(1e-6));
    CHECK(narrow > 1e-2);
  }
}

TEST_CASE("ring law: in Simple a message for every member waits, twice around for an all-reduce") {
  const GpuSpec gpu = ring_gpu();
  TransportSpec transport = slow_hops();
  transport.ring_message_time = microseconds(20);
  const CollectiveOptions options;
  const auto pace = [&](CollectiveOp op, std::string_view protocol) {
    const CollectiveCall call{.op = op, .payload = {}, .ranks = 32, .ranks_per_node = 4};
    const CollectiveContext context =
        unpack(call, gpu, transport, gigabytes_per_second(10), options);
    std::vector<CollectiveCandidate> lines;
    ring_law(context, lines);
    const auto found = std::ranges::find(lines, protocol, &CollectiveCandidate::protocol);
    REQUIRE(found != lines.end());
    return found->pace;
  };
  // Slices of 32 KiB: four channels send 31 steps of a 32nd of the buffer.
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    CHECK(pace(op, "simple").time(Bytes{8}).base_units() == test::near(31 * 20e-6));
    CHECK(pace(op, "simple").time(Bytes{32 * 4 * 32768.0}).base_units() == test::near(31 * 20e-6));
    CHECK(pace(op, "simple").time(Bytes{2 * 32 * 4 * 32768.0}).base_units() ==
          test::near(62 * 20e-6));
  }
  CHECK(pace(CollectiveOp::all_reduce, "simple").time(Bytes{8}).base_units() ==
        test::near(62 * 20e-6));
  CHECK(pace(CollectiveOp::broadcast, "simple").time(Bytes{8}) == Seconds{});
  CHECK(pace(CollectiveOp::all_gather, "ll").time(Bytes{8}) == Seconds{});
  transport.ring_message_time = {};
  CHECK(pace(CollectiveOp::all_gather, "simple").time(Bytes{8}) == Seconds{});
}

TEST_CASE("tree law: what a transport loses of the line rate is not lost once more") {
  // 0.6 of what InfiniBand carries of the line rate, 0.965; never more than rings reach.
  const auto rate = [](double efficiency) {
    const GpuSpec gpu = ring_gpu();
    TransportSpec transport = slow_hops();
    transport.efficiency = efficiency;
    const CollectiveOptions options;
    const CollectiveCall call{
        .op = CollectiveOp::all_reduce, .payload = {}, .ranks = 16, .ranks_per_node = 1};
    const CollectiveContext context =
        unpack(call, gpu, transport, gigabytes_per_second(10), options);
    std::vector<CollectiveCandidate> lines;
    tree_law(context, lines);
    const auto found = std::ranges::find(lines, "simple", &CollectiveCandidate::protocol);
    REQUIRE(found != lines.end());
    return 2.0 * 15 / 16 / found->per_byte.base_units() / 1e9;
  };
  CHECK(rate(0.965) == test::near(5.79));
  CHECK(rate(0.735) == test::near(5.79));
  CHECK(rate(0.5) == test::near(5));
}

TEST_CASE("tree law: twice the nodes are a hop up and a hop down more") {
  const auto more = [](std::string_view protocol) {
    return latency(tree_law, CollectiveOp::all_reduce, 16, 8, protocol) -
           latency(tree_law, CollectiveOp::all_reduce, 8, 8, protocol);
  };
  CHECK(more("ll") == test::near(2e-3));
  CHECK(more("ll128") == test::near(2e-3 + 1e-1));
  CHECK(more("simple") == test::near(2e-3 + 1));
}

TEST_CASE("tree law: inside a node it is a chain, up and down again") {
  // NCCL's src/graph/tuning.cc: 6.8 us to begin with in LL, and 0.6 us a hop.
  CHECK(latency(tree_law, CollectiveOp::all_reduce, 1, 8, "ll") ==
        test::near(6.8e-6 + 14 * 0.6e-6));
}

TEST_CASE("pairwise law: each message beyond a hop to every node takes a microsecond to post") {
  // Eight nodes of eight: 56 messages of a member by itself, 7 where its node gathers for it.
  const double by_itself = latency(pairwise_law, CollectiveOp::all_to_all, 8, 8, "simple");
  const double gathered = latency(two_level_law, CollectiveOp::all_to_all, 8, 8, "simple");
  CHECK(by_itself == test::near(20e-6 + 7e-3 + 49e-6));
  CHECK(gathered == test::near(20e-6 + 7e-3));
}

TEST_CASE("hierarchical law: a reduce-scatter and an all-gather inside, an all-reduce across") {
  for (const int nodes : {2, 4, 16}) {
    CAPTURE(nodes);
    const CollectiveCandidate all =
        by_law(hierarchical_law, CollectiveOp::all_reduce, nodes, 8, "simple");
    // Inside, 7/8 of a byte at 100 GB/s, there and back. Across, an eighth of it goes 2 (k - 1) / k
    // times over a NIC that reaches half of its 10 GB/s.
    const double inside = 7.0 / 8 / 100e9, across = 2.0 * (nodes - 1) / nodes / 5e9;
    CHECK(all.per_byte.base_units() == test::near(2 * inside + across / 8));
    CHECK(all.nvlink_coefficient == test::near(2 * 7.0 / 8));
    CHECK(all.network_coefficient == test::near(2.0 * (nodes - 1) / nodes / 8));
    // 20 us inside, twice; across as a ring of single GPUs.
    const double ring = latency(ring_law, CollectiveOp::all_reduce, nodes, 1, "simple");
    CHECK(all.latency.base_units() == test::near(2 * 20e-6 + ring));
  }
}

TEST_CASE("collnet laws: a sum goes up the network and comes down, however many nodes there are") {
  // NCCL's src/graph/tuning.cc. Chain: 30 us, and 2.8 us for each of seven hops to the node's end
  // and back. Direct: 31 us, 3.7 us to gather and 0.4 us for each of seven others, both ways.
  for (const int nodes : {2, 16}) {
    CAPTURE(nodes);
    const auto of = [nodes](Law law) {
      return latency(law, CollectiveOp::all_reduce, nodes, 8, "simple");
    };
    CHECK(of(collnet_chain_law) == test::near(2e-3 + 30e-6 + 14 * 2.8e-6));
    CHECK(of(collnet_direct_law) == test::near(2e-3 + 31e-6 + 2 * (3.7e-6 + 7 * 0.4e-6)));
  }
}

TEST_CASE("pat law: twice the members are a step more, of which 3.5 are in flight at once") {
  // NCCL's src/graph/tuning.cc: 8 us to begin with, 2.8 us for each rank, and of a step 14 us
  // beside the transport's hop.
  for (const int ranks : {2, 16, 1024}) {
    CAPTURE(ranks);
    const double steps = std::log2(ranks);
    CHECK(latency(pat_law, CollectiveOp::all_gather, ranks, 1, "simple") ==
          test::near(8e-6 + ranks * 2.8e-6 + steps / 3.5 * (1e-3 + 14e-6)));
  }
}

}  // namespace lockstep
