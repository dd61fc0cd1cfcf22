#include "tools/lockstep/scaling/run_scaling.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/scaling/scaling_table.hpp"

namespace lockstep {
namespace {

constexpr int kMostScaledGpus = 10'000'000;
constexpr std::size_t kMostSizes = 64;
constexpr std::array<std::string_view, 12> kOfOneSize{
    "trace",  "svg",    "chakra",     "goal",           "power-trace", "assert",
    "jitter", "advise", "hash-seeds", "explain-fabric", "optimise",    "vary"};

std::vector<int> sizes_of(std::string_view text) {
  std::vector<int> out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    int gpus = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gpus);
    const bool whole = error == std::errc{} && end == word.data() + word.size();
    if (!whole || gpus < 1 || gpus > kMostScaledGpus || (!out.empty() && gpus <= out.back()) ||
        out.size() == kMostSizes) {
      fail_sizes(text);
    }
    out.push_back(gpus);
  }
  if (out.empty()) fail_sizes(text);
  return out;
}

}  // namespace

Exit run_scaling(const std::string& path, const std::string& text, const PresetStore& presets,
                 const ParsedOptions& options, Console& console) {
  for (const std::string_view option : kOfOneSize) {
    if (!options.has(option)) continue;
    throw UsageError(
        fmt::format("lockstep run: found --{} beside --scaling; allowed: one of them", option));
  }
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const std::vector<int> gpus = sizes_of(options.get("scaling"));
  const Question question{.set = changes_of(options),
                          .profiles = options.all("profile"),
                          .folding = folding_of(options),
                          .allow_oom = options.has("allow-oom")};
  const Scaling scaling = scale(path, text, presets, question, gpus);
  if (reports) {
    const ParsedScenario parsed = parse_scenario(path, text, question.set);
    const Scenario base =
        *read_scenario_file(parsed, presets,
                            {.profiles = question.profiles, .folding = question.folding})
             .job;
    std::vector<std::string> assumptions = base.assumptions;
    assumptions.insert(assumptions.end(), scaling.assumptions.begin(), scaling.assumptions.end());
    write_report(options, scaling_page(path, scaling,
                                       {.simulated = job_words(base),
                                        .written = written_in(parsed.root),
                                        .assumptions = assumptions,
                                        .presets = &presets,
                                        .named = presets_of(base, presets)}));
  }
  write_output(format == "json" ? Answer(JsonText(scaling_json(scaling)))
               : format == "csv"
                   ? Answer(scaling_csv(scaling))
                   : Answer::terminal(scaling_table(scaling, output_style(options, console))),
               options, console);
  return Exit::ok;
}

}  // namespace lockstep
