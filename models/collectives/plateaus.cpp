#include <algorithm>
#include <array>
#include <cmath>

#include "models/collectives/in_node.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

/// What differs between GPU generations.
struct Generation {
  std::string_view architecture;
  double ring_share;               ///< of the in-node ring's bus bandwidth, for rings through nodes
  BytesPerSecond tree_two_nodes;   ///< bus bandwidth cap of trees over two nodes; 0: rings only
  BytesPerSecond tree_more_nodes;  ///< the same over three and more
  BytesPerSecond tree_nvlink;      ///< NVLink of the cards that trees were measured on
  int ring_channels;               ///< inside a node
  int nvls_channels;
};

/// Source of shares and caps: plateaus of public nccl-tests logs, 24 systems. Ring: 324 to 336 GB/s
/// over H100 and H200 nodes against 365 inside; AMD 355 against 319. Trees (NCCL's NVLSTree):
/// Hopper 471 to 488 GB/s over two nodes and 364 to 374 over 4 to 16; Blackwell 820 over two NVL72
/// racks, 640 from nvlsTreeMax of NCCL src/graph/tuning.cc. Source of channels: NCCL's graph search
/// on DGX A100 (24 of 10 GB/s), H100 (24 of 15), B200 (36 of 20); NVLS 16 on Hopper, 24 on
/// Blackwell. Volta, cards without NVLink and AMD: assumed.
constexpr std::array kGenerations{
    Generation{"volta", 0.9, {}, {}, {}, 12, 0},
    Generation{"ampere", 0.9, {}, {}, {}, 24, 0},
    Generation{"ada", 0.9, {}, {}, {}, 24, 0},
    Generation{"hopper", 0.9, gigabytes_per_second(480), gigabytes_per_second(366),
               gigabytes_per_second(450), 24, 16},
    Generation{"blackwell", 0.9, gigabytes_per_second(820), gigabytes_per_second(640),
               gigabytes_per_second(900), 36, 24},
    Generation{"blackwell_rtx", 0.9, {}, {}, {}, 24, 0},
    Generation{"cdna2", 1.1, {}, {}, {}, 32, 0},
    Generation{"cdna3", 1.1, {}, {}, {}, 32, 0},
    Generation{"cdna4", 1.1, {}, {}, {}, 32, 0},
};

const Generation& generation_of(const GpuSpec& gpu) {
  const auto* found = std::ranges::find(kGenerations, gpu.architecture, &Generation::architecture);
  return found != kGenerations.end() ? *found : kGenerations.front();
}

/// Of what rings reach on the same NICs, for trees: each NIC reduces upwards and broadcasts
/// downwards at once. Source: 156 of 175 GB/s (Snellius), 158 of 175 (Alps), 702 of 750 (Lambda
/// B200), where rings reach 0.93 to 0.98.
constexpr double kTreeShare = 0.955;

/// Rails that NCCL's channels of one communicator leave a node on when more than two nodes take
/// part, each with a NIC of its own. Source: all-reduce over 20 NVL72 racks, 72 NICs each, from 2
/// to 16 GiB, where its latency of 5 ms drops out: 432 GB/s, 0.96 of nine NICs
/// (https://github.com/coreweave/nccl-tests/blob/cb86553328f8/README.md).
constexpr double kRails = 9;

/// Peers of a channel that NCCL serves without loss. Source: ncclTopoGetNchannels of NCCL 2.27
/// src/graph/paths.cc.
constexpr int kPeersOfChannel = 4;

int usual_channels(const Generation& generation, std::string_view algorithm) {
  const bool in_switch = algorithm == "nvls" || algorithm == "nvls_tree";
  return in_switch && generation.nvls_channels > 0 ? generation.nvls_channels
                                                   : generation.ring_channels;
}

/// The largest bus bandwidth that one node was measured at with this algorithm.
BytesPerSecond bus_plateau(const CollectiveContext& context, std::string_view algorithm) {
  return algorithm == "nvls" ? nvls_bus_bandwidth(context.gpu.collectives)
                             : ring_bus_bandwidth(context.gpu.collectives);
}

Seconds shortest_in_node(CollectiveOp op, int members, const GpuSpec& gpu) {
  std::vector<CollectiveCandidate> inside;
  add_in_node_candidates(op, std::max(members, 2), gpu.collectives, inside);
  return std::ranges::min_element(inside, {}, &CollectiveCandidate::latency)->latency;
}

/// Payloads that the busiest node of NCCL's double binary tree sends: a leaf of both trees sends
/// one, an inner node of one and leaf of the other two.
double tree_loads(int nodes) { return nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2; }

/// Of rings in a node that reach `scale` times what the card's do.
BytesPerSecond rings_through_nodes(const CollectiveContext& context, double scale) {
  if (context.g == 1) return context.node;
  const BytesPerSecond inside =
      generation_of(context.gpu).ring_share * scale * ring_bus_bandwidth(context.gpu.collectives);
  return std::min(context.node, inside);
}

/// The card's own NVLink, before anybody changed it, over that which trees were measured on: 200 of
/// 450 GB/s on H800. Faster ones are taken to reach no more.
double own_nvlink(const CollectiveContext& context) {
  const BytesPerSecond measured = generation_of(context.gpu).tree_nvlink;
  const GpuSpec& gpu = context.gpu;
  if (measured <= BytesPerSecond{} || gpu.nvlink_scale <= 0) return 1;
  const double own = 1 / gpu.nvlink_scale * double{gpu.nvlink_bandwidth / measured};
  return own > 0 ? std::min(1.0, own) : 1;
}

/// Of NVLinks with `scale` times the card's own rate.
BytesPerSecond trees_over_nodes(const CollectiveContext& context, double scale) {
  const Generation& generation = generation_of(context.gpu);
  // What a node reduces at; over more nodes it is NICs that hold trees back to less.
  const BytesPerSecond inside = own_nvlink(context) * generation.tree_two_nodes;
  const BytesPerSecond cap = context.k == 2 ? inside : std::min(inside, generation.tree_more_nodes);
  const double bus = bus_factor(CollectiveOp::all_reduce, context.n);
  return std::min(scale * cap, kTreeShare * bus / tree_loads(context.k) * context.node);
}

}  // namespace

double channel_nics(const CollectiveContext& context) {
  double nics = context.g / context.gpus_per_nic;
  if (context.k > 2) nics = std::min(nics, kRails);
  if (context.options.max_channels > 0) {
    nics = std::min(nics, static_cast<double>(context.options.max_channels));
  }
  return nics;
}

int channel_rails(const CollectiveContext& context) {
  const double rails = std::round(channel_nics(context) * context.gpus_per_nic);
  return std::max(1, static_cast<int>(rails));
}

CollectiveContext unpack(const CollectiveCall& call, const GpuSpec& gpu,
                         const TransportSpec& transport, NicShare nic,
                         const CollectiveOptions& options) {
  const int g = std::min(call.ranks_per_node, call.ranks);
  const int k = call.nodes > 0 ? call.nodes : (call.ranks + g - 1) / g;
  const int most = std::max({g, (call.ranks + k - 1) / k, call.ranks_per_node_max});
  CollectiveContext context{.op = call.op,
                            .gpu = gpu,
                            .transport = transport,
                            .options = options,
                            .n = call.ranks,
                            .g = g,
                            .most = most,
                            .k = k,
                            .nic = nic.bandwidth,
                            .gpus_per_nic = nic.gpus,
                            .node = {},
                            .start = shortest_in_node(call.op, most, gpu),
                            .skew = call.skew};
  context.node = channel_rails(context) * payload_bandwidth(nic.bandwidth, transport.efficiency);
  return context;
}

BytesPerSecond ring_plateau(const CollectiveContext& context) {
  return rings_through_nodes(context, 1);
}

BytesPerSecond nvls_tree_plateau(const CollectiveContext& context) {
  return trees_over_nodes(context, context.gpu.nvlink_scale);
}

MeasuredPlateaus measured_plateaus(const CollectiveContext& context) {
  const double scale = context.gpu.nvlink_scale;
  // Without NVLink there is nothing for trees to gain.
  if (scale <= 0) return {.rings = ring_plateau(context), .trees = {}};
  return {.rings = rings_through_nodes(context, 1 / scale), .trees = trees_over_nodes(context, 1)};
}

bool reduces_in_switch(const CollectiveContext& context) {
  const int least = nvls_least_ranks(context.gpu.collectives);
  return least > 0 && context.g >= least;
}

Seconds large_tree_latency(const CollectiveContext& context) {
  Seconds members;  // the switch reduces for them as in a collective of their own
  if (reduces_in_switch(context)) {
    const IntraNodeCollectives& inside = context.gpu.collectives;
    members = nvls_member_latency(inside, std::max(context.most, kFittedMembers)) -
              nvls_member_latency(inside, kFittedMembers);
  }
  return context.start + members + kReduceBase + kReduceBaseHops * context.transport.hop_latency +
         std::log2(context.k) * kReducePerNode;
}

void add_regimes(const CollectiveContext& context, std::string_view algorithm,
                 std::vector<CollectiveCandidate>& out) {
  std::vector<CollectiveCandidate> regimes;
  add_in_node_candidates(context.op, context.n, context.gpu.collectives, regimes);
  const int channels = channel_count(context, algorithm);
  const int usual = usual_channels(generation_of(context.gpu), algorithm);
  for (CollectiveCandidate& regime : regimes) {
    if (regime.algorithm != algorithm) continue;
    // Fewer channels than usual carry their share of the largest rate that was measured.
    if (channels < usual) {
      const double bus = bus_factor(context.op, context.n);
      const BytesPerSecond cap =
          static_cast<double>(channels) / usual * bus_plateau(context, algorithm);
      regime.per_byte = std::max(regime.per_byte, per_byte_at(bus, cap));
    }
    // Inside a node all of it is NVLink's: the port of the fullest member sets the pace.
    if (!context.skew.is_even()) {
      regime.per_byte =
          skew_factors(context.skew, context.n, context.n, false).nvlink * regime.per_byte;
    }
    out.push_back(regime);
  }
}

int channel_count(const CollectiveContext& context, std::string_view algorithm) {
  const Generation& generation = generation_of(context.gpu);
  int channels = usual_channels(generation, algorithm);
  if (context.k > 1) channels = std::min(channels, kChannelsPerRail * channel_rails(context));
  if (context.options.max_channels > 0) {
    channels = std::min(channels, context.options.max_channels);
  }
  return std::max(channels, 1);
}

int shape_channels(const CollectiveContext& context, std::string_view algorithm) {
  const int channels = channel_count(context, algorithm);
  const bool every_rail = context.k > 1 && channels >= context.g;
  return every_rail && context.options.max_channels == 0 ? kChannelsPerRail * context.g : channels;
}

int peer_channels(const TransportSpec& transport, int members, int channels) {
  int of_peer = std::max(1, transport.channels_per_peer);
  while (of_peer > 1 && of_peer > kPeersOfChannel * channels / members) of_peer /= 2;
  return std::min(of_peer, channels);
}

int peer_channels(const CollectiveContext& context) {
  return peer_channels(context.transport, context.n, channel_count(context, "pairwise"));
}

int channels_used(const CollectiveContext& context, std::string_view algorithm,
                  std::string_view protocol, Bytes payload) {
  constexpr double kThreads = 512, kLl128Threads = 640;
  constexpr double kLowLatencyBytes = 8, kSimpleBytes = 64, kSwitchBytes = 512;
  const bool in_switch = algorithm.starts_with("collnet");
  double least = kThreads * (in_switch ? kSwitchBytes : kSimpleBytes);
  if (protocol == "ll") least = kThreads * kLowLatencyBytes * (algorithm == "ring" ? context.n : 1);
  if (protocol == "ll128") least = kLl128Threads * kLowLatencyBytes;
  const int most = channel_count(context, algorithm);
  return std::clamp(static_cast<int>(payload.base_units() / least), 1, most);
}

}  // namespace lockstep
