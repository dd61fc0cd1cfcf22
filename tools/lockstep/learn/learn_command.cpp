#include <array>

#include <nlohmann/json.hpp>

#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/learnt.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/measured/learnt_page.hpp"
#include "tools/views/measured/learnt_text.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kLearnFormats{"table", "json"};

constexpr std::array kLearnOptions{
    OptionSpec{"format", 0, "table|json", false,
               "How to print: a table for people (the default), or JSON with the stack in it.",
               "--format json"},
    kPresetsOption,
    OptionSpec{"report", 0, "FILE", false,
               "Write one self-contained HTML page: the level of the kernels before and after, how "
               "sure a step is, what the steps cannot tell apart, which to measure next.",
               "--report learnt.html", PathUse::writes},
    OptionSpec{"output", 'o', "FILE", false,
               "Write the stack that was learnt to this file, a preset of its own.",
               "-o my-stack.json", PathUse::writes},
};
constexpr std::array<std::string_view, 3> kLearnExamples{
    "lockstep learn my-runs.json -o my-stack.json",
    "lockstep learn my-runs.json --report learnt.html",
    "lockstep run my-job.json --stack my-stack.json",
};
constexpr CommandSpec kLearnSpec{
    .name = "learn",
    .usage = "learn FILE [-o STACK]",
    .summary = "Correct a stack by your own measured steps.",
    .about =
        "Reads measured steps of one stack, a list of objects with two keys:\n"
        "  [{\"scenario\": \"my-job.json\", \"step\": \"1.9 s\"}, ...]\n"
        "\"scenario\" is a file, beside the list, or the scenario itself; \"step\" is the "
        "measured\n"
        "time of one step, and may be left out where the scenario has expect.step_time. Rows as\n"
        "tests/reference/training.json has them are read too. For each kind of job (GPU, experts,\n"
        "adapters) it corrects the level of the stack's kernels as far as so many steps can, and\n"
        "writes a stack that `--stack` and scenarios take.\n"
        "Steps of one job count as one: what one run says again, it does not say twice.",
    .positionals = 1,
    .options = kLearnOptions,
    .examples = kLearnExamples,
};

CommandInput read_learn(const std::string& written, const PresetStore&) {
  return {.file = written, .text = read_text_file(written)};
}

Exit answer_learn(const CommandInput& input, const PresetStore& presets,
                  const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kLearnFormats);
  const bool reports = wants_report(options);
  const MeasuredSteps steps = read_measured_steps(input.file, input.text, presets);
  const Learnt learnt = learn(steps, StepIntervals(presets));
  const std::string preset = learnt_preset(steps, learnt, input.file);
  if (reports) write_report(options, learnt_page(steps, learnt, input.file, presets));
  if (options.has("output")) {
    OutputFile out(options.get("output"));
    out.write(preset);
    out.commit();
  }
  const Answer answer = format == "json"
                            ? Answer(JsonText(learnt_json(steps, learnt, preset)))
                            : Answer::terminal(words_about(steps, learnt, console.style));
  console.out << answer.str();
  return Exit::ok;
}

Exit run_learn(const ParsedOptions& options, Console& console) {
  return answer_first_word(learn_command(), "measured steps", options, console);
}

constexpr Command kLearnCommand{&kLearnSpec, run_learn, read_learn, answer_learn};

}  // namespace

const Command& learn_command() { return kLearnCommand; }

}  // namespace lockstep
