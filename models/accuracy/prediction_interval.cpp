#include "models/accuracy/prediction_interval.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// A residual that is evidence for the interval asked for.
struct Witness {
  const Residual* residual;
  double error;  ///< log(predicted / measured)
};
using Witnesses = std::vector<Witness>;

/// Fitted errors speak for software that was fitted, left-out errors for software that is as new as
/// it was to them.
Witnesses witnesses_of(const ResidualTable& table, SoftwareKnown known, std::string_view without) {
  Witnesses out;
  for (const Residual& r : table) {
    if (r.source == without) continue;
    const bool fitted = known == SoftwareKnown::release;
    if (fitted || r.left_out_known == known) {
      out.push_back({&r, fitted ? r.fitted : r.left_out});
    }
  }
  return out;
}

std::map<std::string_view, double> rows_by_source(const Witnesses& group) {
  std::map<std::string_view, double> rows;
  for (const Witness& w : group) ++rows[w.residual->source];
  return rows;
}

/// Bounds of log(predicted / measured).
struct Bounds {
  double low, high;
};

/// The values between which kCoverage of the weight lies, equally much beyond each. Where the run
/// is of software that no row is from, its own error counts as one more, of which nothing is known.
Bounds bounds_of(const Witnesses& group, SoftwareKnown known) {
  const std::map<std::string_view, double> rows = rows_by_source(group);
  std::vector<std::pair<double, double>> errors;  // with their weight
  double total = 0;
  for (const Witness& w : group) {
    errors.emplace_back(w.error, 1 / std::sqrt(rows.at(w.residual->source)));
    total += errors.back().second;
  }
  std::sort(errors.begin(), errors.end());
  const double itself = known == SoftwareKnown::none ? 1 : 0;
  const double beyond = std::max(0.0, (1 - kCoverage) / 2 * (total + itself) - itself / 2);
  double below = 0, above = 0;
  auto low = errors.begin();
  while (below + low->second <= beyond) below += (low++)->second;
  auto high = std::prev(errors.end());
  while (above + high->second <= beyond) above += (high--)->second;
  return {low->first, high->first};
}

template <class Same>
Witnesses narrowed(const Witnesses& group, Same same) {
  Witnesses out;
  std::copy_if(group.begin(), group.end(), std::back_inserter(out),
               [&](const Witness& w) { return same(w.residual->traits); });
  return out;
}

}  // namespace

PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    std::string_view without) {
  return predict_interval(table, traits, software_known(table, traits, without), without);
}

PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    SoftwareKnown known, std::string_view without) {
  PredictionInterval out;
  out.known = known;
  Witnesses group = witnesses_of(table, out.known, without);
  for (SoftwareKnown less : {SoftwareKnown::stack, SoftwareKnown::none}) {
    if (group.empty()) group = witnesses_of(table, less, without);
  }
  assert(!group.empty());
  Bounds bounds = bounds_of(group, known);
  std::size_t sources = rows_by_source(group).size();
  const auto narrow = [&](const std::string& name, auto same) {
    Witnesses inner = narrowed(group, same);
    if (inner.empty()) return;
    group = std::move(inner);
    sources = rows_by_source(group).size();
    const Bounds own = bounds_of(group, known);
    const double share = static_cast<double>(sources) / (static_cast<double>(sources) + kLeaning);
    bounds = {std::lerp(bounds.low, own.low, share), std::lerp(bounds.high, own.high, share)};
    out.group += (out.group.empty() ? "" : ", ") + name;
  };
  narrow(std::string(kind_of(traits)),
         [&](const PredictionTraits& t) { return kind_of(t) == kind_of(traits); });
  narrow(traits.architecture,
         [&](const PredictionTraits& t) { return t.architecture == traits.architecture; });
  out.rows = group.size();
  out.sources = sources;
  // A run takes predicted / exp(error), so a large error is a short run.
  out.low = std::min(1.0, std::exp(-bounds.high));
  out.high = std::max(1.0, std::exp(-bounds.low));
  return out;
}

std::string words_of(const PredictionInterval& interval) {
  const std::string_view software = interval.known == SoftwareKnown::release ? "known release"
                                    : interval.known == SoftwareKnown::stack
                                        ? "another release is known"
                                        : "unknown software";
  return fmt::format("{}{}{}: {} published runs of {} source{}", software,
                     interval.group.empty() ? "" : ", ", interval.group, interval.rows,
                     interval.sources, interval.sources == 1 ? "" : "s");
}

}  // namespace lockstep
