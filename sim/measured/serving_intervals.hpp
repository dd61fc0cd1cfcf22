/// Intervals of serving that hold for sources, engines and models that nobody has seen: read off
/// how far predictions were off from one group of measured rows to the next.
///
/// A group is what one source measured of one engine and one family of models. The logarithm of
/// measured over predicted is a group's own offset and a spread about it; the interval of a new
/// group has the variance of both, and is as wide as so few groups know it (Student's t). Centres
/// and offsets are medians, spreads are clipped at their 2nd and 98th percentile. Models of one
/// kind (dense, experts, latent) have an interval of their own where four groups of it are known.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/measured/point_table.hpp"

namespace lockstep {

struct ServedResidual {
  std::string source, engine, family, kind;
  double log_ratio = 0;  ///< of measured over predicted
};

/// "llama3" of "llama3_70b": a model's name up to its size.
std::string family_of(const std::string& model);

/// Times per token of rows of one pool; where a row prints tokens a second alone, their inverse.
std::vector<ServedResidual> pace_residuals(std::span<const ValidationPoint> points);
/// Times to the first token of such rows.
std::vector<ServedResidual> first_token_residuals(std::span<const ValidationPoint> points);

/// Between which factors of a prediction nine of ten measurements of a new group lie.
struct ResidualBand {
  double low = 1, high = 1;
  double centre = 1;
  std::size_t rows = 0, groups = 0;
  [[nodiscard]] double half_width() const { return 0.5 * (high - low); }
};
/// Requires at least one residual.
ResidualBand residual_band(std::span<const ServedResidual> of, const std::string& kind);

/// What intervals do with each source (or engine, or family) that they are not read off.
struct LeftOut {
  std::size_t rows = 0, groups = 0;    ///< groups: sources, engines or families
  double coverage = 0;                 ///< share of the rows that their interval holds
  double half_width = 0;               ///< median over the rows
  double median_abs = 0, p90_abs = 0;  ///< error, the others' centre taken off
};
LeftOut leave_out(const std::vector<ServedResidual>& all, std::string ServedResidual::* key);

/// All of this in sentences.
std::vector<std::string> interval_notes(std::span<const ValidationPoint> points);

}  // namespace lockstep
