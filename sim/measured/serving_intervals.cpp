#include "sim/measured/serving_intervals.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/policies/policy.hpp>

#include "sim/measured/statistics.hpp"

namespace lockstep {
namespace {

constexpr double kBelowHigh = 0.95;  // nine of ten lie between, one of twenty on either side
constexpr std::size_t kLeastGroups = 4;
constexpr double kClipped = 0.02;

using Groups = std::map<std::tuple<std::string, std::string, std::string>, std::vector<double>>;

Groups groups_of(std::span<const ServedResidual> of) {
  Groups out;
  for (const ServedResidual& r : of) {
    out[{r.source, r.engine, r.family}].push_back(r.log_ratio);
  }
  return out;
}

double variance(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) squares += (v - sum / n) * (v - sum / n);
  return squares / (n - 1);
}

/// Half of the interval of a row of a new group: Student's t of both variances with as many degrees
/// of freedom as Satterthwaite gives their sum (Welch 1947, Biometrika 34, 28-35).
double new_row_half(const std::vector<double>& offsets, const std::vector<double>& spreads) {
  using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const auto groups = static_cast<double>(offsets.size());
  const auto rows = static_cast<double>(spreads.size());
  const double between = variance(offsets) * (1 + 1 / groups), within = variance(spreads);
  const double both = between + within;
  if (both <= 0) return 0;
  const double squares = between * between / std::max(1.0, groups - 1) +
                         within * within / std::max(1.0, rows - groups);
  const boost::math::students_t_distribution<double, InDouble> law(both * both / squares);
  return boost::math::quantile(law, kBelowHigh) * std::sqrt(both);
}

ServedResidual residual_of(const ValidationPoint& p, double ratio) {
  return {.source = identity_of(p, "source"),
          .engine = identity_of(p, "engine"),
          .family = family_of(identity_of(p, "model")),
          .kind = identity_of(p, "kind"),
          .log_ratio = std::log(ratio)};
}

std::string left_out_words(const char* time, const char* what, const LeftOut& l) {
  return fmt::format(
      "{}, each {} left out ({} rows, {} in turn): 90 % intervals hold {:.1f} %, half-width {:.0f} "
      "%; "
      "error {:.1f} % median, {:.0f} % at p90",
      time, what, l.rows, l.groups, 100 * l.coverage, 100 * l.half_width, 100 * l.median_abs,
      100 * l.p90_abs);
}

}  // namespace

std::string family_of(const std::string& model) {
  for (std::size_t i = 1; i < model.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(model[i])) != 0;
    if (model[i - 1] == '_' && digit) return model.substr(0, i - 1);
  }
  return model;
}

std::vector<ServedResidual> pace_residuals(std::span<const ValidationPoint> points) {
  std::set<std::string> timed;
  for (const ValidationPoint& p : points) {
    if (identity_of(p, "metric") == "tpot_ms") timed.insert(identity_of(p, "id"));
  }
  std::vector<ServedResidual> out;
  for (const ValidationPoint& p : points) {
    if (identity_of(p, "mode") != "one pool" || p.measured <= 0 || p.predicted <= 0) continue;
    const std::string metric = identity_of(p, "metric");
    if (metric == "tpot_ms") {
      out.push_back(residual_of(p, p.measured / p.predicted));
    } else if (metric == "output_tokens_per_s" && !timed.contains(identity_of(p, "id"))) {
      out.push_back(residual_of(p, p.predicted / p.measured));
    }
  }
  return out;
}

std::vector<ServedResidual> first_token_residuals(std::span<const ValidationPoint> points) {
  std::vector<ServedResidual> out;
  for (const ValidationPoint& p : points) {
    if (identity_of(p, "mode") != "one pool" || p.measured <= 0 || p.predicted <= 0) continue;
    if (identity_of(p, "metric") == "ttft_ms") {
      out.push_back(residual_of(p, p.measured / p.predicted));
    }
  }
  return out;
}

ResidualBand residual_band(std::span<const ServedResidual> of, const std::string& kind) {
  assert(!of.empty());
  std::vector<ServedResidual> alike;
  std::ranges::copy_if(of, std::back_inserter(alike),
                       [&](const ServedResidual& r) { return r.kind == kind; });
  Groups groups = groups_of(alike);
  if (groups.size() < kLeastGroups) groups = groups_of(of);
  ResidualBand out{.groups = groups.size()};
  std::vector<double> offsets, spreads;
  for (const auto& [group, ratios] : groups) {
    offsets.push_back(median(ratios));
    for (const double ratio : ratios) spreads.push_back(ratio - offsets.back());
  }
  out.rows = spreads.size();
  const double low = quantile(spreads, kClipped), high = quantile(spreads, 1 - kClipped);
  for (double& spread : spreads) spread = std::clamp(spread, low, high);
  const double centre = median(offsets);
  const double half = new_row_half(offsets, spreads);
  out.centre = std::exp(centre);
  out.low = std::exp(centre - half);
  out.high = std::exp(centre + half);
  return out;
}

LeftOut leave_out(const std::vector<ServedResidual>& all, std::string ServedResidual::* key) {
  std::set<std::string> values;
  for (const ServedResidual& r : all) values.insert(r.*key);
  LeftOut out{.groups = values.size()};
  std::vector<double> widths, errors;
  double held = 0;
  for (const std::string& value : values) {
    std::vector<ServedResidual> others;
    std::map<std::string, ResidualBand> bands;
    std::ranges::copy_if(all, std::back_inserter(others),
                         [&](const ServedResidual& r) { return r.*key != value; });
    if (others.empty()) continue;
    for (const ServedResidual& r : all) {
      if (r.*key != value) continue;
      const auto [at, is_new] = bands.try_emplace(r.kind);
      if (is_new) at->second = residual_band(others, r.kind);
      const ResidualBand& band = at->second;
      const double ratio = std::exp(r.log_ratio);
      held += ratio >= band.low && ratio <= band.high ? 1 : 0;
      widths.push_back(band.half_width());
      errors.push_back(std::abs(band.centre / ratio - 1));
    }
  }
  out.rows = errors.size();
  if (errors.empty()) return out;
  out.coverage = held / static_cast<double>(errors.size());
  out.half_width = median(widths);
  out.median_abs = median(errors);
  out.p90_abs = quantile(errors, 0.9);
  return out;
}

std::vector<std::string> interval_notes(std::span<const ValidationPoint> points) {
  constexpr std::array kKeys{std::pair{"source", &ServedResidual::source},
                             std::pair{"engine", &ServedResidual::engine},
                             std::pair{"model family", &ServedResidual::family}};
  std::vector<std::string> out;
  const auto tell = [&](const char* time, const std::vector<ServedResidual>& all) {
    std::set<std::string> kinds;
    for (const ServedResidual& r : all) kinds.insert(r.kind);
    for (const auto& [what, key] : kKeys) {
      const LeftOut left = leave_out(all, key);
      if (left.groups > 1) out.push_back(left_out_words(time, what, left));
    }
    for (const std::string& kind : kinds) {
      const ResidualBand band = residual_band(all, kind);
      out.push_back(fmt::format(
          "{}, models of kind {}: {:.3f} to {:.3f} of a prediction ({} rows "
          "of {} groups), half-width {:.0f} %",
          time, kind, band.low, band.high, band.rows, band.groups, 100 * band.half_width()));
    }
  };
  tell("per token", pace_residuals(points));
  tell("first token", first_token_residuals(points));
  return out;
}

}  // namespace lockstep
