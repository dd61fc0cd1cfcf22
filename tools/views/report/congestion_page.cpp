#include "tools/views/report/congestion_page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/power/shared_power.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/claim_section.hpp"
#include "tools/views/report/congestion_charts.hpp"
#include "tools/views/report/congestion_words.hpp"
#include "tools/views/report/fabric_picture.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/shared_table.hpp"

namespace lockstep {
namespace {

/// Cell of an unfinished transfer: its time so far, and the share that is done.
PageCell time_so_far(double seconds, double done_share) {
  constexpr double kAllButRounding = 1 - 5e-4;
  if (done_share >= kAllButRounding) return PageCell::number(page_duration(seconds), seconds);
  return {
      .content = with_detail(escaped(page_duration(seconds)), page_percent(done_share) + " done"),
      .sort = seconds};
}

PageCell duration_cell(double seconds) {
  return seconds > 0 ? PageCell::number(page_duration(seconds), seconds) : PageCell::unknown();
}

/// The bar is full for the largest slowdown of the table, or for twice the time.
PageCell slowdown_cell(double slowdown, bool known, double largest) {
  if (!known) return PageCell::unknown();
  constexpr double kShownAsOne = 1.005;
  const double share = largest >= kShownAsOne ? (slowdown - 1) / std::max(1.0, largest - 1) : 0;
  return {.content = with_bar(fmt::format("{:.3f}×", slowdown), share), .sort = slowdown};
}

/// `trainings`: the first of the jobs; none where it is not known.
void add_jobs(Page& page, const CongestionReport& report,
              std::span<const SharedJobResult> trainings) {
  PageTable table{
      .columns =
          {{.title = "Job"},
           {.title = "Slowdown", .numeric = true, .about = "together / alone"},
           {.title = "Alone", .numeric = true, .about = "time with nothing else on the fabric"},
           {.title = "Together", .numeric = true, .about = "time with all jobs on the fabric"},
           {.title = "Sent by its NICs",
            .numeric = true,
            .about = "bytes put on the fabric in all that was simulated"}},
      .first_rows = 12};
  if (!trainings.empty()) {
    table.columns.push_back({.title = "MFU alone", .numeric = true});
    table.columns.push_back({.title = "MFU", .numeric = true, .about = "with all jobs"});
  }
  double largest = 1;
  for (const JobCongestion& job : report.jobs) largest = std::max(largest, job.slowdown());
  const std::vector<std::size_t> colours = job_colours(report.jobs);
  for (std::size_t i = 0; i < report.jobs.size(); ++i) {
    const JobCongestion& job = report.jobs[i];
    table.rows.push_back({{.content = with_detail(coloured_name(job.name, colours[i]), job.about)},
                          slowdown_cell(job.slowdown(), job.alone_s > 0, largest),
                          duration_cell(job.alone_s),
                          time_so_far(job.step_s, job.done_share),
                          PageCell::number(page_bytes(job.bytes), job.bytes)});
    if (trainings.empty()) continue;
    const auto mfu = [&](double SharedJobResult::* of) {
      if (i >= trainings.size()) return PageCell::unknown();
      const double value = trainings[i].*of;
      return PageCell::number(page_percent(value, 1), value);
    };
    table.rows.back().push_back(mfu(&SharedJobResult::alone_mfu_full));
    table.rows.back().push_back(mfu(&SharedJobResult::mfu_full));
  }
  const bool alone =
      std::ranges::any_of(report.jobs, [](const JobCongestion& job) { return job.alone_s > 0; });
  page.section("Jobs", std::string("A step of training, the mean of those simulated, or all of "
                                   "other traffic") +
                           (alone ? ": alone on the fabric, and together." : "."));
  page.table(table);
}

/// The job that a cause "job: transfer" belongs to, in its colour.
Html coloured_cause(const CongestionReport& report, const std::vector<std::size_t>& colours,
                    const std::string& cause) {
  for (std::size_t i = 0; i < report.jobs.size(); ++i) {
    if (cause == report.jobs[i].name || cause.starts_with(report.jobs[i].name + ": ")) {
      return coloured_name(cause, colours[i]);
    }
  }
  return escaped(cause);
}

std::size_t colour_of_job(const CongestionReport& report, const std::vector<std::size_t>& colours,
                          const std::string& name) {
  for (std::size_t i = 0; i < report.jobs.size(); ++i) {
    if (report.jobs[i].name == name) return colours[i];
  }
  return kPageColours;
}

Html cause_text(const CongestionReport& report, const std::vector<std::size_t>& colours,
                const TransferCongestion& transfer) {
  return with_detail(coloured_cause(report, colours, transfer.cause),
                     fmt::format("{} of the bytes", page_percent(transfer.cause_share)));
}

/// What prints as 1.000 times as long was not held back.
constexpr double kSlowed = 1.0005;

std::vector<PageCell> transfer_row(const CongestionReport& report,
                                   const TransferCongestion& transfer,
                                   const std::vector<std::size_t>& colours, double largest) {
  const std::string start = page_duration(transfer.start_s);
  const std::string of_job = transfer.runs > 1 ? fmt::format("{}, {} runs from {}", transfer.job,
                                                             grouped(transfer.runs), start)
                                               : fmt::format("{}, at {}", transfer.job, start);
  const Html name = coloured_name(transfer.name, colour_of_job(report, colours, transfer.job));
  std::vector<PageCell> row{{.content = with_detail(name, of_job)},
                            slowdown_cell(transfer.slowdown(), transfer.alone_s > 0, largest),
                            duration_cell(transfer.alone_s),
                            time_so_far(transfer.mean_s, transfer.done_share)};
  if (transfer.mostly_stalled()) {
    const double share = transfer.stalled_s / transfer.mean_s;
    row.insert(row.end(),
               {PageCell::text("a dead link"),
                PageCell::number(page_percent(share) + " of it", share), PageCell::unknown()});
  } else if (transfer.worst_link >= 0 && transfer.slowdown() >= kSlowed) {
    const double share = transfer.worst_link_share;
    row.push_back(PageCell::text(report.links[static_cast<std::size_t>(transfer.worst_link)].name));
    row.push_back(PageCell::number(page_percent(share) + " of it", share));
    row.push_back(transfer.cause.empty()
                      ? PageCell::unknown()
                      : PageCell{.content = cause_text(report, colours, transfer)});
  } else {
    row.insert(row.end(),
               {PageCell::text("its own pace"), PageCell::unknown(), PageCell::unknown()});
  }
  row.push_back(PageCell::number(page_bytes(transfer.bytes), transfer.bytes));
  return row;
}

/// `own_job`: transfers are compared with their job alone, which has others of its own beside them.
void add_transfers(Page& page, const CongestionReport& report, bool own_job) {
  const auto shown =
      std::span(report.transfers).first(std::min(kPageTransfers, report.transfers.size()));
  std::string lead = fmt::format(
      "The mean run of each transfer, latency left out: {}, and with all that was there.",
      own_job ? "with its job alone on the fabric"
              : "with its links to itself, not even beside others of its own job");
  if (shown.size() < report.transfers_run) {
    lead += fmt::format(" The {} most slowed of {}.", shown.size(),
                        grouped(static_cast<double>(report.transfers_run)));
  }
  PageTable table{
      .columns = {{.title = "Transfer"},
                  {.title = "Slowdown",
                   .numeric = true,
                   .about = own_job ? "together / its job alone" : "together / links to itself"},
                  {.title = own_job ? "Its job alone" : "Links to itself",
                   .numeric = true,
                   .about = own_job ? "time beside the others of its own job"
                                    : "time if no other transfer used a link of its way"},
                  {.title = "Together", .numeric = true},
                  {.title = "Held back on",
                   .about = "the link that cost it most time against alone"},
                  {.title = "Held back for",
                   .numeric = true,
                   .about = "how long that link made it slower than alone"},
                  {.title = "Most bytes of another",
                   .about = "who else put most bytes on that link meanwhile"},
                  {.title = "Payload", .numeric = true, .about = "bytes of a run"}},
      .first_rows = 10,
      .sorted_by = 1};
  double largest = 1;
  for (const TransferCongestion& each : shown) largest = std::max(largest, each.slowdown());
  const std::vector<std::size_t> colours = job_colours(report.jobs);
  for (const TransferCongestion& each : shown) {
    table.rows.push_back(transfer_row(report, each, colours, largest));
  }
  page.section("Transfers, most slowed first", lead);
  page.table(table);
}

PageCell watts_cell(Watts watts) {
  return PageCell::number(page_watts(watts.base_units()), watts.base_units());
}
PageCell money_cell(double usd) { return PageCell::number(page_usd(usd), usd); }

/// A row of the table of power; a value that is left out is a dash.
struct PoweredRow {
  std::string name;
  std::optional<Watts> gpu{}, site{}, peak{};
  std::optional<double> joules_per_token{}, owned{}, rent{};
};

std::vector<PoweredRow> powered_rows(const PowerOfJobs& of) {
  const bool owned = of.power != nullptr && prices_machines(of.scenario.power->cost);
  const bool rented = of.scenario.usd_per_gpu_hour.has_value();
  std::vector<PoweredRow> out;
  for (std::size_t j = 0; j < of.scenario.jobs.size(); ++j) {
    PoweredRow& row = out.emplace_back();
    row.name = of.scenario.jobs[j].name;
    if (rented) row.rent = rent_per_hour(of.scenario, of.scenario.jobs[j]);
    if (of.power == nullptr) continue;
    const SharedJobPower& job = of.power->jobs[j];
    row.gpu = job.gpu;
    row.site = job.facility;
    row.peak = job.peak;
    row.joules_per_token = job.energy().base_units() / job.tokens;
    if (owned) row.owned = job.owned_usd_per_hour;
  }
  if (of.power != nullptr && of.power->idle > Watts{}) {
    out.push_back({.name = "nodes that no job has", .site = of.power->idle});
  }
  PoweredRow& all = out.emplace_back();
  all.name = "all nodes";
  if (rented) all.rent = rent_per_hour(of.scenario);
  if (of.power == nullptr) return out;
  all.site = of.power->facility;
  all.peak = of.power->peak;
  if (owned) all.owned = of.power->owned_usd_per_hour;
  return out;
}

std::vector<PageFigure> power_figures(const PowerOfJobs& of, const Behind* behind) {
  const auto field = [behind](std::string_view name) {
    return behind != nullptr ? behind->one_of({name}) : std::string();
  };
  std::vector<PageFigure> out;
  if (of.power != nullptr) {
    out.push_back({.value = page_watts(of.power->facility.base_units()),
                   .label = "drawn by the site on average",
                   .field = field("facility_mean_w")});
    if (prices_machines(of.scenario.power->cost)) {
      out.push_back({.value = page_usd(of.power->owned_usd_per_hour),
                     .label = "an hour of all machines, owned",
                     .field = field("owned_usd_per_hour")});
    }
  }
  if (of.scenario.usd_per_gpu_hour) {
    out.push_back({.value = page_usd(rent_per_hour(of.scenario)),
                   .label = "an hour of all GPUs, rented",
                   .field = field("rent_usd_per_hour")});
  }
  return out;
}

/// Who shares the fabric, where the report is named after its file.
std::string page_title(const CongestionReport& report) {
  constexpr std::size_t kNamed = 3;
  if (!report.title.ends_with(".json") || report.jobs.empty()) return report.title;
  if (report.jobs.size() > kNamed) {
    return counted(static_cast<double>(report.jobs.size()), "job") + " on one fabric";
  }
  std::string names = report.jobs.front().name;
  for (std::size_t i = 1; i < report.jobs.size(); ++i) {
    names += (i + 1 == report.jobs.size() ? " and " : ", ") + report.jobs[i].name;
  }
  return names + " on one fabric";
}

/// Whether the site's limit is exceeded.
Html jobs_limit_words(const PowerOfJobs* jobs) {
  if (jobs == nullptr || jobs->power == nullptr) return {};
  const std::string words = limit_warning(jobs->power->peak, *jobs->scenario.power);
  if (words.empty()) return {};
  return escaped("Power limit ") + strong(words) + escaped(". ");
}

}  // namespace

bool PowerOfJobs::known() const {
  return power != nullptr || scenario.usd_per_gpu_hour.has_value();
}

void add_power_of_jobs(Page& page, const PowerOfJobs& of) {
  PageTable table{
      .columns = {{.title = "Job"},
                  {.title = "GPU", .numeric = true, .about = "mean of one of its GPUs"},
                  {.title = "Site",
                   .numeric = true,
                   .about = "mean of its nodes, with their share of network and cooling"},
                  {.title = "At most", .numeric = true, .about = "the most that a meter reads"},
                  {.title = "Joules a token", .numeric = true},
                  {.title = "An hour, owned", .numeric = true},
                  {.title = "An hour, rented", .numeric = true}}};
  for (const PoweredRow& row : powered_rows(of)) {
    const auto watts = [](const std::optional<Watts>& of_row) {
      return of_row ? watts_cell(*of_row) : PageCell::unknown();
    };
    const auto usd = [](const std::optional<double>& of_row) {
      return of_row ? money_cell(*of_row) : PageCell::unknown();
    };
    table.rows.push_back(
        {PageCell::text(row.name), watts(row.gpu), watts(row.site), watts(row.peak),
         row.joules_per_token
             ? PageCell::number(page_with(*row.joules_per_token, "J"), *row.joules_per_token)
             : PageCell::unknown(),
         usd(row.owned), usd(row.rent)});
  }
  page.section("Power and money",
               "A job's step takes the energy that it takes alone, and what its GPUs draw while "
               "others make it wait.");
  page.table(table);
  if (of.power != nullptr && of.power->staggered) {
    page.paragraph(escaped(staggered_words(of.scenario, *of.power)));
  }
}

void add_congestion_headline(Page& page, const CongestionReport& report, const Behind* behind,
                             const PowerOfJobs* drawn) {
  const auto field = [behind](std::initializer_list<std::string_view> names) {
    return behind != nullptr ? behind->one_of(names) : std::string();
  };
  page.headline(jobs_limit_words(drawn) + congestion_headline(report));
  std::vector<PageFigure> figures;
  const std::size_t jobs = report.jobs.size();
  if (knows_jobs_alone(report)) {
    const JobCongestion& most = *std::ranges::max_element(
        report.jobs, {}, [](const JobCongestion& job) { return job.slowdown(); });
    figures.push_back(
        {.value = page_times(most.slowdown()),
         .label = jobs == 1 ? "slowdown of " + most.name : "largest slowdown, of " + most.name,
         .field = field({"slowdown_max"})});
    figures.push_back({.value = fmt::format("{} of {}", slowed_jobs(report), jobs),
                       .label = jobs == 1 ? "job slowed" : "jobs slowed"});
  }
  if (!report.links.empty()) {
    figures.push_back({.value = page_percent(report.links.front().mean_utilisation),
                       .label = "mean use of the fullest link, " + report.links.front().name,
                       .field = field({"links.0.mean_utilisation"})});
    figures.push_back(
        {.value = grouped(static_cast<double>(report.links_used)),
         .label = report.links_used == 1 ? "link carried traffic" : "links carried traffic",
         .field = field({"links_used", "simulation.links"})});
  }
  figures.push_back({.value = page_duration(report.end_s),
                     .label = "simulated",
                     .field = field({"simulated_s", "end_s"})});
  if (drawn != nullptr) {
    for (PageFigure& each : power_figures(*drawn, behind)) figures.push_back(std::move(each));
  }
  page.figures(figures);
}

void add_congestion_sections(Page& page, const CongestionReport& report, const PowerOfJobs* drawn) {
  const bool own_job = drawn != nullptr && knows_jobs_alone(report);
  if (!report.jobs.empty()) {
    add_jobs(page, report, own_job ? drawn->results : std::span<const SharedJobResult>());
  }
  if (report.use) add_fabric_picture(page, *report.use);
  if (!report.links.empty() && !report.links.front().utilisation.empty()) {
    add_heat_map(page, report);
    add_utilisation_lines(page, report);
    if (!report.jobs.empty()) add_bytes_by_job(page, report);
  }
  if (!report.events.empty()) {
    page.section("What failed meanwhile");
    page.list(event_sentences(report));
  }
  if (!report.transfers.empty()) add_transfers(page, report, own_job);
  if (!report.notes.empty()) {
    page.section("What was approximated");
    page.list(report.notes);
  }
}

/// Which step a failure of the fabric hit.
void add_steps(Page& page, const PowerOfJobs& of) {
  if (of.scenario.events.empty() || of.results.empty()) return;
  PageTable table{.columns = {{.title = "Step", .numeric = true}}, .first_rows = 12};
  for (const SharedJob& job : of.scenario.jobs) {
    table.columns.push_back({.title = job.name, .numeric = true});
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(of.scenario.steps); ++s) {
    std::vector<PageCell> row{PageCell::number(std::to_string(s), static_cast<double>(s))};
    for (const SharedJobResult& job : of.results) row.push_back(duration_cell(job.steps_s[s]));
    table.rows.push_back(std::move(row));
  }
  page.section("Steps",
               "How long each step of every training takes, in order. A step that a failure hits "
               "is longer.");
  page.table(table);
}

std::string congestion_page(const CongestionReport& report, const AnswerBasis& basis,
                            const Behind* behind, const ClaimCheck* claim,
                            const PowerOfJobs* drawn) {
  Page page("Congestion report", page_title(report));
  if (behind != nullptr) behind->open_figures(page);
  if (!report.about.empty()) page.about(report.about);
  if (!report.fabric.empty()) page.about("Fabric: " + report.fabric);
  add_congestion_headline(page, report, behind, drawn);
  add_claim_section(page, claim);
  if (drawn != nullptr) add_steps(page, *drawn);
  add_congestion_sections(page, report, drawn);
  if (drawn != nullptr && drawn->known()) add_power_of_jobs(page, *drawn);
  add_basis(page, basis);
  if (behind != nullptr) behind->add_to(page);
  if (!report.file.empty()) page.foot("Scenario: " + report.file + ".");
  if (knows_jobs_alone(report)) {
    page.foot("Slowdowns of jobs compare two simulations: all on the fabric, and each one alone.");
  }
  return page.html(chart_library());
}

}  // namespace lockstep
