/// Widths, batch and machine of a sketch, made to fit together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/launch/import_job.hpp"
#include "sim/launch/job_sketch.hpp"
#include "sim/launch/launch_files.hpp"

namespace lockstep {

struct CompleteLayout {
  int tensor = 1, pipeline = 1, context = 1, expert = 1, expert_tensor = 1;
  std::int64_t data = 1, gpus = 1;
  int nodes = 1;
  int virtual_stages = 1;
  int micro = 1;
  std::int64_t sequences = 1;
  std::int64_t pipelines = 1;  ///< that a step runs one after another: TorchTitan's accumulation
  int shard_group = 0;
  std::string sharding;
};

/// What a machine has that no file says.
struct LaunchMachine {
  int node_gpus = 8;           ///< of the node preset
  std::string variable;        ///< of a script: the number of nodes
  bool fixed_nodes = false;    ///< the command line says how many
  int layers = 0;              ///< of the model
  std::int64_t told_gpus = 0;  ///< that a comment speaks of; 0: none does
};

/// Throws InputError for widths that do not divide each other or the GPUs, and says what would.
CompleteLayout complete_layout(const JobSketch& job, LaunchKind kind, const LaunchMachine& machine,
                               const std::string& file, std::vector<JobAssumption>& assumptions);

}  // namespace lockstep
