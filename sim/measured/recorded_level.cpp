#include "sim/measured/recorded_level.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/accuracy/learn_level.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/learnt.hpp"
#include "sim/measured/step_shares.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

/// Kernels of no software are this far from their laws: beyond it something else is slow.
constexpr double kMostLogLevel = 1.2;
constexpr double kClose = 1e-3;
constexpr int kHalvings = 30;

double step_at(const Scenario& job, double log_level) {
  Scenario changed = job;
  changed.stack.level *= std::exp(log_level);
  return simulate_step(changed).step_s;
}

}  // namespace

bool RecordedLevel::reaches() const { return std::abs(after_s / recorded_s - 1) <= kClose; }

RecordedLevel recorded_level(const Scenario& job, double recorded_s, const std::string& files) {
  RecordedLevel out;
  out.recorded_s = recorded_s;
  out.before_s = step_at(job, 0);
  double low = -kMostLogLevel, high = kMostLogLevel;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (step_at(job, middle) < recorded_s ? low : high) = middle;
  }
  LearntLevel& level = out.level;
  level.log_level = (low + high) / 2;
  out.after_s = step_at(job, level.log_level);
  // What one step leaves open of the level of other jobs.
  constexpr double kPrior = 0.10;
  const std::array witness{LevelWitness{.job = files,
                                        .log_ratio = std::log(recorded_s / out.before_s),
                                        .share = step_shares(job).front()}};
  level.prior = kPrior;
  level.deviation = learn_level(witness, kPrior).deviation;
  level.steps = 1;
  level.gpu = job.node.gpu.name;
  level.experts = job.job.model.experts.count > 0;
  level.adapters = job.job.adapters.any();
  level.models = {job.job.model.name};
  level.fewest_gpus = level.most_gpus = job.gpus();
  out.evidence.push_back(fmt::format("{}: {} s recorded, {} s predicted without it", files,
                                     significant(recorded_s), significant(out.before_s)));
  return out;
}

std::string with_level(const std::string& preset, const RecordedLevel& level) {
  nlohmann::ordered_json out = nlohmann::ordered_json::parse(preset);
  out["learnt"] = nlohmann::ordered_json::array({level_json(level.level, level.evidence)});
  return write_json(out, 1) + "\n";
}

}  // namespace lockstep
