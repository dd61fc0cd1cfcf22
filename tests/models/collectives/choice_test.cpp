#include "models/collectives/choice.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

CollectiveChoice choose(const CollectiveCall& call, const CollectiveOptions& options = {},
                        std::string_view gpu = "h100_sxm5_80gb",
                        std::string_view transport = "infiniband") {
  return choose_collective(call, presets().gpu(gpu), presets().transport(transport),
                           gigabytes_per_second(50), options);
}

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const CollectiveAlgorithm& row : collective_algorithms()) names.push_back(row.name);
  return names;
}

CollectiveOptions forced(std::string_view algorithms, std::string_view protocols = {}) {
  CollectiveOptions options;
  const std::vector<std::string_view> names = algorithm_names();
  if (!algorithms.empty()) CHECK_FALSE(parse_name_filter(algorithms, names, options.algorithms));
  if (!protocols.empty()) {
    CHECK_FALSE(parse_name_filter(protocols, kProtocols, options.protocols));
  }
  return options;
}

CollectiveOptions with_sharp(std::string_view generation, int busy_trees = 0) {
  CollectiveOptions options;
  const auto row = std::ranges::find(sharp_generations(), generation, &SharpGeneration::name);
  REQUIRE(row != sharp_generations().end());
  options.sharp = SharpFabric{&*row, busy_trees};
  return options;
}

std::string why_not(const CollectiveChoice& choice, std::string_view algorithm) {
  const auto found = std::ranges::find(choice.candidates, algorithm, &JudgedCandidate::algorithm);
  REQUIRE(found != choice.candidates.end());
  return found->why_not;
}

constexpr Bytes kTenGigabytes{1e10};
constexpr CollectiveCall kTwoNodes{CollectiveOp::all_reduce, kTenGigabytes, 16, 8};
constexpr CollectiveCall kManyNodes{CollectiveOp::all_reduce, kTenGigabytes, 512, 8};

TEST_CASE("every algorithm: a row has a name, a summary, a source and a law") {
  for (const CollectiveAlgorithm& row : collective_algorithms()) {
    CHECK_FALSE(row.name.empty());
    CHECK_FALSE(row.summary.empty());
    CHECK_FALSE(row.source.empty());
    CHECK((row.law != nullptr && row.availability != nullptr));
  }
}

TEST_CASE("every algorithm: its candidates have a time that grows, and stay within the NICs") {
  const std::array<CollectiveCall, 4> shapes{{{CollectiveOp::all_reduce, {}, 8, 8},
                                              {CollectiveOp::all_reduce, {}, 16, 8},
                                              {CollectiveOp::all_reduce, {}, 128, 8},
                                              {CollectiveOp::all_reduce, {}, 64, 1}}};
  const GpuSpec& gpu = presets().gpu("h100_sxm5_80gb");
  const CollectiveOptions options = with_sharp("quantum2");
  for (const CollectiveKind& kind : collective_kinds()) {
    CAPTURE(std::string(kind.name));
    for (CollectiveCall call : shapes) {
      call.op = kind.op;
      CAPTURE(call.ranks);
      const CollectiveContext context =
          unpack(call, gpu, presets().transport("infiniband"), gigabytes_per_second(50), options);
      int weighed = 0;
      for (const CollectiveAlgorithm& row : collective_algorithms()) {
        CAPTURE(std::string(row.name));
        const Availability available = row.availability(context);
        CHECK((available.offer == Offer::refused) <= !available.reason.empty());
        if (available.offer == Offer::refused || available.offer == Offer::other_call) continue;
        weighed += available.offer == Offer::weighed ? 1 : 0;
        std::vector<CollectiveCandidate> out;
        row.law(context, out);
        CHECK_FALSE(out.empty());
        for (const CollectiveCandidate& candidate : out) {
          CHECK(candidate.algorithm == row.name);
          CHECK(std::ranges::find(kProtocols, candidate.protocol) != kProtocols.end());
          CHECK(candidate.latency > Seconds{});
          CHECK(candidate.per_byte > SecondsPerByte{});
          CHECK((candidate.network_coefficient > 0) == (context.k > 1));
          const BytesPerSecond out_of_nic{candidate.network_coefficient /
                                          candidate.per_byte.base_units()};
          CHECK(out_of_nic.base_units() <= 50e9 * (1 + 1e-12));
        }
      }
      CHECK(weighed >= 1);
    }
  }
}

TEST_CASE("choose_collective: what it predicts with no option is what collective_cost predicts") {
  for (double bytes = 8; bytes < 1e11; bytes *= 10) {
    for (const CollectiveKind& kind : collective_kinds()) {
      for (const auto& [ranks, per_node] : {std::pair{8, 8}, {16, 8}, {64, 8}, {32, 1}}) {
        const CollectiveCall call{kind.op, Bytes{bytes}, ranks, per_node};
        const CollectiveChoice choice = choose(call);
        REQUIRE(choice.cost);
        CHECK(choice.time == collective_time(call, presets().gpu("h100_sxm5_80gb"),
                                             presets().transport("infiniband"),
                                             gigabytes_per_second(50)));
      }
    }
  }
}

TEST_CASE("choose_collective: the reason names the winner, the runner-up and who cannot run") {
  const CollectiveChoice choice = choose(kTwoNodes);
  CHECK(choice.cost->algorithm == "nvls_tree");
  CHECK(choice.reason.starts_with("nvls_tree/simple: "));
  CHECK(choice.reason.find(" against ") != std::string::npos);
  CHECK(choice.reason.find("nvls, collnet_direct, collnet_chain: SHARP is off in this fabric") !=
        std::string::npos);
  CHECK(choice.candidates.front().eligible);
  CHECK(choice.candidates.front().algorithm == choice.cost->algorithm);
}

TEST_CASE("choose_collective: NVLS needs NVSwitch and Hopper") {
  const CollectiveChoice choice =
      choose({CollectiveOp::all_reduce, kTenGigabytes, 8, 8}, {}, "a100_sxm4_80gb");
  CHECK(choice.cost->algorithm == "ring");
  CHECK(why_not(choice, "nvls").find("needs NVSwitch and Hopper or later") == 0);
}

TEST_CASE("choose_collective: a forced algorithm runs, an excluded one does not") {
  CHECK(choose(kTwoNodes, forced("ring")).cost->algorithm == "ring");
  CHECK(choose(kTwoNodes, forced("ring,tree")).cost->algorithm == "ring");
  CHECK(choose(kTwoNodes, forced("^NVLSTree")).cost->algorithm == "ring");
  CHECK(choose(kTwoNodes, forced("Tree", "LL128")).cost->protocol == "ll128");
  CHECK(choose(kTwoNodes, forced("hierarchical")).cost->algorithm == "hierarchical");
  CHECK(choose(kTwoNodes, forced("ring")).time > choose(kTwoNodes).time);
}

TEST_CASE(
    "choose_collective: a reason has the times in their unit, and the next of one algorithm") {
  // Where no other algorithm may run, the same one's next protocol is what it won against.
  const std::string reason = choose(kTwoNodes, forced("ring", "LL,Simple")).reason;
  CHECK(reason.starts_with("ring/simple: "));
  CHECK(reason.find(" of ring/ll") != std::string::npos);
  // From a millisecond on, in milliseconds.
  double bytes = 1e6;
  while (choose({CollectiveOp::all_reduce, Bytes{bytes}, 16, 8}).time < Seconds{1e-3}) bytes *= 1.2;
  const CollectiveChoice choice = choose({CollectiveOp::all_reduce, Bytes{bytes}, 16, 8});
  REQUIRE(choice.time < Seconds{2e-3});
  CHECK(choice.reason.find(fmt::format(": {:.3g} ms", choice.time.base_units() * 1e3)) !=
        std::string::npos);
}

TEST_CASE("choose_collective: forcing what cannot run gives the reason and no cost") {
  const CollectiveChoice choice = choose(kTwoNodes, forced("collnet_direct"));
  CHECK_FALSE(choice.cost);
  CHECK(choice.reason.find("collnet_direct, collnet_chain: SHARP is off in this fabric") !=
        std::string::npos);
  CHECK_FALSE(choose({CollectiveOp::all_to_all, kTenGigabytes, 16, 8}, forced("ring")).cost);
}

TEST_CASE("parse_name_filter: NCCL's spellings, the first unknown word is returned") {
  NameFilter filter;
  const std::vector<std::string_view> names = algorithm_names();
  CHECK_FALSE(parse_name_filter("NVLSTree,CollnetDirect", names, filter));
  CHECK(filter.names == std::vector<std::string>{"nvls_tree", "collnet_direct"});
  CHECK_FALSE(filter.except);
  CHECK(parse_name_filter("ring,trie", names, filter) == "trie");
  CHECK(parse_name_filter("", names, filter) == "");
  CHECK_FALSE(parse_name_filter("^ring", names, filter));
  CHECK_FALSE(filter.allows("ring"));
  CHECK(filter.allows("tree"));
}

// Two bytes through a NIC for each byte of payload become one; the number of nodes is not in it.
TEST_CASE("SHARP: twice as fast where NICs limit, whatever the number of nodes") {
  const CollectiveOptions sharp = with_sharp("quantum2");
  const CollectiveCall slow_nics{CollectiveOp::all_reduce, Bytes{1e12}, 512, 8};
  const auto time = [&](const CollectiveCall& call, const CollectiveOptions& options) {
    return choose_collective(call, presets().gpu("h100_sxm5_80gb"),
                             presets().transport("infiniband"), gigabytes_per_second(25), options)
        .time;
  };
  CHECK(time(slow_nics, sharp) / time(slow_nics, {}) == doctest::Approx(0.5).epsilon(0.01));
  CollectiveCall twice = slow_nics;
  twice.ranks *= 2;
  CHECK(time(twice, sharp) / time(slow_nics, sharp) == doctest::Approx(1).epsilon(1e-3));
  const CollectiveChoice choice = choose(kManyNodes, sharp);
  CHECK(choice.cost->algorithm == "nvls");
  CHECK(choice.cost->network_coefficient == doctest::Approx(1.0 / 8));
}

TEST_CASE("SHARP: refuses where the fabric is no InfiniBand or its trees are taken") {
  const CollectiveOptions sharp = with_sharp("quantum2");
  CHECK(why_not(choose(kManyNodes, sharp, "h100_sxm5_80gb", "roce"), "nvls") ==
        "SHARP sums in InfiniBand switches; the transport is roce");
  // Eight rails take a tree each: 511 - 503 are enough, 511 - 504 are not.
  CHECK(why_not(choose(kManyNodes, with_sharp("quantum2", 503)), "collnet_direct").empty());
  CHECK(why_not(choose(kManyNodes, with_sharp("quantum2", 504)), "collnet_direct") ==
        "7 SHARP trees of 511 are free, 8 rails need one each");
  // Quantum streams one tree per switch.
  CHECK(why_not(choose(kManyNodes, with_sharp("quantum")), "collnet_direct").empty());
  CHECK(why_not(choose(kManyNodes, with_sharp("quantum", 1)), "collnet_direct") ==
        "quantum switches stream one SHARP tree at a time, and another job has it");
}

TEST_CASE("NCCL's release decides what there is") {
  CollectiveOptions old;
  old.nccl = {2, 17};
  CHECK(why_not(choose(kTwoNodes, old), "nvls_tree") == "came with NCCL 2.18, this is 2.17");
  CHECK(choose(kTwoNodes, old).cost->algorithm == "ring");
  old.nccl = {2, 22};
  const CollectiveCall gather{CollectiveOp::all_gather, Bytes{1e6}, 256, 1};
  CHECK(why_not(choose(gather, old), "pat") == "came with NCCL 2.23, this is 2.22");
  CHECK(choose(gather, forced("pat")).cost->algorithm == "pat");
  CHECK(why_not(choose({CollectiveOp::all_gather, Bytes{1e6}, 16, 8}), "pat") ==
        "NCCL runs it with one GPU per node only");
}

TEST_CASE("all-to-all: gathers with PXN, goes directly without it or when asked") {
  const CollectiveCall call{CollectiveOp::all_to_all, Bytes{1e6}, 64, 8};
  CHECK(choose(call).cost->algorithm == "two_level");
  CollectiveOptions without;
  without.pxn = false;
  CHECK(choose(call, without).cost->algorithm == "pairwise");
  CHECK(why_not(choose(call, without), "two_level") == "PXN is off");
  CHECK(choose(call, forced("pairwise")).cost->algorithm == "pairwise");
  // 56 messages a member instead of 7.
  CHECK(choose(call, without).time > choose(call).time);
  CHECK(choose({CollectiveOp::all_to_all, Bytes{1e6}, 64, 1}).cost->algorithm == "pairwise");
}

TEST_CASE("channels: a limit takes rails across nodes and rings inside one") {
  CollectiveOptions four;
  four.max_channels = 4;
  // Four rails of 48 GB/s against what a ring gets inside the node, 324 GB/s.
  CHECK(choose(kManyNodes, four).time / choose(kManyNodes, forced("ring")).time ==
        doctest::Approx(324.0 / (4 * 48.25)).epsilon(0.05));
  const CollectiveCall inside{CollectiveOp::all_gather, kTenGigabytes, 8, 8};
  CHECK(choose(inside, four).time > 4 * choose(inside).time);
  CHECK(choose(inside, four).channels == 4);
}

TEST_CASE("channels to a peer: halved while a channel would serve more than four peers") {
  const NodeSpec& node = presets().node("dgx_h100");
  const auto channels = [&](int ranks, int per_node, int per_peer, int most) {
    TransportSpec transport = presets().transport("infiniband");
    transport.channels_per_peer = per_peer;
    CollectiveOptions options;
    options.max_channels = most;
    return peer_channels(unpack({.op = CollectiveOp::all_to_all,
                                 .payload = Bytes{1e6},
                                 .ranks = ranks,
                                 .ranks_per_node = per_node},
                                node.gpu, transport, gigabytes_per_second(50), options));
  };
  // 16 channels over 8 rails serve 64 peers.
  CHECK(channels(16, 8, 2, 0) == 2);
  CHECK(channels(32, 8, 2, 0) == 2);
  CHECK(channels(40, 8, 2, 0) == 1);
  CHECK(channels(512, 8, 2, 0) == 1);
  CHECK(channels(16, 8, 4, 0) == 4);
  CHECK(channels(32, 8, 4, 0) == 2);
  CHECK(channels(16, 8, 1, 0) == 1);
  // A pair on two nodes has two channels in all.
  CHECK(channels(2, 1, 2, 0) == 2);
  CHECK(channels(2, 1, 8, 0) == 2);
  CHECK(channels(16, 8, 2, 4) == 1);
}

TEST_CASE("channels: a small call takes one, a large one all") {
  CHECK(choose({CollectiveOp::all_reduce, Bytes{8}, 8, 8}).channels == 1);
  CHECK(choose({CollectiveOp::all_reduce, kTenGigabytes, 8, 8}).channels == 16);
  CHECK(choose({CollectiveOp::all_gather, kTenGigabytes, 8, 8}).channels == 24);
  CHECK(choose(kTwoNodes).channels == 16);
}

TEST_CASE("uneven groups: a few GPUs more in another rack do not hasten the first rack") {
  const auto racks = [](CollectiveOp op, int in_second) {
    const CollectiveCall call{.op = op,
                              .payload = Bytes{8},
                              .ranks = 72 + in_second,
                              .ranks_per_node = in_second > 0 ? in_second : 72,
                              .nodes = in_second > 0 ? 2 : 1,
                              .ranks_per_node_max = 72};
    return choose(call, {}, "gb200_186gb").time;
  };
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather}) {
    CAPTURE(static_cast<int>(op));
    Seconds least = racks(op, 4);
    // The smooth minimum is a little below its lines, by how many of them there are.
    CHECK(least > 0.9 * racks(op, 0));
    for (const int more : {8, 16, 36, 72}) {
      CHECK(racks(op, more) >= 0.9999 * least);  // more rails move eight bytes faster
      least = racks(op, more);
    }
  }
}

TEST_CASE("rails: a node uses up to nine NICs over more than two nodes, whoever shares them") {
  // Sixteen V100 on eight ports of 12.5 GB/s, as in a DGX-2: two share each.
  const NodeSpec& node = presets().node("dgx2_v100");
  const NicShare share = nic_share(node);
  CHECK(share.bandwidth == gigabytes_per_second(6.25));
  CHECK(share.gpus == 2);
  const TransportSpec& transport = presets().transport("infiniband");
  const double node_rate = transport.efficiency * 8 * 12.5e9;
  for (const int nodes : {2, 3, 4, 16}) {
    CAPTURE(nodes);
    const int n = 16 * nodes;
    const CollectiveCost cost = collective_cost({CollectiveOp::all_gather, kTenGigabytes, n, 16},
                                                node.gpu, transport, share);
    CHECK((kTenGigabytes / cost.payload_rate).base_units() ==
          doctest::Approx(1e10 * (n - 1) / n / node_rate).epsilon(0.01));
  }
  // A NIC of each GPU's own: nine of sixteen.
  const auto own = [&](int nodes) {
    return collective_cost({CollectiveOp::all_gather, kTenGigabytes, 16 * nodes, 16}, node.gpu,
                           transport, gigabytes_per_second(6.25))
        .payload_rate;
  };
  CHECK(own(3) / own(2) == doctest::Approx(9.0 / 16 * (31.0 / 32) / (47.0 / 48)).epsilon(0.01));
}

TEST_CASE("uneven groups: the node with fewest members has the fewest rails") {
  CollectiveCall even{CollectiveOp::all_gather, kTenGigabytes, 16, 4};
  CollectiveCall uneven = even;
  uneven.ranks_per_node = 2;
  uneven.nodes = 4;
  CHECK(choose(uneven).time > 1.9 * choose(even).time);
  even.nodes = 4;
  CHECK(choose(even).time == choose({CollectiveOp::all_gather, kTenGigabytes, 16, 4}).time);
}

}  // namespace
}  // namespace lockstep
