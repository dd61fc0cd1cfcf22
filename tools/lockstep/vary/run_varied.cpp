#include "tools/lockstep/vary/run_varied.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/answer/advice.hpp"
#include "sim/answer/answer.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/report/assets.hpp"
#include "tools/lockstep/vary/advice_table.hpp"
#include "tools/lockstep/vary/vary.hpp"
#include "tools/lockstep/vary/vary_page.hpp"

namespace lockstep {
namespace {

/// Options whose answer is of one point, not of several.
constexpr std::array<std::string_view, 11> kOfOnePoint{
    "trace",  "svg",    "chakra",     "goal",           "power-trace", "assert",
    "jitter", "advise", "hash-seeds", "explain-fabric", "optimise"};

}  // namespace

Exit answer_varied(
    const std::string& path,
    const std::function<nlohmann::ordered_json(const std::vector<std::string>&)>& answer_to,
    std::span<const std::string_view> of_one_point, std::string_view command,
    const ParsedOptions& options, Console& console) {
  for (const std::string_view option : of_one_point) {
    if (!options.has(option)) continue;
    throw UsageError(fmt::format("lockstep {}: found --{} beside --vary; allowed: one of them{}",
                                 command, option,
                                 command == "run" ? ", for a scenario without \"run\"" : ""));
  }
  const std::string format = options.choice("format", kFormats);
  std::vector<VaryAxis> axes = parse_axes(options.all("vary"));
  Progress progress(console.err, "points", points_of(axes), console.err_is_terminal);
  const bool reports = wants_report(options);
  const Varied varied = vary(path, std::move(axes), answer_to, [&] { progress.one_done(); });
  if (reports) write_report(options, vary_page(varied));
  write_output(format == "json" ? Answer(JsonText(varied_json(varied)))
               : format == "csv"
                   ? Answer(varied_csv(varied))
                   : Answer::terminal(varied_table(varied, output_style(options, console))),
               options, console);
  return std::ranges::all_of(varied.points, &VariedPoint::ok) ? Exit::ok : Exit::bad_input;
}

Exit run_varied(const std::string& path,
                const std::function<std::string(const std::vector<std::string>&)>& text_of,
                const PresetStore& presets, const ParsedOptions& options, Console& console) {
  const auto answer_to = [&](const std::vector<std::string>& point) {
    Question question{.set = changes_of(options),
                      .profiles = options.all("profile"),
                      .folding = folding_of(options),
                      .allow_oom = true};
    question.set.insert(question.set.end(), point.begin(), point.end());
    const std::string text = text_of(question.set);
    return answer_text(path, text, presets, question).json();
  };
  return answer_varied(path, answer_to, kOfOnePoint, "run", options, console);
}

Exit run_advice(const std::string& path, const std::string& text, const PresetStore& presets,
                const ParsedOptions& options,
                const std::function<std::string(const Advice&)>& page_of, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  Progress progress(console.err, "changes", 1, console.err_is_terminal);
  const Advice advice =
      advise(path, text, presets,
             {.set = changes_of(options),
              .profiles = options.all("profile"),
              .folding = folding_of(options),
              .allow_oom = options.has("allow-oom")},
             [&](std::size_t done, std::size_t most) { progress.update(done, most); });
  if (reports) write_report(options, page_of(advice));
  write_output(format == "json" ? Answer(JsonText(advice_json(advice)))
               : format == "csv"
                   ? Answer(advice_csv(advice))
                   : Answer::terminal(advice_table(advice, output_style(options, console))),
               options, console);
  return Exit::ok;
}

}  // namespace lockstep
