/// Published measurements beside numbers that do not follow the step's time: peaks of memory, power
/// of cards and nodes, collectives of nccl-tests; each with its prediction of now.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// A published run near the scenario's job, or a published service near its own.
struct NearbyRun {
  std::string row{}, source{}, gpu{};
  std::string stack{};  ///< of a service its engine, of a collective its transport
  int gpus = 0;
  double measured = 0;
  double predicted = 0;           ///< with constants fitted to this row among others
  double distance = 0;            ///< 0: the same model, GPU, number of them and software
  std::string figure = "step_s";  ///< what was measured: "ttft_s", "peak_memory_gib", "node_w"
  std::string statistic{};        ///< of a service's requests: "mean", "median", "p99"
  [[nodiscard]] std::string unit() const;
};

/// What stands beside a number, and what that is called: "published peaks of memory".
struct NearestMeasured {
  std::string kind{};
  std::vector<NearbyRun> rows{};  ///< nearest first
};

/// Peaks of memory that were published of whole jobs, the `keep` nearest to the answer's by model,
/// GPU, software and layout.
NearestMeasured nearest_memory(const nlohmann::ordered_json& answer, const PresetStore& presets,
                               std::size_t keep);

/// Of a number of a card ("power.gpu_mean_w") whole jobs whose cards were measured, of one of
/// energy joules per token, else power of whole servers. `unit`: of the field.
NearestMeasured nearest_power(const nlohmann::ordered_json& answer, const std::string& field,
                              const std::string& unit, const PresetStore& presets,
                              std::size_t keep);

/// Times, or for a rate bus bandwidths, of the same operation in nccl-tests, one of each series:
/// that of the size nearest to the number's. `answer` is one of `lockstep comm`.
NearestMeasured nearest_collectives(const nlohmann::ordered_json& answer, const std::string& field,
                                    const std::string& unit, const PresetStore& presets,
                                    std::size_t keep);

}  // namespace lockstep
