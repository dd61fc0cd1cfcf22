#include "tools/lockstep/recording/recording_import.hpp"

#include <array>
#include <fmt/format.h>
#include <map>
#include <ostream>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/measured/recordings.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/stack_choice.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

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

std::string unquoted(std::string_view value) {  // without the quotes of a text
  const bool quoted = value.size() > 1 && value.starts_with('"') && value.ends_with('"');
  return std::string(quoted ? value.substr(1, value.size() - 2) : value);
}

/// Values that share a reason, on one line.
std::string untold_lines(const RecordedStack& stack) {
  std::vector<std::string> reasons;  // in order
  std::map<std::string, std::string> paths;
  for (const UntoldValue& one : stack.untold) {
    std::string& list = paths[one.why];
    if (list.empty()) reasons.push_back(one.why);
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", one.path, unquoted(one.base));
  }
  std::string out;
  for (const std::string& why : reasons) {
    out += "  " + wrap(fmt::format("{}: {}", why, paths[why]), kTextColumns, 6, 2) + "\n";
  }
  return out;
}

Json recorded_stack_json(const RecordedStack& stack, const StepRecordings& recorded) {
  Json read = Json::array(), untold = Json::array(), files = Json::array();
  for (const KinetoRecording& each : recorded.recordings) files.push_back(each.file);
  for (const StackFinding& one : stack.read) {
    read.push_back({{"path", one.path},
                    {"value", Json::parse(one.value)},
                    {"events", one.events},
                    {"from", one.from}});
  }
  for (const UntoldValue& one : stack.untold) {
    untold.push_back({{"path", one.path}, {"value", Json::parse(one.base)}, {"why", one.why}});
  }
  return {{"files", std::move(files)}, {"step", recorded.note},
          {"read", std::move(read)},   {"not_told", std::move(untold)},
          {"notes", stack.notes},      {"preset", Json::parse(stack.preset)}};
}

}  // namespace

std::string recorded_stack_report(const RecordedStack& stack, const TextStyle& style) {
  TextTable table({{"read off the recording", TextTable::Align::left},
                   {"value", TextTable::Align::left},
                   {"from", TextTable::Align::left}});
  for (const StackFinding& one : stack.read) table.add({one.path, unquoted(one.value), one.from});
  std::string out = table.text(style);
  if (!stack.untold.empty()) {
    out += "\n" + style.bold("Not told by it, and as in the stack that it is laid over") + "\n" +
           untold_lines(stack);
  }
  if (!stack.notes.empty()) out += "\n" + style.bold("Beside the stack") + "\n";
  for (const std::string& note : stack.notes) {
    out += "  " + wrap(note, kTextColumns, 6, 2) + "\n";
  }
  return out;
}

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
