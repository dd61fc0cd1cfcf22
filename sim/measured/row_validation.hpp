/// Predicts every row of a file of published measurements, and summarises the errors.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/accuracy/prediction_interval.hpp"
#include "models/kernels/kernel_profile.hpp"
#include "sim/measured/rows.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// A row with its prediction.
struct RowPrediction {
  enum class Status : unsigned char {
    predicted,  ///< ran, and has a predicted step time
    skipped,    ///< cannot be simulated: `reason` says why
    oom,        ///< ran out of memory when measured: only predicted_fits can be right or wrong
  };
  const ReferenceRow* row = nullptr;
  Status status = Status::skipped;
  std::string reason;
  /// Its software as the preset that predicts it is called; as the source does where none is about
  /// it.
  std::string stack{};
  std::optional<double> predicted_step_s;
  std::optional<PredictionInterval> interval{};  ///< of the step time, as for anybody's run
  std::optional<double> error;                   ///< of the step time, predicted / measured - 1
  std::optional<double> predicted_memory_gib;
  std::optional<bool> predicted_fits;
  std::optional<double> needed_memory_gib{};
  /// The assumption that decides whether it fits; empty where none of them comes near.
  std::string memory_decides{};
  std::vector<std::string> assumptions;
  std::optional<double> predicted_gpu_power_w{};  ///< mean, of rows that have it measured
};
std::string_view name_of(RowPrediction::Status status);

/// Predicts all rows on `threads` threads (0: as many as there are cores); the result is in the
/// order of the rows, the same for any number of threads. The rows must outlive the result.
/// `profiles`: of one card, whose measured kernels correct the laws; rows of other cards are
/// skipped then.
std::vector<RowPrediction> predict_rows(const std::vector<ReferenceRow>& rows,
                                        const PresetStore& presets, int threads,
                                        const std::function<void()>& row_done,
                                        std::span<const Profile> profiles = {},
                                        Folding folding = Folding::automatic);

/// Errors of a group of rows.
struct GroupErrors {
  std::string group;
  ErrorSummary errors;
  std::string worst_id;
};
/// Rank correlation of predicted with measured throughput over the layouts of one job.
struct Ranking {
  std::string source, model;
  int gpus = 0, sequences = 0, tokens = 0;
  std::size_t n = 0;
  double spearman = 0;
};
/// How well predicted_fits tells which jobs run out of memory.
struct OutOfMemory {
  std::size_t hits = 0, false_alarms = 0, misses = 0, correct_fits = 0;
  [[nodiscard]] double precision() const;  ///< 1 when nothing was predicted to run out
  [[nodiscard]] double recall() const;     ///< 1 when nothing ran out
};

/// Rows of a source that ran, and how many of them are said not to fit.
struct SaidNotToFit {
  std::string source;
  std::size_t rows = 0, not_fitting = 0;
  std::size_t close = 0;  ///< of those not fitting: where an assumption decides
};

struct RowSummary {
  std::size_t rows = 0, predicted = 0, skipped = 0, oom = 0;
  std::vector<std::pair<std::string, std::size_t>> skipped_for;  ///< most frequent first
  GroupErrors overall, dense;
  GroupErrors complete;  ///< rows that do not contradict themselves
  /// Of those: dense, sharded weights, context parallel, mixture of experts; a row may be in
  /// several but the first. Only kinds that have rows.
  std::vector<GroupErrors> by_kind;
  /// By source, GPU and software; each all rows, then its dense rows alone.
  std::vector<GroupErrors> by_source, by_source_dense, by_gpu, by_gpu_dense, by_stack,
      by_stack_dense;
  double median_over_sources_dense = 0;  ///< median of the sources' medians
  std::vector<Ranking> rankings;         ///< groups of at least kRankingGroup rows
  double median_spearman = 0;
  /// Spearman of tokens per second and GPU over all rows of a source (at least kRankingGroup).
  std::vector<std::pair<std::string, double>> spearman_by_source;
  GroupErrors memory;                         ///< of the peak, where it was measured
  GroupErrors power;                          ///< of a GPU's mean, where it was measured
  std::vector<SaidNotToFit> said_not_to_fit;  ///< by source
  OutOfMemory out_of_memory;                  ///< all zero unless rows ran out of memory
};
constexpr std::size_t kRankingGroup = 10;

/// A line for each row whose prediction is not what the row's own scenario expects: further from
/// its "step_time" than it allows, or said to fit where "fits" is false.
std::vector<std::string> missed_expectations(const std::vector<RowPrediction>& predictions);

RowSummary summarise_rows(const std::vector<RowPrediction>& predictions);

}  // namespace lockstep
