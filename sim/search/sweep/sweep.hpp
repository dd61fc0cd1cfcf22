/// What a sweep file says: a scenario, what of it varies, and which combinations count.
/// scenarios/sweeps/README.md describes the format, scenarios/sweep.schema.json is for editors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/quantity.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/search/sweep/expressions.hpp"

namespace lockstep {

/// What a sweep draws random numbers for: the purpose of their streams.
enum class SweepDraws : std::uint32_t { cells = 1, samples = 2, repeats = 3 };

/// A value of the scenario that varies.
struct SweepVariable {
  enum class Law : std::uint8_t { choice, uniform, log_uniform };

  std::string at;    ///< JSON pointer; empty: formulas use it, the scenario has no place for it
  std::string name;  ///< of its column
  Law law = Law::choice;
  std::vector<nlohmann::ordered_json> choices;
  double low = 0, high = 0;
  bool whole = false;  ///< whole numbers, both ends included
  std::string unit;    ///< "min": the value is a string, "12.5 min"

  /// The value at a share of the whole range, 0 <= u < 1.
  [[nodiscard]] nlohmann::ordered_json at_share(double u) const;
};

/// Variables that change together. The points of a sweep are all combinations of its axes.
struct SweepAxis {
  enum class Kind : std::uint8_t { list, random, latin_hypercube };

  Kind kind = Kind::list;
  std::vector<SweepVariable> variables;
  /// Of a list: a value for each variable, or none where the scenario's own stays.
  std::vector<std::vector<std::optional<nlohmann::ordered_json>>> rows;
  std::uint32_t samples = 0;  ///< of the other kinds
  /// Of a Latin hypercube: which of `samples` equal cells each sample draws from, by variable.
  std::vector<std::vector<std::uint32_t>> cells;

  [[nodiscard]] std::uint64_t size() const { return kind == Kind::list ? rows.size() : samples; }
};

/// A column that follows from others, and may set a value of the scenario.
struct DerivedValue {
  std::string name;
  std::optional<Expression> is;  ///< a formula over the columns before it
  std::string from;              ///< else JSON pointer of a value of the scenario
  std::string at;                ///< JSON pointer of what it sets; empty: nothing
  /// Neither: the number, in base units, of a quantity that an axis gives as text ("100 Gb/s").
  struct QuantityOf {
    std::size_t column;
    Dimension dimension;
  };
  std::optional<QuantityOf> quantity_of;
};

struct Sweep {
  std::string file;
  std::string about;
  std::string scenario_file;
  nlohmann::ordered_json scenario;  ///< without what was measured of it
  bool is_run = false;              ///< of weeks, with "run"; else of one step
  std::uint64_t seed = 1;
  std::vector<SweepAxis> axes;
  std::vector<DerivedValue> derived;
  std::vector<Expression> constraints;
  int repeats = 0;  ///< with a seed each; 0: one, with the scenario's own
  bool allow_oom = false;
  bool keeps_answers = true;             ///< all of them beside their columns: "answers"
  Folding folding = Folding::automatic;  ///< --fold, --unfold
  std::string objective;                 ///< a metric; empty: the kind's own

  std::string digest;           ///< SHA-256 of what decides which points there are
  std::string scenario_digest;  ///< of the scenario's file

  /// Names of the columns that a point's values are in: axes, derived values, then "repeat" and
  /// "seed" where there are repeats.
  [[nodiscard]] std::vector<std::string> columns() const;
  /// Combinations before constraints.
  [[nodiscard]] std::uint64_t candidates() const;
};

/// The most candidates whose answers are kept where the file does not say: 12 kB each.
constexpr std::uint64_t kMostKept = 5'000;

/// The most candidates that a sweep may have.
constexpr std::uint64_t kMostCandidates = 10'000'000;

/// Reads and checks a sweep file and its scenario's syntax; the points' scenarios are checked when
/// they are simulated. `stack`, a preset or the file of one, takes the place of the scenario's;
/// empty: that stays. Throws InputError.
Sweep load_sweep(const std::string& path, const std::string& stack = {});

}  // namespace lockstep
