/// What stands behind one number of an answer: `lockstep explain`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/accuracy/residuals.hpp"
#include "sim/answer/answer.hpp"
#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// A value that goes into a formula, and where it is from.
struct ExplainedInput {
  std::string name;               ///< in the formula
  std::string path;               ///< of the answer's member
  std::string unit;               ///< empty: none
  std::optional<double> value{};  ///< nothing: the answer has none
  std::string from;  ///< "scenario: batch.sequences", "gpus/h100_sxm5_80gb.json: peak_bf16, ..."
};

/// A published run near the scenario's job. Step times, s.
struct NearbyRun {
  std::string row, source, gpu, stack;
  int gpus = 0;
  double measured_s = 0;
  double predicted_s = 0;  ///< with constants fitted to this row among others
  double distance = 0;     ///< 0: the same model, GPU, number of them and software
};

struct FieldExplanation {
  std::string file, field, sentence, unit;
  double value = 0;
  std::string formula;
  bool arithmetic = false;  ///< the formula of the inputs' values is the value
  std::vector<ExplainedInput> inputs;
  std::optional<double> low{}, high{};  ///< 90 % interval; nothing where it has none
  std::string why;                      ///< what the interval is made from
  std::vector<std::string> assumptions;
  std::vector<NearbyRun> nearest;  ///< nearest first; none where runs say nothing of the number
};

/// Explains a number of the answer's first level. Throws InputError, with the nearest name, where
/// it has none of that name.
FieldExplanation explain_field(const std::string& file, const ScenarioAnswer& answer,
                               const std::string& field, const PresetStore& presets);

/// The `keep` published runs nearest to the job of an answer to a step or a run: by kind of GPU,
/// model, number of GPUs and software. `rows` are those of tests/reference/training.json.
std::vector<NearbyRun> nearest_runs(const nlohmann::ordered_json& answer,
                                    const std::vector<ReferenceRow>& rows,
                                    const ResidualTable& residuals, const PresetStore& presets,
                                    std::size_t keep);

/// A value with its unit, as people read it: "450 GB/s", "16384", "989 TFLOP/s".
std::string explained_amount(double value, const std::string& unit);

nlohmann::ordered_json field_explanation_json(const FieldExplanation& explanation);

}  // namespace lockstep
