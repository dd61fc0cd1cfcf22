#include "sim/measured/import_nccl.hpp"

#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/device_name.hpp"
#include "sim/measured/nccl_machine.hpp"
#include "sim/scenario/read_profile.hpp"

namespace lockstep {
namespace {

using ProfileJson = nlohmann::ordered_json;

constexpr std::size_t kLargestLog = std::size_t{256} << 20;  // bytes

class NcclImporter {
 public:
  NcclImporter(const ImportMachine& machine, const NcclLogOptions& options,
               const PresetStore& presets)
      : machine_(machine), options_(options), presets_(presets) {}

  void read(const std::string& file) {
    const std::string text = read_text_file(file, kLargestLog);
    LeftOut left_out;
    if (holds_series(file, text)) {
      const std::vector<std::string> gpus = presets_.names("gpus");
      for (const NcclSeries& series : parse_nccl_series(file, text)) {
        const std::string why = why_not(series, gpus);
        add(series, why, left_out);
      }
    } else {
      NcclLog log = parse_nccl_log(file, text, options_);
      left_out = std::move(log.left_out);
      for (NcclSeries& series : log.series) {
        check_device(file, series.gpu, machine_.gpu, machine_.option(), presets_, notes_);
        if (device_.empty()) device_ = series.gpu;
        const bool fits = join_domains(series);
        add(series, fits ? "" : "hosts that fill no whole NVLink domains", left_out);
      }
    }
    note_left_out(left_out, "row", file, notes_);
  }

  /// The points so far.
  [[nodiscard]] const ProfileJson& points() const { return points_; }

  Imported finish(const std::vector<std::string>& files) {
    if (points_.empty()) {
      throw InputError({.file = fmt::format("{}", fmt::join(files, ", ")),
                        .pointer = {},
                        .found = notes_.empty() ? "no collective" : notes_.front(),
                        .allowed = "collectives of " + machine_.gpu,
                        .nearest = {}});
    }
    ProfileJson out{{"about", "Collectives by nccl-tests; made by lockstep import nccl-tests."}};
    out["conditions"]["files"] = fmt::format("{}", fmt::join(files, ", "));
    if (!device_.empty()) out["conditions"]["device"] = device_;
    out["gpu"] = machine_.gpu;
    if (machine_.node != nullptr) out["network"]["node"] = machine_.node->name;
    out["collectives"] = std::move(points_);
    return {profile_json_text(out), std::move(notes_)};
  }

 private:
  static bool holds_series(const std::string& file, const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || text[first] != '{') return false;
    return JsonCursor::parse(file, text).find("series").has_value();
  }

  /// Why a series of a file of them is left out; empty: it is not.
  std::string why_not(const NcclSeries& series, const std::vector<std::string>& gpus) const {
    if (auto odd = oddity(series)) return *odd;
    std::string why;
    const auto found = machine_of(series, presets_, gpus, why);
    if (!found) return why;
    if (found->gpu_preset != machine_.gpu) return "of another card";
    if (series.ranks % series.nodes != 0) return "ranks spread unevenly over nodes";
    if (series.nodes == 1) return {};
    if (machine_.node == nullptr) return "over several nodes: say which by --node";
    const NodeNetwork network =
        network_of(*machine_.node, presets_.transport(machine_.node->transport));
    constexpr double kSameRate = 0.01;
    const bool same = found->transport_preset == network.transport.name &&
                      std::abs(found->nic_bandwidth / network.nic_bandwidth - 1) < kSameRate;
    return same ? "" : "over another network than that of " + machine_.node->name;
  }

  /// Hosts of one NVLink domain become one node.
  bool join_domains(NcclSeries& series) const {
    if (machine_.node == nullptr || machine_.node->nvlink_domain <= machine_.node->gpus ||
        options_.nodes > 0) {
      return true;
    }
    const int per_domain = machine_.node->nvlink_domain / machine_.node->gpus;
    if (series.nodes <= per_domain) {
      series.nodes = 1;
    } else {
      if (series.nodes % per_domain != 0) return false;
      series.nodes /= per_domain;
    }
    series.gpus_per_node = series.ranks / series.nodes;
    return true;
  }

  void add(const NcclSeries& series, std::string why, LeftOut& left_out) {
    if (why.empty() && !op_of(series.op)) why = "no model of " + series.op;
    for (const NcclSample& sample : series.samples) {
      if (!why.empty() || !sample.time_us || sample.size < Bytes{1}) {
        ++left_out[why.empty() ? "nothing was sent or timed" : why];
        continue;
      }
      ProfileJson point{{"op", series.op}};
      if (series.nodes > 1) point["nodes"] = series.nodes;
      point["gpus_per_node"] = series.ranks / series.nodes;
      point["size"] = static_cast<std::int64_t>(sample.size.base_units());
      point["time"] = number_text(*sample.time_us) + " us";
      if (sample.spread > 0) point["spread"] = twelve_digits(sample.spread);
      points_.push_back(std::move(point));
    }
  }

  const ImportMachine& machine_;
  const NcclLogOptions& options_;
  const PresetStore& presets_;
  ProfileJson points_ = ProfileJson::array();
  std::string device_;  ///< as the first log prints it
  std::vector<std::string> notes_;
};

}  // namespace

nlohmann::ordered_json collectives_in_a_node(const std::string& file, const std::string& gpu,
                                             const PresetStore& presets) {
  const ImportMachine machine{.gpu = gpu};
  const NcclLogOptions options;
  NcclImporter importer(machine, options, presets);
  importer.read(file);
  return importer.points();
}

Imported import_nccl(const std::vector<std::string>& files, const ImportMachine& machine,
                     const NcclLogOptions& options, const PresetStore& presets) {
  NcclImporter importer(machine, options, presets);
  for (const std::string& file : files) importer.read(file);
  return importer.finish(files);
}

}  // namespace lockstep
