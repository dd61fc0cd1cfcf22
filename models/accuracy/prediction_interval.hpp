/// How far a predicted step time may be off, from what the same model missed published runs by.
///
/// Split conformal prediction within groups of runs alike (Mondrian): the residuals of a group,
/// with their signs, bound the next one. What is not as in the textbook:
/// - Rows of one source err alike, so a source of n rows weighs as sqrt(n), between one witness and
///   n (sources as clusters: Dunn, Wasserman and Ramdas 2023, J. Am. Stat. Assoc. 118,
///   arXiv:1809.07441). That the run itself is one more counts where its software is unknown, for
///   runs of known software are more of the same.
/// - Groups are nested, and a small one leans on the one around it: of m sources, it counts
///   m / (m + kLeaning).
/// - Less knowledge never makes an interval narrower: that of a known stack holds that of a known
///   release, that of composed software holds both, and that of unknown software all three.
/// - Each part of the machine or the job that no published run had (the GPU, its architecture, the
///   transport, the kind of fabric, adapters, many more GPUs) adds, as an error of its own, what
///   whole sources are off by when the fit has not seen them. A maker of GPUs that no published run
///   had adds a spread of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "models/accuracy/residuals.hpp"

namespace lockstep {

/// Share of published runs that an interval is to cover.
inline constexpr double kCoverage = 0.9;
/// Sources that a group needs for half of the say; assumed: the 5 % tails of less are guesses. With
/// 8 intervals keep their word over sources left out, with 2 they miss every sixth run.
inline constexpr double kLeaning = 8;

struct PredictionInterval {
  double low = 1, high = 1;  ///< factors on the predicted step time, which is the median
  SoftwareKnown known = SoftwareKnown::none;
  std::vector<std::string> gaps{};  ///< what no published run says about it, in words
  std::string group;                ///< the smallest with rows: "dense, hopper"
  std::size_t rows = 0;             ///< of that group
  std::size_t sources = 0;          ///< that these rows are from
  /// Half of the width over the prediction.
  [[nodiscard]] double half_width() const { return (high - low) / 2; }
};

/// The interval of a prediction of that kind; `without`: a source, or all sources of a vendor, that
/// are not looked at. Requires a table whose rows classify() has seen, with one that is left.
PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    std::string_view without = {});

/// The interval of a prediction whose run is known as `known` says.
PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    const Knowledge& known, std::string_view without = {});

/// In words, for people: "known stack, no release given; dense, hopper: 312 published runs of 5
/// sources".
std::string words_of(const PredictionInterval& interval);

}  // namespace lockstep
