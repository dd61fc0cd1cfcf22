// Trainings and drawn jobs of several widths: speeds are those of steps simulated at each width.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;

/// A training on so many nodes; its batch is the same on any.
Json training_on(int nodes) {
  return {{"name", "t"},
          {"nodes", nodes},
          {"steps", 1000},
          {"model",
           {{"layers", 8}, {"hidden", 4096}, {"heads", 32}, {"ffn", 16384}, {"vocabulary", 32000}}},
          {"parallelism", {{"tensor", 8}, {"data", nodes}}},
          {"batch", {{"sequences", 64}, {"tokens", 2048}}}};
}

Json queue_of_training(Json training, int nodes) {
  return {{"cluster", {{"node", "dgx_h100"}, {"nodes", nodes}, {"fabric", "fat_tree"}}},
          {"queue",
           {{"order", "fifo"},
            {"admission", "best_effort"},
            {"jobs", Json::array({{{"training", std::move(training)}}})}}}};
}

QueueSpec timed_widths(const Json& scenario) {
  QueueSpec spec = read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  time_trainings(spec);
  return spec;
}

/// Its step alone on so many nodes of four.
double step_on(int nodes) {
  return timed_widths(queue_of_training(training_on(nodes), 4))
      .trainings[0]
      .reference_step.base_units();
}

Json of_widths(const std::vector<int>& nodes) {
  Json out = Json::array();
  for (const int count : nodes) out.push_back({{"nodes", count}});
  return out;
}

std::string refused_width(const Json& scenario) {
  try {
    (void)timed_widths(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE(
    "widths of trainings: each has the speed of its own step, and one alone takes all nodes") {
  Json training = training_on(1);
  training["widths"] = of_widths({1, 2, 4});
  Json scenario = queue_of_training(training, 4);
  scenario["queue"]["elastic"] = {{"policy", "goodput"}};
  const QueueSpec spec = timed_widths(scenario);
  const WidthTable& table = spec.width_tables[spec.jobs[0].widths];
  REQUIRE(table.gpus == std::vector{8, 16, 32});
  CHECK(table.speeds[0] == 1);
  CHECK(table.speeds[1] == doctest::Approx(step_on(1) / step_on(2)).epsilon(1e-9));
  CHECK(table.speeds[2] == doctest::Approx(step_on(1) / step_on(4)).epsilon(1e-9));
  CHECK(table.speeds[2] > 2);
  CHECK(table.speeds[2] < 4);  // gradients are exchanged
  const QueueResult result = simulate_queue(spec);
  CHECK(end_s(result, 0) == doctest::Approx(1000 * step_on(4)).epsilon(1e-6));
  const QueueSummary summary = summary_of(spec, result);
  REQUIRE(summary.trainings.size() == 1);  // its widths are no trainings of their own
  CHECK(summary.trainings[0].jobs == 1);
}

TEST_CASE("widths of trainings: who loses a node goes on at the step of what is left") {
  Json training = training_on(2);
  training["widths"] = of_widths({1, 2});
  Json scenario = queue_of_training(training, 2);
  const double wide = step_on(2), narrow = step_on(1);
  const double breaks = 500 * wide;
  scenario["queue"]["elastic"] = {{"policy", "shrink"}, {"resize", "60 s"}};
  scenario["queue"]["preemption"] = {{"mode", "none"}, {"checkpoint", "0 s"}};
  scenario["queue"]["breaks"] =
      Json::array({{{"node", 1}, {"at", std::to_string(breaks) + " s"}, {"repair", "30 d"}}});
  const QueueResult result = simulate_queue(timed_widths(scenario));
  CHECK(result.jobs[0].resizes == 1);
  CHECK(end_s(result, 0) == doctest::Approx(breaks + 60 + 500 * narrow).epsilon(1e-5));
  CHECK(result.jobs[0].elastic_held->gpu_seconds() ==
        doctest::Approx(16 * breaks + 8 * (60 + 500 * narrow)).epsilon(1e-5));
}

TEST_CASE("widths of drawn jobs: those that are whole and fit, by the width that each asks for") {
  Json scenario = queue_of_training(training_on(1), 2);
  scenario["queue"]["elastic"] = {{"policy", "goodput"}, {"resize", "30 s"}};
  scenario["queue"]["jobs"] = Json::parse(R"([{"generate": {"count": 200, "every": "10 min",
    "gpus": [[1, 1], [4, 1], [16, 1]], "mean": "1 h", "sigma": 1, "widths": [
      {"times": 0.5, "speed": 0.55}, {"times": 1, "speed": 1}, {"times": 2, "speed": 1.7}]}}])");
  const QueueSpec spec = timed_widths(scenario);
  for (const QueueJob& job : spec.jobs) {
    const std::vector<int>& gpus = spec.width_tables[job.widths].gpus;
    if (job.gpus == 1) CHECK(gpus == std::vector{1, 2});
    if (job.gpus == 4) CHECK(gpus == std::vector{2, 4, 8});
    if (job.gpus == 16) CHECK(gpus == std::vector{8, 16});
  }
  const QueueResult result = simulate_queue(spec);
  GpuTime all, work;
  for (const GpuTime& bucket : result.books) all += bucket;
  for (const QueueJob& job : spec.jobs) work += GpuTime(job.gpus, job.runs);
  CHECK(all == GpuTime(16, result.end));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::useful)] == work);
  CHECK(result.resizes > 0);
  CHECK(std::ranges::all_of(result.jobs, [](const JobOutcome& of) { return of.end >= 0; }));
}

TEST_CASE("widths of trainings and drawn jobs: mistakes are told by place") {
  const auto says = [](const std::vector<int>& widths, const std::string& text) {
    Json training = training_on(2);
    training["widths"] = of_widths(widths);
    Json scenario = queue_of_training(training, 4);
    scenario["queue"]["elastic"] = {{"policy", "fixed"}};
    const std::string message = refused_width(scenario);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says({1, 2, 4}, "nothing");
  says({1, 4}, "one has the training's own 2 \"nodes\"");
  says({2, 1}, "widths/1/nodes: found 1; allowed: more than the width before it has");
  says({2, 8}, "widths/1/nodes: found 8; allowed: at most 4, which the cluster has");
  Json scenario = queue_of_training(training_on(2), 4);
  scenario["queue"]["jobs"][0]["training"]["widths"] = of_widths({1, 2});
  CHECK(refused_width(scenario).find("\"elastic\"") != std::string::npos);
  scenario["queue"]["elastic"] = {{"policy", "fixed"}};
  scenario["queue"]["jobs"] = Json::parse(R"([{"generate": {"count": 2, "gpus": [[1, 1]],
    "mean": "1 h", "widths": [{"times": 2, "speed": 2}]}}])");
  CHECK(refused_width(scenario).find("widths of which one has \"times\" 1") != std::string::npos);
}

}  // namespace lockstep
