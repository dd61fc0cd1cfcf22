// Jobs of several widths, and the order of finish-time fairness: closed forms and laws.
#include "sim/cluster/elastic_widths.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <initializer_list>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using ElasticJson = nlohmann::ordered_json;
using test::end_s;
using test::seconds;
using test::start_s;

/// Speeds on 1 to `most` GPUs: their number to a power.
WidthTable widths_to(int most, double power) {
  WidthTable out;
  for (int gpus = 1; gpus <= most; ++gpus) {
    out.gpus.push_back(gpus);
    out.speeds.push_back(std::pow(gpus, power));
  }
  return out;
}

QueueSpec elastic_queue(int nodes, int gpus, ElasticPolicy policy, double resize_s,
                        const WidthTable& table, std::initializer_list<test::WrittenJob> jobs) {
  QueueSpec spec = test::queue_of(nodes, gpus, jobs);
  spec.admission = QueueAdmission::best_effort;
  spec.elastic = {.policy = policy, .resize = seconds(resize_s)};
  spec.width_tables.push_back(table);
  for (QueueJob& job : spec.jobs) job.widths = 1;
  return spec;
}

double in_bucket(const QueueResult& result, QueueBucket bucket) {
  return result.books[static_cast<std::size_t>(bucket)].gpu_seconds();
}

/// All buckets are capacity times time, and useful work is that of the jobs.
void check_elastic_books(const QueueSpec& spec, const QueueResult& result) {
  GpuTime all{}, work{};
  for (const GpuTime& of : result.books) all += of;
  for (const QueueJob& job : spec.jobs) work += GpuTime(job.gpus, job.runs);
  GpuTime held{};
  for (const JobOutcome& of : result.jobs) held += of.elastic_held.value_or(GpuTime());
  const bool all_elastic =
      std::ranges::all_of(spec.jobs, [](const QueueJob& job) { return job.widths > 0; });
  if (all_elastic) CHECK(held == result.held);
  CHECK(all == GpuTime(std::int64_t{spec.cluster.nodes} * spec.cluster.node.gpus, result.end));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::useful)] == work);
}

}  // namespace

TEST_CASE("elastic widths: a lone job takes all, up to its widest") {
  for (const int most : {4, 8, 16}) {
    CAPTURE(most);
    const QueueSpec spec =
        elastic_queue(1, 8, ElasticPolicy::goodput, 0, widths_to(most, 1), {{0, 800, 1}});
    const QueueResult result = simulate_queue(spec, {});
    CHECK(end_s(result, 0) == doctest::Approx(800.0 / std::min(most, 8)));
    check_elastic_books(spec, result);
  }
}

TEST_CASE("elastic widths: two that are alike share equally, and who is left takes all") {
  // Linear in their GPUs every split has the same sum: the even one is chosen.
  for (const double power : {1.0, 0.7}) {
    CAPTURE(power);
    const QueueSpec spec = elastic_queue(1, 8, ElasticPolicy::goodput, 5, widths_to(8, power),
                                         {{0, 80, 1}, {0, 160, 1}});
    const QueueResult result = simulate_queue(spec, {});
    const double half = std::pow(4, power), whole = std::pow(8, power);
    const double first = 80 / half;
    CHECK(end_s(result, 0) == doctest::Approx(first));
    CHECK(end_s(result, 1) == doctest::Approx(first + 5 + 80 / whole));
    CHECK(result.jobs[0].resizes == 0);
    CHECK(result.jobs[1].resizes == 1);
    CHECK(in_bucket(result, QueueBucket::starting) == doctest::Approx(5 * 8));
    check_elastic_books(spec, result);
  }
}

TEST_CASE("elastic widths: who comes later is let in, for the cost of a resize") {
  // From 30 s on both hold 4 of 8; until then the first does 30 * 8 = 240 of its 400.
  const QueueSpec spec = elastic_queue(2, 4, ElasticPolicy::goodput, 10, widths_to(8, 1),
                                       {{0, 400, 1}, {30, 1000, 1}});
  const QueueResult result = simulate_queue(spec, {});
  CHECK(start_s(result, 1) == doctest::Approx(30));
  CHECK(end_s(result, 0) == doctest::Approx(30 + 10 + 160 / 4.0));
  // The second: 50 s of 4, then 10 s of resizing, then 8.
  CHECK(end_s(result, 1) == doctest::Approx(80 + 10 + (1000 - 50 * 4) / 8.0));
  check_elastic_books(spec, result);
}

TEST_CASE("elastic widths: choices are made every so often") {
  QueueSpec spec =
      elastic_queue(1, 8, ElasticPolicy::goodput, 0, widths_to(8, 1), {{0, 400, 1}, {30, 80, 1}});
  spec.elastic.every = seconds(40);
  const QueueResult result = simulate_queue(spec, {});
  CHECK(start_s(result, 1) == doctest::Approx(40));  // 320 of 400 are done
  CHECK(end_s(result, 0) == doctest::Approx(60));    // 80 left on 4
  CHECK(end_s(result, 1) == doctest::Approx(60));
  check_elastic_books(spec, result);
}

TEST_CASE("elastic widths: fixed is what a job asks for") {
  const QueueSpec spec =
      elastic_queue(1, 8, ElasticPolicy::fixed, 0, widths_to(8, 1), {{0, 100, 2}, {0, 50, 8}});
  const QueueResult result = simulate_queue(spec, {});
  CHECK(end_s(result, 0) == doctest::Approx(100));
  CHECK(end_s(result, 1) == doctest::Approx(150));
}

TEST_CASE("elastic widths: choices are those of all choices tried") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RandomStream random({.seed = seed, .purpose = 98});
    const auto below = [&](int most) { return static_cast<int>(random.uniform() * most); };
    const int gpus = 2 + below(9);
    std::vector<WidthChoice> jobs;
    for (int j = 0; j < 4; ++j) {
      WidthChoice job;
      double gain = 1;
      for (int width = 1 + below(2); width <= 8; width += 1 + below(3)) {
        job.gpus.push_back(width);
        job.gain.push_back(gain);
        gain += below(100) / 64.0;
      }
      jobs.push_back(job);
    }
    double best = 0;
    const auto try_all = [&](const auto& self, std::size_t j, int left, double sum) -> void {
      if (j == jobs.size()) {
        best = std::max(best, sum);
        return;
      }
      self(self, j + 1, left, sum);
      for (std::size_t w = 0; w < jobs[j].gpus.size(); ++w) {
        if (jobs[j].gpus[w] <= left) {
          self(self, j + 1, left - jobs[j].gpus[w], sum + jobs[j].gain[w]);
        }
      }
    };
    try_all(try_all, 0, gpus, 0);
    const std::vector<int> chosen = choose_widths(jobs, gpus);
    double sum = 0;
    int taken = 0;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      taken += chosen[j];
      for (std::size_t w = 0; w < jobs[j].gpus.size(); ++w) {
        if (jobs[j].gpus[w] == chosen[j]) sum += jobs[j].gain[w];
      }
    }
    CAPTURE(seed);
    CHECK(taken <= gpus);
    CHECK(sum == doctest::Approx(best));
  }
}

TEST_CASE("elastic widths: whoever runs keeps its narrowest width, and equals stay as they are") {
  WidthChoice runs{.gpus = {2, 4}, .gain = {1, 1.1}, .now = 2, .may_wait = false};
  const WidthChoice waits{.gpus = {1, 4}, .gain = {1, 9}};
  CHECK(choose_widths({runs, waits}, 4) == std::vector<int>{2, 1});
  CHECK(choose_widths({runs, waits}, 6) == std::vector<int>{2, 4});
  WidthChoice one{.gpus = {1, 2}, .gain = {1, 2}, .now = 1};
  WidthChoice two = one;
  two.now = 2;
  CHECK(choose_widths({one, two}, 3) == std::vector<int>{1, 2});
  CHECK(choose_widths({two, one}, 3) == std::vector<int>{2, 1});
  CHECK(choose_widths({}, 3).empty());
}

TEST_CASE("elastic widths: work is conserved under many jobs that come and go") {
  WidthTable table{.gpus = {1, 2, 4, 8, 16}, .speeds = {1, 1.9, 3.5, 6, 9}};
  QueueSpec spec = elastic_queue(4, 8, ElasticPolicy::goodput, 3, table, {});
  RandomStream random({.seed = 7, .purpose = 98});
  for (std::uint64_t j = 0; j < 60; ++j) {
    QueueJob job;
    job.submit = seconds(static_cast<double>(j) * 7);
    job.runs = job.limit = seconds(50 + 400 * random.uniform());
    job.widths = j % 5 == 0 ? 0 : 1;  // some ask for one width
    job.gpus = job.widths == 0 ? 3 : 1;
    spec.jobs.push_back(job);
  }
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  check_elastic_books(spec, result);
  CHECK(result.resizes > 60);
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) CHECK(result.jobs[j].end > 0);
  // No GPU twice: at every begin of a span what is held there is what the node has, at most.
  for (const JobSpan& at : result.spans) {
    std::vector<int> held(4);
    for (const JobSpan& other : result.spans) {
      if (other.begin > at.begin || other.end <= at.begin) continue;
      for (const HeldGpus& of : other.held) held[static_cast<std::size_t>(of.node)] += of.gpus;
    }
    for (const int gpus : held) CHECK(gpus <= 8);
  }
  CHECK(simulate_queue(spec, {}).jobs[59].end == result.jobs[59].end);
}

TEST_CASE("elastic widths: a job shrinks on a failure, and grows back when there is room") {
  const WidthTable table{.gpus = {4, 8}, .speeds = {0.5, 1}};
  QueueSpec spec = elastic_queue(2, 4, ElasticPolicy::shrink, 10, table, {{0, 100, 8}});
  spec.preemption.checkpoint = 0;  // all is kept
  spec.breaks = {{.node = 1, .at = seconds(50), .repair = seconds(1000)}};
  QueueResult result = simulate_queue(spec, {});
  CHECK(end_s(result, 0) == doctest::Approx(50 + 10 + 50 / 0.5));
  CHECK(result.jobs[0].failures == 1);
  CHECK(result.jobs[0].waited == 0);
  spec.breaks[0].repair = seconds(30);  // back at 80 s, when 40 s are left
  result = simulate_queue(spec, {});
  CHECK(end_s(result, 0) == doctest::Approx(80 + 10 + 40));
  check_elastic_books(spec, result);
  spec.preemption.checkpoint = seconds(20);  // 10 s are lost, and 10 s are for the restart
  spec.preemption.restart = seconds(10);
  spec.breaks[0].repair = seconds(1000);
  result = simulate_queue(spec, {});
  CHECK(end_s(result, 0) == doctest::Approx(50 + 20 + 60 / 0.5));
  spec.elastic.policy = ElasticPolicy::fixed;  // it waits for the repair
  result = simulate_queue(spec, {});
  CHECK(end_s(result, 0) == doctest::Approx(1050 + 10 + 60));
}

TEST_CASE("themis: the worst finish-time fairness first, by hand") {
  // One GPU, an auction every 10 s. Ratios at the auctions, of jobs of 100, 10 and 50 s: 10 s: 1,
  // 2, 1.2; 20 s: 1.1, -, 1.4; 30 s: 1.2, 1.4; 40 s: 1.3, 1.4; 50 s: 1.4 and 1.4, who runs goes on;
  // 60 s: 1.5, 1.4; 70 s: 1.5, 1.6.
  QueueSpec spec = test::queue_of(1, 1, {{0, 100, 1}, {0, 10, 1}, {0, 50, 1}});
  spec.order = QueueOrder::themis;
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::replan;
  spec.auction = seconds(10);
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  CHECK(start_s(result, 1) == 10);
  CHECK(end_s(result, 1) == 20);
  CHECK(start_s(result, 2) == 20);
  CHECK(end_s(result, 2) == 80);
  CHECK(end_s(result, 0) == 160);
  CHECK(result.jobs[0].evictions == 2);
  CHECK(result.jobs[2].evictions == 1);
  // Nobody loses its GPU without auctions in between.
  spec.auction = seconds(1000);
  const QueueResult one = simulate_queue(spec, {});
  CHECK(end_s(one, 0) == 100);
  CHECK(end_s(one, 1) == 110);
  // Without preemption the order is that of the last auction.
  spec.auction = seconds(10);
  spec.preemption.mode = PreemptionMode::none;
  const QueueResult kept = simulate_queue(spec, {});
  CHECK(end_s(kept, 0) == 100);
  CHECK(end_s(kept, 1) == 110);
  CHECK(end_s(kept, 2) == 160);
}

namespace {

ElasticJson elastic_scenario() {
  return ElasticJson::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "queue": {
      "order": "fifo", "admission": "best_effort",
      "elastic": {"policy": "goodput", "resize": "30 s", "every": "1 min"},
      "jobs": [{"job": {"name": "x", "runs": "1 h", "gpus": 4,
                        "widths": [{"gpus": 2, "speed": 1.1}, {"gpus": 4, "speed": 2.2},
                                   {"gpus": 8, "speed": 3.3}]}}]
    }
  })");
}

}  // namespace

TEST_CASE(
    "elastic widths: what a scenario says is what the simulation gets, and mistakes are told") {
  const auto read = [](const ElasticJson& scenario) {
    return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  };
  const QueueSpec spec = read(elastic_scenario());
  REQUIRE(spec.width_tables.size() == 2);
  CHECK(spec.jobs[0].widths == 1);
  CHECK(spec.width_tables[1].gpus == std::vector<int>{2, 4, 8});
  CHECK(spec.width_tables[1].speeds[0] == doctest::Approx(0.5));
  CHECK(spec.width_tables[1].speeds[2] == doctest::Approx(1.5));
  CHECK(spec.elastic.resize == seconds(30));
  CHECK(spec.elastic.every == seconds(60));
  const auto says = [&](const std::string& pointer, const ElasticJson& value,
                        const std::string& text) {
    ElasticJson scenario = elastic_scenario();
    scenario[ElasticJson::json_pointer(pointer)] = value;
    std::string message = "nothing";
    try {
      (void)read(scenario);
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says("/queue/elastic/policy", "godput", "Did you mean \"goodput\"?");
  says("/queue/elastic/policy", "shrink", "no such key unless \"policy\" is \"goodput\"");
  says("/queue/elastic/policy", "fixed", "no such key where \"policy\" is \"fixed\"");
  says("/queue/admission", "strict", "t.json#/queue/admission");
  says("/queue/jobs/0/job/gpus", 3, "the job's own 3 \"gpus\"");
  says("/queue/jobs/0/job/widths/1/gpus", 2, "t.json#/queue/jobs/0/job/widths");
  says("/queue/jobs/0/job/widths/0/speed", 0, "t.json#/queue/jobs/0/job/widths/0/speed");
  says("/queue/auction", "1 min", "no such key unless \"order\" is \"themis\"");
  ElasticJson bare = elastic_scenario();
  bare["queue"].erase("elastic");
  CHECK_THROWS_WITH_AS((void)read(bare), doctest::Contains("elastic"), InputError);
  bare = elastic_scenario();
  bare["queue"]["jobs"][0]["job"].erase("widths");
  CHECK_THROWS_WITH_AS((void)read(bare), doctest::Contains("unless a job has \"widths\""),
                       InputError);
  ElasticJson fair = elastic_scenario();
  fair["queue"].erase("elastic");
  fair["queue"]["jobs"][0]["job"].erase("widths");
  fair["queue"]["order"] = "themis";
  CHECK(read(fair).auction == seconds(1200));
  fair["queue"]["admission"] = "easy";
  CHECK_THROWS_WITH_AS((void)read(fair), doctest::Contains("strict or best_effort"), InputError);
  fair["queue"]["admission"] = "strict";
  fair["queue"]["preemption"] = {{"mode", "evict"}};
  CHECK_THROWS_WITH_AS((void)read(fair), doctest::Contains("none or replan"), InputError);
}

}  // namespace lockstep
