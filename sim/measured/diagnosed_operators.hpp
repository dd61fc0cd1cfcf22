/// A recorded step beside the simulated one, operator by operator of the model.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/step_answer.hpp"
#include "sim/measured/job_products.hpp"
#include "sim/measured/model_operators.hpp"
#include "sim/measured/recorded_step.hpp"

namespace lockstep {

/// An operator, or what is none: kernels that nothing assigns, communication, copies, the host. As
/// a mean over the ranks that were recorded; all of them add up to the step.
struct DiagnosedOperator {
  std::string_view name;   ///< as JSON says it
  std::string_view title;  ///< as a person reads it
  double predicted_s = 0, recorded_s = 0;
  double placed_s = 0;  ///< of the recorded: kernels that only the products around them tell
  double kernels = 0;   ///< of a rank
  [[nodiscard]] double difference_s() const { return recorded_s - predicted_s; }
};

/// Collects the recordings of ranks.
class OperatorCollector {
 public:
  explicit OperatorCollector(const RunResult& predicted);

  /// `stage`: of the pipeline.
  void add(const KinetoRecording& recording, const RecordedRank& rank, std::size_t stage);

  /// Those that either side has, in the order of a layer, then kernels of no operator.
  [[nodiscard]] std::vector<DiagnosedOperator> rows() const;
  /// Of the time in recorded products whose sizes are known, what is in products that the job has
  /// none of: 0 to 1. Nothing where no product's sizes were recorded.
  [[nodiscard]] std::optional<double> other_products_share() const;
  /// How much is of no operator and why, a sentence each.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  [[nodiscard]] double each() const { return 1.0 / static_cast<double>(ranks_); }

  JobProducts products_;
  std::vector<OperatorSeconds> stages_;
  std::array<DiagnosedOperator, kModelOperators + 1> rows_;  ///< kernels of no operator the last
  std::map<std::string, double, std::less<>> unassigned_;    ///< seconds by kernel
  double several_s_ = 0, unlaunched_s_ = 0, steps_s_ = 0;
  double sized_s_ = 0, of_other_job_s_ = 0;  ///< products
  std::size_t ranks_ = 0;
};

}  // namespace lockstep
