#include "topologies/formats/nccl_topology.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "topologies/formats/xml_text.hpp"

namespace lockstep {
namespace {

/// GPU presets by PCI vendor and device. Source: pci-ids.ucw.cz.
struct GpuDevice {
  std::string_view vendor, device, preset;
};
constexpr std::array kGpuDevices{
    GpuDevice{"0x10de", "0x1db5", "v100_sxm2_32gb"},
    GpuDevice{"0x10de", "0x1db8", "v100_sxm3_32gb"},
    GpuDevice{"0x10de", "0x20b0", "a100_sxm4_40gb"},
    GpuDevice{"0x10de", "0x20b2", "a100_sxm4_80gb"},
    GpuDevice{"0x10de", "0x20b5", "a100_pcie_80gb"},
    GpuDevice{"0x10de", "0x20f3", "a100_sxm4_80gb"},  // A800: less NVLink
    GpuDevice{"0x10de", "0x2324", "h800_sxm_80gb"},
    GpuDevice{"0x10de", "0x2330", "h100_sxm5_80gb"},
    GpuDevice{"0x10de", "0x2331", "h100_pcie_80gb"},
    GpuDevice{"0x10de", "0x2335", "h200_sxm_141gb"},
    GpuDevice{"0x10de", "0x2342", "gh200_96gb"},
    GpuDevice{"0x10de", "0x2901", "b200_sxm_180gb"},
    GpuDevice{"0x10de", "0x2941", "gb200_186gb"},
    GpuDevice{"0x10de", "0x3182", "b300_sxm_288gb"},
    GpuDevice{"0x10de", "0x31c2", "gb300_288gb"},
    GpuDevice{"0x1002", "0x7408", "mi250x_gcd"},  // a device is one of the two dies of a card
    GpuDevice{"0x1002", "0x740c", "mi250x_gcd"},
    GpuDevice{"0x1002", "0x74a1", "mi300x"},
    GpuDevice{"0x1002", "0x74a5", "mi325x"},
};

/// Elastic Fabric Adapters by PCI device; instance types as in AWS's list of EFA generations.
struct EfaDevice {
  std::string_view device, transport;
};
constexpr std::array kEfaDevices{EfaDevice{"0xefa0", "efa_v1"}, EfaDevice{"0xefa1", "efa_v2"},
                                 EfaDevice{"0xefa2", "efa_v3"}, EfaDevice{"0xefa3", "efa_v4"}};

constexpr std::string_view kGoogle = "0x1ae0";  ///< PCI vendor; source: pci-ids.ucw.cz

constexpr int kMostDepth = 64;

std::string_view attribute(pugi::xml_node element, const char* name) {
  return element.attribute(name).value();
}

/// A device and the bridges above it, the topmost first.
struct Place {
  pugi::xml_node cpu;
  std::vector<pugi::xml_node> bridges;
};

class NcclTopologyReader {
 public:
  NcclTopologyReader(const std::string& file, std::string_view text) : xml_(file, text) {}

  NodeDrawing read() {
    const pugi::xml_node root = xml_.root();
    const std::string_view name = root.name();
    if (name == "graphs") {
      xml_.fail(root, "<graphs>, the rings and trees that NCCL chose (NCCL_GRAPH_DUMP_FILE)",
                "<system>, the topology (NCCL_TOPO_DUMP_FILE)");
    }
    if (name != "system") xml_.fail(root, fmt::format("<{}>", root.name()), "<system>");
    for (const pugi::xml_node cpu : root.children("cpu")) walk(cpu, {.cpu = cpu, .bridges = {}});
    if (node_.gpus.empty() && node_.nics.empty()) take_unknown();
    if (node_.gpus.empty()) {
      if (unknown_ > 0) {
        xml_.fail(root,
                  fmt::format("no GPUs, and {} devices without a class, which NCCL looks up on the "
                              "machine itself",
                              unknown_),
                  "what NCCL writes there with NCCL_TOPO_DUMP_FILE");
      }
      xml_.fail(root, "no GPUs", "<gpu> elements, or <pci> elements of class 0x0302");
    }
    read_sockets();
    leave_out_interfaces();
    name_google_transports();
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) set_paths(i);
    find_groups();
    return std::move(node_);
  }

 private:
  void walk(pugi::xml_node element, const Place& place) {
    if (place.bridges.size() > kMostDepth) {
      xml_.fail(element, "too many bridges in each other", fmt::format("at most {}", kMostDepth));
    }
    for (const pugi::xml_node child : element.children()) {
      const std::string_view name = child.name();
      if (name == "pci") {
        read_pci(child, place);
      } else if (name == "nic") {
        read_nets(child, pugi::xml_node(), place);
      }
    }
  }

  void read_pci(pugi::xml_node pci, const Place& place) {
    const std::string_view kind = attribute(pci, "class");
    if (!kind.empty() && (!kind.starts_with("0x") || kind.size() != 8)) {
      xml_.fail(pci, fmt::format("class={}", in_quotes(kind)),
                "a PCI class, as 0x060400, or none for a switch or bridge");
    }
    // NCCL takes a device without a class for a bridge (kvDictPciClass in src/graph/topo.cc),
    // unless it finds more about it on the machine.
    const bool known = pci.child("gpu") || pci.child("apu") || pci.child("nic");
    const bool bridge = kind.empty() ? !known : kind.starts_with("0x0604");
    if (bridge) {
      if (kind.empty() && !pci.first_child()) {
        ++unknown_;
        if (!place.bridges.empty()) unknown_devices_.emplace_back(pci, place);
      }
      Place inside = place;
      inside.bridges.push_back(pci);
      walk(pci, inside);
      return;
    }
    const bool accelerator = kind.starts_with("0x0302") || kind.starts_with("0x12");
    if (pci.child("gpu") || pci.child("apu") || (accelerator && !pci.child("nic"))) {
      add_gpu(pci, place);
    } else if (pci.child("nic")) {
      for (const pugi::xml_node nic : pci.children("nic")) read_nets(nic, pci, place);
    } else if (kind.starts_with("0x02")) {
      add_nic(pci, attribute(pci, "busid"), {}, pci, place);
    }
  }

  /// Files for machines of clouds have the NICs alone, as devices without a class behind bridges;
  /// NCCL finds the GPUs itself. One behind each bridge is assumed.
  void take_unknown() {
    for (const auto& [pci, place] : unknown_devices_) {
      const bool first = gpu_places_.empty() || gpu_places_.back().bridges != place.bridges;
      if (first) {
        check_count(pci);
        std::string name = fmt::format("GPU{}", node_.gpus.size());
        node_.gpus.emplace_back().name = std::move(name);
        gpu_places_.push_back(place);
        gpu_elements_.emplace_back();
      }
      add_nic(pci, attribute(pci, "busid"), {}, pci, place);
    }
    node_.guesses_gpus = !node_.gpus.empty();
  }

  void check_count(pugi::xml_node at) const {
    if (node_.gpus.size() + node_.nics.size() < kMostDevices) return;
    xml_.fail(at, "too many GPUs and NICs", fmt::format("at most {}", kMostDevices));
  }

  void add_gpu(pugi::xml_node pci, const Place& place) {
    check_count(pci);
    const std::string bus(attribute(pci, "busid"));
    if (bus.empty()) xml_.fail(pci, "a GPU without busid", "busid=\"0000:0f:00.0\"");
    if (!gpu_by_bus_.emplace(bus, node_.gpus.size()).second) {
      xml_.fail(pci, fmt::format("busid={} twice", in_quotes(bus)), "each GPU once");
    }
    NodeDrawing::Gpu& gpu = node_.gpus.emplace_back();
    gpu.name = fmt::format("GPU{}", node_.gpus.size() - 1);
    std::string preset;
    for (const GpuDevice& row : kGpuDevices) {
      if (row.vendor == attribute(pci, "vendor") && row.device == attribute(pci, "device")) {
        preset = row.preset;
      }
    }
    if (node_.gpus.size() == 1) node_.gpu_preset = preset;
    if (preset != node_.gpu_preset) {
      xml_.fail(pci, fmt::format("device {} beside others", in_quotes(attribute(pci, "device"))),
                "GPUs of one kind");
    }
    gpu_places_.push_back(place);
    gpu_elements_.push_back(pci.child("gpu"));
  }

  void read_nets(pugi::xml_node nic, pugi::xml_node pci, const Place& place) {
    for (const pugi::xml_node net : nic.children("net")) {
      constexpr int kFastest = 1'000'000'000, kMostMegabits = 10'000'000;
      const std::optional<int> said = xml_.whole_number(net, "speed", 0, kFastest);
      // Drivers of Slingshot say kb/s in place of Mb/s.
      const std::optional<int> speed =
          said.value_or(0) > kMostMegabits ? std::optional(*said / 1000) : said;
      const std::string_view name = attribute(net, "name");
      const BytesPerSecond rate{speed.value_or(0) * 1e6 / 8};
      // NCCL lists the sockets that it would use without RDMA too, below the CPU and not a device.
      if (!pci) {
        if (!name.empty()) sockets_.emplace_back(net, rate, place);
        continue;
      }
      add_nic(net, name.empty() ? attribute(pci, "busid") : name, rate, pci, place);
    }
  }

  /// Beside devices they are not counted. A server that has nothing else reaches others over them.
  void read_sockets() {
    // Bridges of containers and virtual machines lead nowhere.
    constexpr std::array<std::string_view, 6> kVirtual{"docker", "veth", "virbr",
                                                       "br-",    "cni",  "lo"};
    const bool only = node_.nics.empty();
    for (const auto& [net, rate, place] : sockets_) {
      const std::string_view name = attribute(net, "name");
      const bool leads = std::ranges::none_of(
          kVirtual, [&](std::string_view start) { return name.starts_with(start); });
      if (!only || !leads) {
        node_.sockets.emplace_back(name);
        continue;
      }
      check_count(net);
      node_.nics.push_back({.name = std::string(name), .rate = rate, .transport = "ethernet"});
      nic_places_.push_back(place);
      node_.only_sockets = true;
    }
  }

  void add_nic(pugi::xml_node at, std::string_view name, BytesPerSecond rate, pugi::xml_node pci,
               const Place& place) {
    check_count(at);
    node_.nics.push_back(
        {.name = std::string(name), .rate = rate, .transport = std::string(transport(name, pci))});
    nic_places_.push_back(place);
  }

  /// Beside RDMA devices interfaces are for management, however near they are.
  void leave_out_interfaces() {
    const auto is_interface = [](const NodeDrawing::Nic& nic) {
      return is_interface_name(nic.name);
    };
    if (std::ranges::all_of(node_.nics, is_interface)) return;
    std::vector<NodeDrawing::Nic> nics;
    std::vector<Place> places;
    for (std::size_t i = 0; i < node_.nics.size(); ++i) {
      if (is_interface(node_.nics[i])) {
        node_.sockets.push_back(node_.nics[i].name);
      } else {
        nics.push_back(std::move(node_.nics[i]));
        places.push_back(std::move(nic_places_[i]));
      }
    }
    node_.nics = std::move(nics);
    nic_places_ = std::move(places);
  }

  /// Of Google's machines those with H100 place what arrives in the GPUs' memory: with a NIC for
  /// each GPU by GPUDirect-TCPXO (a3-megagpu), with fewer by GPUDirect-TCPX (a3-highgpu).
  /// Source: cloud.google.com/compute/docs/gpus/gpu-network-bandwidth.
  void name_google_transports() {
    const char* direct = node_.nics.size() < node_.gpus.size() ? "tcpx" : "tcpxo";
    for (NodeDrawing::Nic& nic : node_.nics) {
      if (nic.transport != kGoogle) continue;
      nic.transport = node_.gpu_preset == "h100_sxm5_80gb" ? direct : "ethernet";
    }
  }

  static std::string_view transport(std::string_view name, pugi::xml_node pci) {
    constexpr std::string_view kAmazon = "0x1d0f", kMellanox = "0x15b3";
    if (attribute(pci, "vendor") == kGoogle) return kGoogle;
    for (const EfaDevice& row : kEfaDevices) {
      if (attribute(pci, "vendor") == kAmazon && attribute(pci, "device") == row.device) {
        return row.transport;
      }
    }
    const std::string_view by_name = transport_of_name(name);
    if (!by_name.empty()) return by_name;
    if (attribute(pci, "class").starts_with("0x0207")) return "infiniband";
    const bool ethernet = attribute(pci, "class").starts_with("0x0200");
    return ethernet && attribute(pci, "vendor") == kMellanox ? "roce" : "";
  }

  void set_paths(std::size_t gpu) {
    const Place& from = gpu_places_[gpu];
    for (const Place& to : nic_places_) {
      std::size_t common = 0;
      while (common < from.bridges.size() && common < to.bridges.size() &&
             from.bridges[common] == to.bridges[common]) {
        ++common;
      }
      const bool close = common == from.bridges.size() && common == to.bridges.size();
      PciePath path = from.cpu == to.cpu ? PciePath::phb : PciePath::sys;
      if (common > 0) path = close ? PciePath::pix : PciePath::pxb;
      node_.gpus[gpu].paths.push_back(path);
    }
  }

  /// GPUs that NVLink joins: over a switch all that have one, else whom they name.
  void find_groups() {
    bool told = false;
    std::vector<std::vector<std::size_t>> joined(node_.gpus.size());
    std::optional<std::size_t> on_switch;
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
      for (const pugi::xml_node link : gpu_elements_[i].children()) {
        const std::string_view name = link.name();
        if (name != "nvlink" && name != "xgmi") continue;
        told = true;
        constexpr int kMostLinks = 1000;
        node_.gpus[i].nvlinks += xml_.whole_number(link, "count", 0, kMostLinks).value_or(1);
        const auto peer = gpu_by_bus_.find(attribute(link, "target"));
        const std::size_t other = peer != gpu_by_bus_.end() ? peer->second : on_switch.value_or(i);
        if (peer == gpu_by_bus_.end()) on_switch = on_switch.value_or(i);
        joined[i].push_back(other);
        joined[other].push_back(i);
      }
    }
    node_.tells_nvlink = told;
    node_.nvlink_switches = on_switch.has_value();
    for (std::size_t first = 0; first < node_.gpus.size(); ++first) {
      std::vector<std::size_t> open;
      if (node_.gpus[first].nvlinks > 0) open.push_back(first);
      while (!open.empty()) {
        const std::size_t gpu = open.back();
        open.pop_back();
        if (node_.gpus[gpu].nvlink_group >= 0) continue;
        node_.gpus[gpu].nvlink_group = static_cast<int>(first);
        open.insert(open.end(), joined[gpu].begin(), joined[gpu].end());
      }
    }
  }

  XmlText xml_;
  NodeDrawing node_;
  int unknown_ = 0;  ///< devices without a class and without anything in them
  std::vector<std::pair<pugi::xml_node, Place>>
      unknown_devices_;  ///< of them, those behind bridges
  std::vector<Place> gpu_places_, nic_places_;
  std::vector<std::tuple<pugi::xml_node, BytesPerSecond, Place>> sockets_;  ///< below a CPU
  std::vector<pugi::xml_node> gpu_elements_;
  std::map<std::string, std::size_t, std::less<>> gpu_by_bus_;
};

}  // namespace

NodeDrawing read_nccl_topology(const std::string& file, std::string_view text) {
  return NcclTopologyReader(file, text).read();
}

}  // namespace lockstep
