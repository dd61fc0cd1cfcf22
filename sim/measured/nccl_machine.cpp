#include "sim/measured/nccl_machine.hpp"

#include <string_view>

namespace lockstep {

std::optional<std::string> oddity(const NcclSeries& series) {
  for (const std::string& flag : series.flags) {
    for (const std::string_view word : {"misconfigured", "sockets", "no OFI"}) {
      if (flag.find(word) != std::string::npos) return "flagged by their source: " + flag;
    }
    if (flag.find("NVLS_ENABLE=0") != std::string::npos) return "algorithm forced: " + flag;
  }
  return std::nullopt;
}

std::optional<NcclMachine> machine_of(const NcclSeries& series, const PresetStore& presets,
                                      const std::vector<std::string>& gpus, std::string& why) {
  NcclMachine machine;
  const std::optional<CollectiveOp> op = op_of(series.op);
  if (!op) return why = "no model of " + series.op, std::nullopt;
  if (series.ranks < 2) return why = "a single rank", std::nullopt;
  machine.op = *op;
  machine.gpu_preset = gpu_preset_of(series.gpu, gpus);
  if (machine.gpu_preset.empty()) return why = "no preset of the GPU " + series.gpu, std::nullopt;
  if (series.nodes == 1) {
    machine.transport_preset = "none";
    machine.nic_bandwidth = gigabits_per_second(1);  // no candidate inside one node uses it
    return machine;
  }
  machine.transport_preset = transport_of(series.network);
  const std::optional<BytesPerSecond> nic =
      nic_bandwidth_per_gpu(series.network, series.gpus_per_node);
  if (machine.transport_preset.empty() || !nic) {
    return why = "network not known: " + series.network, std::nullopt;
  }
  machine.nic_bandwidth = *nic;
  // A network that one generation of servers drives differently has a preset of its own.
  const std::string special =
      machine.transport_preset + "_" + presets.gpu(machine.gpu_preset).architecture;
  if (presets.has("transports", special)) machine.transport_preset = special;
  return machine;
}

}  // namespace lockstep
