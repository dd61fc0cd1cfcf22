#include "tools/lockstep/queue/forecast_queue.hpp"

#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/cluster/queue_forecast.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/queue/queue_input.hpp"
#include "tools/views/queue/forecast_table.hpp"
#include "tools/views/queue/waiting_page.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kForecastFormats{"table", "json"};
constexpr int kMostDraws = 10'000;

/// --at, else where the record ends by the scenario.
RunTime moment_of(const ParsedOptions& options, const QueueSpec& spec) {
  constexpr Seconds kLatest{40'000 * 86'400.0};
  if (options.has("at")) return to_run_time(time_option(options, "at", kLatest));
  if (spec.snapshot > 0) return spec.snapshot;
  throw UsageError(fmt::format(
      "lockstep queue forecast: {} does not say when its record ends (queue.snapshot); --at TIME "
      "does, counted from its first submission",
      spec.file));
}

}  // namespace

Exit forecast_starts(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kForecastFormats);
  const bool reports = wants_report(options);
  const PresetStore presets(options.all("presets"));
  const QueueInput input = timed_queue(options, presets);
  const QueueSpec& spec = input.spec;
  if (!spec.campaigns.empty() || spec.burst) {
    throw UsageError(fmt::format(
        "lockstep queue forecast: {} has \"{}\", of which nobody recorded {}", spec.file,
        spec.burst ? "burst" : "campaigns", spec.burst ? "what was rented" : "who goes on"));
  }
  const RunTime now = moment_of(options, spec);
  const auto draws = static_cast<std::size_t>(whole_number(options, "draws", 50, kMostDraws));
  const InterruptGuard guard;
  QueueForecast forecast;
  {
    Progress progress(console.err, "draws", draws, console.err_is_terminal);
    forecast =
        forecast_queue(spec, now, {.draws = draws, .go_on = [&](std::size_t done, std::size_t all) {
                                     progress.update(done, all);
                                     return !InterruptGuard::interrupted();
                                   }});
  }
  const bool stopped = InterruptGuard::interrupted();
  if (stopped) console.err << "lockstep queue: interrupted\n";
  if (reports) write_report(options, forecast_page(spec, forecast, input.written, presets));
  write_output(format == "json" ? Answer(JsonText(forecast_json(spec, forecast)))
                                : Answer::terminal(forecast_table(spec, forecast,
                                                                  output_style(options, console))),
               options, console);
  return stopped ? Exit::interrupted : Exit::ok;
}

}  // namespace lockstep
