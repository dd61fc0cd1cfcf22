// Heterogeneous jobs: components in partitions of their own, which start and go together.
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;
using test::start_s;

/// Partition a has nodes 1 and 2, b has node 3.
QueueSpec two_partitions(const std::string& admission, const char* jobs) {
  Json scenario{{"cluster", {{"node", "dgx_h100"}, {"nodes", 3}}},
                {"queue", {{"order", "fifo"}, {"admission", admission}}}};
  scenario["queue"]["partitions"] =
      Json::parse(R"([{"name": "a", "hosts": "n[1-2]"}, {"name": "b", "hosts": "n3"}])");
  for (const Json& job : Json::parse(jobs)) scenario["queue"]["jobs"].push_back({{"job", job}});
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

std::string component_complaint(const char* job) {
  try {
    (void)two_partitions("strict", ("[" + std::string(job) + "]").c_str());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

constexpr const char* kJobs = R"([
    {"name": "first", "runs": "10 s", "gpus": 4, "partition": "b"},
    {"name": "both", "runs": "20 s", "components": [{"gpus": 12, "partition": "a"},
                                                    {"gpus": 6, "partition": "b"}]},
    {"name": "behind", "runs": "5 s", "gpus": 8, "partition": "a", "submit": "1 s"}])";

}  // namespace

TEST_CASE("heterogeneous jobs: nothing starts until all components fit, each in its partition") {
  for (const char* const admission : {"strict", "best_effort", "easy", "conservative"}) {
    CAPTURE(admission);
    const QueueSpec spec = two_partitions(admission, kJobs);
    const QueueResult result = simulate_queue(spec, {.watch = 1, .keep_spans = true});
    CHECK(start_s(result, 1) == 10);
    CHECK(end_s(result, 1) == 30);
    REQUIRE_FALSE(result.waits.empty());
    CHECK(result.waits.front().reason == WaitReason::fragmentation);
    for (const JobSpan& span : result.spans) {
      if (span.job == 1) CHECK(span.held == Holding{{0, 8}, {1, 4}, {2, 6}});
    }
    // Whoever is behind it waits, or has ended by then.
    CHECK(start_s(result, 2) == (std::string(admission) == "strict" ? 30 : 1));
  }
}

TEST_CASE(
    "heterogeneous jobs: in Slurm's cycles backfill starts them, the main scheduler does not") {
  const QueueSpec spec = two_partitions("slurm", R"([
    {"name": "plain", "runs": "60 s", "gpus": 4, "partition": "b"},
    {"name": "both", "runs": "60 s", "components": [{"gpus": 8, "partition": "a"},
                                                    {"gpus": 4, "partition": "b"}]}])");
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 0) == 0);
  CHECK(start_s(result, 1) == 30);  // bf_interval
  CHECK(result.backfilled == 1);
}

TEST_CASE("heterogeneous jobs: a broken node of one component takes the job, GPUs add up") {
  QueueSpec spec = two_partitions("strict", R"([
    {"name": "both", "runs": "100 s", "components": [{"gpus": 16, "partition": "a"},
                                                     {"gpus": 2, "partition": "b"}]}])");
  spec.breaks.push_back({.node = 2, .at = test::seconds(40), .repair = test::seconds(10)});
  spec.preemption.checkpoint = 0;  // it keeps what it has done
  const QueueResult result = simulate_queue(spec);
  CHECK(result.jobs[0].failures == 1);
  CHECK(end_s(result, 0) == 110);
  CHECK(result.books[0] == GpuTime(18, test::seconds(100)));
  GpuTime all;
  for (const GpuTime& bucket : result.books) all += bucket;
  CHECK(all == GpuTime(24, result.end));
  CHECK(spec.nodes_of(spec.jobs[0]) == 3);
}

TEST_CASE("heterogeneous jobs: what the reader refuses") {
  const auto says = [](const char* job, const char* what) {
    const std::string text = component_complaint(job);
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
  };
  says(R"({"name": "x", "runs": "1 s", "components": [{"gpus": 1}]})", "at least two components");
  says(R"({"name": "x", "runs": "1 s", "gpus": 2, "components": [{"gpus": 1}, {"gpus": 1}]})",
       "/job/gpus");
  says(R"({"name": "x", "runs": "1 s", "tasks": 2, "components": [{"gpus": 1}, {"gpus": 1}]})",
       "/job/tasks");
  says(R"({"name": "x", "runs": "1 s",
           "components": [{"gpus": 1, "partition": "a"}, {"gpus": 9, "partition": "b"}]})",
       "at most 8");
  says(
      R"({"name": "x", "runs": "1 s", "components": [{"gpus": 1, "partition": "c"}, {"gpus": 1}]})",
      "/components/0/partition");
}

}  // namespace lockstep
