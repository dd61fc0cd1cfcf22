// Bursting into a cloud: limits in closed form, by hand, and laws that every burst keeps.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/cluster/job_speeds.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::empty_queue;
using test::end_s;
using test::queue_of;
using test::seconds;
using test::start_s;

/// So many nodes like the cluster's, at a USD for each GPU hour.
QueueBurst rented_like(const QueueSpec& spec, int nodes) {
  QueueBurst out;
  out.rented = spec.cluster;
  out.rented.nodes = std::max(1, nodes);
  out.nodes = nodes;
  out.usd_per_gpu_hour = 1;
  return out;
}

QueueSpec single_jobs(int gpus, double load, bool exponential, int count) {
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

GpuTime rented_part(const QueueResult& result, RentedBucket bucket) {
  return result.burst->books[static_cast<std::size_t>(bucket)];
}

/// Erlang's B formula: the share of jobs that find all servers busy, at `offered` Erlang.
double erlang_b(int servers, double offered) {
  double lost = 1;
  for (int n = 1; n <= servers; ++n) lost = offered * lost / (n + offered * lost);
  return lost;
}

void check_burst_books(const QueueSpec& spec, const QueueResult& result) {
  GpuTime all, rented;
  for (const GpuTime& bucket : result.books) all += bucket;
  CHECK(all == GpuTime(spec.cluster.gpus(), result.end));
  for (const GpuTime& bucket : result.burst->books) rented += bucket;
  CHECK(rented == result.burst->rented);
  CHECK(rented_part(result, RentedBucket::unused) >= GpuTime());
  CHECK(result.burst->most_nodes <= spec.burst->nodes);
}

}  // namespace

TEST_CASE("burst: with c servers and no patience the share that bursts is Erlang's B") {
  for (const auto& [gpus, load] : {std::pair(1, 0.7), std::pair(8, 0.9), std::pair(32, 1.1)}) {
    CAPTURE(gpus);
    QueueSpec spec = single_jobs(gpus, load, true, 200'000);
    spec.burst = rented_like(spec, 1000);
    const QueueResult result = simulate_queue(spec);
    const double share = static_cast<double>(result.burst->jobs) / 200'000;
    CHECK(share == doctest::Approx(erlang_b(gpus, gpus * load)).epsilon(0.02));
    const auto waits = [](const JobOutcome& of) { return of.waited > 0; };
    CHECK(std::ranges::none_of(result.jobs, waits));
  }
}

TEST_CASE("burst: Erlang's B holds for any durations, of fixed ones as well") {
  QueueSpec spec = single_jobs(8, 0.9, false, 200'000);
  spec.burst = rented_like(spec, 1000);
  const QueueResult result = simulate_queue(spec);
  CHECK(static_cast<double>(result.burst->jobs) / 200'000 ==
        doctest::Approx(erlang_b(8, 7.2)).epsilon(0.02));
}

TEST_CASE("burst: unlimited, at once and for nothing, no job waits, and each takes what it takes") {
  QueueSpec spec = single_jobs(2, 5, true, 20'000);
  spec.burst = rented_like(spec, 20'000);
  const QueueResult result = simulate_queue(spec);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    REQUIRE(result.jobs[j].start == spec.jobs[j].submit);
    REQUIRE(result.jobs[j].end == spec.jobs[j].submit + spec.jobs[j].runs);
  }
  // M/G/infinity behind two servers: 10 Erlang, of which the two carry what Erlang's B leaves them.
  const double lost = erlang_b(2, 10);
  CHECK(result.burst->rented.gpu_seconds() / to_seconds(result.end).base_units() ==
        doctest::Approx(10 * lost).epsilon(0.03));
}

TEST_CASE("burst: with nothing to rent a queue is the same as without bursting") {
  QueueSpec spec = single_jobs(8, 0.95, true, 3000);
  spec.seed = 5;
  const QueueResult plain = simulate_queue(spec);
  spec.burst = rented_like(spec, 0);
  const QueueResult none = simulate_queue(spec);
  CHECK(none.burst->jobs == 0);
  CHECK(none.burst->usd() == 0);
  CHECK(none.books == plain.books);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    REQUIRE(none.jobs[j].start == plain.jobs[j].start);
    REQUIRE(none.jobs[j].end == plain.jobs[j].end);
  }
}

TEST_CASE("burst: after its patience, by hand: nodes start, data move, and all of it is paid for") {
  // One node of 8. Job 1 waits for job 0, until 600 s, and then bursts; job 2 is too narrow to.
  QueueSpec spec = queue_of(1, 8, {{0, 10'000, 8}, {0, 1000, 8}, {0, 500, 4}});
  spec.admission = QueueAdmission::best_effort;
  spec.burst = rented_like(spec, 2);
  QueueBurst& burst = *spec.burst;
  burst.after = seconds(600);
  burst.starts = seconds(120);
  burst.keeps = seconds(60);
  burst.least_gpus = 8;
  burst.speed = 0.5;
  burst.usd_per_gpu_hour = 4;
  burst.data_in = Bytes{1e12};
  burst.data_out = Bytes{5e11};
  burst.data_rate = BytesPerSecond{1e10};
  burst.usd_per_gb_out = 0.08;
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  CHECK(start_s(result, 1) == 600);
  CHECK(result.jobs[1].waited == seconds(600));
  // 120 s until the node serves, 100 s in, 2,000 s of work at half the pace, 50 s out.
  CHECK(end_s(result, 1) == 600 + 120 + 100 + 2000 + 50);
  CHECK(result.jobs[1].slowed == seconds(1000));
  CHECK(start_s(result, 2) == 10'000);
  CHECK(rented_part(result, RentedBucket::starting) == GpuTime(8, seconds(120)));
  CHECK(rented_part(result, RentedBucket::moving) == GpuTime(8, seconds(150)));
  CHECK(rented_part(result, RentedBucket::useful) == GpuTime(8, seconds(1000)));
  CHECK(rented_part(result, RentedBucket::slowed) == GpuTime(8, seconds(1000)));
  CHECK(rented_part(result, RentedBucket::unused) == GpuTime(8, seconds(60)));
  CHECK(result.burst->gpu_usd == doctest::Approx(4 * 8 * 2330.0 / 3600));
  CHECK(result.burst->egress_usd == doctest::Approx(40));
  CHECK(result.burst->nodes == 1);
  CHECK(result.jobs[1].rented == GpuTime(8, seconds(2270)));
  CHECK_FALSE(result.jobs[0].rented.has_value());
  check_burst_books(spec, result);
  const auto of_one = std::ranges::find(result.spans, 1U, &JobSpan::job);
  REQUIRE(of_one != result.spans.end());
  CHECK(of_one->held == Holding{{1, 8}});  // behind the cluster's one node
}

TEST_CASE("burst: a job that starts on the cluster before its patience is over does not burst") {
  QueueSpec spec = queue_of(1, 8, {{0, 600, 8}, {0, 100, 8}});
  spec.burst = rented_like(spec, 1);
  spec.burst->after = seconds(600);
  CHECK(simulate_queue(spec).burst->jobs == 0);  // the cluster comes first in an instant
  spec.burst->after = seconds(599);
  CHECK(start_s(simulate_queue(spec), 1) == 599);
}

TEST_CASE("burst: narrow jobs share a rented node, and a kept one is used again without a start") {
  QueueSpec spec =
      queue_of(1, 8, {{0, 10'000, 8}, {0, 100, 3}, {0, 100, 5}, {0, 100, 1}, {150, 100, 8}});
  spec.admission = QueueAdmission::best_effort;
  spec.burst = rented_like(spec, 2);
  spec.burst->starts = seconds(30);
  spec.burst->keeps = seconds(40);
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  // 3 and 5 fill the first node, 1 takes a second; both are kept from 130 s to 170 s.
  CHECK(end_s(result, 1) == 130);
  CHECK(end_s(result, 3) == 130);
  CHECK(end_s(result, 4) == 250);  // on a node that serves
  CHECK(result.burst->nodes == 2);
  // The first from 0 to 290 s, the second from 0 to 170 s.
  CHECK(result.burst->rented == GpuTime(8, seconds(290 + 170)));
  check_burst_books(spec, result);
}

TEST_CASE("burst: it is in the order of the queue, and licences hold in the cloud as well") {
  QueueSpec spec = queue_of(1, 8, {{0, 10'000, 8, 0, 3}, {0, 100, 8, 0, 1}, {0, 100, 8, 0, 2}});
  spec.order = QueueOrder::priority;
  spec.burst = rented_like(spec, 1);
  spec.burst->after = seconds(50);
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 2) == 50);
  CHECK(start_s(result, 1) == 150);

  spec.licenses = {{.name = "solver", .count = 1}};
  spec.license_sets.push_back({{.license = 0, .count = 1}});
  spec.burst->nodes = 2;
  for (QueueJob& job : spec.jobs) job.licenses = 1;
  spec.jobs[0].licenses = 0;
  const QueueResult licensed = simulate_queue(spec);
  CHECK(start_s(licensed, 2) == 50);
  CHECK(start_s(licensed, 1) == 150);  // the node is there, the licence is not
}

TEST_CASE("burst: who may is a matter of account, priority, width and reservation") {
  QueueSpec spec = queue_of(1, 8, {{0, 1000, 8}, {0, 100, 8}});
  spec.burst = rented_like(spec, 4);
  const auto bursts = [&] { return simulate_queue(spec).burst->jobs; };
  CHECK(bursts() == 1);
  const std::uint16_t own = *spec.accounts.number_of("own");
  spec.burst->accounts = {own};
  CHECK(bursts() == 0);
  spec.jobs[1].account = own;
  CHECK(bursts() == 1);
  spec.burst->least_priority = 3;
  CHECK(bursts() == 0);
  spec.jobs[1].priority = 3;
  CHECK(bursts() == 1);
  spec.burst->most_gpus = 7;
  CHECK(bursts() == 0);
  spec.burst->most_gpus = 8;
  CHECK(bursts() == 1);
  spec.burst->rented.node.gpus = 1;  // four of them
  CHECK(bursts() == 0);
}

TEST_CASE("burst: no more is spent than may be, whatever jobs do within their limits") {
  QueueSpec spec = single_jobs(2, 4, true, 400);
  for (QueueJob& job : spec.jobs) job.limit = 3 * job.runs;
  spec.burst = rented_like(spec, 50);
  spec.burst->starts = seconds(20);
  spec.burst->keeps = seconds(30);
  spec.burst->data_out = Bytes{1e9};
  spec.burst->data_rate = BytesPerSecond{1e9};
  spec.burst->usd_per_gb_out = 0.01;
  const double open = simulate_queue(spec).burst->usd();
  for (const double most : {0.0, 0.1 * open, 0.5 * open, 2 * open}) {
    CAPTURE(most);
    spec.burst->most_usd = most;
    const QueueResult result = simulate_queue(spec);
    CHECK(result.burst->usd() <= most * (1 + 1e-12));
    if (most > 0) CHECK(result.burst->usd() > std::min(0.6 * most, 0.5 * open));
    if (most == 0) CHECK(result.burst->jobs == 0);
    check_burst_books(spec, result);
  }
}

TEST_CASE("burst: an evicted job goes on with what it kept, after its patience and a restart") {
  QueueSpec spec = queue_of(1, 8, {{0, 1000, 8, 0, 1}, {300, 5000, 8, 0, 2}});
  spec.order = QueueOrder::priority;
  spec.preemption.mode = PreemptionMode::evict;
  spec.preemption.restart = seconds(10);
  spec.burst = rented_like(spec, 1);
  spec.burst->after = seconds(100);
  const QueueResult result = simulate_queue(spec);
  CHECK(result.jobs[0].evictions == 1);
  CHECK(end_s(result, 0) == 300 + 100 + 10 + 700);
  CHECK(result.jobs[0].waited == seconds(100));
  CHECK(rented_part(result, RentedBucket::starting) == GpuTime(8, seconds(10)));
}

TEST_CASE("burst: it frees the cluster for others under every admission, and books stay whole") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = 98});
    QueueSpec spec = empty_queue(2 + static_cast<int>(random.below(10)), 1 << random.below(4));
    spec.seed = seed;
    const int most = spec.cluster.gpus();
    DrawnJobs drawn;
    drawn.count = 150;
    drawn.gpus = {{1, 3.0}, {std::min(2, most), 2.0}, {std::max(1, most / 4), 1.0}, {most, 0.2}};
    drawn.mean = Seconds{200};
    drawn.sigma = 1.2;
    drawn.every = Seconds{40};
    drawn.limit_factor = 1 + 3 * random.uniform();
    drawn.accounts = {{"a", 1.0}, {"b", 2.0}};
    draw_jobs(drawn, 0, spec);
    spec.order = static_cast<QueueOrder>(random.below(4));
    spec.admission = static_cast<QueueAdmission>(random.below(5));
    const bool plain =
        spec.admission == QueueAdmission::strict || spec.admission == QueueAdmission::best_effort;
    if (plain && random.below(3) == 0) spec.preemption.mode = PreemptionMode::replan;
    if (random.below(3) == 0) {
      spec.failures = {.name = "x",
                       .mean_time = Seconds{30'000},
                       .replaced = 0.5,
                       .repair = seconds(500),
                       .assumptions = {}};
    }
    QueueBurst burst = rented_like(spec, 1 + static_cast<int>(random.below(8)));
    burst.rented.node.gpus = 1 << random.below(4);
    burst.after = seconds(static_cast<double>(random.below(3) * 100));
    burst.starts = seconds(static_cast<double>(random.below(2) * 60));
    burst.keeps = seconds(static_cast<double>(random.below(2) * 90));
    burst.speed = 0.5 + random.uniform();
    if (random.below(2) == 0) burst.accounts = {*spec.accounts.number_of("a")};
    spec.burst = burst;
    const QueueResult result = simulate_queue(spec, {.keep_spans = true});
    check_burst_books(spec, result);
    GpuTime held, cluster;
    std::map<std::pair<RunTime, int>, std::map<int, int>> changes;  // ends before begins
    for (const JobSpan& span : result.spans) {
      const bool is_rented = span.held.front().node >= spec.cluster.nodes;
      for (const auto& [node, gpus] : span.held) {
        CHECK((node >= spec.cluster.nodes) == is_rented);
        changes[{span.begin, 1}][node] += gpus;
        changes[{span.end, 0}][node] -= gpus;
      }
      const QueueJob& job = spec.jobs[span.job];
      (is_rented ? held : cluster) += GpuTime(job.gpus, span.end - span.begin);
      const bool others_stay = is_rented && !burst.accounts.empty();
      CHECK((!others_stay || spec.accounts[job.account] == "a"));
    }
    std::map<int, int> on_node;
    for (const auto& [at, by_node] : changes) {
      for (const auto& [node, gpus] : by_node) {
        const bool is_rented = node >= spec.cluster.nodes;
        on_node[node] += gpus;
        REQUIRE(on_node[node] <= (is_rented ? burst.rented.node.gpus : spec.cluster.node.gpus));
      }
    }
    CHECK(cluster == result.held);
    CHECK(held + rented_part(result, RentedBucket::unused) == result.burst->rented);
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) CHECK(result.jobs[j].end >= 0);
    const QueueSummary summary = summary_of(spec, result);
    double usd = 0;
    for (const QueueGroup& group : summary.by_gpus) usd += group.usd.value_or(0);
    CHECK(usd == doctest::Approx(result.burst->usd()));
  }
}

TEST_CASE("burst: what is saved is told against the same queue without") {
  QueueSpec spec = queue_of(1, 8, {{0, 3600, 8}, {0, 3600, 8}});
  spec.burst = rented_like(spec, 1);
  spec.burst->after = seconds(600);
  spec.burst->usd_per_gpu_hour = 3;
  const QueueResult result = simulate_queue(spec, {.without_bursts = true});
  REQUIRE(result.unburst.has_value());
  CHECK(result.unburst->wait_mean_s == 1800);
  CHECK(result.unburst->completion_mean_s == 5400);
  const QueueSummary summary = summary_of(spec, result);
  CHECK(summary.burst->jobs == 1);
  CHECK(summary.burst->wait_saved_s == doctest::Approx(1500));
  CHECK(summary.burst->saved_hours == doctest::Approx(3000.0 / 3600));
  CHECK(summary.burst->counts.usd() == doctest::Approx(24));
  CHECK(summary.burst->usd_per_saved_hour() == doctest::Approx(24 / (3000.0 / 3600)));
  CHECK(summary.all.usd == doctest::Approx(24));
  CHECK_FALSE(simulate_queue(spec).unburst.has_value());
}

TEST_CASE("burst: the step of a training is simulated on the rented nodes") {
  const auto scenario = [](const char* node) {
    return nlohmann::ordered_json::parse(std::string(R"({
      "cluster": {"node": "dgx_a100_80gb", "nodes": 2, "fabric": "fat_tree"},
      "queue": {"order": "fifo", "admission": "strict",
        "burst": {"node": ")") + node + R"(", "nodes": 2, "after": "0 s", "starts": "0 s",
                  "usd_per_gpu_hour": 1},
        "jobs": [{"training": {"name": "t", "nodes": 2, "steps": 100, "count": 2,
          "model": {"layers": 8, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000},
          "parallelism": {"tensor": 8, "data": 2},
          "batch": {"sequences": 16, "tokens": 2048}}}]}})");
  };
  const auto times = [&](const char* node) {
    QueueSpec spec =
        read_queue(JsonCursor::parse("t.json", scenario(node).dump()), test::presets());
    time_trainings(spec);
    const QueueResult result = simulate_queue(spec);
    CHECK(result.burst->jobs == 1);
    return std::pair(end_s(result, 0), end_s(result, 1));
  };
  const auto [own, alike] = times("dgx_a100_80gb");
  CHECK(alike == doctest::Approx(own).epsilon(1e-3));
  const auto [same, faster] = times("dgx_h100");
  CHECK(same == own);
  CHECK(faster < 0.7 * own);
}

}  // namespace lockstep
