#include "tools/lockstep/recording/recording_import.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <ostream>
#include <system_error>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/diagnosis.hpp"
#include "sim/measured/recorded_level.hpp"
#include "sim/measured/recorded_step.hpp"
#include "sim/measured/recordings.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/scenario/stack_choice.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/measured/recorded_stack_text.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kRecordingFormats{"table", "json"};
constexpr int kMostRecordedStep = 1'000'000'000;

RecordedStackBase recorded_base(const ParsedOptions& options, const PresetStore& presets) {
  RecordedStackBase base{.stack = std::string(kDefaultStack)};
  if (options.has("like")) {
    base.stack = preset_option(options, "like", "stacks", presets);
    base.named = true;
  }
  if (options.has("node")) {
    const NodeSpec& node = presets.node(preset_option(options, "node", "nodes", presets));
    if (node.host) base.host_slowness = node.host->launch_slowness;
  }
  return base;
}

StepRequest recorded_step_asked(const ParsedOptions& options) {
  if (!options.has("step")) return {};
  return {.all = false, .number = whole_number(options, "step", 0, kMostRecordedStep)};
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

/// Sets the level of the stack's kernels by the job that was recorded (--job).
void set_level(const std::string& written, const StepRecordings& recorded,
               const PresetStore& presets, RecordedStack& stack) {
  const std::string path = scenario_path(written, presets);
  const PassingFile file(stack.preset);
  const std::vector<std::string> changes{"stack=" + nlohmann::json(file.path()).dump()};
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

}  // namespace

Exit import_recorded_stack(const ParsedOptions& options, const std::vector<std::string>& files,
                           const PresetStore& presets, Console& console) {
  const bool as_json = options.choice("format", kRecordingFormats) == "json";
  if (options.has("gpu")) {
    throw UsageError(
        "lockstep import: --gpu is not for lockstep import recording: no stack is of a card");
  }
  const RecordedStackBase base = recorded_base(options, presets);
  const StepRecordings recorded = read_step_recordings(files, recorded_step_asked(options), true);
  RecordedStack stack = recorded_stack(recorded.recordings, base, presets);
  if (!recorded.rank_note.empty()) stack.notes.insert(stack.notes.begin(), recorded.rank_note);
  stack.notes.insert(stack.notes.begin(), recorded.note);
  if (options.has("job")) set_level(options.get("job"), recorded, presets, stack);
  const bool to_file = options.get("output", "-") != "-";
  if (to_file) write_output(Answer::file(stack.preset), options, console);
  if (as_json) {
    console.out << JsonText(recorded_stack_json(stack, recorded)).str();
    return Exit::ok;
  }
  std::ostream& report = to_file ? console.out : console.err;
  report << terminal_text(recorded_stack_report(stack, to_file ? console.style : TextStyle{}));
  if (!to_file) write_output(Answer::file(stack.preset), options, console);
  return Exit::ok;
}

}  // namespace lockstep
