#include "sim/measured/recorded_level.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "models/accuracy/learn_level.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/diagnosis.hpp"
#include "sim/measured/learnt.hpp"
#include "sim/measured/recorded_step.hpp"
#include "sim/measured/step_shares.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
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

/// A file that is gone with it: scenarios take stacks by their files.
class PassingFile {
 public:
  explicit PassingFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("lockstep-recorded-stack-{}.json", getpid())) {
    OutputFile out(path_.string());
    out.write(text);
    out.commit();
  }
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;
  ~PassingFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

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

void set_level_by(const std::string& written, const StepRecordings& recorded,
                  const PresetStore& presets, RecordedStack& stack) {
  const std::string path = scenario_path(written, presets);
  const PassingFile file(stack.preset);
  const std::vector<std::string> changes{"stack=" +
                                         write_json(nlohmann::ordered_json(file.path()))};
  const ParsedScenario parsed = parse_scenario(path, read_text_file(path), changes);
  require_kind(parsed.root, {ScenarioKind::run}, "no such key: a recording is of a training step");
  const ScenarioFile job = read_scenario_file(parsed, presets, {});
  check_recorded_ranks(job.job->gpus(), path, recorded.recordings, recorded.ranks);
  double longest = 0;
  for (std::size_t i = 0; i < recorded.recordings.size(); ++i) {
    longest = std::max(longest, recorded_rank(recorded.recordings[i], recorded.ranks[i]).step_s);
  }
  const RecordedLevel level =
      recorded_level(*job.job, longest,
                     std::filesystem::path(recorded.recordings.front().file).filename().string());
  stack.preset = with_level(stack.preset, level);
  stack.notes.push_back(fmt::format(
      "{} takes {} as predicted by what was read, and {} were recorded: kernels at {:.2f} of their "
      "laws' speed make it {}{}",
      written, duration_text(level.before_s), duration_text(level.recorded_s),
      std::exp(-level.level.log_level), duration_text(level.after_s),
      level.reaches() ? ""
                      : "; their level alone does not reach it: lockstep diagnose says what else "
                        "differs"));
}

}  // namespace lockstep
