/// Formulas over the columns of a sweep, in SQL: `tensor * pipeline <= 64 AND model <>
/// 'gpt3_175b'`. SQLite evaluates them, so what a constraint means in a sweep file it means in a
/// query of the results too. Whole numbers divide to whole numbers (7 / 2 is 3), and nothing is
/// true of no value.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/search/sweep/sql_value.hpp"

namespace lockstep {

/// A formula with its place in its file, for messages.
struct Expression {
  std::string text;
  std::string pointer;
};

/// Formulas that were compiled. Not for several threads at once.
class Evaluator {
 public:
  Evaluator();
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Compiles a formula over the first `names` and returns its number. Throws InputError for what
  /// is no formula, an unknown name, and functions whose answer could differ from run to run.
  std::size_t add(const std::string& file, const Expression& expression,
                  std::span<const std::string> names);
  /// The value of formula `number`. Requires one value for each of its names, at least. Throws
  /// InputError, with the formula's place, where it has none (whole numbers overflow).
  SqlValue evaluate(std::size_t number, std::span<const SqlValue> values);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether a constraint holds: a number other than 0.
bool is_true(const SqlValue& value);

}  // namespace lockstep
