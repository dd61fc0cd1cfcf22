#include "sim/cluster/queue_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "models/base/input_error.hpp"
#include "sim/cluster/queue_summary.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/queue_order_extension.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kForecastPurpose = 0x666f7265;
constexpr std::uint32_t kSharesPurpose = 0x73686172;
/// Ended jobs of a user from which shares are drawn for that user alone.
constexpr std::size_t kEnoughOfUser = 10;

double forecast_s(RunTime time) { return to_seconds(time).base_units(); }

/// A job as it is now.
struct ForecastJob {
  enum class Is : std::uint8_t { waiting, running, ended, cancelled };
  Is is = Is::waiting;
  RunTime done = 0;    ///< work done, the most at any time: the job runs for longer than that
  RunTime waited = 0;  ///< since it was submitted
};

/// Where the jobs of a queue are now, and how they are brought there.
struct QueueNow {
  std::vector<ForecastJob> jobs;
  bool replayed = false;  ///< replayed by the rules from the beginning; else by recorded starts
};

/// Whether the job has only started once, and maybe ended.
bool started_once(const QueueJob& job, const JobOutcome& of, RunTime now) {
  if (of.evictions > 0 || of.suspensions > 0 || of.failures > 0 || of.slowed != 0) return false;
  if (of.start < 0 || of.cancelled >= 0) return of.start < 0;
  return of.end >= 0 ? of.end == of.start + job.runs : of.start + job.runs >= now;
}

/// Whether a job has held other GPUs than its first.
bool some_moved(const QueueResult& result) {
  std::vector<bool> has_held(result.jobs.size());
  for (const JobSpan& span : result.spans) {
    if (has_held[span.job]) return true;
    has_held[span.job] = true;
  }
  return false;
}

ForecastJob job_now(const QueueJob& job, const JobOutcome& of) {
  ForecastJob out{.is = ForecastJob::Is::running, .done = of.most_done, .waited = of.waited};
  if (of.cancelled >= 0) {
    out.is = ForecastJob::Is::cancelled;
  } else if (of.end >= 0 || (of.start >= 0 && of.most_done >= job.runs)) {
    out.is = ForecastJob::Is::ended;
  } else if (of.waits || of.start < 0) {
    out.is = ForecastJob::Is::waiting;
  }
  return out;
}

bool knows_durations(QueueOrder order) {
  return order == QueueOrder::sjf || order == QueueOrder::srtf || order == QueueOrder::srsf ||
         order == QueueOrder::gittins || order == QueueOrder::qssf || order == QueueOrder::themis ||
         (is_extension(order) && extension_of(order).knows_duration);
}

/// What the rules make of the jobs until now: as if it had been recorded where first starts say all
/// of it.
QueueNow bring_to_now(QueueSpec& spec, RunTime now) {
  QueueSpec until = spec;
  until.until = now;
  const QueueResult result = simulate_queue(until, {.keep_spans = true});
  QueueNow out;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    out.jobs.push_back(job_now(spec.jobs[j], result.jobs[j]));
    out.replayed = out.replayed || !started_once(spec.jobs[j], result.jobs[j], now);
  }
  out.replayed = out.replayed || some_moved(result);
  if (out.replayed) {
    if (!knows_durations(spec.order)) return out;
    throw InputError({.file = spec.file,
                      .pointer = "/queue/order",
                      .found = in_quotes(name_of(spec.order)),
                      .allowed = "for forecasts, an order that goes by no durations (fifo, las, "
                                 "drf, priority, multifactor): until then a job is evicted, "
                                 "suspended, slowed or stopped by a failure, which other "
                                 "durations would change",
                      .nearest = {}});
  }
  spec.recorded.assign(spec.jobs.size(), {});
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) spec.recorded[j].start = result.jobs[j].start;
  for (const JobSpan& span : result.spans) {
    std::vector<int>& nodes = spec.recorded[span.job].nodes;
    if (!nodes.empty()) continue;
    for (const HeldGpus& held : span.held) nodes.push_back(held.node + 1);
  }
  return out;
}

/// Keeps the jobs that were submitted by now, and forgets their later starts.
void forget_what_follows(QueueSpec& spec, RunTime now, bool replayed) {
  const auto later = std::ranges::upper_bound(spec.jobs, now, {}, &QueueJob::submit);
  const auto count = static_cast<std::size_t>(later - spec.jobs.begin());
  spec.jobs.resize(count);
  if (spec.names.size() > count) spec.names.resize(count);
  if (spec.terms.size() > count) spec.terms.resize(count);
  for (JobTerms& terms : spec.terms) {
    // A job that depends on one that is not submitted yet does not start.
    for (const JobDependency& of : terms.dependencies) {
      terms.held = terms.held || (!of.of_array && of.on >= count);
    }
    if (terms.held) terms.dependencies.clear();
  }
  spec.until = 0;
  if (replayed) return;
  spec.recorded.resize(count);
  for (RecordedStart& recorded : spec.recorded) {
    if (recorded.start >= now) recorded = {};
  }
  spec.slurm.opens = now;
  spec.slurm.bf_first.reset();
}

/// The jobs as they are now, by the recorded starts of those that have run.
std::vector<ForecastJob> recorded_jobs(const QueueSpec& spec, RunTime now) {
  std::vector<ForecastJob> out;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const RunTime start = spec.recorded[j].start;
    ForecastJob& job = out.emplace_back();
    job.waited = (start < 0 ? now : start) - spec.jobs[j].submit;
    if (start < 0) continue;
    job.is = start + spec.jobs[j].runs > now ? ForecastJob::Is::running : ForecastJob::Is::ended;
    job.done = now - start;
  }
  return out;
}

/// The jobs are those that were submitted, afterwards.
QueueNow queue_now(QueueSpec& spec, RunTime now) {
  QueueNow out;
  if (spec.recorded.empty()) out = bring_to_now(spec, now);
  if (!out.replayed) spec.recorded.resize(spec.jobs.size());
  forget_what_follows(spec, now, out.replayed);
  if (out.replayed) {
    out.jobs.resize(spec.jobs.size());
  } else {
    out.jobs = recorded_jobs(spec, now);
  }
  return out;
}

/// When each job starts for the first time from now on; below 0: it does not.
std::vector<RunTime> next_starts(const QueueResult& result, RunTime now, bool replayed) {
  std::vector<RunTime> out(result.jobs.size(), -1);
  if (!replayed) {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = result.jobs[j].start;
    return out;
  }
  for (const JobSpan& span : result.spans) {
    RunTime& start = out[span.job];
    if (span.begin >= now && (start < 0 || span.begin < start)) start = span.begin;
  }
  return out;
}

/// Which jobs have ended, and what share of their limits they ran for. How long a training runs is
/// known.
class LimitShares {
 public:
  LimitShares(const QueueSpec& spec, const QueueNow& now) {
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      const QueueJob& job = spec.jobs[j];
      const ForecastJob::Is is = now.jobs[j].is;
      if (is == ForecastJob::Is::cancelled) continue;
      if (is != ForecastJob::Is::ended) {
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
  /// Whether nothing is known of how long jobs run, so that all draws are alike.
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

  /// Draws a duration: at most the limit, and longer than the job has run.
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

/// How long the jobs run that have not ended, in one of the draws.
void draw_durations(QueueSpec& spec, const QueueNow& now, const LimitShares& shares,
                    std::uint32_t draw) {
  RandomStream of_shares(
      {.seed = spec.seed, .trajectory = draw, .component = 0, .purpose = kSharesPurpose});
  const LimitShares drawn = shares.resampled(of_shares);
  for (const std::uint32_t j : shares.open()) {
    RandomStream random(
        {.seed = spec.seed, .trajectory = draw, .component = j, .purpose = kForecastPurpose});
    spec.jobs[j].runs = drawn.draw(spec.jobs[j], now.jobs[j].done, random.uniform());
  }
}

}  // namespace

QueueForecast forecast_queue(const QueueSpec& spec, RunTime now, const ForecastOptions& options) {
  QueueSpec from_now = spec;
  const QueueNow at = queue_now(from_now, now);
  const LimitShares shares(from_now, at);
  QueueForecast out{.now = now,
                    .draws = 0,
                    .running = 0,
                    .ended = shares.ended(),
                    .mean_share = shares.mean(),
                    .waiting = {}};
  std::vector<std::uint32_t> waiting;
  for (const std::uint32_t j : shares.open()) {
    if (at.jobs[j].is == ForecastJob::Is::waiting) {
      waiting.push_back(j);
    } else {
      ++out.running;
    }
  }
  std::vector<std::vector<double>> starts(waiting.size());
  const std::size_t draws = shares.empty() ? 1 : options.draws;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    draw_durations(from_now, at, shares, static_cast<std::uint32_t>(draw));
    const QueueResult result = simulate_queue(
        from_now, {.recorded_until = at.replayed ? RunTime{0} : now, .keep_spans = at.replayed});
    const std::vector<RunTime> next = next_starts(result, now, at.replayed);
    for (std::size_t w = 0; w < waiting.size(); ++w) {
      const RunTime start = next[waiting[w]];
      if (start >= 0) starts[w].push_back(forecast_s(start - now));
    }
    ++out.draws;
    if (options.go_on && !options.go_on(draw + 1, draws)) break;
  }
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    out.waiting.push_back(start_of(waiting[w], std::move(starts[w]), out.draws));
    out.waiting.back().waited = at.jobs[waiting[w]].waited;
  }
  std::ranges::stable_sort(out.waiting, {}, [](const ForecastStart& of) {
    return of.started > 0 ? of.p50_s : std::numeric_limits<double>::infinity();
  });
  return out;
}

}  // namespace lockstep
