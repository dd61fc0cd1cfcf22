#include "topologies/formats/node_drawing.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace lockstep {

std::string_view name_of(PciePath path) {
  constexpr std::array<std::string_view, 5> kNames{"PIX", "PXB", "PHB", "NODE", "SYS"};
  return kNames[static_cast<std::size_t>(path)];
}

std::string_view transport_of_name(std::string_view nic) {
  struct Prefix {
    std::string_view text, transport;
  };
  // Predictable names of rdma-core's rdma_rename (ib, roce, opa), and names of drivers. Of two
  // bonded ports of a ConnectX card one RDMA device is made, over Ethernet alone (RoCE LAG).
  constexpr std::array kPrefixes{Prefix{"roce", "roce"},      Prefix{"bnxt_re", "roce"},
                                 Prefix{"irdma", "roce"},     Prefix{"mlx5_bond", "roce"},
                                 Prefix{"ib", "infiniband"},  Prefix{"opa", "omni_path"},
                                 Prefix{"hfi1", "omni_path"}, Prefix{"cxi", "slingshot"}};
  for (const Prefix& prefix : kPrefixes) {
    if (nic.starts_with(prefix.text)) return prefix.transport;
  }
  return {};
}

bool is_interface_name(std::string_view nic) {
  // systemd.net-naming-scheme(7), the kernel's own names, and the bonding driver's.
  constexpr std::array<std::string_view, 8> kInterfaces{"eth", "bond", "team", "eno",
                                                        "ens", "enp",  "enx",  "enP"};
  return std::ranges::any_of(kInterfaces, [&](std::string_view prefix) {
    return nic.starts_with(prefix) && nic.find_first_of("0123456789") != std::string_view::npos;
  });
}

void set_nvlink_groups(const std::vector<std::vector<std::size_t>>& joined, NodeDrawing& node) {
  for (std::size_t first = 0; first < node.gpus.size(); ++first) {
    if (node.gpus[first].nvlink_group >= 0 || joined[first].empty()) continue;
    std::vector<std::size_t> open{first};
    while (!open.empty()) {
      const std::size_t gpu = open.back();
      open.pop_back();
      if (node.gpus[gpu].nvlink_group >= 0) continue;
      node.gpus[gpu].nvlink_group = static_cast<int>(first);
      open.insert(open.end(), joined[gpu].begin(), joined[gpu].end());
    }
  }
}

int nvlink_domain(const NodeDrawing& node) {
  std::map<int, int> sizes;
  for (const NodeDrawing::Gpu& gpu : node.gpus) {
    if (gpu.nvlink_group < 0) return 1;
    ++sizes[gpu.nvlink_group];
  }
  int smallest = static_cast<int>(node.gpus.size());
  for (const auto& [group, size] : sizes) smallest = std::min(smallest, size);
  return std::max(1, smallest);
}

std::vector<bool> near_some_gpu(const NodeDrawing& node) {
  std::vector<bool> near(node.nics.size(), false);
  for (const NodeDrawing::Gpu& gpu : node.gpus) {
    if (gpu.paths.empty()) continue;
    const PciePath nearest = *std::ranges::min_element(gpu.paths);
    for (std::size_t i = 0; i < gpu.paths.size(); ++i) {
      if (gpu.paths[i] == nearest) near[i] = true;
    }
  }
  return near;
}

std::vector<std::string> nearest_nics(const NodeDrawing& node) {
  std::vector<std::pair<std::string, std::string>> rows;  // NICs, GPUs
  for (const NodeDrawing::Gpu& gpu : node.gpus) {
    if (gpu.paths.empty()) continue;
    const PciePath nearest = *std::ranges::min_element(gpu.paths);
    std::string nics;
    for (std::size_t i = 0; i < gpu.paths.size(); ++i) {
      if (gpu.paths[i] == nearest) nics += node.nics[i].name + " ";
    }
    nics += fmt::format("({})", name_of(nearest));
    const auto row =
        std::ranges::find_if(rows, [&nics](const auto& known) { return known.first == nics; });
    if (row == rows.end()) {
      rows.emplace_back(nics, gpu.name);
    } else {
      row->second += " " + gpu.name;
    }
  }
  std::vector<std::string> out;
  out.reserve(rows.size());
  for (const auto& [nics, gpus] : rows) {
    out.push_back(fmt::format("{}: {}", gpus, nics));
  }
  return out;
}

}  // namespace lockstep
