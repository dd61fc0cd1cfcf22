#include "sim/cluster/queue_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/cluster/queue_summary.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kForecastPurpose = 0x666f7265;
constexpr std::uint32_t kSharesPurpose = 0x73686172;
/// Ended jobs of a user from which shares are drawn for that user alone.
constexpr std::size_t kEnoughOfUser = 10;

double forecast_s(RunTime time) { return to_seconds(time).base_units(); }

/// What the rules make of the jobs until now, as if it had been recorded.
void record_by_rules(QueueSpec& spec, RunTime now) {
  QueueSpec until = spec;
  until.until = now;
  const QueueResult result = simulate_queue(until, {.keep_spans = true});
  spec.recorded.assign(spec.jobs.size(), {});
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) spec.recorded[j].start = result.jobs[j].start;
  for (const JobSpan& span : result.spans) {
    std::vector<int>& nodes = spec.recorded[span.job].nodes;
    if (!nodes.empty()) continue;
    for (const HeldGpus& held : span.held) nodes.push_back(held.node + 1);
  }
}

/// Jobs that were submitted, whose later starts are unknown.
void forget_what_follows(QueueSpec& spec, RunTime now) {
  const auto later = std::ranges::upper_bound(spec.jobs, now, {}, &QueueJob::submit);
  const auto count = static_cast<std::size_t>(later - spec.jobs.begin());
  spec.jobs.resize(count);
  if (spec.names.size() > count) spec.names.resize(count);
  if (spec.terms.size() > count) spec.terms.resize(count);
  spec.recorded.resize(count);
  for (RecordedStart& recorded : spec.recorded) {
    if (recorded.start >= now) recorded = {};
  }
  for (JobTerms& terms : spec.terms) {
    // What depends on a job that nobody has submitted yet does not start.
    for (const JobDependency& of : terms.dependencies) {
      terms.held = terms.held || (!of.of_array && of.on >= count);
    }
    if (terms.held) terms.dependencies.clear();
  }
  spec.until = 0;
  spec.slurm.opens = now;
  spec.slurm.bf_first.reset();
}

/// Which jobs have ended, and what share of their limits they ran for. How long a training runs is
/// known.
class LimitShares {
 public:
  LimitShares(const QueueSpec& spec, RunTime now) {
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      const QueueJob& job = spec.jobs[j];
      const RunTime start = spec.recorded[j].start;
      if (start < 0 || start + job.runs > now) {
        open_.push_back(static_cast<std::uint32_t>(j));
        continue;
      }
      ++ended_;
      if (job.limit == 0 || job.training >= 0) continue;
      const double share = forecast_s(job.runs) / forecast_s(job.limit);
      all_.push_back(share);
      of_user_[job.user].push_back(share);
    }
    std::ranges::sort(all_);
    for (auto& [user, shares] : of_user_) std::ranges::sort(shares);
  }

  [[nodiscard]] const std::vector<std::uint32_t>& open() const { return open_; }
  [[nodiscard]] std::size_t ended() const { return ended_; }
  /// Whether nothing is known of how long jobs run: then each draw is as the others.
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double share : all_) sum += share;
    return all_.empty() ? 1 : sum / static_cast<double>(all_.size());
  }

  /// As many of each as there are, drawn from them with replacement: what few ended jobs leave open
  /// of the shares that jobs run for. Source: Efron 1979, Ann. Statist. 7(1), 1-26.
  [[nodiscard]] LimitShares resampled(RandomStream& random) const {
    LimitShares out = *this;
    const auto draw_anew = [&random](std::vector<double>& shares) {
      const std::vector<double> from = shares;
      for (double& share : shares) {
        const double at = random.uniform() * static_cast<double>(from.size());
        share = from[std::min(from.size() - 1, static_cast<std::size_t>(at))];
      }
      std::ranges::sort(shares);
    };
    draw_anew(out.all_);
    for (auto& [user, shares] : out.of_user_) draw_anew(shares);
    return out;
  }

  /// At most the limit, and longer than what it has run for.
  [[nodiscard]] RunTime draw(const QueueJob& job, RunTime has_run, double uniform) const {
    if (job.training >= 0) return job.runs;
    const auto own = of_user_.find(job.user);
    const bool enough = own != of_user_.end() && own->second.size() >= kEnoughOfUser;
    const std::vector<double>& shares = enough ? own->second : all_;
    const double limit = forecast_s(job.limit);
    const double least = limit > 0 ? forecast_s(has_run) / limit : 1;
    const auto first = std::ranges::upper_bound(shares, least);
    const auto count = static_cast<std::size_t>(shares.end() - first);
    if (count == 0) return std::max(job.limit, has_run);
    const auto index =
        std::min(count - 1, static_cast<std::size_t>(uniform * static_cast<double>(count)));
    const double share = *(first + static_cast<std::ptrdiff_t>(index));
    return std::clamp(to_run_time(Seconds{share * limit}), has_run, job.limit);
  }

 private:
  std::vector<std::uint32_t> open_;
  std::size_t ended_ = 0;
  std::vector<double> all_;
  std::map<std::uint16_t, std::vector<double>> of_user_;
};

ForecastStart start_of(std::uint32_t job, std::vector<double> starts, std::size_t draws) {
  ForecastStart out{.job = job, .started = starts.size()};
  if (starts.empty() || draws == 0) return out;
  std::ranges::sort(starts);
  const auto at = [&](double share) {
    const double rank = share * static_cast<double>(starts.size() - 1);
    return starts[static_cast<std::size_t>(std::lround(rank))];
  };
  out.p10_s = at(0.1);
  out.p50_s = at(0.5);
  out.p90_s = at(0.9);
  return out;
}

}  // namespace

QueueForecast forecast_queue(const QueueSpec& spec, RunTime now, const ForecastOptions& options) {
  QueueSpec from_now = spec;
  if (from_now.recorded.empty()) record_by_rules(from_now, now);
  from_now.recorded.resize(from_now.jobs.size());
  forget_what_follows(from_now, now);
  const LimitShares shares(from_now, now);
  QueueForecast out{.now = now,
                    .draws = 0,
                    .running = 0,
                    .ended = shares.ended(),
                    .mean_share = shares.mean(),
                    .waiting = {}};
  std::vector<std::uint32_t> waiting;
  for (const std::uint32_t j : shares.open()) {
    if (from_now.recorded[j].start < 0) {
      waiting.push_back(j);
    } else {
      ++out.running;
    }
  }
  std::vector<std::vector<double>> starts(waiting.size());
  const std::size_t draws = shares.empty() ? 1 : options.draws;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    RandomStream of_shares({.seed = spec.seed,
                            .trajectory = static_cast<std::uint32_t>(draw),
                            .component = 0,
                            .purpose = kSharesPurpose});
    const LimitShares drawn = shares.resampled(of_shares);
    for (const std::uint32_t j : shares.open()) {
      QueueJob& job = from_now.jobs[j];
      const RunTime start = from_now.recorded[j].start;
      RandomStream random({.seed = spec.seed,
                           .trajectory = static_cast<std::uint32_t>(draw),
                           .component = j,
                           .purpose = kForecastPurpose});
      job.runs = drawn.draw(job, start < 0 ? 0 : now - start, random.uniform());
    }
    const QueueResult result = simulate_queue(from_now, {.recorded_until = now});
    for (std::size_t w = 0; w < waiting.size(); ++w) {
      const RunTime start = result.jobs[waiting[w]].start;
      if (start >= 0) starts[w].push_back(forecast_s(start - now));
    }
    ++out.draws;
    if (options.go_on && !options.go_on(draw + 1, draws)) break;
  }
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    out.waiting.push_back(start_of(waiting[w], std::move(starts[w]), out.draws));
  }
  std::ranges::stable_sort(out.waiting, {}, [](const ForecastStart& of) {
    return of.started > 0 ? of.p50_s : std::numeric_limits<double>::infinity();
  });
  return out;
}

}  // namespace lockstep
