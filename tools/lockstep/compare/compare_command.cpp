#include <array>
#include <fmt/format.h>

#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/search/compare/comparison.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/compare/compare_page.hpp"
#include "tools/views/compare/comparison_output.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

constexpr std::array kCompareOptions{
    OptionSpec{"metric", 0, "NAME", false,
               "The number to explain: any of the first level of `lockstep run --format json` "
               "(default: step_s, of scenarios with \"run\" goodput).",
               "--metric peak_memory_gib"},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of both scenarios before they are read.",
               "--set batch.sequences=1024"},
    OptionSpec{"report", 0, "FILE", false,
               "Write one self-contained HTML page: a waterfall from the one answer to the other, "
               "difference by difference.",
               "--report comparison.html", PathUse::writes},
    OptionSpec{"quiet", 'q', "", false, "Show no progress.", "--quiet"},
    kFormatOption,
    kFoldOption,
    kUnfoldOption,
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 3> kCompareExamples{
    "lockstep compare llama3-405b-16k best.json",
    "lockstep compare llama3-405b-8k llama3-405b-16k --metric mfu",
    "lockstep compare before.json after.json --metric price_usd --format json",
};

constexpr CommandSpec kCompareSpec{
    .name = "compare",
    .usage = "compare FILE|NAME FILE|NAME [options]",
    .summary = "What changed between two scenarios, and how far each change moves the answer.",
    .about =
        "Lists the values in which two scenarios differ and makes the differences one after "
        "another,\n"
        "model and machine first, so that their effects add up to the whole. Those that only\n"
        "together make a valid scenario are one change. Jobs that do not fit in memory are\n"
        "simulated all the same, and a note says which.",
    .positionals = 2,
    .options = kCompareOptions,
    .examples = kCompareExamples,
};

Exit run_compare(const ParsedOptions& options, Console& console) {
  if (options.positionals.size() != 2) {
    throw UsageError(fmt::format("lockstep compare: found {} scenario files; usage: lockstep {}",
                                 options.positionals.size(), kCompareSpec.usage));
  }
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const PresetStore presets(options.all("presets"));
  std::optional<Comparison> comparison;
  {
    const InterruptGuard guard;
    Progress progress(console.err, "simulations", 1,
                      console.err_is_terminal && !options.has("quiet"));
    comparison = compare(
        {.a = scenario_path(options.positionals[0], presets),
         .b = scenario_path(options.positionals[1], presets),
         .sets = options.all("set"),
         .folding = folding_of(options),
         .metric = options.get("metric"),
         .go_on = [] { return !InterruptGuard::interrupted(); },
         .progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); }},
        presets);
  }
  if (!comparison) return Exit::interrupted;
  if (reports) write_report(options, compare_page(*comparison, &presets));
  const TextStyle style = output_style(options, console);
  write_output(format == "json"  ? Answer(JsonText(comparison_json(*comparison)))
               : format == "csv" ? Answer(comparison_csv(*comparison))
                                 : Answer::terminal(comparison_table(*comparison, style)),
               options, console);
  return Exit::ok;
}

constexpr Command kCompareCommand{&kCompareSpec, run_compare};

}  // namespace

const Command& compare_command() { return kCompareCommand; }

}  // namespace lockstep
