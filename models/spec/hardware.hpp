/// What a GPU and a node are, as plain numbers read from presets (models/, topologies/presets).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/spec/precision.hpp"
#include "models/spec/specs.hpp"

namespace lockstep {

/// Constants of the matrix-product law of models/kernels/gemm.hpp, which explains each of them.
struct GemmConstants {
  Seconds launch;                    ///< t0: the shortest product, inside a CUDA graph
  double efficiency = 0.8;           ///< eta: of the datasheet peak, best tile, short burst
  double k_ramp = 128;               ///< K0: elements of K that prologue and epilogue cost
  double efficiency_128x128 = 0.8;   ///< of eta, for 128 x 128 tiles
  double efficiency_x64 = 0.9;       ///< of eta, for tiles with a side of 64
  Seconds split_k;                   ///< cost of a split along K, times sqrt(splits)
  BytesPerSecond bandwidth;          ///< achieved by products bound by HBM
  double fp8_efficiency = 0.88;      ///< of eta, for the fp8 and mxfp8 products
  double fp4_efficiency = 0.77;      ///< of eta, for the nvfp4 products
  double sustained = 1.0;            ///< clock under a lasting load over that of a burst, <= 1
  double quantised_sustained = 1.0;  ///< times sustained for fp8 and fp4, which draw more power
};

/// Kernel generations of the attention core; each is one row of models/kernels/attention.cpp.
enum class AttentionKernel : std::uint8_t { unfused, flash1, flash2, flash3, cudnn };
constexpr std::size_t kAttentionKernels = 5;

/// Constants of the fused-attention law of models/kernels/attention.hpp.
struct AttentionConstants {
  Seconds launch;             ///< t0
  double efficiency = 0.5;    ///< eta: of the 16-bit peak, head size 128, long sequences
  double ramp_tokens = 500;   ///< s0
  double softmax_width = 40;  ///< d0: elements of head size that the softmax of a score costs
  double backward_ratio = 3;  ///< time of the backward pass over the forward pass
};

/// Constants of the memory-bound law of models/kernels/memory_bound.hpp.
struct MemoryConstants {
  Seconds launch;            ///< shortest kernel
  double efficiency = 0.85;  ///< of the datasheet bandwidth, large tensors
  /// Of kernels that move an element at a time, which the SMs limit; 0: that of large tensors.
  BytesPerSecond narrow_bandwidth;
};

/// One regime of a collective inside an NVLink domain:
///     T = base + steps * per_step + f S / bandwidth
/// models/collectives/collectives.hpp says how regimes combine.
struct CollectiveRegime {
  std::string name;  ///< "low_latency", "simple_ring", "nvls"
  Seconds base;
  Seconds per_step;
  BytesPerSecond bus_bandwidth;
  int min_ranks = 2;
};
struct IntraNodeCollectives {
  std::vector<CollectiveRegime> all_reduce, all_gather, reduce_scatter, all_to_all, send_receive;
};

class KernelProfile;  // models/kernels/kernel_profile.hpp

struct GpuSpec {
  std::string name;  ///< preset name, as scenarios say it
  std::string about;
  /// As drivers and benchmarks print it, without the maker; a printed name begins with one.
  std::vector<std::string> device_names;
  std::string architecture;  ///< volta, ampere, hopper, blackwell, cdna2, cdna3
  int sm_count = 0;
  FlopsPerSecond peak_fp16, peak_bf16, peak_fp8, peak_fp4;  ///< dense; 0: not supported
  Bytes hbm_capacity;
  BytesPerSecond hbm_bandwidth;
  BytesPerSecond nvlink_bandwidth;  ///< one direction, all links (or xGMI); 0: PCIe only
  BytesPerSecond pcie_bandwidth;    ///< one direction
  Watts power_limit, power_idle;
  /// Under a power cap over without one (capped()): of the clock, and of the rate of HBM, which
  /// hbm_bandwidth has in it.
  double capped_clock = 1, capped_streaming = 1;
  GemmConstants gemm;
  std::array<std::optional<AttentionConstants>, kAttentionKernels> attention;
  MemoryConstants memory;
  IntraNodeCollectives collectives;
  /// NVLink's rate over that at which `collectives` were measured; 0: on links that it lacks now.
  double nvlink_scale = 1;
  std::optional<GpuPowerConstants> power;  ///< empty: nobody said
  /// Measurements of this card that correct the laws of models/kernels and
  /// models/collectives; null: the laws as they are.
  std::shared_ptr<const KernelProfile> profile;
  double speed_spread = 0.01;    ///< relative standard deviation of speed between GPUs of the kind
  double kernel_jitter = 0.005;  ///< the same, between repeats of one kernel on one GPU
  std::vector<std::string> changed{};  ///< members that a scenario changed of the preset

  /// Dense peak of the format; 0 when the hardware lacks it (mxfp8 runs at the fp8 rate, tf32 at
  /// half that of bf16).
  [[nodiscard]] FlopsPerSecond peak(Precision precision) const;
};

/// Multiplies what long messages reach; what a call takes whatever its size stays.
void scale_bandwidth(IntraNodeCollectives& collectives, double ratio);

/// Makes the card's collectives those of its NVLinks, whose rate was `before`. Nothing where it has
/// none, or had none: no ratio says what they are then.
void follow_nvlink(GpuSpec& gpu, BytesPerSecond before);

/// A node's processors and their memory.
struct HostSpec {
  Bytes memory;
  BytesPerSecond bandwidth;    ///< all channels of all sockets
  double launch_slowness = 1;  ///< host time of a kernel over that of a Xeon of 2023
  double slowed = 1;           ///< of that, what a scenario changed of the node's preset
};

/// What slows a source whose packets meet others at a switch.
enum class CongestionControl : std::uint8_t {
  none,   ///< nothing that costs time: credits, pauses, or one that is not modelled
  dcqcn,  ///< of RoCE: Zhu et al. 2015; what its start costs comes from sim/fabric/dcqcn_start.hpp
};

/// A network transport as collectives see it (topologies/presets/transports).
struct TransportSpec {
  std::string name;
  double efficiency = 0.93;  ///< eta: share of the NIC rate that large collectives reach
  Seconds hop_latency;       ///< h: per doubling of the node count, small all-reduce
  Seconds ring_hop_latency;  ///< per node of a ring, small all-gather
  double send_receive_efficiency = 0.85;  ///< one isolated pair
  /// What messages in LL128, and in Simple, take longer than in LL, per doubling of the node count:
  /// rendezvous, proxy, flush.
  Seconds ll128_latency, simple_latency;
  /// A hop of an all-gather's or reduce-scatter's ring in Simple, in ring_hop_latency. Source of
  /// what stands here: fitted to 210 rows of public nccl-tests logs over 2 to 256 nodes.
  double simple_ring_hops = 3.05;
  /// What each message of a ring in Simple holds its connection up for, whatever its size: the next
  /// one waits. 0 where messages follow each other at once.
  Seconds ring_message_time{};
  /// Connections that a rank opens to another on a different node for send and receive, at most:
  /// NCCL_NCHANNELS_PER_NET_PEER.
  int channels_per_peer = 2;
  CongestionControl congestion_control = CongestionControl::none;
};

/// What a port of that line rate, a NIC's or a switch's, carries of payload: `efficiency` of it,
/// the transport's (or what a traffic scenario says in its place). The one place where line rate
/// becomes payload: presets, drawings and faults have line rates; flows, times and capacities in
/// answers are payload, in commands alike. What a storage system states of itself, servers and
/// clients, is payload as it stands.
constexpr BytesPerSecond payload_bandwidth(BytesPerSecond line_rate, double efficiency) {
  return efficiency * line_rate;
}

struct NodeSpec {
  std::string name;
  std::string about;
  GpuSpec gpu;
  int gpus = 8;                  ///< per node (operating-system image)
  int nvlink_domain = 8;         ///< GPUs that NVLink joins; may span nodes (72 in NVL72)
  int nics = 8;                  ///< for the compute fabric
  BytesPerSecond nic_bandwidth;  ///< one direction, each
  std::string transport;  ///< preset name of the default transport: infiniband, roce, efa, ...
  std::optional<TransportSpec> own_transport{};   ///< refined from that preset, in place of it
  std::optional<ChassisSpec> chassis;             ///< empty: nobody said
  std::optional<HostSpec> host;                   ///< the same
  std::optional<double> usd_per_gpu_hour;         ///< list price of the offer, where there is one
  std::optional<double> spot_usd_per_gpu_hour{};  ///< the same of what may be taken away

  /// Of times of the host that were fitted to runs, on whatever processors these had: what the
  /// scenario changes of its node's.
  [[nodiscard]] double host_slowed() const { return host ? host->slowed : 1; }
};

/// What a GPU gets of the NIC port through which it reaches the fabric.
struct NicShare {
  /// Implicit: a rate alone is that of a port of the GPU's own.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr NicShare(BytesPerSecond rate, double sharing = 1) : bandwidth(rate), gpus(sharing) {}
  BytesPerSecond bandwidth;  ///< line rate, one direction, where all of them send
  double gpus;               ///< that share the port, at least 1
};
/// With all GPUs of the node at work. NICs of one GPU count as one.
constexpr NicShare nic_share(const NodeSpec& node) {
  const double nics_per_gpu = static_cast<double>(node.nics) / node.gpus;
  return {nics_per_gpu * node.nic_bandwidth,
          nics_per_gpu > 0 && nics_per_gpu < 1 ? 1 / nics_per_gpu : 1};
}

/// Of all NICs of a node together, each way.
constexpr BytesPerSecond payload_bandwidth(const NodeSpec& node, const TransportSpec& transport) {
  return payload_bandwidth(static_cast<double>(node.nics) * node.nic_bandwidth,
                           transport.efficiency);
}

}  // namespace lockstep
