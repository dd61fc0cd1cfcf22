#include "tools/lockstep/queue/run_queue.hpp"

#include <fmt/format.h>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/cluster/job_speeds.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/foreseen_work.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"
#include "tools/views/queue/job_records.hpp"
#include "tools/views/queue/queue_files.hpp"
#include "tools/views/queue/queue_page.hpp"
#include "tools/views/queue/queue_table.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/run/claim_text.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

}  // namespace

Exit run_queue(QueueSpec spec, const WrittenScenario& written, const PresetStore& presets,
               const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  if (options.has("allow-oom") && spec.trainings.empty()) {
    throw UsageError(fmt::format(
        "lockstep run: --allow-oom is for a scenario with trainings; the queue of {} has none",
        spec.file));
  }
  time_trainings(spec, options.has("allow-oom"));
  const InterruptGuard guard;
  QueueResult result;
  {
    Progress progress(console.err, "jobs", spec.jobs.size(), console.err_is_terminal);
    ForeseenWork work(spec.file, jobs_text(spec.jobs.size()), progress);
    const bool spans =
        reports || format == "csv" || options.has("trace") || options.has("accounting");
    result =
        simulate_queue(spec, {.keep_spans = spans,
                              .without_bursts = true,
                              .go_on = [&](std::size_t ended, std::size_t all) {
                                if (ended > 0) progress.update(ended, all);
                                work.reached(static_cast<double>(ended) / static_cast<double>(all));
                                return !InterruptGuard::interrupted();
                              }});
  }
  if (result.stopped) console.err << "lockstep run: interrupted\n";
  settle_campaigns(spec, result);
  const QueueAnswer answer{spec, result, summary_of(spec, result), written};
  const bool judged = format == "json" || !assertions.empty() || spec.expect || reports;
  nlohmann::ordered_json json = judged ? queue_json(answer) : nlohmann::ordered_json();
  std::vector<std::string> misses = all_missed(assertions, json);
  const auto claim = judge_claim(spec.expect, json, misses);
  if (reports) {
    const Behind behind(spec.file, ScenarioAnswer(AnswerKind::queue, json), presets);
    write_report(options, queue_page(answer, &behind, claim.get()));
  }
  write_option_file(options, "trace", [&] { return queue_timeline(answer); });
  write_option_file(options, "metrics", [&] { return queue_metrics(answer); });
  write_option_file(options, "accounting", [&] {
    const bool is_log = options.get("accounting").ends_with(".swf");
    return is_log ? workload_log(answer) : accounting_table(answer);
  });
  const TextStyle style = output_style(options, console);
  write_output(format == "json" ? Answer(JsonText(json))
               : format == "csv"
                   ? Answer(queue_csv(answer))
                   : Answer::terminal(queue_table(answer, style) + claim_text(claim.get(), style)),
               options, console);
  const Exit missed = report_misses(misses, console);
  return result.stopped ? Exit::interrupted : missed;
}

}  // namespace lockstep
