// Trainings in a queue: their speed by where they are and who is beside them.
#include "sim/cluster/job_speeds.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;

Json training(const std::string& name, int nodes, double steps) {
  return {{"training",
           {{"name", name},
            {"nodes", nodes},
            {"steps", steps},
            {"model", "llama3_8b"},
            {"parallelism", {{"tensor", 1}, {"data", 8 * nodes}, {"sharding", "zero3"}}},
            {"batch", {{"sequences", 16 * nodes}, {"micro", 1}, {"tokens", 8192}}},
            {"precision", "bf16"},
            {"recompute", "full"},
            {"stack", "megatron_core"}}}};
}

/// Leaves of two nodes, with an eighth of their rate upwards.
Json cluster_of(int nodes) {
  return {{"node", "dgx_h100"},
          {"nodes", nodes},
          {"fabric",
           {{"kind", "fat_tree"},
            {"levels", 2},
            {"leaf_ports_down", 16},
            {"leaf_oversubscription", 8}}}};
}

QueueSpec timed(const Json& cluster, const std::string& across, const Json& jobs,
                const std::string& speed = "simulated") {
  const Json scenario{{"cluster", cluster},
                      {"queue",
                       {{"order", "fifo"},
                        {"admission", "best_effort"},
                        {"placement", {{"across", across}}},
                        {"speed", speed},
                        {"jobs", jobs}}}};
  QueueSpec spec = read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  time_trainings(spec);
  return spec;
}

/// Steps of trainings that share the fabric, as `jobs` of a scenario of their own.
std::vector<double> steps_beside(const QueueSpec& spec,
                                 const std::vector<std::vector<int>>& nodes) {
  SharedScenario shared;
  shared.cluster = spec.cluster;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    shared.jobs.push_back({.name = std::to_string(j),
                           .scenario = spec.trainings[j].scenario,
                           .nodes = nodes[j],
                           .start = {}});
  }
  std::vector<double> out;
  for (const JobCongestion& job : simulate_shared(shared).congestion.jobs) {
    out.push_back(job.step_s);
  }
  return out;
}

}  // namespace

TEST_CASE("trainings in a queue: alone a job takes its steps at the pace of one") {
  const QueueSpec spec = timed(cluster_of(8), "first_fit", Json::array({training("a", 4, 1000)}));
  const double alone = steps_beside(spec, {{0, 1, 2, 3}}).front();
  const QueueResult result = simulate_queue(spec);
  CHECK(spec.trainings[0].reference_step.base_units() == doctest::Approx(alone).epsilon(1e-9));
  CHECK(end_s(result, 0) == doctest::Approx(1000 * alone).epsilon(1e-9));
  CHECK(result.jobs[0].slowed == 0);
  CHECK(result.groups_simulated == 1);
}

TEST_CASE("trainings in a queue: neighbours slow each other as jobs on one fabric do") {
  const QueueSpec spec =
      timed(cluster_of(8), "spread", Json::array({training("a", 4, 1000), training("b", 4, 1000)}));
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  std::vector<std::vector<int>> nodes(2);
  for (const JobSpan& span : result.spans) {
    for (const HeldGpus& held : span.held) nodes[span.job].push_back(held.node);
    std::ranges::sort(nodes[span.job]);
  }
  CHECK(nodes[0] == std::vector{0, 2, 4, 6});
  const std::vector<double> together = steps_beside(spec, nodes);
  const double alone = spec.trainings[0].reference_step.base_units();
  CHECK(together[0] > 1.05 * alone);
  for (const std::size_t j : {0U, 1U}) {
    CHECK(end_s(result, j) == doctest::Approx(1000 * together[j]).epsilon(1e-9));
  }
  const QueueSummary summary = summary_of(spec, result);
  CHECK(summary.trainings[0].mean_slowdown.value() ==
        doctest::Approx(together[0] / alone).epsilon(1e-9));
}

TEST_CASE("trainings in a queue: the least contended place is one that nobody else sends from") {
  // The first has leaf 0 and half of leaf 1. Packed, the second takes leaf 2 and the other half of
  // leaf 1, whose uplinks both then fill.
  const Json jobs = Json::array({training("a", 3, 1000), training("b", 3, 1000)});
  const auto nodes_of_second = [](const QueueResult& result) {
    std::vector<int> out;
    for (const JobSpan& span : result.spans) {
      if (span.job != 1) continue;
      for (const HeldGpus& held : span.held) out.push_back(held.node);
    }
    std::ranges::sort(out);
    return out;
  };
  const QueueSpec packed = timed(cluster_of(8), "packed", jobs);
  const QueueResult meets = simulate_queue(packed, {.keep_spans = true});
  CHECK(nodes_of_second(meets) == std::vector{3, 4, 5});
  const QueueSpec free = timed(cluster_of(8), "least_contended", jobs);
  const QueueResult apart = simulate_queue(free, {.keep_spans = true});
  CHECK(nodes_of_second(apart) == std::vector{4, 5, 6});
  for (const std::size_t j : {0U, 1U}) {
    CHECK(apart.jobs[j].slowed == 0);
    CHECK(meets.jobs[j].slowed > 0);
    CHECK(end_s(apart, j) < end_s(meets, j));
  }
}

TEST_CASE("trainings in a queue: when the neighbour ends, the other goes on alone") {
  const QueueSpec spec =
      timed(cluster_of(8), "spread", Json::array({training("a", 4, 1000), training("b", 4, 400)}));
  const QueueResult result = simulate_queue(spec);
  const double alone = steps_beside(spec, {{0, 2, 4, 6}}).front();
  const double together = end_s(result, 1) / 400;
  const double steps_by_then = end_s(result, 1) / together;
  CHECK(end_s(result, 0) ==
        doctest::Approx(end_s(result, 1) + (1000 - steps_by_then) * alone).epsilon(1e-6));
  GpuTime all;
  for (const GpuTime& bucket : result.books) all += bucket;
  CHECK(all == GpuTime(spec.cluster.gpus(), result.end));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::slowed)] > GpuTime());
  CHECK(result.books[0] == GpuTime(32, spec.jobs[0].runs + spec.jobs[1].runs));
}

TEST_CASE("trainings in a queue: jobs on leaves of their own do not meet, and are simulated once") {
  Json many = training("a", 2, 100);
  many["training"]["count"] = 12;
  const QueueSpec spec = timed(cluster_of(8), "packed", Json::array({many}));
  const QueueResult result = simulate_queue(spec);
  CHECK(result.groups_simulated == 1);
  for (const JobOutcome& job : result.jobs) CHECK(job.slowed == 0);
  CHECK(to_seconds(result.end).base_units() ==
        doctest::Approx(300 * spec.trainings[0].reference_step.base_units()));
}

TEST_CASE("trainings in a queue: who meets nobody on a link that could fill is as fast as alone") {
  // Leaves of four nodes with half of their rate upwards: rings of two jobs fit, those of three do
  // not.
  Json cluster = cluster_of(16);
  cluster["fabric"]["leaf_ports_down"] = 32;
  cluster["fabric"]["leaf_oversubscription"] = 2;
  for (const int jobs : {2, 3}) {
    Json many = training("a", 4, 100);
    many["training"]["count"] = jobs;
    const QueueSpec spec = timed(cluster, "spread", Json::array({many}));
    QueueSpec exact = spec;
    exact.speed = QueueSpeed::exact;
    const QueueResult fast = simulate_queue(spec), all = simulate_queue(exact);
    // Those of two are known from the one that was alone there.
    CHECK(fast.groups_simulated <= (jobs == 2 ? 1 : 2));
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      CHECK(end_s(fast, j) == doctest::Approx(end_s(all, j)).epsilon(1e-9));
    }
  }
}

TEST_CASE("trainings in a queue: jobs that are alike slow each other as every replica on its own") {
  Json sharded = training("b", 4, 300);
  sharded["training"]["parallelism"] = {
      {"tensor", 8}, {"pipeline", 2}, {"data", 2}, {"sharding", "zero1"}};
  sharded["training"]["recompute"] = "full";
  for (const Json& of : {training("a", 4, 300), sharded}) {
    Json many = of;
    many["training"]["count"] = 2;
    const QueueSpec spec = timed(cluster_of(8), "spread", Json::array({many}));
    QueueSpec exact = spec;
    exact.speed = QueueSpeed::exact;
    const QueueResult fast = simulate_queue(spec), all = simulate_queue(exact);
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      CHECK(end_s(fast, j) == doctest::Approx(end_s(all, j)).epsilon(1e-9));
    }
  }
}

TEST_CASE("trainings in a queue: unlike jobs that come and go are within 3 % of the exact speeds") {
  RandomStream random({.seed = 7});
  for (int round = 0; round < 6; ++round) {
    Json cluster = cluster_of(16);
    cluster["fabric"]["leaf_ports_down"] = random.below(2) == 0 ? 16 : 32;
    cluster["fabric"]["leaf_oversubscription"] = random.below(2) == 0 ? 2 : 8;
    Json jobs = Json::array();
    for (int j = 0; j < 5; ++j) {
      const int nodes = 2 << random.below(3);
      Json job = training("j" + std::to_string(j), nodes, 100.0 + 20.0 * random.below(10));
      job["training"]["submit"] = std::to_string(random.below(600)) + " s";
      job["training"]["batch"]["sequences"] = 8 * nodes * (1 + static_cast<int>(random.below(3)));
      jobs.push_back(job);
    }
    const std::string across = random.below(2) == 0 ? "spread" : "first_fit";
    const QueueSpec spec = timed(cluster, across, jobs);
    QueueSpec exact = spec;
    exact.speed = QueueSpeed::exact;
    const QueueResult fast = simulate_queue(spec), all = simulate_queue(exact);
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      CAPTURE(round);
      CAPTURE(j);
      const double took = end_s(fast, j) - to_seconds(fast.jobs[j].start).base_units();
      const double takes = end_s(all, j) - to_seconds(all.jobs[j].start).base_units();
      CHECK(took == doctest::Approx(takes).epsilon(0.03));
    }
  }
}

namespace {

/// How many trainings a chain of shared leaves joins, at most, when all run.
std::size_t most_joined(const QueueResult& result, std::size_t jobs, int leaf_nodes) {
  std::vector<std::vector<int>> leaves(jobs);
  for (const JobSpan& span : result.spans) {
    for (const HeldGpus& held : span.held) leaves[span.job].push_back(held.node / leaf_nodes);
  }
  std::vector<std::size_t> group(jobs);
  for (std::size_t j = 0; j < jobs; ++j) group[j] = j;
  for (std::size_t a = 0; a < jobs; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const bool meet = std::ranges::any_of(
          leaves[a], [&](int leaf) { return std::ranges::count(leaves[b], leaf) > 0; });
      if (!meet || group[a] == group[b]) continue;
      std::ranges::replace(group, std::size_t{group[a]}, std::size_t{group[b]});
    }
  }
  std::ptrdiff_t most = 0;
  for (const std::size_t of : group) most = std::max(most, std::ranges::count(group, of));
  return static_cast<std::size_t>(most);
}

}  // namespace

TEST_CASE("trainings in a queue: more than a few that meet are within 3 % of the exact speeds") {
  // Of nine or ten jobs on three leaves each, in turn, each meets others, and all are one chain.
  // Links that slow nobody by much are left out then, which must not show.
  constexpr std::size_t kFew = 6;
  RandomStream random({.seed = 11});
  bool any_slowed = false;
  for (int round = 0; round < 4; ++round) {
    Json cluster = cluster_of(32);
    cluster["fabric"]["leaf_ports_down"] = 32;
    cluster["fabric"]["leaf_oversubscription"] = round % 2 == 0 ? 8 : 16;
    const int count = 9 + static_cast<int>(random.below(2));
    Json jobs = Json::array();
    for (int j = 0; j < count; ++j) {
      Json job = training("j" + std::to_string(j), 3, 60.0 + 10.0 * random.below(10));
      job["training"]["batch"]["sequences"] = 24 * (1 + static_cast<int>(random.below(3)));
      jobs.push_back(job);
    }
    const QueueSpec spec = timed(cluster, "spread", jobs);
    QueueSpec exact = spec;
    exact.speed = QueueSpeed::exact;
    const QueueResult fast = simulate_queue(spec, {.keep_spans = true});
    const QueueResult all = simulate_queue(exact);
    CHECK(most_joined(fast, spec.jobs.size(), 4) > kFew);
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      CAPTURE(round);
      CAPTURE(j);
      CHECK(end_s(fast, j) == doctest::Approx(end_s(all, j)).epsilon(0.03));
      any_slowed = any_slowed || fast.jobs[j].slowed > spec.jobs[j].runs / 20;
    }
  }
  CHECK(any_slowed);
}

TEST_CASE("trainings in a queue: what does not fit is told with its place") {
  const auto message = [](const Json& job) -> std::string {
    try {
      (void)timed(cluster_of(4), "first_fit", Json::array({job}));
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing";
  };
  const auto with = [](const std::string& key, const Json& value) {
    Json out = training("a", 2, 10);
    out["training"][key] = value;
    return out;
  };
  const auto says = [&](const Json& job, const std::string& text) {
    const std::string said = message(job);
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
  };
  says(with("nodes", 5), "t.json#/queue/jobs/0/training/nodes: found 5; allowed: at most 4");
  says(with("model", "gpt3_175b"), "t.json#/queue/jobs/0/training: found a job that needs");
  says(with("stepz", 3), "t.json#/queue/jobs/0/training/stepz");
  says(with("partition", "x"), "t.json#/queue/jobs/0/training/partition");
  says(with("steps", 0), "t.json#/queue/jobs/0/training/steps");
}

}  // namespace lockstep
