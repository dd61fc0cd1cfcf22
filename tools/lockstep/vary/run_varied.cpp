#include "tools/lockstep/vary/run_varied.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/advice.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tools/console/foreseen_work.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/trajectory_options.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/vary/advice_table.hpp"
#include "tools/views/vary/vary.hpp"
#include "tools/views/vary/vary_page.hpp"

namespace lockstep {
namespace {

/// Options whose answer is of one point, not of several.
constexpr std::array<std::string_view, 14> kOfOnePoint{
    "trace",  "svg",        "chakra",         "goal",     "power-trace", "assert",  "jitter",
    "advise", "hash-seeds", "explain-fabric", "optimise", "scaling",     "metrics", "accounting"};

/// Options that would say nothing beside --advise; those of the step's page say it there.
constexpr std::array<std::string_view, 9> kNotAdvised{
    "trace", "svg", "chakra", "goal", "power-trace", "assert", "optimise", "metrics", "accounting"};
constexpr std::array<std::string_view, 3> kOnAdvicePage{"explain-fabric", "jitter", "hash-seeds"};

void refuse_beside_advice(const ParsedOptions& options) {
  const auto refuse = [&options](std::span<const std::string_view> names, std::string_view else_) {
    for (const std::string_view option : names) {
      if (!options.has(option)) continue;
      throw UsageError(fmt::format(
          "lockstep run: found --{} beside --advise; allowed: one of them{}", option, else_));
    }
  };
  refuse(kNotAdvised, "");
  if (!options.has("hash-seeds")) refuse(std::array{std::string_view("jobs")}, "");
  if (!options.has("report")) {
    refuse(kOnAdvicePage, ", or --report FILE too, whose page has both");
  }
}

/// Of a run of weeks; nothing: as many as the scenario says.
std::optional<int> asked_trajectories(const ParsedOptions& options) {
  if (!options.has("trajectories")) return std::nullopt;
  return trajectories_of(options, 1);
}

/// One line for the points that have no answer.
void say_what_is_missing(const Varied& varied, std::string_view command, std::ostream& err) {
  const auto has_none = [](const VariedPoint& point) { return !point.ok(); };
  const auto missing = std::ranges::count_if(varied.points, has_none);
  if (missing == 0) return;
  const std::string& first = std::ranges::find_if(varied.points, has_none)->error;
  err << terminal_text(fmt::format("lockstep {}: {} of {} points without an answer{}: {}\n",
                                   command, missing, varied.points.size(),
                                   missing == 1 ? "" : ", the first", first));
}

/// A line for each axis whose names take away what the scenario changes of a preset.
void say_what_is_lost(const std::vector<VaryAxis>& axes, const nlohmann::ordered_json& written,
                      std::string_view command, std::ostream& err) {
  for (const VaryAxis& axis : axes) {
    const std::string lost = lost_changes(axis, written);
    if (!lost.empty()) err << terminal_text(fmt::format("lockstep {}: {}\n", command, lost));
  }
}

/// Asks for each point, says how far it is, and stops asking after Ctrl-C. Nothing where that left
/// no answer at all.
std::optional<Varied> asked_for_each(const std::string& path, const AskPoint& answer_to,
                                     std::vector<VaryAxis> axes, Console& console) {
  const std::size_t points = points_of(axes);
  Progress progress(console.err, "points", points, console.err_is_terminal);
  ForeseenWork work(path, counted(static_cast<double>(points), "point"), progress);
  double done = 0;
  const auto reached = [&](double of_point) {
    progress.reached(done + of_point);
    work.reached((done + of_point) / static_cast<double>(points));
  };
  std::size_t asked = 0;
  const auto answer = [&](const std::vector<std::string>& sets) {
    if (InterruptGuard::interrupted()) throw interruption_of(path);
    const ProgressWithin within(fmt::format("point {} of {}", ++asked, points));
    return answer_to(sets, reached);
  };
  const auto one_done = [&] {
    ++done;
    reached(0);
  };
  try {
    return vary(path, std::move(axes), answer, one_done);
  } catch (const InputError&) {
    if (!InterruptGuard::interrupted()) throw;
    return std::nullopt;
  }
}

/// What --vary changes; null for what cannot be read: the points say why.
WrittenScenario written_or_null(
    const std::string& path,
    const std::function<std::string(const std::vector<std::string>&)>& text_of,
    const ParsedOptions& options) {
  const std::vector<std::string> changes = changes_of(options);
  try {
    const ParsedScenario parsed = parse_scenario(path, text_of(changes), changes);
    return std::make_shared<const nlohmann::ordered_json>(parsed.root.json());
  } catch (const InputError&) {
    return nullptr;
  }
}

}  // namespace

InputError interruption_of(const std::string& file) {
  return InputError({.file = file,
                     .pointer = {},
                     .found = "an interruption",
                     .allowed = "to wait",
                     .nearest = {}});
}

Exit answer_varied(const VariedInput& input, const AskPoint& answer_to,
                   std::span<const std::string_view> of_one_point, std::string_view command,
                   const ParsedOptions& options, Console& console) {
  for (const std::string_view option : of_one_point) {
    if (!options.has(option)) continue;
    throw UsageError(fmt::format("lockstep {}: found --{} beside --vary; allowed: one of them",
                                 command, option));
  }
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const std::vector<VaryAxis> axes = parse_axes(options.all("vary"));
  const WrittenScenario& written = input.varied ? input.varied : input.written;
  if (written) say_what_is_lost(axes, *written, command, console.err);
  const InterruptGuard guard;
  const std::optional<Varied> varied = asked_for_each(input.path, answer_to, axes, console);
  const bool interrupted = InterruptGuard::interrupted();
  if (interrupted) console.err << fmt::format("lockstep {}: interrupted\n", command);
  if (!varied) return Exit::interrupted;
  if (reports) {
    write_report(options, vary_page(*varied, varied_basis(*varied, input.written, input.presets)));
  }
  write_output(format == "json" ? Answer(JsonText(varied_json(*varied)))
               : format == "csv"
                   ? Answer(varied_csv(*varied))
                   : Answer::terminal(varied_table(*varied, output_style(options, console))),
               options, console);
  if (interrupted) return Exit::interrupted;
  say_what_is_missing(*varied, command, console.err);
  return std::ranges::all_of(varied->points, &VariedPoint::ok) ? Exit::ok : Exit::bad_input;
}

Exit run_varied(const std::string& path,
                const std::function<std::string(const std::vector<std::string>&)>& text_of,
                const PresetStore& presets, const ParsedOptions& options, Console& console) {
  const StepIntervals intervals(presets);
  const std::optional<int> trajectories = asked_trajectories(options);
  const AskPoint answer_to = [&](const auto& point, const auto& reached) {
    Question question{.set = changes_of(options),
                      .profiles = options.all("profile"),
                      .folding = folding_of(options),
                      .allow_oom = options.has("allow-oom"),
                      .trajectories = trajectories,
                      .jobs = trajectory_jobs_of(options),
                      .go_on = [] { return !InterruptGuard::interrupted(); },
                      .reached = reached};
    question.set.insert(question.set.end(), point.begin(), point.end());
    const std::string text = text_of(question.set);
    // The answer about a step says that the job does not fit; the others have no number for it.
    if (parse_scenario(path, text, question.set).kind == ScenarioKind::step) {
      question.allow_oom = true;
    }
    const auto answer = answer_text(path, text, presets, intervals, question);
    if (!answer) throw interruption_of(path);
    return answer->json();
  };
  return answer_varied(
      {.path = path, .presets = presets, .varied = written_or_null(path, text_of, options)},
      answer_to, kOfOnePoint, "run", options, console);
}

Exit run_advice(const std::string& path, const std::string& text, const PresetStore& presets,
                const ParsedOptions& options,
                const std::function<std::string(const Advice&)>& page_of, Console& console) {
  refuse_beside_advice(options);
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  Progress progress(console.err, "changes", 1, console.err_is_terminal);
  const Advice advice =
      advise(path, text, presets,
             {.set = changes_of(options),
              .profiles = options.all("profile"),
              .folding = folding_of(options),
              .allow_oom = options.has("allow-oom"),
              .trajectories = asked_trajectories(options)},
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
