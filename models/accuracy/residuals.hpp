/// What predictions of published training runs missed by: the evidence for the interval around
/// every other prediction (prediction_interval.hpp).
#pragma once

#include <string>
#include <string_view>
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

/// What a fit knew of a run's software. Decides which residuals are evidence for an interval.
enum class SoftwareKnown : unsigned char {
  release,  ///< rows of this stack and release were fitted: errors of fitted rows
  stack,    ///< of other releases only: errors of rows whose source was left out
  none,     ///< of neither: the same, where no other source has the stack
};

/// One measured run. Errors are log(predicted / measured) of the step time.
struct Residual {
  std::string row;     ///< its name in tests/reference/training.json
  std::string source;  ///< who measured: rows of one source err alike
  PredictionTraits traits;
  double fitted = 0;    ///< with the constants as they are, fitted to this row among others
  double left_out = 0;  ///< with constants fitted without any row of the source
  SoftwareKnown left_out_known = SoftwareKnown::none;  ///< what that fit knew; see classify()
};

using ResidualTable = std::vector<Residual>;

/// What the rows of the table, but for those of source `without`, say about the software.
SoftwareKnown software_known(const ResidualTable& table, const PredictionTraits& traits,
                             std::string_view without = {});

/// Sets left_out_known of every row.
void classify(ResidualTable& table);

/// "known release", "other release", "unknown".
std::string_view name_of(SoftwareKnown known);

/// What a row is grouped by beside its software: "experts", "sharded weights" or "dense".
std::string_view kind_of(const PredictionTraits& traits);

}  // namespace lockstep
