// The extension module of the Python package: calls and declarations of the library as Python's own
// strings, lists and dictionaries. What is Python about the package is written in Python.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <stdexcept>
#include <string>
#include <string_view>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "sim/answer/answer.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/ask_plan_options.hpp"
#include "tools/python/calls.hpp"
#include "tools/python/doors.hpp"
#include "tools/python/in_python.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

namespace py = pybind11;

using Words = std::vector<std::string>;

/// As Python has names of files: bytes that are no text become what os.fsencode() makes them of.
py::str text_of(const std::string& text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

py::object failure_dict(const std::optional<Failure>& failure) {
  if (!failure) return py::none();
  py::dict out;
  out["line"] = text_of(failure->line);
  out["internal"] = failure->status == Exit::internal_error;
  out["in_file"] = failure->problem.has_value();
  InputProblem problem = failure->problem.value_or(InputProblem{});
  if (const auto& usage = failure->usage) {
    problem.found = usage->found;
    problem.allowed = usage->allowed;
    problem.nearest = usage->nearest;
  }
  out["file"] = text_of(problem.file);
  out["pointer"] = text_of(problem.pointer);
  out["found"] = text_of(problem.all_found());
  out["allowed"] = text_of(problem.allowed);
  out["suggestion"] = text_of(problem.nearest);
  return out;
}

/// A word of the command line, or the name and the text of what is there already.
using PythonInput = std::variant<std::monostate, std::string, std::pair<std::string, std::string>>;

std::optional<CalledInput> called_input(const PythonInput& input) {
  if (const auto* const word = std::get_if<std::string>(&input)) return CalledInput(*word);
  const auto* const text = std::get_if<std::pair<std::string, std::string>>(&input);
  if (text == nullptr) return std::nullopt;
  return CommandInput{.file = text->first, .text = text->second};
}

py::dict call_command(const std::string& name, const Words& words, const PythonInput& input) {
  const Called called = [&] {
    const py::gil_scoped_release released;
    return call(name, words, called_input(input));
  }();
  raise_kept();
  py::dict out;
  out["status"] = static_cast<int>(called.status);
  out["out"] = text_of(called.out);
  out["err"] = text_of(called.err);
  out["file"] = text_of(called.input.file);
  out["text"] = py::bytes(called.input.text);  // of a file, which may hold anything
  out["failure"] = failure_dict(called.failure);
  return out;
}

/// The numbers, and a failure or None.
py::tuple numbers_with(const NumbersOf& of, const Words& changes) {
  const CalledNumbers called = [&] {
    const py::gil_scoped_release released;
    return of.with(changes);
  }();
  raise_kept();
  return py::make_tuple(called.numbers, failure_dict(called.failure));
}

/// NumbersOf, and None; or None and why there is none.
py::tuple numbers_of(const Words& words, const PythonInput& input) {
  std::unique_ptr<NumbersOf> of;
  std::optional<Failure> failure;
  try {
    const py::gil_scoped_release released;
    of = std::make_unique<NumbersOf>(words, called_input(input).value());
  } catch (const std::exception&) {
    failure = current_failure();
  }
  return py::make_tuple(std::move(of), failure_dict(failure));
}

std::string_view name_of(FieldKind kind) {
  constexpr std::array<std::string_view, 11> kNames{
      "number",        "integer", "flag",    "text",          "texts", "numbers",
      "named_numbers", "object",  "objects", "named_objects", "any"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(Better better) {
  constexpr std::array<std::string_view, 3> kNames{"neither", "more", "less"};
  return kNames.at(static_cast<std::size_t>(better));
}

/// `around`: the member that these are of.
py::list field_dicts(const std::vector<FieldInfo>& fields, const std::string& around = {}) {
  py::list out;
  for (const FieldInfo& field : fields) {
    py::dict row;
    row["name"] = field.name;
    row["unit"] = field.is_number() ? unit_at(around + "." + field.name) : field.unit();
    row["better"] = name_of(field.better);
    row["sentence"] = field.sentence;
    row["kind"] = name_of(field.kind);
    row["always"] = field.always;
    row["nullable"] = field.nullable;
    row["members"] =
        field_dicts(field.members, field.kind == FieldKind::object ? field.name : std::string());
    out.append(row);
  }
  return out;
}

/// By kind of answer: "step", "run", "jobs", "rl", "queue", "serving".
py::dict fields_of_answers() {
  py::dict out;
  for (const AnswerKind kind : kAnswerKinds) {
    out[py::str(std::string(name_of(kind)))] = field_dicts(answer_fields(kind));
  }
  return out;
}

/// By kind of answer of commands beside `run`: "replay", "collectives", "tune", ...
py::dict fields_of_commands() {
  py::dict out;
  for (const CommandFields& command : command_fields()) {
    out[py::str(std::string(command.answer))] = field_dicts(command.fields());
  }
  return out;
}

std::string_view name_of(PathUse use) {
  constexpr std::array<std::string_view, 5> kNames{"none", "reads", "prints", "writes",
                                                   "writes_folder"};
  return kNames.at(static_cast<std::size_t>(use));
}

py::dict commands_declared() {
  py::dict out;
  for (const Command* command : commands()) {
    py::list options;
    for (const OptionSpec& option : command->spec->options) {
      py::dict row;
      row["name"] = option.name;
      row["argument"] = option.argument;
      row["repeatable"] = option.repeatable;
      row["text"] = option.text;
      row["path"] = name_of(option.path);
      const auto is_one_of = [&](const auto& questions) {
        return std::ranges::find(questions, option.name, &OptionSpec::name) != questions.end();
      };
      row["asks"] = (command == &run_command() && is_one_of(kAskOptions)) ||
                    (command == &plan_command() && is_one_of(kAskPlanOptions));
      options.append(row);
    }
    py::dict row;
    row["summary"] = command->spec->summary;
    row["about"] = command->spec->about;
    row["answers_text"] = command->answer != nullptr;
    row["options"] = options;
    out[py::str(std::string(command->spec->name))] = row;
  }
  return out;
}

py::list scenarios_shipped() {
  py::list out;
  for (const ShippedScenario& scenario : shipped_scenarios(PresetStore())) {
    py::dict row;
    row["name"] = scenario.name;
    row["command"] = scenario.command;
    row["file"] = scenario.file;
    row["sentence"] = scenario.sentence;
    out.append(row);
  }
  return out;
}

/// A step takes megabytes that the next one needs again: given back to the system in between, they
/// cost a third or more of the time. The heap keeps as much as glibc's own adjustment comes to once
/// a block of 32 MiB was freed, unless whoever started Python chose otherwise.
void keep_heap() {
#ifdef __GLIBC__
  for (const char* const chosen :
       {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(chosen) != nullptr) return;
  }
  constexpr int kLargest = 32 << 20;  // bytes; malloc takes no more
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargest);
#endif
}

}  // namespace
}  // namespace lockstep

PYBIND11_MODULE(_lockstep, module) {
  using namespace lockstep;
  keep_heap();
  module.attr("version") = LOCKSTEP_VERSION;
  module.def("call", &call_command);
  module.def("numbers_of", &numbers_of);
  module.def("fields", &fields_of_answers);
  module.def("command_fields", &fields_of_commands);
  module.def("commands", &commands_declared);
  module.def("scenarios", &scenarios_shipped);
  define_doors(module);
  module.def("preset_kinds", [] {
    std::vector<std::string> out;
    for (const std::string_view kind : PresetStore::kinds()) out.emplace_back(kind);
    return out;
  });
  py::class_<NumbersOf>(module, "NumbersOf").def("with_changes", &numbers_with);
}
