#include "tools/lockstep/run_shared.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/layer/memory.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/congestion/shared_work.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/report/congestion_page.hpp"
#include "tools/lockstep/work_budget.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr std::size_t kTransfers = 10;  // rows on a terminal; JSON has all that were kept
constexpr std::size_t kLinks = 8;
constexpr std::size_t kSteps = 12;
constexpr double kNoticeable = 1.0005;  // slowdowns that three digits show

std::string times(double slowdown) { return fmt::format("{:.3f}", slowdown); }

std::string link_name(const CongestionReport& report, const TransferCongestion& t) {
  return t.worst_link < 0 ? "-" : report.links[static_cast<std::size_t>(t.worst_link)].name;
}

/// What held a transfer back longest, and who else was there.
std::string reason(const CongestionReport& report, const TransferCongestion& t) {
  if (t.mostly_stalled()) return "a dead link";
  if (t.worst_link < 0) return "-";
  std::string link = link_name(report, t);
  if (t.cause.empty()) return link;
  return fmt::format("{}: {} has {:.0f} %", link, t.cause.substr(0, t.cause.find(':')),
                     100 * t.cause_share);
}

std::string jobs_table(const SharedResult& result, const TextStyle& style) {
  TextTable table({{"job", Align::left},
                   {"what", Align::left},
                   {"alone"},
                   {"together"},
                   {"slowdown"},
                   {"MFU alone"},
                   {"MFU"}});
  const CongestionReport& report = result.congestion;
  for (std::size_t j = 0; j < report.jobs.size(); ++j) {
    const JobCongestion& job = report.jobs[j];
    const bool trains = j < result.jobs.size();
    table.add({job.name, job.about, duration_text(job.alone_s), duration_text(job.step_s),
               times(job.slowdown()), trains ? percent_text(result.jobs[j].alone_mfu_full) : "-",
               trains ? percent_text(result.jobs[j].mfu_full) : "-"});
  }
  return table.text(style);
}

/// Which step a failure of the fabric hit.
std::string steps_table(const SharedScenario& scenario, const SharedResult& result,
                        const TextStyle& style) {
  if (scenario.events.empty()) return {};
  std::vector<TextTable::Column> columns{{"step", Align::left}};
  for (const SharedJob& job : scenario.jobs) columns.push_back({job.name});
  TextTable table(columns);
  for (std::size_t s = 0; s < static_cast<std::size_t>(scenario.steps) && s < kSteps; ++s) {
    std::vector<std::string> row{std::to_string(s)};
    for (const SharedJobResult& job : result.jobs) row.push_back(duration_text(job.steps_s[s]));
    table.add(std::move(row));
  }
  return table.text(style) + "\n";
}

/// "0.5 ms: switch spine 1 goes down for 1 ms: 16 links, 3 transfers of training-a were on them"
std::string event_text(const EventOutcome& event) {
  std::string out = fmt::format("{}: {}", duration_text(event.at_s), event.what);
  if (event.lasts_s > 0) out += " for " + duration_text(event.lasts_s);
  if (event.times == 0) return out + "; the jobs had ended before";
  if (event.times > 1) out += fmt::format(", {} times", event.times);
  out += fmt::format("; {} links", event.links);
  if (event.transfers == 0) return out + ", no transfer was on them";
  return out + fmt::format(", {} transfers of {} were on them", event.transfers,
                           fmt::join(event.jobs, ", "));
}

std::string events_text(const CongestionReport& report) {
  if (report.events.empty()) return {};
  std::string out = "  events\n";
  for (const EventOutcome& event : report.events) {
    out += "    " + wrap(event_text(event), 96, 6) + "\n";
  }
  return out + "\n";
}

std::string transfers_table(const CongestionReport& report, const TextStyle& style) {
  TextTable table(
      {{"most slowed", Align::left}, {"alone"}, {"slowdown"}, {"held back by", Align::left}});
  for (const TransferCongestion& t : report.transfers) {
    if (table.rows() == kTransfers || t.slowdown() < kNoticeable) break;
    table.add(
        {t.job + ": " + t.name, duration_text(t.alone_s), times(t.slowdown()), reason(report, t)});
  }
  if (table.rows() == 0) return "  No transfer was slowed.\n";
  return table.text(style);
}

std::string links_table(const CongestionReport& report, const TextStyle& style) {
  TextTable table({{"fullest links", Align::left},
                   {"GB/s"},
                   {"mean use"},
                   {"in " + duration_text(report.bin_s)}});
  for (const LinkCongestion& link : report.links) {
    if (table.rows() == kLinks) break;
    table.add({link.name, significant(link.capacity_bytes_per_s / 1e9),
               percent_text(link.mean_utilisation), percent_text(link.peak_utilisation)});
  }
  return table.text(style);
}

std::string table_text(const SharedScenario& scenario, const SharedResult& result,
                       const TextStyle& style) {
  const CongestionReport& report = result.congestion;
  std::string out = style.bold(scenario.file) + "\n";
  if (!scenario.about.empty()) out += "  " + wrap(scenario.about, 98, 2) + "\n";
  out += "  " + report.fabric + "\n\n" + jobs_table(result, style) + "\n" + events_text(report) +
         steps_table(scenario, result, style) + transfers_table(report, style) + "\n" +
         links_table(report, style);
  for (const std::string& note : report.notes) out += "\n  " + wrap("Note: " + note, 98, 2);
  if (!report.notes.empty()) out += "\n";
  for (const std::string& assumed : scenario.assumptions) {
    out += style.dim("  assumed: " + assumed) + "\n";
  }
  return out;
}

Json job_json(const SharedResult& result, std::size_t index) {
  const JobCongestion& job = result.congestion.jobs[index];
  Json out{{"name", job.name},
           {"about", job.about},
           {"step_s", twelve_digits(job.step_s)},
           {"alone_s", twelve_digits(job.alone_s)},
           {"slowdown", twelve_digits(job.slowdown())},
           {"bytes", twelve_digits(job.bytes)}};
  if (index >= result.jobs.size()) return out;
  const SharedJobResult& training = result.jobs[index];
  out["mfu"] = twelve_digits(training.mfu_full);
  out["alone_mfu"] = twelve_digits(training.alone_mfu_full);
  out["mfu_full"] = out["mfu"];  // as it was called before
  out["alone_mfu_full"] = out["alone_mfu"];
  for (const double step : training.steps_s) out["steps_s"].push_back(twelve_digits(step));
  return out;
}

Json shared_json(const SharedScenario& scenario, const SharedResult& result) {
  const CongestionReport& report = result.congestion;
  double most_slowed = 1;
  for (const JobCongestion& job : report.jobs) most_slowed = std::max(most_slowed, job.slowdown());
  Json out{{"scenario", scenario.file},
           {"fabric", report.fabric},
           {"simulated_s", twelve_digits(report.end_s)},
           {"slowdown_max", twelve_digits(most_slowed)},
           {"jobs", Json::array()},
           {"transfers", Json::array()},
           {"links_used", report.links_used},
           {"links", Json::array()},
           {"events", Json::array()},
           {"notes", report.notes},
           {"assumptions", scenario.assumptions}};
  for (std::size_t j = 0; j < report.jobs.size(); ++j) out["jobs"].push_back(job_json(result, j));
  for (const TransferCongestion& t : report.transfers) {
    out["transfers"].push_back({{"job", t.job},
                                {"name", t.name},
                                {"runs", t.runs},
                                {"bytes", twelve_digits(t.bytes)},
                                {"mean_s", twelve_digits(t.mean_s)},
                                {"alone_s", twelve_digits(t.alone_s)},
                                {"slowdown", twelve_digits(t.slowdown())},
                                {"stalled_s", twelve_digits(t.stalled_s)},
                                {"worst_link", link_name(report, t)},
                                {"worst_link_share", twelve_digits(t.worst_link_share)},
                                {"cause", t.cause},
                                {"cause_share", twelve_digits(t.cause_share)}});
  }
  for (const EventOutcome& event : report.events) {
    out["events"].push_back({{"what", event.what},
                             {"at_s", twelve_digits(event.at_s)},
                             {"lasts_s", twelve_digits(event.lasts_s)},
                             {"times", event.times},
                             {"links", event.links},
                             {"transfers", event.transfers},
                             {"jobs", event.jobs}});
  }
  for (const LinkCongestion& link : report.links) {
    out["links"].push_back({{"name", link.name},
                            {"capacity_bytes_per_s", twelve_digits(link.capacity_bytes_per_s)},
                            {"mean_utilisation", twelve_digits(link.mean_utilisation)},
                            {"peak_utilisation", twelve_digits(link.peak_utilisation)}});
  }
  return out;
}

/// A line per job.
CsvText shared_csv(const SharedResult& result) {
  const auto line = [](std::vector<std::string> cells) { return csv_line(cells); };
  CsvText out = line({"job", "alone_s", "step_s", "slowdown", "bytes"});
  for (const JobCongestion& job : result.congestion.jobs) {
    out += line({job.name, number_text(job.alone_s), number_text(job.step_s),
                 number_text(job.slowdown()), number_text(job.bytes)});
  }
  return out;
}

void require_memory(const SharedScenario& scenario) {
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const Scenario& job = scenario.jobs[j].scenario;
    const MemoryVerdict memory = check_memory(job.job, job.stack, job.node.gpu);
    if (memory.fits) continue;
    const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
    throw InputError(
        {.file = scenario.file,
         .pointer = fmt::format("/jobs/{}", j),
         .found = fmt::format("a job that needs {} on a GPU", gib(memory.peak.needed())),
         .allowed = fmt::format("at most {} (--allow-oom predicts anyway)", gib(memory.usable)),
         .nearest = {}});
  }
}

}  // namespace

Exit run_shared(const JsonCursor& root, const PresetStore& presets, const ParsedOptions& options,
                Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));

  const SharedScenario scenario = read_shared_scenario(root, presets, options.all("profile"));
  if (!options.has("allow-oom")) require_memory(scenario);
  const SharedWork work = shared_work(scenario);
  const WorkEstimate estimate{.place = scenario.file + "#" + work.pointer,
                              .what = work.what,
                              .seconds = work.takes.base_units(),
                              .bytes = work.holds.base_units()};
  check_work_memory(estimate, memory_limit());
  announce_work(estimate, console.err);
  const SharedResult result =
      simulate_shared(scenario, {.draw = options.has("report"), .limits = {}});
  const Json json = shared_json(scenario, result);
  const std::vector<std::string> misses = all_missed(assertions, json);
  if (options.has("report")) {
    OutputFile file(options.get("report"));
    file.write(congestion_page(result.congestion));
    file.commit();
  }
  const TextStyle style = output_style(options, console);
  write_output(format == "json"  ? Answer(JsonText(json))
               : format == "csv" ? Answer(shared_csv(result))
                                 : Answer::terminal(table_text(scenario, result, style)),
               options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
