#include "tools/lockstep/serving/run_serving.hpp"

#include <algorithm>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/console/assertion.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/run/claim_text.hpp"
#include "tools/views/serving/serving_files.hpp"
#include "tools/views/serving/serving_page.hpp"
#include "tools/views/serving/serving_table.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

}  // namespace

Seconds serving_takes(const ServingSpec& spec) {
  constexpr Seconds kRequest{2e-6}, kPass{0.18e-6};
  constexpr double kPassLasts = 15e-3;  // seconds; assumed, as the rate alone does not say
  const auto requests = static_cast<double>(spec.requests.size());
  const double replicas = spec.pools.back().replicas;
  double tokens = 0;
  for (const ServedRequest& r : spec.requests) tokens += r.output;
  const std::size_t coming = spec.coming > 0 ? spec.coming : spec.requests.size();
  const double span = to_seconds(spec.requests[coming - 1].arrival).base_units();
  double at_once = spec.clients;
  if (spec.clients == 0) at_once = span > 0 ? tokens / span * kPassLasts : requests;
  const double most = replicas * spec.pools.back().engine.serving->most_sequences;
  const double together = std::max(1.0, std::min(at_once, most) / replicas);
  return requests * kRequest + tokens / together * kPass;
}

Exit run_serving(ServingSpec spec, const WrittenScenario& written, const PresetStore& presets,
                 const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const bool reports = wants_report(options);
  if (options.get("trace").ends_with(".pftrace")) {
    throw UsageError("--trace: found a name in .pftrace; allowed: .json or .json.gz for a service");
  }
  const InterruptGuard guard;
  ServingReport report;
  {
    Progress progress(console.err, "requests", spec.requests.size(), console.err_is_terminal);
    report = simulate_serving(spec, [&](std::size_t ended) {
      if (ended > 0) progress.update(ended, spec.requests.size());
      return !InterruptGuard::interrupted();
    });
  }
  if (report.stopped) console.err << "lockstep run: interrupted\n";
  const ServingAnswer answer{spec, report, written};
  const bool judged = format == "json" || !assertions.empty() || spec.expect || reports;
  nlohmann::ordered_json json = judged ? serving_json(answer) : nlohmann::ordered_json();
  std::vector<std::string> misses = all_missed(assertions, json);
  const auto claim = judge_claim(spec.expect, json, misses);
  if (reports) {
    const Behind behind(spec.file, ScenarioAnswer(AnswerKind::serving, json), presets);
    write_report(options, serving_page(answer, &behind, claim.get()));
  }
  write_option_file(options, "trace", [&] { return serving_timeline(answer); });
  write_option_file(options, "metrics", [&] { return serving_metrics(answer); });
  const TextStyle style = output_style(options, console);
  write_output(format == "json"  ? Answer(JsonText(json))
               : format == "csv" ? Answer(serving_csv(answer))
                                 : Answer::terminal(serving_table(answer, style) +
                                                    claim_text(claim.get(), style)),
               options, console);
  const Exit missed = report_misses(misses, console);
  return report.stopped ? Exit::interrupted : missed;
}

}  // namespace lockstep
