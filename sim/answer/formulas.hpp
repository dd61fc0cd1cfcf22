/// How the numbers of an answer come about: a formula, and what goes into it.
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
  /// "mfu", below the first level a dotted path in which * is any element or name:
  /// "waterfall.*.share". Of a member with members and words: all that have no formula of their
  /// own.
  std::string_view field;
  /// Letters of the kinds of answers that it is for: "s" step, "r" run, "j" jobs, "l" rl,
  /// "q" queue, "v" serving; of other answers as their tables say.
  std::string_view kinds;
  bool arithmetic;        ///< `text` is an expression over the inputs; else words
  std::string_view text;  ///< "tokens_per_step / step_s"
  /// "peak=hardware.peak_flops_per_gpu gpus": a name stands for the member of that path, which is
  /// its own where there is no '='. A path that begins with a dot is beside the number's own, with
  /// two beside the member around it. Of several with a '|' in between it is the first that the
  /// answer has: "passes=pools.1.passes|pools.0.passes".
  std::string_view inputs;
  WithStepTime moves = WithStepTime::unmoved;
  std::string_view about = {};  ///< what the number is; of answers whose members have no rows
};

/// All of the first level.
std::span<const Formula> formulas();
/// All below it.
std::span<const Formula> path_formulas();
/// That of a field in answers of a kind; null where there is none.
const Formula* formula_of(AnswerKind kind, std::string_view field);

/// That of the number at a dotted path: its own, else that of the nearest member around it that has
/// one in words; null where there is none.
const Formula* formula_at(AnswerKind kind, std::string_view path);
/// formula_at() over the rows `among`; `kind`: the letter of the answer's kind.
const Formula* formula_at(std::span<const Formula> among, char kind, std::string_view path);

/// `path`: of the number, for inputs that are beside it. `has`: whether the answer has a number at
/// a path; without it the last of several paths is taken.
std::vector<FormulaInput> inputs_of(const Formula& formula, std::string_view path = {},
                                    const std::function<bool(std::string_view)>& has = {});

/// The value of an expression of + - * / and parentheses over names, whose values `value_of` gives;
/// nothing where one has none. Requires an expression of that form.
std::optional<double> evaluate(
    std::string_view expression,
    const std::function<std::optional<double>(std::string_view)>& value_of);

/// Names of the numbers on the first level of answers of a kind, old names left out.
std::vector<std::string> explained_fields(AnswerKind kind);

}  // namespace lockstep
