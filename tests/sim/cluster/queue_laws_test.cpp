// Closed forms of queueing theory, and laws that every schedule keeps.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

using test::empty_queue;
using test::seconds;

/// Jobs of one GPU at `load` of the cluster's GPUs, of 100 s in the mean.
QueueSpec single_gpu_jobs(int gpus, double load, bool exponential, int count) {
  QueueSpec spec = empty_queue(gpus, 1);
  spec.admission = QueueAdmission::best_effort;
  DrawnJobs drawn;
  drawn.count = count;
  drawn.every = Seconds{100 / load / gpus};
  drawn.gpus = {{1, 1.0}};
  drawn.mean = Seconds{100};
  drawn.exponential = exponential;
  draw_jobs(drawn, 0, spec);
  return spec;
}

double mean_wait_s(const QueueSpec& spec) {
  return summary_of(spec, simulate_queue(spec)).all.wait_s->mean;
}

/// Erlang's C formula: the share of jobs that wait, of c servers at `load` each.
double erlang_c(int c, double load) {
  const double a = c * load;
  double term = 1, sum = 0;
  for (int k = 0; k < c; ++k) {
    sum += term;
    term *= a / (k + 1);
  }
  const double waiting = term / (1 - load);
  return waiting / (sum + waiting);
}

/// Mean response over the mean duration of exponential jobs under SRPT at one server. Source:
/// Schrage and Miller 1966, Operations Research 14(4), equation for E[T(x)].
double srpt_response(double load) {
  const auto below = [load](double x) { return load * (1 - (1 + x) * std::exp(-x)); };  // rho(x)
  const double step = 1e-3;
  double mean = 0, residence = 0;
  for (double x = step / 2; x < 40; x += step) {
    const double rho = below(x);
    // lambda / 2 (int_0^x t^2 f(t) dt + x^2 (1 - F(x)))
    const double second = 2 - std::exp(-x) * (x * x + 2 * x + 2);
    const double wait = load / 2 * (second + x * x * std::exp(-x)) / ((1 - rho) * (1 - rho));
    residence += step / (1 - rho);
    mean += step * std::exp(-x) * (wait + residence);
  }
  return mean;
}

/// A queue whose every rule but the jobs is drawn.
QueueSpec random_queue(std::uint64_t seed) {
  RandomStream random({.seed = seed, .purpose = 99});
  QueueSpec spec = empty_queue(2 + static_cast<int>(random.below(12)), 1 << random.below(4));
  spec.seed = seed;
  const int most = spec.cluster.gpus();
  DrawnJobs drawn;
  drawn.count = 150;
  drawn.gpus = {{1, 3.0}, {std::min(2, most), 2.0}, {std::max(1, most / 4), 1.0}, {most, 0.2}};
  drawn.mean = Seconds{200};
  drawn.sigma = 1.2;
  drawn.every = Seconds{60};
  drawn.limit_factor = 1 + 3 * random.uniform();
  drawn.accounts = {{"a", 1.0}, {"b", 2.0}};
  drawn.priorities = {{0, 3.0}, {5, 1.0}};
  draw_jobs(drawn, 0, spec);
  spec.order = static_cast<QueueOrder>(random.below(6));
  spec.levels = {seconds(100), seconds(1000)};
  spec.placement.within_node = static_cast<WithinNode>(random.below(3));
  spec.placement.across = static_cast<AcrossNodes>(random.below(3));
  spec.placement.leaf_nodes = 3;
  spec.admission = static_cast<QueueAdmission>(random.below(5));
  const bool plain =
      spec.admission == QueueAdmission::strict || spec.admission == QueueAdmission::best_effort;
  if (plain) spec.preemption.mode = static_cast<PreemptionMode>(random.below(3));
  if (random.below(2) == 0) {
    spec.preemption.restart = seconds(7);
    spec.preemption.checkpoint = seconds(30);
    spec.preemption.overhead = seconds(2);
  }
  if (random.below(3) == 0) {
    spec.failures = {.name = "x",
                     .mean_time = Seconds{30'000},
                     .replaced = 0.5,
                     .repair = seconds(500),
                     .assumptions = {}};
  }
  return spec;
}

/// No node ever has more GPUs held than it has.
void check_no_gpu_twice(const QueueSpec& spec, const QueueResult& result) {
  std::map<std::pair<RunTime, int>, std::map<int, int>> changes;  // ends before begins
  for (const JobSpan& span : result.spans) {
    int held = 0;
    for (const auto& [node, gpus] : span.held) {
      changes[{span.begin, 1}][node] += gpus;
      changes[{span.end, 0}][node] -= gpus;
      held += gpus;
    }
    CHECK(held == spec.jobs[span.job].gpus);
  }
  std::map<int, int> on_node;
  for (const auto& [at, by_node] : changes) {
    for (const auto& [node, gpus] : by_node) {
      on_node[node] += gpus;
      REQUIRE(on_node[node] <= spec.cluster.node.gpus);
      REQUIRE(on_node[node] >= 0);
    }
  }
}

void check_books(const QueueSpec& spec, const QueueResult& result) {
  GpuTime all, held, accounts;
  for (const GpuTime& bucket : result.books) all += bucket;
  for (const QueueBucket bucket :
       {QueueBucket::useful, QueueBucket::starting, QueueBucket::lost, QueueBucket::slowed}) {
    held += result.books[static_cast<std::size_t>(bucket)];
  }
  for (const GpuTime& account : result.account_held) accounts += account;
  CHECK(all == GpuTime(spec.cluster.gpus(), result.end));
  CHECK(held == result.held);
  CHECK(accounts == result.held);
}

}  // namespace

TEST_CASE("queue: M/M/c waits as Erlang's C formula says") {
  for (const auto& [gpus, load] : {std::pair(1, 0.7), std::pair(4, 0.8), std::pair(16, 0.8)}) {
    CAPTURE(gpus);
    const double expected = erlang_c(gpus, load) * 100 / (gpus * (1 - load));
    CHECK(mean_wait_s(single_gpu_jobs(gpus, load, true, 400'000)) ==
          doctest::Approx(expected).epsilon(0.04));
  }
}

TEST_CASE("queue: M/D/1 waits half as long as M/M/1") {
  const double load = 0.7;
  CHECK(mean_wait_s(single_gpu_jobs(1, load, false, 400'000)) ==
        doctest::Approx(100 * load / (2 * (1 - load))).epsilon(0.03));
}

TEST_CASE("queue: SRPT responds as Schrage's formula says") {
  const double load = 0.8;
  QueueSpec spec = single_gpu_jobs(1, load, true, 400'000);
  spec.order = QueueOrder::srtf;
  spec.preemption.mode = PreemptionMode::evict;
  const QueueSummary summary = summary_of(spec, simulate_queue(spec));
  CHECK(summary.all.completion_s->mean == doctest::Approx(100 * srpt_response(load)).epsilon(0.03));
}

TEST_CASE("queue: Little's law on every run") {
  const QueueSpec spec = single_gpu_jobs(8, 0.85, true, 20'000);
  const QueueResult result = simulate_queue(spec);
  double waiting = 0, bins = 0;
  for (std::size_t b = 0; b < result.series.waiting_jobs.size(); ++b) {
    const double begin = static_cast<double>(b) * result.series.bin_s;
    const double lasts = std::min(result.series.bin_s, to_seconds(result.end).base_units() - begin);
    waiting += result.series.waiting_jobs[b] * lasts;
    bins += lasts;
  }
  double waited = 0;
  for (const JobOutcome& job : result.jobs) waited += to_seconds(job.waited).base_units();
  CHECK(waiting == doctest::Approx(waited).epsilon(1e-9));
  CHECK(bins == doctest::Approx(to_seconds(result.end).base_units()));
}

TEST_CASE("queue: no GPU twice, no GPU time lost, in any order under any rules") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const QueueSpec spec = random_queue(seed);
    const QueueResult result = simulate_queue(spec, {.keep_spans = true});
    check_no_gpu_twice(spec, result);
    check_books(spec, result);
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      CHECK(result.jobs[j].start >= spec.jobs[j].submit);
      CHECK(result.jobs[j].end >= result.jobs[j].start + spec.jobs[j].runs);
    }
    if (spec.failures.name.empty()) {
      GpuTime work;
      for (const QueueJob& job : spec.jobs) work += GpuTime(job.gpus, job.runs);
      CHECK(result.books[0] == work);
    }
  }
}

TEST_CASE("queue: strict order is never inverted without backfill") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    QueueSpec spec = random_queue(seed);
    spec.order = QueueOrder::fifo;
    spec.admission = QueueAdmission::strict;
    spec.preemption = {};
    spec.failures = {};
    const QueueResult result = simulate_queue(spec);
    for (std::size_t j = 1; j < spec.jobs.size(); ++j) {
      CHECK(result.jobs[j].start >= result.jobs[j - 1].start);
    }
  }
}

TEST_CASE("queue: jobs of one width start in the same order with EASY as without") {
  const QueueSpec plain = single_gpu_jobs(6, 0.9, true, 5000);
  QueueSpec easy = plain;
  easy.admission = QueueAdmission::easy;
  const QueueResult one = simulate_queue(plain), other = simulate_queue(easy);
  for (std::size_t j = 0; j < plain.jobs.size(); ++j) {
    REQUIRE(one.jobs[j].start == other.jobs[j].start);
  }
}

TEST_CASE("queue: backfilling with true limits delays nobody behind the first, or nobody at all") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    QueueSpec spec = random_queue(seed);
    spec.order = QueueOrder::fifo;
    spec.preemption = {};
    spec.failures = {};
    for (QueueJob& job : spec.jobs) job.limit = job.runs;
    spec.admission = QueueAdmission::conservative;
    const QueueResult result = simulate_queue(spec);
    // With true limits a job's start follows from those before it alone: leaving out all later ones
    // changes nothing.
    QueueSpec shorter = spec;
    shorter.jobs.resize(spec.jobs.size() / 2);
    const QueueResult before = simulate_queue(shorter);
    for (std::size_t j = 0; j < shorter.jobs.size(); ++j) {
      CHECK(result.jobs[j].start == before.jobs[j].start);
    }
  }
}

}  // namespace lockstep
