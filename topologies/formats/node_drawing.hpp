/// The inside of a server as its tools describe it: GPUs, NVLinks, NICs, and how near each GPU is
/// to each NIC. Read from NCCL's topology files, from `nvidia-smi topo -m` and from `rocm-smi
/// --showtopo`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

/// What lies between two devices, nearest first. Names as nvidia-smi writes them.
enum class PciePath : std::uint8_t {
  pix,   ///< at most one PCIe bridge
  pxb,   ///< several bridges, not the processor
  phb,   ///< the processor's host bridge
  node,  ///< host bridges of one NUMA node
  sys,   ///< the link between NUMA nodes
};
std::string_view name_of(PciePath path);

/// GPUs and NICs of a node that a file may name.
inline constexpr std::size_t kMostDevices = 1024;

struct NodeDrawing {
  struct Gpu {
    std::string name;             ///< "GPU0"
    int nvlinks = 0;              ///< links that leave it
    int nvlink_group = -1;        ///< GPUs of one group reach each other over NVLink; -1: no NVLink
    std::vector<PciePath> paths;  ///< to each NIC
  };
  struct Nic {
    std::string name;       ///< "mlx5_0"
    BytesPerSecond rate;    ///< 0: not told
    std::string transport;  ///< preset name; empty: not told
  };
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<std::string> sockets;  ///< interfaces that no GPU uses, beside or instead of `nics`
  std::string gpu_preset;            ///< by the devices' PCI numbers; empty: not told, or unknown
  std::vector<std::string> devices;  ///< what the driver calls the GPUs, each name once
  bool guesses_gpus = false;         ///< the file lists none: one behind each bridge with devices
  bool tells_nvlink = true;          ///< else a node without NVLinks may still have some
  bool counts_nvlinks = true;        ///< else only which GPUs they join
  bool lists_dies = false;           ///< a GPU here is a die: a module may have two
  bool nvlink_switches = false;      ///< NVLinks lead to switches, which other nodes may share
  bool only_sockets = false;         ///< `nics` are such, as the server has nothing else
};

/// The transport of a NIC by the name that the system gave it ("rocep145s0", "ibp12s0",
/// "mlx5_bond_0", "bnxt_re0"); empty: the name does not tell ("mlx5_0").
std::string_view transport_of_name(std::string_view nic);

/// Whether it is the name of a network interface ("eth0", "bond0", "eno1", "enp12s0f0"), which NCCL
/// opens sockets on, and not of an RDMA device.
bool is_interface_name(std::string_view nic);

/// Numbers the groups of GPUs that NVLink joins, directly or over others. `joined`: by GPU, those
/// that links lead to.
void set_nvlink_groups(const std::vector<std::vector<std::size_t>>& joined, NodeDrawing& node);

/// NVLink domain: GPUs in the smallest group of GPUs that NVLink joins; 1: none.
int nvlink_domain(const NodeDrawing& node);

/// By NIC: whether it is one of the nearest of some GPU. Storage and management have NICs too,
/// mostly further away.
std::vector<bool> near_some_gpu(const NodeDrawing& node);

/// A line for each set of GPUs that have the same nearest NICs: "GPU0 GPU1: mlx5_0 mlx5_1 (PIX)".
std::vector<std::string> nearest_nics(const NodeDrawing& node);

}  // namespace lockstep
