/// "My run is 12 % slower than predicted: why?" A recorded step beside the simulated one, part by
/// part, operator by operator, rank by rank, call by call.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/fields.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/measured/diagnosed_operators.hpp"
#include "sim/measured/recorded_step.hpp"
#include "sim/measured/telemetry.hpp"

namespace lockstep {

/// A part of a step, as a mean over the ranks that were recorded.
struct DiagnosedPart {
  std::string_view name;   ///< as JSON says it
  std::string_view title;  ///< as a person reads it
  double predicted_s = 0, recorded_s = 0;
  [[nodiscard]] double difference_s() const { return recorded_s - predicted_s; }
};

/// Calls of one kind, size and process group, of all recorded ranks.
struct DiagnosedCall {
  std::string call;  ///< "all-reduce"
  double bytes = 0;  ///< nccl-tests' size
  std::vector<int> ranks;
  std::size_t calls = 0;   ///< of one rank
  double shortest_s = 0;   ///< the last rank to arrive waits for nobody
  double predicted_s = 0;  ///< alone on this cluster
  double total_s = 0;      ///< of one rank on average, waits in it
  [[nodiscard]] double ratio() const { return predicted_s > 0 ? shortest_s / predicted_s : 0; }
};

/// A process group whose calls take longer than they ought to, even for the last rank to arrive.
struct SlowGroup {
  std::vector<int> ranks;     ///< ascending
  bool spans_nodes = false;   ///< else NVLink, or what else a node has inside
  std::size_t calls = 0;      ///< of one rank, in a step
  std::size_t peers = 0;      ///< other groups that call the same
  double shortest_s = 0;      ///< of all its calls in a step, nobody waited for
  double usual_s = 0;         ///< what they take others; alone, what the cluster allows
  std::vector<int> suspects;  ///< ranks at whose links it may lie: no fast group has them
  [[nodiscard]] double ratio() const { return usual_s > 0 ? shortest_s / usual_s : 0; }
  /// Of a step, as far as nothing hides it.
  [[nodiscard]] double cost_s() const { return shortest_s - usual_s; }
};

struct Diagnosis {
  double predicted_s = 0, predicted_low_s = 0, predicted_high_s = 0;
  double recorded_s = 0;  ///< of the rank whose step is the longest
  std::vector<DiagnosedPart> parts;
  std::vector<DiagnosedOperator> operators;  ///< add up to the step, as the parts do
  /// Of the time in recorded products of known sizes, what is in products that the job has none of;
  /// nothing where no sizes were recorded.
  std::optional<double> other_products_share;
  std::vector<RecordedRank> ranks;  ///< by number
  std::size_t slowest = 0;          ///< in `ranks`: works longest, what it waits for others apart
  double behind_s = 0;              ///< that is so much longer than the median rank's; 0 of one
  std::size_t slowest_part = 0;     ///< in `parts`: where most of that is
  std::vector<double> predicted_own_s;  ///< by rank of `ranks`: of its pipeline stage
  std::vector<DiagnosedCall> calls;     ///< by total time, longest first
  std::vector<SlowGroup> slow_groups;   ///< the dearest first
  std::vector<std::string> notes;
  std::optional<Telemetry> telemetry;  ///< where the monitors' logs are given

  [[nodiscard]] double ratio() const { return recorded_s / predicted_s; }
  /// Most of what its products compute is none of the job's: another model, or another layout.
  [[nodiscard]] bool of_other_job() const { return other_products_share.value_or(0) > 0.5; }
  [[nodiscard]] bool within_interval() const {
    return recorded_s >= predicted_low_s && recorded_s <= predicted_high_s;
  }
};

/// Of a pipeline stage of the simulated step: seconds of what a part is about.
double predicted_part_s(const RunResult& predicted, std::size_t stage, RecordedPart part);

/// Throws InputError where a recording is of another number of ranks than `job` has GPUs, or of a
/// rank beyond them.
void check_recorded_ranks(int gpus, const std::string& job,
                          std::span<const KinetoRecording> recordings, std::span<const int> ranks);

/// Holds recordings of one step (cut_to_step()) against the simulated step of their job, ranks in
/// Megatron's order (tensor, context, data, pipeline). `ranks` by recording. Throws InputError
/// where the recording is of another number of ranks than the job has GPUs.
Diagnosis diagnose(const RunResult& predicted, std::span<const KinetoRecording> recordings,
                   std::span<const int> ranks);
/// A diagnosis from monitors' logs alone: it has only the prediction and `telemetry`.
Diagnosis diagnose_telemetry(const RunResult& predicted, std::span<const TelemetryLog> logs);

/// Without recordings what these tell is left out.
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);
std::vector<FieldInfo> diagnosis_fields();

}  // namespace lockstep
