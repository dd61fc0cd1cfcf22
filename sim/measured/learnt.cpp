#include "sim/measured/learnt.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/accuracy/learn_level.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using JobKind = std::tuple<std::string, bool, bool>;

/// How software differs from its description, in logarithms: of software that others measured, and
/// of any other. Estimated over vendors left out: 0.08 to 0.10 predict the other rows of a source
/// best after one and after three of its steps.
constexpr double kKnownPrior = 0.08;
constexpr double kUnknownPrior = 0.10;

JobKind kind_of_job(const Scenario& s) {
  return {s.node.gpu.name, s.job.model.experts.count > 0, s.job.adapters.any()};
}

double prior_of(const Scenario& s) {
  const bool known = !s.stack.composed && !s.stack.stands_in && s.unknown_software.empty() &&
                     s.stack.changed.empty();
  return known ? kKnownPrior : kUnknownPrior;
}

/// A measured step as the rule sees it.
struct Seen {
  const MeasuredStep* step;
  double predicted_s;
  StepShares shares;
};

using Covariance = std::array<StepShares, kDescriptionParts>;

double dot(const StepShares& a, const StepShares& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
StepShares times(const Covariance& s, const StepShares& j) {
  StepShares out{};
  for (std::size_t i = 0; i < kDescriptionParts; ++i) out[i] = dot(s[i], j);
  return out;
}

double noise_variance() {
  const LevelNoise noise;
  return informative_variance(noise.job * noise.job + noise.repeat * noise.repeat);
}

/// What all parts of the description may be off by once the steps are known: the covariance of the
/// normal model with several weights (Rasmussen and Williams 2006, equation 2.8), step by step.
Covariance covariance_after(const std::vector<Seen>& seen) {
  Covariance s{};
  for (std::size_t i = 0; i < kDescriptionParts; ++i) {
    s[i][i] = description_parts()[i].prior * description_parts()[i].prior;
  }
  std::set<std::string> jobs;
  for (const Seen& one : seen) {
    if (!jobs.insert(one.step->job).second) continue;
    const StepShares along = times(s, one.shares);
    const double variance = noise_variance() + dot(one.shares, along);
    for (std::size_t i = 0; i < kDescriptionParts; ++i) {
      for (std::size_t k = 0; k < kDescriptionParts; ++k) s[i][k] -= along[i] * along[k] / variance;
    }
  }
  return s;
}

/// A job near the one given, which shows another part of the description.
struct Variant {
  std::string_view words;
  bool (*change)(Scenario& scenario);  ///< false: there is none
};
constexpr int kFewer = 4;
constexpr std::array kVariants{
    Variant{"the same job again", [](Scenario&) { return true; }},
    Variant{"the same with sequences a quarter as long, which the host may bound",
            [](Scenario& s) {
              const int tokens = s.job.batch.tokens / kFewer;
              if (s.job.batch.tokens % kFewer != 0 || tokens < 128 || s.job.batch.sample_tokens > 0)
                return false;
              s.job.batch.tokens = tokens;
              return true;
            }},
    Variant{"the same on twice the nodes with twice the batch",
            [](Scenario& s) {
              if (s.nodes < 2) return false;
              s.job.parallelism.data *= 2;
              s.job.batch.sequences *= 2;
              s.nodes *= 2;
              return true;
            }},
    Variant{"the same with full recomputation, which repeats what is between the products",
            [](Scenario& s) {
              if (s.job.recompute == Recompute::full) return false;
              s.job.recompute = Recompute::full;
              return true;
            }},
};

/// The variant after which the first job's time would be known best.
std::optional<NextMeasurement> next_measurement(const std::vector<Seen>& seen, double half_width) {
  const Covariance before = covariance_after(seen);
  const StepShares& target = seen.front().shares;
  const StepShares along = times(before, target);
  const double variance = dot(target, along);
  std::optional<NextMeasurement> best;
  for (const Variant& variant : kVariants) {
    Scenario changed = seen.front().step->scenario;
    if (!variant.change(changed)) continue;
    const StepShares j = step_shares(changed);
    const double shared = dot(along, j);
    const double left = variance - shared * shared / (noise_variance() + dot(j, times(before, j)));
    // Of the interval, the part that is what the description may be off by.
    const double other = std::max(0.0, half_width * half_width - variance);
    const double width = std::sqrt(other + std::max(0.0, left));
    if (!best || width < best->half_width) best = {std::string(variant.words), width};
  }
  return best;
}

LearntKind learn_kind(const std::vector<Seen>& seen, const StepIntervals& intervals) {
  const Scenario& first = seen.front().step->scenario;
  LearntKind out;
  LearntLevel& level = out.level;
  std::tie(level.gpu, level.experts, level.adapters) = kind_of_job(first);
  level.prior = prior_of(first);
  std::vector<LevelWitness> witnesses;
  level.fewest_gpus = level.most_gpus = first.gpus();
  for (const Seen& one : seen) {
    const Scenario& s = one.step->scenario;
    witnesses.push_back({.job = one.step->job,
                         .log_ratio = std::log(one.step->measured_s / one.predicted_s),
                         .share = one.shares.front()});
    for (std::size_t i = 0; i < kDescriptionParts; ++i) {
      out.shares[i] += one.shares[i] / static_cast<double>(seen.size());
    }
    if (std::ranges::find(level.models, s.job.model.name) == level.models.end()) {
      level.models.push_back(s.job.model.name);
    }
    level.fewest_gpus = std::min(level.fewest_gpus, s.gpus());
    level.most_gpus = std::max(level.most_gpus, s.gpus());
    out.evidence.push_back(fmt::format("{}: {} s measured, {} s predicted", one.step->name,
                                       significant(one.step->measured_s),
                                       significant(one.predicted_s)));
  }
  const LevelPosterior posterior = learn_level(witnesses, level.prior);
  level.log_level = posterior.mean;
  level.deviation = posterior.deviation;
  level.steps = posterior.jobs;
  out.misfit = posterior.least_squares / level.prior;
  Scenario after = first;
  after.stack.in_force = LevelInForce{.deviation = level.deviation, .steps = level.steps};
  after.unknown_software.clear();
  after.stack.changed.clear();
  after.stack.stands_in = false;
  const auto width = [&](const Scenario& s) {
    const auto interval = intervals.of(s);
    return interval ? interval->half_width() : 0;
  };
  out.half_width_before = width(first);
  out.half_width_after = width(after);
  out.next = next_measurement(seen, out.half_width_after);
  return out;
}

}  // namespace

nlohmann::ordered_json level_json(const LearntLevel& l, const std::vector<std::string>& evidence) {
  return {{"gpu", l.gpu},
          {"experts", l.experts},
          {"adapters", l.adapters},
          {"log_level", twelve_digits(l.log_level)},
          {"deviation", twelve_digits(l.deviation)},
          {"prior", l.prior},
          {"steps", l.steps},
          {"fewest_gpus", l.fewest_gpus},
          {"most_gpus", l.most_gpus},
          {"models", l.models},
          {"evidence", evidence}};
}

Learnt learn(const MeasuredSteps& steps, const StepIntervals& intervals) {
  std::map<JobKind, std::vector<Seen>> kinds;
  for (const MeasuredStep& step : steps.steps) {
    kinds[kind_of_job(step.scenario)].push_back(
        {&step, simulate_step(step.scenario).step_s, step_shares(step.scenario)});
  }
  Learnt out;
  for (const auto& [kind, seen] : kinds) out.kinds.push_back(learn_kind(seen, intervals));
  return out;
}

std::string learnt_preset(const MeasuredSteps& steps, const Learnt& learnt,
                          const std::string& file) {
  Json out{{"about", fmt::format("{} as {} measured step{} of {} teach it (lockstep learn).",
                                 steps.stack_name, steps.steps.size(),
                                 steps.steps.size() == 1 ? "" : "s", file)}};
  const Json stack = Json::parse(steps.stack);
  for (const auto& [key, value] : stack.items()) out[key] = value;
  Json& levels = out["learnt"] = Json::array();
  for (const LearntKind& kind : learnt.kinds)
    levels.push_back(level_json(kind.level, kind.evidence));
  return write_json(out, 1) + "\n";
}

}  // namespace lockstep
