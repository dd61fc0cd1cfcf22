/// How far a predicted step time may be off, from what the same model missed published runs by.
///
/// Split conformal prediction within groups of runs alike (Mondrian): the residuals of a group,
/// with their signs, bound the next one. Two things are not as in the textbook. Rows of one source
/// err alike, so a source of n rows weighs as sqrt(n), between one witness and n (sources as
/// clusters: Dunn, Wasserman and Ramdas 2023, J. Am. Stat. Assoc. 118, arXiv:1809.07441). And
/// groups are nested, and a small one leans on the one around it: of m sources, it counts m / (m +
/// kLeaning).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "models/accuracy/residuals.hpp"

namespace lockstep {

/// What the fit knew of a run's software. Decides which residuals are evidence.
enum class SoftwareKnown : unsigned char {
  release,  ///< rows of this stack and release were fitted: errors of fitted rows
  stack,    ///< of other releases only: errors of rows whose source was left out
  none,     ///< of neither: the same, where no other source has the stack
};

/// Share of published runs that an interval is to cover.
inline constexpr double kCoverage = 0.9;
/// Sources of the group around it that a group leans on as on its own; assumed: sources that are
/// few say little about the tails.
inline constexpr double kLeaning = 2;

struct PredictionInterval {
  double low = 1, high = 1;  ///< factors on the predicted step time
  SoftwareKnown known = SoftwareKnown::none;
  std::string group;        ///< the smallest with rows: "dense, hopper"
  std::size_t rows = 0;     ///< of that group
  std::size_t sources = 0;  ///< that these rows are from
  /// Half of the width over the prediction.
  [[nodiscard]] double half_width() const { return (high - low) / 2; }
};

/// What the rows of the table, but for those of source `without`, say about the software.
SoftwareKnown software_known(const ResidualTable& table, const PredictionTraits& traits,
                             std::string_view without = {});

/// The interval of a prediction of that kind; `without`: a source that is not looked at. Requires a
/// table with a row that is left.
PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    std::string_view without = {});

/// In words, for people: "known release, dense, hopper: 312 rows of 5 sources".
std::string words_of(const PredictionInterval& interval);

}  // namespace lockstep
