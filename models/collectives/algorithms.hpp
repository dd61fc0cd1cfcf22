/// Every way to run a collective: its law, and whether it can run here. NCCL's choice among them is
/// choose_collective() of choice.hpp.
///
/// To add an algorithm: write its law and shape in a file of its own, declare both in laws.hpp, and
/// give it one row in algorithms.cpp; from outside the tree, as collective_extension.hpp says.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/collectives/channels.hpp"
#include "models/collectives/collective_options.hpp"
#include "models/collectives/collectives.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

inline constexpr std::array<std::string_view, 3> kProtocols{"ll", "ll128", "simple"};

/// A call on a machine, unpacked: what every law reads.
struct CollectiveContext {
  CollectiveOp op;
  const GpuSpec& gpu;
  const TransportSpec& transport;
  const CollectiveOptions& options;
  int n;                ///< members
  int g;                ///< of them in the node that has fewest: it has the fewest rails
  int most;             ///< of them in the node that has most: it takes longest inside
  int k;                ///< nodes (NVLink domains)
  BytesPerSecond nic;   ///< of each member, line rate
  double gpus_per_nic;  ///< members whose shares make a NIC's rate, at least 1
  BytesPerSecond node;  ///< all NICs that the channels use in one node, at their efficiency
  Seconds start;        ///< of the shortest collective inside the node that has most of them
  ExchangeSkew skew{};  ///< of an all-to-all
};
CollectiveContext unpack(const CollectiveCall& call, const GpuSpec& gpu,
                         const TransportSpec& transport, NicShare nic,
                         const CollectiveOptions& options);

enum class Offer : std::uint8_t {
  weighed,     ///< NCCL weighs it
  on_request,  ///< runs only where the user names it
  refused,
  other_call  ///< it does something else than this call asks for
};
struct Availability {
  Offer offer = Offer::weighed;
  std::string
      reason;  ///< why not, or why on request only: "nvls needs NVSwitch and Hopper or later"
};

struct CollectiveAlgorithm {
  std::string_view name{};  ///< as scenarios say it; NCCL's where it is NCCL's
  std::string_view summary{};
  std::string_view source{};
  Availability (*availability)(const CollectiveContext& context) = nullptr;
  /// Appends one candidate per protocol. Requires that the algorithm is not refused.
  void (*law)(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) = nullptr;
  /// What it puts on the links; collective_shape() asks it.
  CollectiveShape (*shape)(const ShapeCall& call) = nullptr;
  bool added = false;  ///< by code outside the tree: set by add_collective()
};
/// Those of algorithms.cpp, then those that code outside the tree added.
std::span<const CollectiveAlgorithm> collective_algorithms();
/// Those of algorithms.cpp alone.
std::span<const CollectiveAlgorithm> own_collective_algorithms();

/// What row.availability and row.law say. Throws ExtensionError where those of an extension break a
/// rule (collective_extension.hpp).
Availability availability_of(const CollectiveAlgorithm& row, const CollectiveContext& context);
void add_candidates(const CollectiveAlgorithm& row, const CollectiveContext& context,
                    std::vector<CollectiveCandidate>& out);

/// What collective_cost() of collectives.hpp says, with these options in place of NCCL's own.
/// Requires that they leave an algorithm which can run, and a SHARP generation where SHARP is on.
CollectiveCost collective_cost(const CollectiveCall& call, const GpuSpec& gpu,
                               const TransportSpec& transport, NicShare nic,
                               const CollectiveOptions& options);

/// NICs that the group's channels leave a node on, and the members whose shares these are: the same
/// where each has a NIC of its own. NICs of the last of a few members may be counted in part.
double channel_nics(const CollectiveContext& context);
int channel_rails(const CollectiveContext& context);

/// Channels per rail across nodes. Source: 16 collective channels over 8 rails in a log of two p5
/// nodes.
inline constexpr int kChannelsPerRail = 2;

/// The cost of the fastest candidates together: inside a node all regimes, across nodes the fastest
/// of every protocol, blended as candidate.hpp says. Requires at least one.
CollectiveCost blend(const CollectiveContext& context,
                     const std::vector<CollectiveCandidate>& candidates, Bytes payload);

/// Channels of one communicator with this algorithm: what NCCL's graph search finds for the GPU
/// inside a node, two per rail across nodes, at most what the options allow.
int channel_count(const CollectiveContext& context, std::string_view algorithm);

/// Channels that a shape needs (collective_shape()): those of channel_count(); where that gives
/// every rail its channel, as many on each. With fewer than rails the other NICs send nothing.
int shape_channels(const CollectiveContext& context, std::string_view algorithm);

/// Channels on which a member sends to another one on a different node, where it sends to all or to
/// a neighbour: as many as the transport opens to a peer, halved while those to all members would
/// give a channel of the communicator more than four. Source: ncclTopoGetNchannels and
/// ncclTopoComputeP2pChannels of NCCL 2.27 src/graph/paths.cc; left out: GPUs with several NICs.
int peer_channels(const CollectiveContext& context);
/// peer_channels() of a group of `members` whose communicator has `channels` channels.
int peer_channels(const TransportSpec& transport, int members, int channels);

/// Channels that a call of this size really takes: NCCL drops one at a time while a channel would
/// have less than threads x threshold bytes (8 with LL and LL128, 64 with Simple, 512 where
/// switches sum). Source: NCCL 2.27 src/enqueue.cc.
int channels_used(const CollectiveContext& context, std::string_view algorithm,
                  std::string_view protocol, Bytes payload);

}  // namespace lockstep
