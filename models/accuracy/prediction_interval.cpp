#include "models/accuracy/prediction_interval.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/policies/policy.hpp>
#include <boost/math/tools/toms748_solve.hpp>

namespace lockstep {
namespace {

/// A residual that is evidence for the interval asked for.
struct Witness {
  const Residual* residual;
  double error;  ///< log(predicted / measured)
};
using Witnesses = std::vector<Witness>;

/// The error that a row has to tell about software known so well; nothing: it has none.
std::optional<double> evidence_of(const Residual& r, SoftwareKnown known, bool default_stack) {
  if (known == SoftwareKnown::release) return r.fitted;
  if (known == SoftwareKnown::stack) {
    if (r.left_out_known != SoftwareKnown::none) return r.left_out;
    return std::nullopt;
  }
  if (known == SoftwareKnown::learnt || known == SoftwareKnown::composed) return r.composed;
  if (default_stack) return r.as_default;
  // Without the vendor even its other sources are strangers.
  if (r.vendor_left_out_known == SoftwareKnown::none) return r.vendor_left_out;
  if (r.left_out_known == SoftwareKnown::none) return r.left_out;
  return std::nullopt;
}

Witnesses witnesses_of(const ResidualTable& table, SoftwareKnown known, bool default_stack,
                       std::string_view without) {
  Witnesses out;
  for (const Residual& r : table) {
    if (r.is_of(without)) continue;
    if (const auto error = evidence_of(r, known, default_stack)) out.push_back({&r, *error});
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
  std::ranges::sort(errors);
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

double share_of(std::size_t sources) {
  const auto m = static_cast<double>(sources);
  return m / (m + kLeaning);
}

/// Of a GPU of an architecture that no row ran on: as wide as of any that one did.
Bounds over_architectures(const Witnesses& group, SoftwareKnown known, Bounds around) {
  std::map<std::string_view, Witnesses> by;
  for (const Witness& w : group) by[w.residual->traits.architecture].push_back(w);
  Bounds out = around;
  for (const auto& [architecture, members] : by) {
    const Bounds own = bounds_of(members, known);
    const double share = share_of(rows_by_source(members).size());
    out.low = std::min(out.low, std::lerp(around.low, own.low, share));
    out.high = std::max(out.high, std::lerp(around.high, own.high, share));
  }
  return out;
}

/// What rows of one level of knowledge say, and which of them.
struct LevelBounds {
  Bounds bounds;
  std::string group;
  std::size_t rows, sources;
};
LevelBounds level_bounds(Witnesses group, SoftwareKnown known, const PredictionTraits& traits) {
  LevelBounds out{.bounds = bounds_of(group, known), .group = {}, .rows = 0, .sources = 0};
  out.sources = rows_by_source(group).size();
  const auto narrow = [&](const std::string& name, auto same) {
    Witnesses inner = narrowed(group, same);
    if (inner.empty()) return;
    group = std::move(inner);
    out.sources = rows_by_source(group).size();
    const Bounds own = bounds_of(group, known);
    const double share = share_of(out.sources);
    out.bounds = {std::lerp(out.bounds.low, own.low, share),
                  std::lerp(out.bounds.high, own.high, share)};
    out.group += (out.group.empty() ? "" : ", ") + name;
  };
  narrow(std::string(kind_of(traits)),
         [&](const PredictionTraits& t) { return kind_of(t) == kind_of(traits); });
  if (std::ranges::any_of(group, [&](const Witness& w) {
        return w.residual->traits.architecture == traits.architecture;
      })) {
    narrow(traits.architecture,
           [&](const PredictionTraits& t) { return t.architecture == traits.architecture; });
  } else {
    out.bounds = over_architectures(group, known, out.bounds);
  }
  out.rows = group.size();
  return out;
}

/// Root mean square over sources of the median by which each is off, left out of the fit: what a
/// machine, a network or a team that nobody has seen adds to the error of single runs.
double spread_between_sources(const ResidualTable& table, std::string_view without) {
  std::map<std::string_view, std::vector<double>> errors;
  for (const Residual& r : table) {
    if (!r.is_of(without)) errors[r.source].push_back(r.left_out);
  }
  double squares = 0;
  for (auto& [source, values] : errors) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    squares += *middle * *middle;
  }
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

double middle_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The level of a team's software, and how it varies from team to team.
struct Levels {
  std::map<std::string_view, double> of;  ///< by vendor: the median over its sources' medians
  double mean = 0, deviation = 0;
  [[nodiscard]] double count() const { return static_cast<double>(of.size()); }
};
Levels levels_of(const Witnesses& group) {
  std::map<std::string_view, std::map<std::string_view, std::vector<double>>> errors;
  for (const Witness& w : group) errors[w.residual->vendor][w.residual->source].push_back(w.error);
  Levels out;
  for (auto& [vendor, sources] : errors) {
    std::vector<double> medians;
    medians.reserve(sources.size());
    for (auto& [source, values] : sources) medians.push_back(middle_of(values));
    out.mean += out.of[vendor] = middle_of(medians);
  }
  out.mean /= out.count();
  for (const auto& [vendor, level] : out.of) {
    out.deviation += (level - out.mean) * (level - out.mean);
  }
  out.deviation = out.of.size() > 1 ? std::sqrt(out.deviation / (out.count() - 1)) : 0;
  return out;
}

/// What rows differ by from the level of their vendor, or of their own source, each source weighing
/// one.
std::vector<std::pair<double, double>> row_deviations(const Witnesses& group,
                                                      const Levels* vendors) {
  std::map<std::string_view, std::vector<double>> sources;
  for (const Witness& w : group) sources[w.residual->source].push_back(w.error);
  std::map<std::string_view, double> levels;
  for (auto& [source, values] : sources) levels[source] = middle_of(values);
  std::vector<std::pair<double, double>> out;
  out.reserve(group.size());
  for (const Witness& w : group) {
    const Residual& r = *w.residual;
    const double level = vendors != nullptr ? vendors->of.at(r.vendor) : levels.at(r.source);
    const auto rows = static_cast<double>(sources.at(r.source).size());
    out.emplace_back(w.error - level, 1 / (rows * static_cast<double>(sources.size())));
  }
  return out;
}

/// The same double on any machine, whose long double may be of another length.
using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

/// The error below which a share of runs lies, whose error is a level, spread as `below` says, and
/// a row's own deviation. It rises without a jump, so that a bracket of it closes fast.
template <class Below>
double quantile_of(const std::vector<std::pair<double, double>>& deviations, double share,
                   const Below& below) {
  const auto beyond_share = [&](double error) {
    double mass = -share;
    for (const auto& [deviation, weight] : deviations) mass += weight * below(error - deviation);
    return mass;
  };
  constexpr double kFarthest = 10;
  constexpr int kBits = 48;
  std::uintmax_t most = 200;
  const auto [low, high] = boost::math::tools::toms748_solve(
      beyond_share, -kFarthest, kFarthest, boost::math::tools::eps_tolerance<double>(kBits), most);
  return (low + high) / 2;
}

template <class Below>
Bounds mixture_bounds(const std::vector<std::pair<double, double>>& deviations,
                      const Below& below) {
  return {quantile_of(deviations, (1 - kCoverage) / 2, below),
          quantile_of(deviations, (1 + kCoverage) / 2, below)};
}

/// Of software that is composed: of m vendors the level of one more is as Student's t with m - 1
/// degrees of freedom, and a row's deviation is one of those that were seen.
Bounds composed_bounds(const Witnesses& rows, const Levels& levels) {
  const double scale = std::max(1e-6, levels.deviation * std::sqrt(1 + 1 / levels.count()));
  const boost::math::students_t_distribution<double, InDouble> law(
      std::max(1.0, levels.count() - 1));
  return mixture_bounds(row_deviations(rows, &levels), [&](double error) {
    return boost::math::cdf(law, (error - levels.mean) / scale);
  });
}

/// Of software whose user measured steps of it.
Bounds learnt_bounds(const Witnesses& rows, double deviation) {
  const boost::math::normal_distribution<double, InDouble> law(0, deviation);
  return mixture_bounds(row_deviations(rows, nullptr),
                        [&](double error) { return boost::math::cdf(law, error); });
}

/// Rows of the job's kind where enough vendors have some, else all.
LevelBounds mixture_level(Witnesses group, const PredictionTraits& traits, SoftwareKnown level) {
  constexpr std::size_t kFewestVendors = 4;
  LevelBounds out{};
  const Levels levels = levels_of(group);
  Witnesses kind =
      narrowed(group, [&](const PredictionTraits& t) { return kind_of(t) == kind_of(traits); });
  std::set<std::string_view> vendors;
  for (const Witness& w : kind) vendors.insert(w.residual->vendor);
  if (vendors.size() >= kFewestVendors) {
    group = std::move(kind);
    out.group = kind_of(traits);
  }
  out.rows = group.size();
  out.sources = rows_by_source(group).size();
  out.bounds = level == SoftwareKnown::learnt
                   ? learnt_bounds(group, traits.learnt ? traits.learnt->deviation : 0)
                   : composed_bounds(group, levels);
  return out;
}

/// Nine tenths of a normal variable lie within as many deviations.
constexpr double kDeviations = 1.6449;
/// Standard deviation, in logarithms, of what a maker of GPUs adds that nobody has validated: its
/// kernels, its collective library, how its clocks last. Assumed: half again of what software that
/// nobody fitted adds (0.08 to 0.10), until published runs say it.
constexpr double kMakerSpread = 0.15;

}  // namespace

PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    std::string_view without) {
  return predict_interval(table, traits, knowledge_of(table, traits, without), without);
}

PredictionInterval predict_interval(const ResidualTable& table, const PredictionTraits& traits,
                                    const Knowledge& known, std::string_view without) {
  PredictionInterval out;
  out.known = known.software;
  out.gaps = known.gaps;
  Bounds bounds{0, 0};
  for (const SoftwareKnown level : {SoftwareKnown::release, SoftwareKnown::stack,
                                    SoftwareKnown::composed, SoftwareKnown::none}) {
    const bool own = known.software == SoftwareKnown::learnt;
    if (level > known.software && !own) break;
    const SoftwareKnown counted = own ? SoftwareKnown::learnt : level;
    Witnesses group = witnesses_of(table, counted, traits.stack_stands_in, without);
    if (group.empty()) continue;
    if (own || level == SoftwareKnown::composed) {
      const LevelBounds found = mixture_level(std::move(group), traits, counted);
      bounds = {std::min(bounds.low, found.bounds.low), std::max(bounds.high, found.bounds.high)};
      out.group = found.group;
      out.rows = found.rows;
      out.sources = found.sources;
      if (own) break;
      continue;
    }
    // The least known level counts, and none that is better known may be wider. Evidence of unknown
    // software that there is not is the next best, with its own error as one more.
    const LevelBounds found = level_bounds(std::move(group), known.software, traits);
    bounds = {std::min(bounds.low, found.bounds.low), std::max(bounds.high, found.bounds.high)};
    out.group = found.group;
    out.rows = found.rows;
    out.sources = found.sources;
  }
  assert(out.rows > 0);
  if (const int strange = known.strange_parts(); strange > 0) {
    const double more = std::sqrt(strange) * kDeviations * spread_between_sources(table, without);
    bounds = {-std::hypot(bounds.low, more), std::hypot(bounds.high, more)};
  }
  if (!known.maker && known.software != SoftwareKnown::learnt) {
    const double more = kDeviations * kMakerSpread;
    bounds = {-std::hypot(bounds.low, more), std::hypot(bounds.high, more)};
  }
  // A run takes predicted / exp(error), so a large error is a short run.
  out.low = std::exp(-bounds.high);
  out.high = std::exp(-bounds.low);
  return out;
}

std::string words_of(const PredictionInterval& interval) {
  std::string out(name_of(interval.known));
  for (const std::string& gap : interval.gaps) out += ", " + gap;
  if (!interval.group.empty()) out += (interval.gaps.empty() ? ", " : "; ") + interval.group;
  return out + fmt::format(": {} published runs of {} source{}", interval.rows, interval.sources,
                           interval.sources == 1 ? "" : "s");
}

}  // namespace lockstep
