/// What stands behind one number of an answer: `lockstep explain`.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/accuracy/residuals.hpp"
#include "models/base/json_cursor.hpp"
#include "sim/answer/answer.hpp"
#include "sim/answer/formulas.hpp"
#include "sim/measured/nearest_measured.hpp"
#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// A value that goes into a formula, and where it is from.
struct ExplainedInput {
  std::string name;               ///< in the formula
  std::string path;               ///< of the answer's member
  std::string unit;               ///< empty: none
  std::optional<double> value{};  ///< nothing: the answer has none
  std::string written{};          ///< as the scenario has it, where that is no number
  std::string from;  ///< "scenario: batch.sequences", "gpus/h100_sxm5_80gb.json: peak_bf16, ..."
};

/// An answer whose numbers are explained: of `lockstep run`, or of another command.
class ExplainedAnswer {
 public:
  // Wherever an answer is explained one of `run` is taken as it is. NOLINTNEXTLINE(*-explicit-*)
  ExplainedAnswer(const ScenarioAnswer& answer);
  /// `formulas`: those with this letter are of its numbers, and say what these are. "scenario" in
  /// the JSON is what was written; "job" may name "node" and "gpu".
  ExplainedAnswer(std::span<const Formula> formulas, char letter, nlohmann::ordered_json json);

  [[nodiscard]] const nlohmann::ordered_json& json() const { return *json_; }
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  /// Null: the number is not explained.
  [[nodiscard]] const Formula* formula(std::string_view path) const;
  /// What the number is; below the first level what the member around it is, where nothing says
  /// more.
  [[nodiscard]] std::string about(std::string_view path) const;
  [[nodiscard]] std::optional<AnswerKind> kind() const { return kind_; }
  /// The numbers that are explained of the first level, or of the member at `around`.
  [[nodiscard]] std::vector<std::string> names(std::string_view around = {}) const;

 private:
  std::optional<AnswerKind> kind_{};
  std::vector<FieldInfo> fields_{};
  std::span<const Formula> formulas_{};
  char letter_ = 0;
  std::shared_ptr<const nlohmann::ordered_json> json_;
};

struct FieldExplanation {
  std::string file, field, sentence, unit;
  std::string point{};  ///< of a sweep: which, and what it sets; empty: of no sweep
  double value = 0;
  std::string formula;
  bool arithmetic = false;  ///< the formula of the inputs' values is the value
  std::vector<ExplainedInput> inputs;
  std::optional<double> low{}, high{};  ///< 90 % interval; nothing where it has none
  std::string why;                      ///< what the interval is made from
  std::vector<std::string> assumptions;
  std::vector<NearbyRun> nearest;  ///< nearest first; none where runs say nothing of the number
  std::string nearest_kind = "published runs";  ///< or services, peaks of memory, collectives
  std::string nearest_note{};  ///< where there are none: what was measured of its kind
};

/// Explains a number of the answer by its dotted path: "mfu", "stages.0.memory.weights_gib". Throws
/// InputError, with the nearest name, where it has none of that name.
FieldExplanation explain_field(const std::string& file, const ExplainedAnswer& answer,
                               const std::string& field, const PresetStore& presets);

/// The `keep` published runs nearest to the job of an answer to a step or a run: by kind of GPU,
/// model, number of GPUs and software. `rows` are those of tests/reference/training.json.
std::vector<NearbyRun> nearest_runs(const nlohmann::ordered_json& answer,
                                    const std::vector<ReferenceRow>& rows,
                                    const ResidualTable& residuals, const PresetStore& presets,
                                    std::size_t keep);

/// The `keep` published services nearest to that of an answer which printed `figure` ("ttft_s",
/// "tpot_s", "itl_s", "e2e_s", "output_tokens_per_s"), each predicted now: by kind of GPU, model,
/// lengths, engine, pools and number of GPUs. `statistic`: "mean", "p50" or "p99", which a row that
/// has several is asked for. `rows_file` is like tests/reference/serving.json.
std::vector<NearbyRun> nearest_services(const nlohmann::ordered_json& answer,
                                        const std::string& figure, const std::string& statistic,
                                        const std::string& rows_file, const PresetStore& presets,
                                        std::size_t keep);

/// A value with its unit, as people read it: "450 GB/s", "16384", "989 TFLOP/s".
std::string explained_amount(double value, const std::string& unit);

nlohmann::ordered_json field_explanation_json(const FieldExplanation& explanation);

/// Whether the answer says that the job does not fit in memory, as a step's does. Weeks,
/// iterations, several jobs and queues of one that does not have no answer, unless asked for.
bool tells_memory(const JsonCursor& scenario);

}  // namespace lockstep
