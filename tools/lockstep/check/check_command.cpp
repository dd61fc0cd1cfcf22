#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/laws/check_laws.hpp"
#include "sim/laws/check_random.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/laws/command_laws.hpp"
#include "tools/laws/document_question.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/check/check_table.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kCheckFormats{"table", "json"};

constexpr std::array kCheckOptions{
    OptionSpec{"deep", 0, "", false,
               "Also what takes long: every replica of large jobs on its own, more values of each "
               "kind, more trajectories.",
               "--deep"},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read, as lockstep run does.",
               "--set cluster.nodes=64"},
    OptionSpec{"law", 0, "NAME", true, "Try this law alone; may be given several times.",
               "--law bytes"},
    OptionSpec{"random", 0, "N", false,
               "Instead of a scenario: so many that are drawn over what can be written. One that "
               "breaks a law is shrunk to what still does.",
               "--random 2000"},
    OptionSpec{"seed", 0, "N", false, "With --random: of all draws (default: 1).", "--seed 7"},
    OptionSpec{"first", 0, "N", false,
               "With --random: number of the first scenario (default: 0), to try one again or to "
               "share the work.",
               "--first 137"},
    OptionSpec{
        "kind", 0, "step|run|jobs|rl|queue|serving|comm|plan|serving_plan|filling", false,
        "With --random: only of this kind: step, run, jobs, rl, queue or serving; or of what other "
        "commands answer, which is drawn by these words alone: comm (traffic and collectives), "
        "plan, serving_plan, filling.",
        "--kind serving"},
    OptionSpec{"jobs", 'j', "N", false,
               "With --random: check this many at once (default: one per core). The output is the "
               "same for any number.",
               "-j 2"},
    OptionSpec{"format", 0, "table|json", false,
               "How to print: a table for people (the default), or JSON.", "--format json"},
    OptionSpec{"quiet", 'q', "", false, "Show no progress.", "--quiet"},
    kPresetsOption,
    kOutputOption};

constexpr std::array<std::string_view, 5> kCheckExamples{
    "lockstep check llama3-8b-b200", "lockstep check llama3-405b-54days --deep",
    "lockstep check incast-32",
    "lockstep check llama3-70b-h100-chat --format json -o certificate.json",
    "lockstep check --random 200 --seed 7"};

constexpr CommandSpec kCheckSpec{
    .name = "check",
    .usage = "check FILE|NAME | check --random N [options]",
    .summary = "Try laws on the answer to a scenario: conservation, exactness, agreement.",
    .about =
        "Asks a scenario again and again, with changes whose effect is known, and says which laws\n"
        "held and how closely: what goes in comes out (time, bytes, FLOP, tokens, memory, energy,\n"
        "money), the same question in other words has the same answer, better hardware slows\n"
        "nothing, what closed forms say, and that commands agree. Takes whatever lockstep run,\n"
        "lockstep comm, lockstep plan and lockstep queue fill answer (of trainings with 10 "
        "samples;\n"
        "all with --deep). A law with nothing to compare is not counted as held. Max-min fairness\n"
        "and list scheduling may make better hardware slower by a little: such an anomaly is\n"
        "named with its size. --random tries all laws on scenarios that are drawn. Exit status 1\n"
        "where a law is broken; the laws tried so far after Ctrl-C.",
    .positionals = 1,
    .options = kCheckOptions,
    .examples = kCheckExamples,
};

/// Those that --law names, or all. Throws UsageError.
template <class Subject>
std::vector<LawOf<Subject>> laws_asked(std::vector<LawOf<Subject>> all,
                                       const ParsedOptions& options) {
  const std::vector<std::string> wanted = options.all("law");
  if (wanted.empty()) return all;
  std::vector<std::string> names;
  for (const LawOf<Subject>& law : all) names.push_back(law.name);
  for (const std::string& name : wanted) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw UsageError(fmt::format("--law: found {}; allowed: {}{}", in_quotes(name), listed(names),
                                 did_you_mean(name, names)));
  }
  std::erase_if(all, [&](const LawOf<Subject>& law) {
    return std::ranges::find(wanted, law.name) == wanted.end();
  });
  return all;
}

/// Of what `lockstep run` answers, and of what `lockstep comm`, `plan` and `queue fill` do.
std::vector<Law> run_laws_asked(const ParsedOptions& options) {
  std::vector<Law> all = product_laws();
  std::ranges::move(command_laws(options.all("presets")), std::back_inserter(all));
  return laws_asked(std::move(all), options);
}
std::vector<DocumentLaw> document_laws_asked(std::string_view about, const ParsedOptions& options) {
  return laws_asked(document_laws(about, options.all("presets")), options);
}

template <class Subject>
Certificate certificate_of(Subject& subject, const std::vector<LawOf<Subject>>& laws,
                           const ParsedOptions& options, Console& console) {
  Progress progress(console.err, "laws", laws.size(),
                    console.err_is_terminal && !options.has("quiet"));
  return check_laws(subject, laws,
                    [&](std::size_t done, std::size_t all) { progress.update(done, all); });
}

Certificate document_certificate(const CommandInput& input, const JsonCursor& root,
                                 const PresetStore& presets, const ParsedOptions& options,
                                 Console& console) {
  const std::string about = other_kind(root);
  DocumentQuestion question = document_question(about, presets);
  question.file = input.file;
  question.text = input.text;
  question.set = document_sets(root, about, options);
  question.deep = options.has("deep");
  DocumentSubject subject(std::move(question), presets);
  return certificate_of(subject, document_laws_asked(about, options), options, console);
}

Certificate run_certificate(const CommandInput& input, const PresetStore& presets,
                            const ParsedOptions& options, Console& console) {
  const std::vector<Law> laws = run_laws_asked(options);
  const StepIntervals intervals(presets);
  LawSubject subject({.file = input.file,
                      .text = input.text,
                      .set = options.all("set"),
                      .deep = options.has("deep"),
                      .go_on = [] { return !InterruptGuard::interrupted(); }},
                     presets, intervals);
  return certificate_of(subject, laws, options, console);
}

Exit answer_check(const CommandInput& input, const PresetStore& presets,
                  const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kCheckFormats);
  const JsonCursor root =
      JsonCursor::parse(input.file, input.text, JsonStyle::plain, options.all("set"));
  Certificate certificate;
  {
    const InterruptGuard guard;
    certificate = other_kind(root).empty()
                      ? run_certificate(input, presets, options, console)
                      : document_certificate(input, root, presets, options, console);
  }
  const TextStyle style = output_style(options, console);
  write_output(format == "json" ? Answer(JsonText(certificate_json(certificate)))
                                : Answer::terminal(certificate_table(certificate, style)),
               options, console);
  if (certificate.stopped) return Exit::interrupted;
  return certificate.broken() ? Exit::assertion_missed : Exit::ok;
}

/// A whole number from 0. Throws UsageError.
std::uint32_t draw_number(const ParsedOptions& options, std::string_view name,
                          std::uint32_t otherwise) {
  if (!options.has(name)) return otherwise;
  const std::string text = options.get(name);
  std::uint32_t number = 0;
  constexpr std::uint32_t kMost = 1'000'000'000;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number > kMost) {
    throw UsageError(fmt::format("--{}: found {}; allowed: a whole number from 0 to {}", name,
                                 in_quotes(text), kMost));
  }
  return number;
}

RandomCertificate random_certificate(const RandomCheck& check, const ParsedOptions& options,
                                     const PresetStore& presets) {
  if (const DocumentKind* const kind = kind_asked(options).document) {
    const std::vector<DocumentLaw> laws = document_laws_asked(kind->abouts.front(), options);
    return check_random(check, document_trials(*kind, check, laws, presets));
  }
  return check_random(check, run_laws_asked(options), presets, StepIntervals(presets));
}

Exit check_random_scenarios(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kCheckFormats);
  constexpr int kMostScenarios = 100'000'000;
  RandomCheck check;
  check.count = static_cast<std::uint32_t>(whole_number(options, "random", 1, kMostScenarios));
  check.seed = draw_number(options, "seed", 1);
  check.first = draw_number(options, "first", 0);
  check.kind = kind_asked(options).run;
  check.deep = options.has("deep");
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  check.threads = whole_number(options, "jobs", std::min(cores, kMostJobs), kMostJobs);
  check.go_on = [] { return !InterruptGuard::interrupted(); };
  const PresetStore presets(options.all("presets"));
  RandomCertificate certificate;
  {
    const InterruptGuard guard;
    Progress progress(console.err, "scenarios", check.count,
                      console.err_is_terminal && !options.has("quiet"));
    check.done = [&](std::size_t) { progress.one_done(); };
    certificate = random_certificate(check, options, presets);
  }
  const TextStyle style = output_style(options, console);
  write_output(format == "json" ? Answer(JsonText(random_certificate_json(certificate)))
                                : Answer::terminal(random_table(certificate, style)),
               options, console);
  if (certificate.stopped) return Exit::interrupted;
  return certificate.broken.empty() ? Exit::ok : Exit::assertion_missed;
}

Exit run_check(const ParsedOptions& options, Console& console) {
  const bool random = options.has("random");
  if (random && !options.positionals.empty()) {
    throw UsageError("--random: found a scenario file beside it; allowed: one of them");
  }
  if (random && options.has("set")) {
    throw UsageError("--set: found --random beside it; allowed: one of them");
  }
  for (const char* name : {"seed", "first", "kind", "jobs"}) {
    if (!random && options.has(name)) {
      throw UsageError(fmt::format("--{}: found no --random beside it; allowed: with it", name));
    }
  }
  if (random) return check_random_scenarios(options, console);
  return answer_first_word(check_command(), "scenario file", options, console);
}

constexpr Command kCheckCommand{&kCheckSpec, run_check, read_scenario_input, answer_check};

}  // namespace

const Command& check_command() { return kCheckCommand; }

}  // namespace lockstep
