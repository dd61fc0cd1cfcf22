#include "sim/cluster/campaign_summary.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "sim/cluster/campaign_rungs.hpp"
#include "sim/cluster/queue_draws.hpp"
#include "sim/cluster/queue_summary.hpp"

namespace lockstep {
namespace {

constexpr double kHourSeconds = 3600;

double campaign_s(RunTime time) { return to_seconds(time).base_units(); }

/// Jobs that were not stopped before their rung, in the order of their submission.
std::vector<std::uint32_t> submitted_jobs(QueueSpec& spec, const QueueResult& result) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t j = 0; j < spec.jobs.size(); ++j) {
    const TrialPlace* const place = spec.place_of(j);
    if (place != nullptr && place->rung > 0) {
      if (result.jobs[j].submitted < 0) continue;
      spec.jobs[j].submit = result.jobs[j].submitted;
    }
    out.push_back(j);
  }
  std::ranges::stable_sort(out, {}, [&](std::uint32_t j) { return spec.jobs[j].submit; });
  return out;
}

/// The number of a campaign's jobs that run at a time on nodes of their own.
std::int64_t places_of(const QueueSpec& spec, const TrialCampaign& campaign, const QueueJob& job) {
  const QueuePartition& partition = spec.partitions[job.partition];
  const int nodes =
      partition.nodes.empty() ? spec.cluster.nodes : static_cast<int>(partition.nodes.size());
  const int node_gpus = spec.cluster.node.gpus;
  const std::int64_t on_node = std::max(1, node_gpus / job.gpus);
  const std::int64_t all = nodes / spec.nodes_of(job) * on_node;
  return campaign.most_at_once > 0 ? std::min<std::int64_t>(all, campaign.most_at_once) : all;
}

/// Collects the jobs of a campaign.
struct GatheredTrials {
  CampaignSummary summary;
  const TrialCampaign* campaign = nullptr;
  std::vector<double> waits, worked_s;  ///< worked_s: of each trial
  double joules = 0;                    // of what was held on the cluster
  double rented_gpu_hours = 0;          // of summary.gpu_hours
  std::int64_t places = 1;
  RunTime first = -1, last = 0;
  std::size_t ended = 0;                ///< jobs of the campaign that have ended or were cancelled
  std::vector<std::size_t> first_rung;  ///< index in summary.rungs of each bracket's first rung
  std::vector<const TrialBracket*> brackets;
  double best_draw = std::numeric_limits<double>::infinity();
  RunTime best_end = -1;

  void add(const QueueSpec& spec, const QueueResult& result, std::size_t j,
           const QueueDraws* draws) {
    const QueueJob& job = spec.jobs[j];
    const JobOutcome& of = result.jobs[j];
    const TrialPlace& place = *spec.place_of(j);
    if (first < 0) {
      first = job.submit;
      places = places_of(spec, *campaign, job);
      summary.unstopped_gpu_hours =
          campaign_s(campaign->whole) * campaign->trials * job.gpus / kHourSeconds;
    }
    const double gpu_s = held_seconds(job, of, result.end) * job.gpus;
    const double rented_s = of.rented ? of.rented->gpu_seconds() : 0;
    rented_gpu_hours += rented_s / kHourSeconds;
    if (draws != nullptr) {
      joules +=
          (gpu_s - rented_s) * static_cast<double>(draws->microwatts(job)) * 1e-6 * draws->pue();
    }
    ++summary.jobs;
    summary.gpu_hours += gpu_s / kHourSeconds;
    worked_s[place.trial] += campaign_s(job.runs);
    if (counts_wait(of)) waits.push_back(campaign_s(of.waited));
    const std::size_t r = first_rung[static_cast<std::size_t>(place.bracket)] + place.rung;
    RungSummary& rung = summary.rungs[r];
    ++rung.trials;
    rung.gpu_hours += gpu_s / kHourSeconds;
    if (place.rung > 0) ++summary.rungs[r - 1].went_on;
    if (of.end < 0 && of.cancelled < 0) return;
    ++ended;
    last = std::max({last, of.end, of.cancelled});
    if (of.end < 0) return;
    ++rung.ended;
    if (rung.end < 1 || job.cut || of.stopped) return;
    ++summary.finished;
    const std::uint32_t number = brackets.front()->campaign;
    const double draw = trial_draw(spec.seed, number, place.trial);
    if (draw >= best_draw) return;
    best_draw = draw;
    best_end = of.end;
  }

  /// `from` up to `until` of its trials, with places of their own.
  [[nodiscard]] double alone_s(std::size_t from, std::size_t until) const {
    const auto at = [&](std::size_t i) {
      return worked_s.begin() + static_cast<std::ptrdiff_t>(i);
    };
    const double all_s = std::accumulate(at(from), at(until), 0.0);
    return std::max(*std::max_element(at(from), at(until)), all_s / static_cast<double>(places));
  }

  [[nodiscard]] TrialOrder order_of_brackets(std::optional<double> usd_per_gpu_hour) const {
    std::vector<OrderedTrials> parts;
    for (std::size_t b = 0; b < brackets.size(); ++b) {
      const TrialBracket& bracket = *brackets[b];
      OrderedTrials part{
          .name = "bracket " + std::to_string(b),
          .weight = static_cast<double>(bracket.trials) / static_cast<double>(summary.trials),
          .alone_s = alone_s(bracket.first, bracket.first + bracket.trials)};
      for (const RungSummary& rung : summary.rungs) {
        if (rung.bracket == b) part.gpu_hours += rung.gpu_hours;
      }
      parts.push_back(part);
    }
    return earliest_results(std::move(parts), usd_per_gpu_hour);
  }

  CampaignSummary close(std::optional<double> usd_per_gpu_hour) {
    summary.wait_s = spread_of(std::move(waits));
    if (ended < summary.jobs) return std::move(summary);
    summary.done_s = campaign_s(last);
    summary.makespan_s = campaign_s(last - first);
    summary.ideal_s = alone_s(0, worked_s.size());
    if (best_end >= 0) summary.best_s = campaign_s(best_end - first);
    if (brackets.size() > 1) summary.brackets = order_of_brackets(usd_per_gpu_hour);
    summary.saved_gpu_hours = summary.unstopped_gpu_hours - summary.gpu_hours;
    return std::move(summary);
  }
};

std::vector<GatheredTrials> begun_campaigns(const QueueSpec& spec) {
  std::vector<GatheredTrials> out;
  out.reserve(spec.campaigns.size());
  for (const TrialCampaign& campaign : spec.campaigns) {
    GatheredTrials& of = out.emplace_back();
    of.campaign = &campaign;
    of.summary.name = campaign.name;
    of.summary.stopping = campaign.stopping;
    of.summary.trials = static_cast<std::size_t>(campaign.trials);
    of.worked_s.resize(of.summary.trials);
    of.first_rung.resize(spec.brackets.size());
  }
  std::vector<std::size_t> numbers(out.size());  // of brackets, within their campaign
  for (std::size_t b = 0; b < spec.brackets.size(); ++b) {
    const TrialBracket& bracket = spec.brackets[b];
    GatheredTrials& of = out[bracket.campaign];
    of.first_rung[b] = of.summary.rungs.size();
    of.brackets.push_back(&bracket);
    const std::size_t number = numbers[bracket.campaign]++;
    for (std::size_t r = 0; r < bracket.ends.size(); ++r) {
      of.summary.rungs.push_back({.bracket = number, .rung = r, .end = bracket.ends[r]});
    }
  }
  return out;
}

}  // namespace

void settle_campaigns(QueueSpec& spec, QueueResult& result) {
  if (spec.campaigns.empty()) return;
  const std::vector<std::uint32_t> order = submitted_jobs(spec, result);
  const auto settled = [&](auto& of, std::size_t all) {
    of.resize(all);
    std::remove_cvref_t<decltype(of)> out;
    out.reserve(order.size());
    for (const std::uint32_t j : order) out.push_back(std::move(of[j]));
    of = std::move(out);
  };
  const std::size_t all = spec.jobs.size();
  std::vector<std::uint32_t> numbers(all);
  for (std::uint32_t i = 0; i < order.size(); ++i) numbers[order[i]] = i;
  for (JobSpan& span : result.spans) span.job = numbers[span.job];
  settled(spec.jobs, all);
  settled(spec.names, all);
  settled(spec.places, all);
  settled(spec.terms, all);
  if (!spec.recorded.empty()) settled(spec.recorded, all);
  settled(result.jobs, all);
  for (JobTerms& terms : spec.terms) {
    for (JobDependency& of : terms.dependencies) {
      if (!of.of_array) of.on = numbers[of.on];
    }
  }
}

std::vector<CampaignSummary> campaigns_of(const QueueSpec& spec, const QueueResult& result,
                                          std::optional<double> usd_per_held_gpu_hour,
                                          std::optional<double> usd_per_rented_gpu_hour) {
  if (spec.campaigns.empty()) return {};
  std::vector<GatheredTrials> gathered = begun_campaigns(spec);
  std::optional<QueueDraws> draws;
  if (spec.power) draws.emplace(spec);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const TrialPlace* const place = spec.place_of(j);
    if (place == nullptr) continue;
    const TrialBracket& bracket = spec.brackets[static_cast<std::size_t>(place->bracket)];
    gathered[bracket.campaign].add(spec, result, j, draws ? &*draws : nullptr);
  }
  std::vector<CampaignSummary> out;
  out.reserve(gathered.size());
  for (GatheredTrials& of : gathered) {
    if (usd_per_held_gpu_hour || usd_per_rented_gpu_hour) {
      const double own = of.summary.gpu_hours - of.rented_gpu_hours;
      of.summary.usd = own * usd_per_held_gpu_hour.value_or(0) +
                       of.rented_gpu_hours * usd_per_rented_gpu_hour.value_or(0);
    }
    if (draws) of.summary.energy = Joules{of.joules};
    out.push_back(of.close(usd_per_held_gpu_hour));
  }
  return out;
}

std::optional<TrialOrder> order_of_campaigns(const std::vector<CampaignSummary>& campaigns,
                                             std::optional<double> usd_per_held_gpu_hour) {
  if (campaigns.size() < 2) return std::nullopt;
  std::vector<OrderedTrials> parts;
  for (const CampaignSummary& c : campaigns) {
    if (!c.ideal_s) return std::nullopt;
    parts.push_back({.name = c.name,
                     .weight = 1 / static_cast<double>(campaigns.size()),
                     .alone_s = *c.ideal_s,
                     .gpu_hours = c.gpu_hours});
  }
  return earliest_results(std::move(parts), usd_per_held_gpu_hour);
}

}  // namespace lockstep
