#include "tools/views/measured/recorded_stack_text.hpp"

#include <fmt/format.h>
#include <map>

#include <nlohmann/json.hpp>

#include "sim/measured/recordings.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

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

}  // namespace lockstep
