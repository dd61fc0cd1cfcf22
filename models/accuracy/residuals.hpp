/// What predictions of published training runs missed by: the evidence for the interval around
/// every other prediction (prediction_interval.hpp).
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// What decides how far a prediction can be trusted: the software, the GPU, the kind of job.
struct PredictionTraits {
  std::string stack;               ///< name of the preset, "megatron_core"
  std::string release;             ///< empty: not stated
  bool release_stands_in = false;  ///< for another one, which the preset does not know
  std::string gpu;                 ///< name of the preset, "h100_sxm5_80gb"
  std::string architecture;        ///< of the GPU, "hopper"
  bool experts = false;            ///< mixture of experts
  bool sharded_weights = false;    ///< ZeRO-3, FSDP
  bool context = false;            ///< context parallel
};

/// One measured run. Errors are log(predicted / measured) of the step time.
struct Residual {
  std::string row;     ///< its name in tests/reference/training.json
  std::string source;  ///< who measured: rows of one source err alike
  PredictionTraits traits;
  double fitted = 0;    ///< with the constants as they are, fitted to this row among others
  double left_out = 0;  ///< with constants fitted without any row of the source
};

using ResidualTable = std::vector<Residual>;

}  // namespace lockstep
