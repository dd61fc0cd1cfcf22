/// How the numbers of an answer's first level come about: a formula, and what goes into it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/answer.hpp"

namespace lockstep {

/// How a number moves with the step time, and so what the interval of that makes of it.
enum class WithStepTime : std::uint8_t { unmoved, proportional, inverse };

/// A name in the formula, and the member of the answer that it stands for.
struct FormulaInput {
  std::string name;  ///< "peak"
  std::string path;  ///< "hardware.peak_flops_per_gpu"
};

struct Formula {
  std::string_view field;
  /// Letters of the kinds of answers that it is for: "s" step, "r" run, "j" jobs, "l" rl,
  /// "q" queue, "v" serving.
  std::string_view kinds;
  bool arithmetic;        ///< `text` is an expression over the inputs; else words
  std::string_view text;  ///< "tokens_per_step / step_s"
  /// "peak=hardware.peak_flops_per_gpu gpus": a name stands for the member of that path, which is
  /// its own where there is no '='.
  std::string_view inputs;
  WithStepTime moves = WithStepTime::unmoved;
};

/// All of them.
std::span<const Formula> formulas();
/// That of a field in answers of a kind; null where there is none.
const Formula* formula_of(AnswerKind kind, std::string_view field);

std::vector<FormulaInput> inputs_of(const Formula& formula);

/// The value of an expression of + - * / and parentheses over names, whose values `value_of` gives;
/// nothing where one has none. Requires an expression of that form.
std::optional<double> evaluate(
    std::string_view expression,
    const std::function<std::optional<double>(std::string_view)>& value_of);

/// Names of the numbers on the first level of answers of a kind, old names left out.
std::vector<std::string> explained_fields(AnswerKind kind);

}  // namespace lockstep
