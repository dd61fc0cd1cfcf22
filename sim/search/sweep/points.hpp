/// The points of a sweep, made one by one from their numbers, so that any process can make any of
/// them and none has to be kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/search/sweep/expressions.hpp"
#include "sim/search/sweep/sweep.hpp"

namespace lockstep {

/// A combination of the axes' values.
struct SweepPoint {
  std::uint32_t number = 0;      ///< among the sweep's candidates; the last axis changes fastest
  std::vector<SqlValue> values;  ///< one for each of Sweep::columns()
  nlohmann::ordered_json scenario;
};

/// Makes points. Not for several threads at once. The sweep has to outlive it.
class PointMaker {
 public:
  explicit PointMaker(const Sweep& sweep);

  /// Requires a number below Sweep::candidates().
  [[nodiscard]] SweepPoint make(std::uint32_t number);
  /// Whether the candidate keeps all constraints.
  [[nodiscard]] bool counts(std::uint32_t number);

 private:
  struct Draft;
  Draft draft_of(std::uint32_t number);
  void derive(Draft& draft);

  const Sweep& sweep_;
  Evaluator evaluator_;
  std::vector<std::optional<std::size_t>> derived_;  ///< formulas
  std::vector<std::size_t> constraints_;
};

/// Numbers of the candidates that keep all constraints, in order, found by `jobs` threads.
std::vector<std::uint32_t> points_of(const Sweep& sweep, int jobs);

}  // namespace lockstep
