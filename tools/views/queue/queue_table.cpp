#include "tools/views/queue/queue_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/scenario/queue_order_extension.hpp"
#include "sim/scenario/queue_policy_extension.hpp"
#include "tools/console/percent.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"
#include "tools/views/queue/node_names.hpp"
#include "tools/views/report/behind.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

constexpr int kQueueLabels = 18;
constexpr int kQueueBar = 34;
constexpr std::size_t kMostGroupRows = 20;
constexpr double kShown = 0.0005;  // shares of time that a table shows

std::string whole(std::size_t count) { return grouped(static_cast<double>(count)); }

/// Nothing is "0 s", not "0 us".
std::string wait_text(double seconds) { return seconds == 0 ? "0 s" : duration_text(seconds); }

std::string rules_text(const QueueSpec& spec) {
  std::string out = fmt::format("{}, {}", name_of(spec.order), name_of(spec.admission));
  constexpr std::array<std::string_view, kPreemptionNames.size()> kWords{
      "",
      ", jobs may be evicted",
      ", jobs are placed anew",
      ", preemption by quality of service",
      ", preemption by partition",
      ", preemption by cluster queue"};
  out += kWords[static_cast<std::size_t>(spec.preemption.mode)];
  if (const std::size_t victims = spec.preemption.victims; victims > 0) {
    out += fmt::format(" (first by {})", victim_rule_names()[victims]);
  }
  return out + fmt::format("; {} on a node, {} across nodes",
                           kWithinNodeNames[static_cast<std::size_t>(spec.placement.within_node)],
                           kAcrossNodesNames[static_cast<std::size_t>(spec.placement.across)]);
}

std::string queue_title(const QueueAnswer& a, const TextStyle& style) {
  const Cluster& cluster = a.spec.cluster;
  std::string out = style.bold(fmt::format("{} on {}", jobs_text(a.spec.jobs.size()),
                                           counted(cluster.gpus(), "GPU"))) +
                    fmt::format(" ({} x {}, {})\n", grouped(cluster.nodes), cluster.node.name,
                                cluster.node.gpu.name);
  if (!a.spec.about.empty()) out += wrap(a.spec.about, kTextColumns, 0) + "\n";
  out += "\n" + labelled_line("Rules", kQueueLabels, rules_text(a.spec));
  if (const std::string stands = stand_in_words(a.spec); !stands.empty()) {
    out += labelled_line("Jobs", kQueueLabels, stands);
  }
  return out;
}

std::string spread_text(const QueueSpread& spread, std::string (*text)(double)) {
  return fmt::format("{} on average; median {}, 90 % {}, 99 % {}, most {}", text(spread.mean),
                     text(spread.p50), text(spread.p90), text(spread.p99), text(spread.most));
}

/// Waits of a group. Of jobs that still wait at the end, only the time so far is known.
std::string waits_text(const QueueGroup& of) {
  if (!of.wait_s) return "-: no job was submitted";
  if (of.waiting == 0) return spread_text(*of.wait_s, wait_text);
  return fmt::format("at least {}; {} {} at the end, counted as far as {}",
                     spread_text(*of.wait_s, wait_text), jobs_text(of.waiting),
                     of.waiting == 1 ? "waits" : "wait", of.waiting == 1 ? "it has" : "they have");
}

std::string ended_text(const std::optional<QueueSpread>& spread, std::string (*text)(double)) {
  return spread ? spread_text(*spread, text) : "-: no job has ended";
}

/// A number of a spread for tables; "-" of no jobs.
std::string spread_cell(const std::optional<QueueSpread>& spread, double QueueSpread::* which,
                        std::string (*text)(double)) {
  return spread ? text((*spread).*which) : "-";
}

/// A number of a spread of waits; ">= 2.00 h" if some of the jobs still wait at the end.
std::string wait_cell(const QueueGroup& of, double QueueSpread::* which) {
  return (of.wait_s && of.waiting > 0 ? ">= " : "") + spread_cell(of.wait_s, which, wait_text);
}

std::string times_text(double slowdown) { return significant(slowdown); }

std::string megawatt_hours(Joules energy) {
  constexpr double kMegawattHour = 3.6e9;
  return significant(energy.base_units() / kMegawattHour);
}

std::string queue_power_lines(const QueueAnswer& a) {
  if (!a.summary.power) return {};
  const QueuePower& p = *a.summary.power;
  std::string energy = fmt::format("{} MWh at the site's meter", megawatt_hours(p.energy));
  if (p.least < p.most) {
    energy += fmt::format(", between {} and {} by what jobs draw that do not say it",
                          megawatt_hours(p.least), megawatt_hours(p.most));
  }
  if (p.owned.tonnes_co2) {
    energy += fmt::format("; {} t of CO2", significant(*p.owned.tonnes_co2));
  }
  return labelled_line(
             "Power", kQueueLabels,
             fmt::format("{} on average, at most {}{}; PUE {}", power_text(mean_power(p.facility)),
                         power_text(p.peak),
                         a.spec.power_cap ? " of a cap of " + power_text(*a.spec.power_cap) : "",
                         significant(p.pue))) +
         labelled_line("Energy", kQueueLabels, energy);
}

/// The costs by what the bill counts, then others to compare.
std::string queue_cost_line(const QueueAnswer& a) {
  const QueueBill& bill = a.summary.bill;
  if (!bill.of) return {};
  std::string text, compared;
  const auto add = [&](MoneyOf of, const std::optional<double>& usd, const std::string& how) {
    if (!usd) return;
    std::string& out = of == *bill.of ? text : compared;
    out += fmt::format("{}{} USD {}", out.empty() ? "" : ", ", compact(*usd), how);
  };
  add(MoneyOf::owned, bill.owned_usd, "owned");
  if (bill.rent_usd) {
    add(MoneyOf::rent, bill.rent_usd,
        fmt::format("rented at {} an hour", significant(*a.spec.usd_per_gpu_hour)));
  }
  if (bill.partial_usd) {
    add(MoneyOf::partial, bill.partial_usd,
        "for " + words_of(MoneyOf::partial, &a.spec.power->cost));
  }
  if (const auto rate = bill.usd_per_held_gpu_hour()) {
    text += fmt::format("; {} USD an hour of a GPU that a job held, {}", significant(*rate),
                        billed_words(a.spec, bill));
  }
  if (!compared.empty()) text += "; for comparison " + compared;
  return labelled_line("Cost", kQueueLabels, text);
}

/// What was rented and what that cost, then what it saved.
std::string burst_lines(const QueueAnswer& a) {
  if (!a.summary.burst) return {};
  return labelled_line("Burst", kQueueLabels, burst_words(*a.summary.burst)) +
         (a.summary.burst->without
              ? labelled_line("Without it", kQueueLabels, unburst_words(*a.summary.burst))
              : std::string());
}

std::string licenses_line(const QueueAnswer& a) {
  std::string text;
  for (const LicenseUse& of : a.summary.licenses) {
    text += fmt::format("{}{}: {} of {} held on average", text.empty() ? "" : "; ", of.name,
                        significant(of.held_mean), grouped(of.count));
  }
  return text.empty() ? text : labelled_line("Licences", kQueueLabels, text);
}

}  // namespace

std::string burst_words(const BurstSummary& of) {
  if (of.jobs == 0) return "no job ran on rented nodes";
  std::string out = fmt::format("{} on rented nodes, at most {} at a time; {} GPU h for {} USD",
                                jobs_text(of.jobs), grouped(of.counts.most_nodes),
                                grouped(of.counts.rented.gpu_hours()), compact(of.counts.usd()));
  if (of.counts.egress_usd > 0) {
    out += fmt::format(", {} of it for what left the cloud", compact(of.counts.egress_usd));
  }
  const double all = of.counts.rented.gpu_seconds();
  std::string parts;
  for (std::size_t b = 0; b < kRentedBuckets; ++b) {
    const double share = all > 0 ? of.counts.books[b].gpu_seconds() / all : 0;
    if (std::abs(share) < kShown) continue;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", kRentedBucketNames[b],
                         percent_text(share));
  }
  return parts.empty() ? out : out + "; " + parts;
}

std::string unburst_words(const BurstSummary& of) {
  std::string out = fmt::format("mean wait {}{}", of.without->waiting > 0 ? "at least " : "",
                                wait_text(of.without->wait_mean_s));
  if (of.without->waiting > 0)
    out += fmt::format(", {} wait at the end", jobs_text(of.without->waiting));
  if (const std::optional<double> usd = of.usd_per_saved_hour()) {
    out += fmt::format("; {} USD for an hour less of waiting", significant(*usd));
  }
  return out;
}

std::string health_words(const QueueAnswer& a) {
  if (!a.result.health) return {};
  const NodeHealthCounts& of = *a.result.health;
  std::string text;
  const auto number = [](std::int64_t count, std::string_view noun) {
    return counted(static_cast<double>(count), noun);
  };
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
  if (of.drained > 0) {
    const double mean_s = to_seconds(of.emptying).base_units() / static_cast<double>(of.drained);
    std::string words = fmt::format("{} drained, {} after the drain on average",
                                    number(of.drained, "node"), wait_text(mean_s));
    if (of.stopped_jobs > 0) words += fmt::format(", {} stopped", number(of.stopped_jobs, "job"));
    add(words);
  }
  if (of.lemons > 0) {
    add(fmt::format("{} among the nodes, with {} of the {}", number(of.lemons, "lemon"),
                    grouped(static_cast<double>(of.lemon_failures)),
                    number(a.result.node_failures, "failure")));
  }
  if (a.spec.health.detection.failures > 0) {
    add(fmt::format("{} taken out, {} of them lemons", number(of.taken_out, "node"),
                    grouped(static_cast<double>(of.lemons_found))));
  }
  return text;
}

namespace {

std::string queue_headline(const QueueAnswer& a) {
  const QueueSummary& s = a.summary;
  const auto line = [](std::string_view label, const std::string& text) {
    return labelled_line(label, kQueueLabels, text);
  };
  std::string out = "\n";
  if (s.power) {
    const std::string warning = limit_warning(s.power->peak, *a.spec.power);
    if (!warning.empty()) out += line("Site limit", warning);
  }
  out += line("Wait", waits_text(s.all));
  out += line("Completion", ended_text(s.all.completion_s, duration_text));
  out += line("Slowdown", ended_text(s.all.slowdown, times_text));
  out +=
      line("Utilisation", fmt::format("{} of {}, makespan {}{}", percent_text(s.utilisation),
                                      duration_text(to_seconds(a.result.end).base_units()),
                                      s.makespan_s && s.all.ended < s.all.jobs ? "at least " : "",
                                      s.makespan_s ? duration_text(*s.makespan_s) : "-"));
  const std::size_t running = s.all.jobs - s.all.ended - s.never_started;
  if (s.all.ended < s.all.jobs) {
    out += line("Not ended", fmt::format("{} started and not ended, {} never started",
                                         jobs_text(running), whole(s.never_started)));
  }
  if (s.cut > 0)
    out += line("Cut", jobs_text(s.cut) + ", by their time limit or their reservation's end");
  if (s.cancelled > 0) {
    out += line("Cancelled", jobs_text(s.cancelled) +
                                 ": refused, preempted for good, or by a dependency that cannot be "
                                 "met");
  }
  if (a.result.evictions > 0) {
    out += line("Evictions", grouped(static_cast<double>(a.result.evictions)));
  }
  if (a.result.suspensions > 0) {
    out += line("Suspensions", grouped(static_cast<double>(a.result.suspensions)));
  }
  if (a.result.node_failures > 0) {
    out += line("Node failures", grouped(static_cast<double>(a.result.node_failures)));
  }
  if (const std::string words = health_words(a); !words.empty()) out += line("Health", words);
  if (a.spec.admission == QueueAdmission::slurm) {
    out += line("Backfill",
                counted(a.result.backfilled, "job") + " started by the backfill scheduler");
  }
  out += licenses_line(a) + queue_power_lines(a) + queue_cost_line(a) + burst_lines(a);
  if (a.result.stopped) out += line("Interrupted", "all of this is of the time before");
  return out;
}

std::string recorded_text(const QueueAnswer& a) {
  if (!a.summary.recorded) return {};
  const RecordedQueue& r = *a.summary.recorded;
  std::string text = fmt::format(
      "{}: mean wait {}, here {} ({}); starts {} apart in the median, {} at most",
      jobs_text(r.jobs), duration_text(r.mean_wait_s), duration_text(r.simulated_mean_wait_s),
      r.mean_wait_s > 0 ? error_text(r.simulated_mean_wait_s / r.mean_wait_s - 1) : "-",
      duration_text(r.median_gap_s), duration_text(r.most_gap_s));
  if (r.with_nodes > 0) {
    text += fmt::format("; the same nodes for {} of {}", whole(r.same_nodes), whole(r.with_nodes));
  }
  return labelled_line("Recorded", kQueueLabels, text);
}

std::string queue_waterfall(const QueueAnswer& a, const TextStyle& style) {
  const std::array<double, kQueueBuckets> shares = queue_shares(a);
  if (a.result.end == 0) return {};
  const double longest = *std::ranges::max_element(shares);
  std::string out = "\n" + style.bold("Where the cluster's GPU time goes") + "\n";
  for (std::size_t b = 0; b < kQueueBuckets; ++b) {
    if (shares[b] < kShown) continue;
    out += fmt::format("  {:<{}}{:>9} {:>12} GPU h  {}", kQueueBucketNames[b], kQueueLabels - 2,
                       part_percent(shares[b]), grouped(a.result.books[b].gpu_hours()),
                       bar(shares[b] / longest, kQueueBar, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

std::string group_table(std::string_view title, const std::vector<QueueGroup>& groups,
                        const TextStyle& style) {
  if (groups.size() < 2) return {};
  const bool paid = groups.front().usd.has_value();
  std::vector<TextTable::Column> columns{{std::string(title), Align::left},
                                         {"jobs"},
                                         {"GPU h"},
                                         {"mean wait"},
                                         {"90 %"},
                                         {"mean completion"},
                                         {"mean slowdown"}};
  const bool bursts = groups.front().burst.has_value();
  if (bursts) columns.push_back({"rented GPU h"});
  if (paid) columns.push_back({"USD"});
  TextTable table(columns);
  for (const QueueGroup& g : groups) {
    if (table.rows() == kMostGroupRows) break;
    std::vector<std::string> cells{g.name,
                                   whole(g.jobs),
                                   grouped(g.gpu_hours),
                                   wait_cell(g, &QueueSpread::mean),
                                   wait_cell(g, &QueueSpread::p90),
                                   spread_cell(g.completion_s, &QueueSpread::mean, duration_text),
                                   spread_cell(g.slowdown, &QueueSpread::mean, times_text)};
    if (bursts) cells.push_back(grouped(g.burst->gpu_hours));
    if (paid) cells.push_back(compact(*g.usd));
    table.add(cells);
  }
  std::string out = "\n" + table.text(style);
  if (groups.size() > kMostGroupRows) {
    out += fmt::format("  {} more: --format json has them\n", groups.size() - kMostGroupRows);
  }
  return out;
}

std::string trainings_table(const QueueAnswer& a, const TextStyle& style) {
  if (a.summary.trainings.empty()) return {};
  TextTable table({{"training", Align::left},
                   {"jobs"},
                   {"ended"},
                   {"step alone"},
                   {"mean slowdown"},
                   {"largest"}});
  for (const TrainingSummary& t : a.summary.trainings) {
    table.add({t.name, whole(t.jobs), whole(t.ended), duration_text(t.reference_step_s),
               t.mean_slowdown ? fmt::format("{:.3f}", *t.mean_slowdown) : "-",
               t.most_slowdown ? fmt::format("{:.3f}", *t.most_slowdown) : "-"});
  }
  return "\n" + table.text(style) +
         fmt::format("  {} of neighbours simulated\n",
                     counted(static_cast<double>(a.result.groups_simulated), "group"));
}

/// "81 > 27 > 9 > 3 > 1"; of several brackets, one after another.
std::string rungs_text(const CampaignSummary& campaign) {
  std::string out;
  for (const RungSummary& rung : campaign.rungs) {
    if (!out.empty()) out += rung.rung == 0 ? ", " : " > ";
    out += whole(rung.trials);
  }
  return out;
}

/// "rate, shape, ablation: a result after 3.1 h in the mean, 4.0 h as written".
std::string order_text(const TrialOrder& order) {
  std::string names;
  for (const OrderedTrials& part : order.parts) {
    names += (names.empty() ? "" : ", ") + part.name;
  }
  const std::string mean = duration_text(order.mean_result_s);
  if (order.saved_s() <= 0) return names + ", as written: a result after " + mean + " in the mean";
  return fmt::format("{}: a result after {} in the mean, {} as written", names, mean,
                     duration_text(order.written_mean_s));
}

std::string campaigns_table(const QueueAnswer& a, const TextStyle& style) {
  const std::vector<CampaignSummary>& campaigns = a.summary.campaigns;
  if (campaigns.empty()) return {};
  const bool paid = campaigns.front().usd.has_value();
  const bool powered = campaigns.front().energy.has_value();
  std::vector<TextTable::Column> columns{{"campaign", Align::left},
                                         {"stopping", Align::left},
                                         {"trials by rung", Align::left},
                                         {"done"},
                                         {"makespan"},
                                         {"ideal"},
                                         {"mean wait"},
                                         {"GPU h"},
                                         {"saved"}};
  if (powered) columns.push_back({"MWh"});
  if (paid) columns.push_back({"USD"});
  TextTable table(columns);
  const auto time = [](const std::optional<double>& seconds) {
    return seconds ? duration_text(*seconds) : std::string("-");
  };
  for (const CampaignSummary& c : campaigns) {
    if (table.rows() == kMostGroupRows) break;
    std::vector<std::string> cells{
        c.name,
        std::string(kStoppingNames[static_cast<std::size_t>(c.stopping)]),
        rungs_text(c),
        time(c.done_s),
        time(c.makespan_s),
        time(c.ideal_s),
        spread_cell(c.wait_s, &QueueSpread::mean, wait_text),
        grouped(c.gpu_hours),
        c.saved_gpu_hours ? grouped(*c.saved_gpu_hours) : std::string("-")};
    if (powered) cells.push_back(megawatt_hours(*c.energy));
    if (paid) cells.push_back(compact(*c.usd));
    table.add(cells);
  }
  std::string out = "\n" + table.text(style);
  if (campaigns.size() > kMostGroupRows) {
    out += fmt::format("  {} more: --format json has them\n", campaigns.size() - kMostGroupRows);
  }
  for (const std::string& sentence : order_sentences(a)) out += "  " + sentence + "\n";
  return out;
}

std::string time_cell(RunTime time) {
  return time < 0 ? std::string() : number_text(to_seconds(time).base_units());
}

}  // namespace

std::vector<std::string> order_sentences(const QueueAnswer& a) {
  std::vector<std::string> out;
  for (const CampaignSummary& c : a.summary.campaigns) {
    if (!c.brackets || c.brackets->saved_s() <= 0) continue;
    out.push_back(
        fmt::format("Best order of {}, one after another: {}", c.name, order_text(*c.brackets)));
  }
  const std::optional<TrialOrder>& all = a.summary.campaign_order;
  if (!all || all->parts.size() > kMostGroupRows) return out;
  out.push_back(fmt::format("Best order, one after another: {}", order_text(*all)));
  return out;
}

std::string jobs_text(std::size_t count) { return counted(static_cast<double>(count), "job"); }

std::string queue_table(const QueueAnswer& a, const TextStyle& style) {
  const QueueSummary& s = a.summary;
  std::string out =
      queue_title(a, style) + queue_headline(a) + recorded_text(a) + queue_waterfall(a, style) +
      campaigns_table(a, style) + trainings_table(a, style) +
      group_table("GPUs", s.by_gpus, style) + group_table("account", s.by_account, style) +
      group_table("user", s.by_user, style) + group_table("partition", s.by_partition, style) +
      group_table("quality of service", s.by_qos, style);
  if (a.spec.assumptions.empty()) return out;
  out += "\n";
  return out + assumed_lines(a.spec.assumptions, style);
}

CsvText queue_csv(const QueueAnswer& a) {
  const QueueSpec& spec = a.spec;
  std::unordered_map<std::uint32_t, std::string> nodes;
  for (const JobSpan& span : a.result.spans) {
    std::vector<int> numbers;
    for (const HeldGpus& held : span.held) numbers.push_back(held.node + 1);
    nodes.try_emplace(span.job, node_list(spec, std::move(numbers)));
  }
  const auto line = [](const std::vector<std::string>& cells) { return csv_line(cells); };
  std::vector<std::string> heading{"job",      "user",    "account",   "partition", "gpus",
                                   "submit_s", "start_s", "end_s",     "wait_s",    "duration_s",
                                   "slowed_s", "limit_s", "evictions", "failures",  "nodes"};
  const bool suspends = spec.preemption.suspends;
  if (suspends) heading.insert(heading.end(), {"suspensions", "suspended_s"});
  CsvText out = line(heading);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const QueueJob& job = spec.jobs[j];
    const JobOutcome& of = a.result.jobs[j];
    const auto at = nodes.find(static_cast<std::uint32_t>(j));
    std::vector<std::string> cells{spec.job_name(j),
                                   spec.users[job.user],
                                   spec.accounts[job.account],
                                   spec.partitions[job.partition].name,
                                   std::to_string(job.gpus),
                                   time_cell(job.submit),
                                   time_cell(of.start),
                                   time_cell(of.end),
                                   time_cell(of.waited),
                                   time_cell(job.runs),
                                   time_cell(of.slowed),
                                   time_cell(job.limit),
                                   std::to_string(of.evictions),
                                   std::to_string(of.failures),
                                   at == nodes.end() ? std::string() : at->second};
    if (suspends) {
      cells.push_back(std::to_string(of.suspensions));
      cells.push_back(time_cell(of.suspended));
    }
    out += line(cells);
  }
  return out;
}

std::string stand_in_words(const QueueSpec& spec) {
  constexpr std::string_view kJobs = "jobs: ", kStand = " drawn ones stand in for the trace ";
  for (const std::string& line : spec.assumptions) {
    const std::size_t at = line.find(kStand);
    if (!line.starts_with(kJobs) || at == std::string::npos) continue;
    return fmt::format("{} drawn jobs stand in for a trace that is not here: made up, not recorded",
                       line.substr(kJobs.size(), at - kJobs.size()));
  }
  return {};
}

}  // namespace lockstep
