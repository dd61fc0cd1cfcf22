#include "tools/python/calls.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/answer/answer.hpp"
#include "sim/answer/assertion.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

constexpr int kMostTrajectories = 1'000'000;

const Command& command_called(const std::string& name) {
  const std::vector<const Command*> all = commands();
  const auto found =
      std::ranges::find_if(all, [&](const Command* each) { return each->spec->name == name; });
  if (found == all.end()) throw UsageError("lockstep: unknown command " + in_quotes(name));
  return **found;
}

CommandInput read_input(const Command& command, const CalledInput& input,
                        const PresetStore& presets) {
  if (const auto* const text = std::get_if<CommandInput>(&input)) return *text;
  return command.read(std::get<std::string>(input), presets);
}

void answer_called(const Command& command, const std::vector<std::string>& words,
                   const std::optional<CalledInput>& input, Console& console, Called& called) {
  ParsedOptions options = parse_options(*command.spec, words);
  if (!input) {
    check_written_files(*command.spec, options);
    called.status = command.run(options, console);
    return;
  }
  const PresetStore presets(options.all("presets"));
  called.input = read_input(command, *input, presets);
  options.positionals = {called.input.file};
  check_written_files(*command.spec, options);
  called.status = command.answer(called.input, presets, options, console);
}

}  // namespace

Called call(const std::string& name, const std::vector<std::string>& words,
            const std::optional<CalledInput>& input) {
  Called called;
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .style = {}};
  // Around all of it: what a command does before its own guard would not notice Ctrl-C.
  const InterruptGuard guard(InterruptGuard::Second::is_noted);
  try {
    answer_called(command_called(name), words, input, console, called);
  } catch (const std::exception&) {
    called.failure = current_failure();
    called.status = called.failure->status;
  }
  if (InterruptGuard::interrupted()) called.status = Exit::interrupted;
  called.out = std::move(out).str();
  called.err = std::move(err).str();
  return called;
}

NumbersOf::NumbersOf(const std::vector<std::string>& words, const CalledInput& input)
    : options_(parse_options(*run_command().spec, words)),
      presets_(options_.all("presets")),
      intervals_(presets_),
      input_(read_input(run_command(), input, presets_)) {}

CalledNumbers NumbersOf::with(const std::vector<std::string>& changes) const {
  CalledNumbers called;
  try {
    Question question{.set = changes_of(options_),
                      .profiles = options_.all("profile"),
                      .folding = folding_of(options_),
                      .allow_oom = options_.has("allow-oom"),
                      .full_fabric = false};
    if (options_.has("trajectories")) {
      question.trajectories = whole_number(options_, "trajectories", 1, kMostTrajectories);
    }
    question.set.insert(question.set.end(), changes.begin(), changes.end());
    const std::optional<ScenarioAnswer> answer =
        answer_text(input_.file, input_.text, presets_, intervals_, question);
    for (const std::string& field : number_fields(answer->json())) {
      called.numbers.emplace(field, answer->number(field).value());
    }
  } catch (const std::exception&) {
    called.failure = current_failure();
  }
  return called;
}

}  // namespace lockstep
