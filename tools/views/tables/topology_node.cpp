#include "tools/views/tables/topology_node.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/device_name.hpp"
#include "topologies/formats/fabric_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// One NVLink, each way. NVIDIA's NVLink page (nvidia.com/en-us/data-center/nvlink): 18 links of
/// Hopper 900 GB/s both ways, 18 of Blackwell 1,800 GB/s; 12 of Ampere 600, 6 of Volta 300.
BytesPerSecond nvlink_rate(const GpuSpec& gpu) {
  constexpr double kUntilHopper = 25e9, kBlackwell = 50e9;
  return BytesPerSecond{gpu.architecture == "blackwell" ? kBlackwell : kUntilHopper};
}

bool is_nvidia(const GpuSpec& gpu) { return !gpu.architecture.starts_with("cdna"); }

class Maker {
 public:
  Maker(const std::string& file, const NodeDrawing& node, const NodeChoices& choices,
        const PresetStore& presets)
      : file_(file), node_(node), choices_(choices), presets_(presets) {}

  NodePreset make(const std::string& source) {
    const std::string gpu = gpu_name();
    spec_ = &presets_.gpu(gpu);
    choose_nics();
    Json out;
    out["about"] = "";
    out["source"] = source;
    out["gpu"] = gpu;
    out["gpus"] = node_.gpus.size();
    out["nvlink_domain"] = domain();
    set_nvlink_bandwidth(out["gpu"]);
    out["nics"] = nics_.size();
    out["nic_bandwidth"] = nic_rate();
    out["transport"] = transport();
    preset_.facts.insert(preset_.facts.begin(), fmt::format("{} x {}", node_.gpus.size(), gpu));
    for (const std::string& line : nearest_nics(node_)) preset_.facts.push_back(line);
    if (!node_.sockets.empty()) {
      preset_.facts.push_back(
          fmt::format("Left out, interfaces without RDMA: {}", fmt::join(node_.sockets, ", ")));
    }
    out["about"] = about();
    preset_.json = write_json(out, 2) + "\n";
    return std::move(preset_);
  }

 private:
  [[noreturn]] void fail(std::string found, std::string allowed) const {
    throw InputError({file_, "", std::move(found), std::move(allowed), ""});
  }

  void choose_nics() {
    if (choices_.nics > 0) {
      if (!node_.nics.empty() && !node_.only_sockets) {
        fail(fmt::format("{} NICs, and --nics", node_.nics.size()),
             "--nics where the description lists no NIC");
      }
      nics_.resize(static_cast<std::size_t>(choices_.nics));
      preset_.assumptions.emplace_back("NICs are not listed; their number is that of --nics");
      if (node_.only_sockets) {
        for (const NodeDrawing::Nic& nic : node_.nics) {
          left_out_ +=
              (left_out_.empty() ? "Left out, interfaces without RDMA: " : ", ") + nic.name;
        }
        preset_.facts.push_back(left_out_);
        return;
      }
    }
    const std::vector<bool> near = near_some_gpu(node_);
    std::string others;
    for (std::size_t i = 0; i < near.size(); ++i) {
      if (near[i] || choices_.all_nics) nics_.push_back(node_.nics[i]);
      if (!near[i]) others += " " + node_.nics[i].name;
    }
    if (others.empty()) return;
    if (choices_.all_nics) {
      preset_.assumptions.push_back("NICs that are nearest to no GPU count too:" + others);
    } else {
      left_out_ = "Left out, nearest to no GPU:" + others;
      preset_.facts.push_back(left_out_ + " (--all-nics counts them)");
    }
  }

  /// The preset that fits what the driver calls the GPUs.
  std::string gpu_of_devices() {
    std::set<std::string> all;
    std::vector<std::string> known;
    for (const std::string& device : node_.devices) {
      known = presets_of_device(device, presets_);
      all.insert(known.begin(), known.end());
    }
    const std::string named = listed_names();
    if (all.size() != 1 || known.empty()) {
      const bool some = node_.devices.size() == 1 && !all.empty();
      fail(named, "--gpu NAME, one of " +
                      listed(some ? std::vector(all.begin(), all.end()) : presets_.names("gpus")));
    }
    preset_.facts.push_back(fmt::format("GPUs by their name, {}", named));
    return *all.begin();
  }
  [[nodiscard]] std::string listed_names() const {
    std::vector<std::string> names;
    for (const std::string& device : node_.devices) names.push_back(in_quotes(device));
    return fmt::format("{}", fmt::join(names, ", "));
  }
  void hold_against_devices() const {
    const std::string asked = chip_of(choices_.gpu);
    for (const std::string& device : node_.devices) {
      const std::string chip = chip_of(device);
      if (chip.empty() || asked.empty() || chip == asked) continue;
      fail(fmt::format("{}, and --gpu {}", in_quotes(device), choices_.gpu),
           "a preset of that card, or no --gpu");
    }
  }

  std::string gpu_name() {
    // A file that lists dies has two of them for each module that a person names.
    std::string die = choices_.gpu + "_gcd";
    const bool has_dies = node_.lists_dies && std::ranges::count(presets_.names("gpus"), die) > 0;
    if (die == node_.gpu_preset || has_dies) {
      preset_.facts.push_back(fmt::format("The devices are dies, two to each {}", choices_.gpu));
      return die;
    }
    if (!choices_.gpu.empty()) {
      hold_against_devices();
      return choices_.gpu;
    }
    if (node_.gpu_preset.empty() && !node_.devices.empty()) return gpu_of_devices();
    if (node_.gpu_preset.empty()) {
      fail("no known kind of GPU", "--gpu NAME, one of " + listed(presets_.names("gpus")));
    }
    return node_.gpu_preset;
  }

  int domain() {
    const int gpus = static_cast<int>(node_.gpus.size());
    int joined = nvlink_domain(node_);
    if (node_.guesses_gpus) {
      preset_.assumptions.push_back(fmt::format(
          "GPUs are not listed, and devices have no class: they are NICs, and behind each of {} "
          "bridges there is one GPU",
          gpus));
    }
    if (!node_.tells_nvlink) {
      // Bridges of PCIe cards are an extra; boards of SXM and OAM modules always have their links.
      const bool joins = spec_->nvlink_bandwidth > BytesPerSecond{} &&
                         spec_->name.find("pcie") == std::string::npos;
      joined = joins ? gpus : 1;
      preset_.assumptions.push_back(fmt::format(
          "NVLinks are not listed; taken from the kind of GPU: {} GPUs joined", joined));
      return joined;
    }
    if (!node_.counts_nvlinks) {
      preset_.facts.push_back(joined > 1 ? fmt::format("xGMI joins {} GPUs", joined)
                                         : std::string("xGMI joins no GPUs"));
      return joined;
    }
    std::set<int> counts;
    for (const NodeDrawing::Gpu& gpu : node_.gpus) counts.insert(gpu.nvlinks);
    preset_.facts.push_back(
        joined > 1 ? fmt::format("NVLink joins {} GPUs, {} links each", joined, *counts.rbegin())
                   : std::string("NVLink joins no GPUs"));
    if (counts.size() > 1) {
      preset_.assumptions.emplace_back(
          "GPUs differ in their NVLinks; the smallest domain is taken");
    }
    return joined == gpus && node_.nvlink_switches ? rack_domain(joined) : joined;
  }

  /// Switches of a rack join more nodes than the one that was described, and no file of a node says
  /// so: the largest domain of the presets with as many of these GPUs in a node.
  int rack_domain(int joined) {
    const NodeSpec* largest = nullptr;
    for (const std::string& name : presets_.names("nodes")) {
      const NodeSpec& preset = presets_.node(name);
      if (preset.gpu.name != spec_->name || preset.gpus != joined) continue;
      if (largest == nullptr || preset.nvlink_domain > largest->nvlink_domain) largest = &preset;
    }
    if (largest == nullptr || largest->nvlink_domain <= joined) return joined;
    preset_.assumptions.push_back(
        fmt::format("NVLink's switches join the trays of a rack, which no tray tells: {} GPUs are "
                    "joined, as in {}",
                    largest->nvlink_domain, largest->name));
    return largest->nvlink_domain;
  }

  /// Where links are fewer or more than the preset's, as on export versions of a GPU.
  void set_nvlink_bandwidth(Json& gpu) {
    const int links = node_.gpus.front().nvlinks;
    if (links == 0 || !is_nvidia(*spec_)) return;
    const BytesPerSecond found = links * nvlink_rate(*spec_);
    if (found == spec_->nvlink_bandwidth) return;
    gpu = Json{{"preset", gpu.get<std::string>()},
               {"nvlink_bandwidth",
                {{"value", fmt::format("{} GB/s", found / BytesPerSecond{1e9})},
                 {"source", fmt::format("{} links in the description", links)}}}};
    preset_.facts.push_back(fmt::format("NVLink {} GB/s each way, unlike the preset's {} GB/s",
                                        found / BytesPerSecond{1e9},
                                        spec_->nvlink_bandwidth / BytesPerSecond{1e9}));
  }

  Json nic_rate() {
    if (nics_.empty()) {
      fail("no NICs",
           "a server with at least one NIC for its network; --nics N and --rate tell of "
           "NICs that the file does not list");
    }
    if (choices_.rate > BytesPerSecond{}) {
      return Json{{"value", rate_text(choices_.rate)}, {"source", "assumed: given as --rate"}};
    }
    std::map<BytesPerSecond, int> counts;
    for (const NodeDrawing::Nic& nic : nics_) ++counts[nic.rate];
    const auto usual = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (usual->first == BytesPerSecond{}) {
      fail("NICs without a speed", "--rate, such as --rate \"400 Gb/s\"");
    }
    constexpr BytesPerSecond kFast = gigabits_per_second(10);
    if (usual->first < kFast) {
      preset_.assumptions.emplace_back(
          node_.only_sockets
              ? "no device is listed but interfaces without RDMA: other servers are reached over "
                "those (--nics N --rate RATE tell of NICs that the file does not list)"
              : "no fast NIC is listed: what is there is for management");
    }
    preset_.facts.push_back(fmt::format("{} NICs of {}", nics_.size(), rate_text(usual->first)));
    if (counts.size() > 1) {
      preset_.assumptions.emplace_back("NICs differ in speed; what most have is taken for all");
    }
    return rate_text(usual->first);
  }

  Json transport() {
    if (!choices_.transport.empty()) return choices_.transport;
    std::map<std::string, int> counts;
    for (const NodeDrawing::Nic& nic : nics_) ++counts[nic.transport];
    const auto usual = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (!usual->first.empty()) return usual->first;
    preset_.assumptions.emplace_back(
        "the transport is not told: InfiniBand is assumed, --transport names another");
    return Json{{"value", "infiniband"}, {"source", "assumed: the description does not tell"}};
  }

  std::string about() {
    if (left_out_.empty() && !choices_.all_nics && !node_.nics.empty()) {
      preset_.assumptions.emplace_back(
          "NICs for storage and management are counted too where they are as near as others");
    }
    const std::vector<std::string> rows = nearest_nics(node_);
    std::string text = rows.empty() ? "Imported" : "Imported. Nearest NICs: ";
    for (std::size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "" : "; ") + rows[i];
    if (!left_out_.empty()) text += ". " + left_out_;
    for (const std::string& line : preset_.assumptions) text += ". Not known: " + line;
    return text + ".";
  }

  const std::string& file_;
  const NodeDrawing& node_;
  const NodeChoices& choices_;
  const PresetStore& presets_;
  const GpuSpec* spec_ = nullptr;
  std::vector<NodeDrawing::Nic> nics_;  ///< that count
  std::string left_out_;                ///< in words, those that do not
  NodePreset preset_;
};

}  // namespace

NodePreset node_preset(const std::string& file, const NodeDrawing& node, const std::string& source,
                       const NodeChoices& choices, const PresetStore& presets) {
  return Maker(file, node, choices, presets).make(source);
}

}  // namespace lockstep
