#include "tools/views/report/shared_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/shared_answer.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/congestion/shared_run.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/congestion_page.hpp"
#include "tools/views/report/congestion_words.hpp"

namespace lockstep {
std::string staggered_words(const SharedScenario& scenario, const SharedPower& power) {
  const StaggeredSteps& of = *power.staggered;
  std::string out = fmt::format(
      "Steps that begin at once swing the site from {} to {}. In one rhythm of {}, each begun "
      "where "
      "others draw least, from {} to {}",
      power_text(of.low_together), power_text(of.high_together),
      duration_text(of.period.base_units()), power_text(of.low), power_text(of.high));
  std::string cost;
  for (std::size_t j = 0; j < of.longer.size(); ++j) {
    if (of.longer[j] < 5e-5) continue;
    cost += fmt::format("{}{} by {:.2f} %", cost.empty() ? "" : ", ", scenario.jobs[j].name,
                        100 * of.longer[j]);
  }
  out += cost.empty() ? ", at no cost, as all steps are as long."
                      : "; steps get longer: " + cost + ".";
  return out + " Steps that keep no rhythm drift through both.";
}

namespace {

using Align = TextTable::Align;

constexpr std::size_t kTransfers = 10;  // rows on a terminal; JSON has all that were kept
constexpr std::size_t kLinks = 8;
constexpr std::size_t kSteps = 12;
constexpr double kNoticeable = 1.0005;  // slowdowns that three digits show

std::string times(double slowdown) { return fmt::format("{:.3f}", slowdown); }

std::string link_name(const CongestionReport& report, const TransferCongestion& t) {
  return t.worst_link < 0 ? "-" : report.links[static_cast<std::size_t>(t.worst_link)].name;
}

/// The link that cost a transfer most time, and the transfers that shared it.
std::string reason(const CongestionReport& report, const TransferCongestion& t) {
  if (t.mostly_stalled()) return "a dead link";
  if (t.worst_link < 0) return "-";
  std::string link = link_name(report, t);
  if (t.cause.empty()) return link;
  return fmt::format("{}: {} has {:.0f} %", link, t.cause.substr(0, t.cause.find(':')),
                     100 * t.cause_share);
}

/// "1.31 s, 13 % done" of what is not over.
std::string together_text(const JobCongestion& job) {
  if (job.step_s <= 0) return "not begun";
  const std::string time = duration_text(job.step_s);
  return job.done_share < 1 ? fmt::format("{}, {} done", time, percent_text(job.done_share)) : time;
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
    table.add({job.name, job.about, duration_text(job.alone_s), together_text(job),
               times(job.slowdown()), trains ? percent_text(result.jobs[j].alone_mfu_full) : "-",
               trains ? percent_text(result.jobs[j].mfu_full) : "-"});
  }
  return table.text(style);
}

/// What each job draws and costs, and all of them.
std::string shared_power_text(const SharedScenario& scenario,
                              const std::optional<SharedPower>& power, const TextStyle& style) {
  if (!power && !scenario.usd_per_gpu_hour) return {};
  const bool owned = power && prices_machines(scenario.power->cost);
  std::vector<TextTable::Column> columns{{"power and money", Align::left}};
  for (const char* title : {"GPU", "site", "J/token"}) {
    if (power) columns.push_back({title});
  }
  if (owned) columns.push_back({"USD/h owned"});
  if (scenario.usd_per_gpu_hour) columns.push_back({"USD/h rented"});
  TextTable table(columns);
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    std::vector<std::string> row{scenario.jobs[j].name};
    if (power) {
      const SharedJobPower& job = power->jobs[j];
      row.push_back(power_text(job.gpu));
      row.push_back(power_text(job.facility));
      row.push_back(significant(job.energy().base_units() / job.tokens));
      if (owned) row.push_back(compact(job.owned_usd_per_hour));
    }
    if (scenario.usd_per_gpu_hour)
      row.push_back(compact(rent_per_hour(scenario, scenario.jobs[j])));
    table.add(std::move(row));
  }
  std::vector<std::string> all{"all nodes"};
  if (power) {
    all.emplace_back();
    all.push_back(power_text(power->facility));
    all.emplace_back();
  }
  if (owned) all.push_back(compact(power->owned_usd_per_hour));
  if (scenario.usd_per_gpu_hour) all.push_back(compact(rent_per_hour(scenario)));
  table.add(std::move(all));
  std::string out = table.text(style);
  if (power && power->staggered)
    out += "  " + wrap(staggered_words(scenario, *power), 98, 2, 2) + "\n";
  return out + "\n";
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
  out += "; " + counted(static_cast<double>(event.links), "link");
  if (event.transfers == 0)
    return out + ", no transfer was on them at that moment, which says nothing of later ones";
  return out + fmt::format(", {} of {} {} on them",
                           counted(static_cast<double>(event.transfers), "transfer"),
                           fmt::join(event.jobs, ", "), event.transfers == 1 ? "was" : "were");
}

}  // namespace

std::vector<std::string> event_sentences(const CongestionReport& report) {
  std::vector<std::string> out;
  for (const EventOutcome& event : report.events) out.push_back(event_text(event));
  return out;
}

namespace {

std::string events_text(const CongestionReport& report) {
  if (report.events.empty()) return {};
  std::string out = "  events\n";
  for (const std::string& event : event_sentences(report)) {
    out += "    " + wrap(event, kTextColumns, 6, 4) + "\n";
  }
  return out + "\n";
}

std::string transfers_table(const CongestionReport& report, const TextStyle& style) {
  TextTable table(
      {{"most slowed", Align::left}, {"alone"}, {"slowdown"}, {"held back by", Align::left}});
  for (const TransferCongestion& t : report.transfers) {
    if (table.rows() == kTransfers || t.slowdown() < kNoticeable) break;
    table.add({t.job + ": " + t.name + (t.done_share < 1 ? ", not finished" : ""),
               duration_text(t.alone_s), times(t.slowdown()), reason(report, t)});
  }
  if (table.rows() == 0) return "  No transfer was slowed.\n";
  return table.text(style);
}

std::string links_table(const CongestionReport& report, const TextStyle& style) {
  TextTable table({{"fullest links", Align::left},
                   {"GB/s"},
                   {"mean use"},
                   {"in " + duration_text(report.bin_s)}});
  for (const LinkRow& row : fullest_rows(report, kLinks)) {
    const LinkCongestion& link = *row.link;
    table.add({row.name, significant(link.capacity_bytes_per_s / 1e9),
               percent_text(link.mean_utilisation), percent_text(link.peak_utilisation)});
  }
  return table.text(style);
}

JobBands bands_of(const SharedResult& result, const HashAnswer& hash, std::size_t j) {
  return bands_of(hash, result.congestion.jobs.size(), j);
}

/// Which draw of the hashes the answer is of, and the bands over several.
std::string hash_lines(const SharedResult& result, const std::optional<HashAnswer>& hash,
                       const TextStyle& style) {
  if (!hash) return {};
  if (hash->draws == 1) return "  hash: " + one_draw_text(*hash) + "\n\n";
  TextTable table({{fmt::format("over {} hash draws", hash->draws), Align::left},
                   {"least"},
                   {"draw"},
                   {"median"},
                   {"draw"},
                   {"most"},
                   {"draw"}});
  const auto add = [&table](std::string what, const HashBand& band, std::string (*text)(double)) {
    std::vector<std::string> cells{std::move(what)};
    for (const HashDraw& of : {band.least, band.median, band.most}) {
      cells.push_back(text(of.value));
      cells.push_back(std::to_string(of.draw));
    }
    table.add(std::move(cells));
  };
  for (std::size_t j = 0; j < result.congestion.jobs.size(); ++j) {
    const JobBands bands = bands_of(result, *hash, j);
    const std::string& job = result.congestion.jobs[j].name;
    add(job + ", together", bands.step, duration_text);
    add(job + ", slowdown", bands.slowdown, times);
  }
  return table.text(style) +
         fmt::format("  all else is of draw {} of the paths' hashes\n\n", hash->draw);
}

/// What a line says of power and money, where the scenario asks for it.
struct PowerColumns {
  const SharedScenario& scenario;
  const SharedPower* power;
  bool owned;

  void add_titles(std::vector<std::string>& cells) const {
    if (power != nullptr) {
      cells.insert(cells.end(), {"gpu_mean_w", "facility_mean_w", "facility_peak_w",
                                 "energy_per_step_j", "joules_per_token"});
    }
    if (owned) cells.insert(cells.end(), {"owned_usd_per_hour", "owned_usd_per_trillion_tokens"});
    if (scenario.usd_per_gpu_hour) cells.emplace_back("rent_usd_per_hour");
  }
  /// Adds empty cells for jobs that are no training.
  void add(std::size_t j, std::vector<std::string>& cells) const {
    std::vector<double> numbers;
    const bool trains = j < scenario.jobs.size();
    if (trains && power != nullptr) {
      const SharedJobPower& job = power->jobs[j];
      const double joules = job.energy().base_units();
      numbers = {job.gpu.base_units(), job.facility.base_units(), job.peak.base_units(), joules,
                 joules / job.tokens};
      if (owned) {
        numbers.insert(numbers.end(), {job.owned_usd_per_hour, job.usd_per_trillion_tokens});
      }
    }
    if (trains && scenario.usd_per_gpu_hour) {
      numbers.push_back(rent_per_hour(scenario, scenario.jobs[j]));
    }
    for (const double number : numbers) cells.push_back(number_text(number));
    std::vector<std::string> titles;
    add_titles(titles);
    cells.resize(cells.size() + titles.size() - numbers.size());
  }
};

}  // namespace

std::vector<double> drawn_numbers(const SharedResult& result) {
  std::vector<double> out;
  for (const JobCongestion& job : result.congestion.jobs) out.push_back(job.step_s);
  for (const JobCongestion& job : result.congestion.jobs) out.push_back(job.slowdown());
  return out;
}

std::string shared_table(const SharedScenario& scenario, const SharedResult& result,
                         const std::optional<SharedPower>& power,
                         const std::optional<HashAnswer>& hash, const TextStyle& style) {
  const CongestionReport& report = result.congestion;
  std::string out = style.bold(scenario.file) + "\n";
  if (power) {
    const std::string warning = limit_warning(power->peak, *scenario.power);
    if (!warning.empty()) out += "  " + wrap("Power limit " + warning, kTextColumns, 2, 2) + "\n";
  }
  if (!scenario.about.empty()) out += "  " + wrap(scenario.about, kTextColumns, 2, 2) + "\n";
  out += "  " + report.fabric + "\n\n" + jobs_table(result, style) + "\n" +
         shared_power_text(scenario, power, style) + hash_lines(result, hash, style) +
         events_text(report) + steps_table(scenario, result, style) +
         transfers_table(report, style) + "\n" + links_table(report, style);
  for (const std::string& note : report.notes)
    out += "\n  " + wrap("Note: " + note, kTextColumns, 2, 2);
  if (!report.notes.empty()) out += "\n";
  return out + assumed_lines(scenario.assumptions, style);
}

CsvText shared_csv(const SharedScenario& scenario, const SharedResult& result,
                   const std::optional<SharedPower>& power, const std::optional<HashAnswer>& hash) {
  const bool banded = hash && hash->draws > 1;
  std::vector<std::string> cells{"job", "alone_s", "step_s", "slowdown", "bytes"};
  for (const char* name : {"hash_least_s", "hash_median_s", "hash_most_s", "hash_slowdown_least",
                           "hash_slowdown_median", "hash_slowdown_most"}) {
    if (banded) cells.emplace_back(name);
  }
  const PowerColumns powered{.scenario = scenario,
                             .power = power ? &*power : nullptr,
                             .owned = power && prices_machines(scenario.power->cost)};
  powered.add_titles(cells);
  CsvText out = csv_line(cells);
  for (std::size_t j = 0; j < result.congestion.jobs.size(); ++j) {
    const JobCongestion& job = result.congestion.jobs[j];
    cells = {job.name, number_text(job.alone_s),
             job.done_share < 1 ? std::string() : number_text(job.step_s),
             number_text(job.slowdown()), number_text(job.bytes)};
    if (banded) {
      const JobBands bands = bands_of(result, *hash, j);
      for (const HashBand& band : {bands.step, bands.slowdown}) {
        for (const HashDraw& of : {band.least, band.median, band.most}) {
          cells.push_back(number_text(of.value));
        }
      }
    }
    powered.add(j, cells);
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
