#include "tools/lockstep/recording/recording_import.hpp"

#include <array>
#include <ostream>

#include <nlohmann/json.hpp>

#include "sim/measured/recorded_level.hpp"
#include "sim/measured/recordings.hpp"
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

}  // namespace

Exit import_recorded_stack(const ParsedOptions& options, const std::vector<std::string>& files,
                           const PresetStore& presets, Console& console) {
  const bool as_json = options.choice("format", kRecordingFormats) == "json";
  if (options.has("gpu")) {
    throw UsageError(
        "lockstep import: --gpu is not for lockstep import recording: stacks are not made for a "
        "card");
  }
  const RecordedStackBase base = recorded_base(options, presets);
  const StepRecordings recorded = read_step_recordings(files, recorded_step_asked(options), true);
  RecordedStack stack = recorded_stack(recorded.recordings, base, presets);
  if (!recorded.rank_note.empty()) stack.notes.insert(stack.notes.begin(), recorded.rank_note);
  stack.notes.insert(stack.notes.begin(), recorded.note);
  if (options.has("job")) set_level_by(options.get("job"), recorded, presets, stack);
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
