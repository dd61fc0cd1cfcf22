// Broken and slow parts of the fabric inside a step: by how much they slow what ranks exchange
// inside layers, against closed forms.
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "sim/congestion/shared_run.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

using test::near;

constexpr const char* kFaultyExperts = R"("model": "qwen3_30b_a3b", "stack": "megatron_core",
  "parallelism": {"data": 64, "expert": 64, "sharding": "zero1"},
  "batch": {"sequences": 64, "tokens": 4096, "micro": 1}, "recompute": "full")";
constexpr const char* kTensor = R"("model": "llama3_70b",
  "stack": {"preset": "megatron_core", "allow": ["layouts.replicated_key_values"]},
  "parallelism": {"tensor": 32},
  "batch": {"sequences": 1, "tokens": 4096, "micro": 1}, "recompute": "full")";
constexpr const char* kContext = R"("model": "llama3_8b", "stack": "megatron_core",
  "parallelism": {"tensor": 8, "context": 4},
  "batch": {"sequences": 1, "tokens": 8192, "micro": 1}, "recompute": "full")";

std::string cluster(int oversubscription, const std::string& faults, const char* node, int nodes) {
  return fmt::format(
      R"("cluster": {{"node": {}, "nodes": {},
          "fabric": {{"kind": "fat_tree", "routing": "adaptive", "leaf_ports_down": 16,
                      "switch_latency": "0 ns", "leaf_oversubscription": {}, "faults": [{}]}}}})",
      node, nodes, oversubscription, faults);
}
constexpr const char* kNode = R"("dgx_h100")";

StepReport step_with(const std::string& job, int oversubscription, const std::string& faults,
                     const char* node = kNode) {
  const Scenario scenario = read_scenario(
      "t.json",
      fmt::format("{{{}, {}}}",
                  cluster(oversubscription, faults, node, job == kFaultyExperts ? 8 : 4), job),
      PresetStore{});
  return simulate_step(scenario);
}
double exposed(const std::string& job, int oversubscription, const std::string& faults,
               Bucket bucket, const char* node = kNode) {
  return step_with(job, oversubscription, faults, node).seconds[static_cast<std::size_t>(bucket)];
}

/// How many times longer an exchange moves; `limited` without any fault. Exposed time has a latency
/// too, of the same length in all: differences of three take it out.
double stretch(double limited, double with_fault, double latency) {
  return (with_fault - latency) / (limited - latency);
}

// At 4:1 and at 8:1 it takes b / B and 2 b / B beside the same latency.
TEST_CASE("a dead cable: an exchange that fills four uplinks takes 4/3 of its time over three") {
  const auto experts = [](int oversubscription, const std::string& faults) {
    return exposed(kFaultyExperts, oversubscription, faults, Bucket::expert_exposed);
  };
  const double whole = experts(4, ""), latency = 2 * whole - experts(8, "");
  CHECK(stretch(whole, experts(4, R"({"cable": ["leaf 0", "spine 0"]})"), latency) ==
        near(4.0 / 3).epsilon(1e-3));
  // Slow, not dead: adaptive routing spreads by capacity, over 3 1/2 uplinks.
  CHECK(stretch(whole, experts(4, R"({"cable": ["leaf 0", "spine 0"], "rate": 0.5})"), latency) ==
        near(4 / 3.5).epsilon(1e-3));
}

struct HitJob {
  const char* job;
  Bucket bucket;
};
/// One group each, so that all ranks wait for the slowest, and nothing else is on the way.
constexpr std::array kHitJobs{HitJob{kFaultyExperts, Bucket::expert_exposed},
                              HitJob{kTensor, Bucket::tensor_exposed},
                              HitJob{kContext, Bucket::context_exposed}};

TEST_CASE("a dead cable: of two uplinks, it leaves its group what a fabric with one uplink has") {
  for (const auto& [job, bucket] : kHitJobs) {
    CAPTURE(job);
    const double two = exposed(job, 8, "", bucket), one = exposed(job, 16, "", bucket);
    CHECK(one > 1.2 * two);
    CHECK(exposed(job, 8, R"({"cable": ["leaf 0", "spine 0"]})", bucket) ==
          near(one).epsilon(1e-3));
  }
}

TEST_CASE("a NIC at half rate: its group exchanges as one of slow NICs alone does") {
  constexpr const char* kSlowNode = R"({"preset": "dgx_h100", "nic_bandwidth": "25 GB/s"})";
  for (const auto& [job, bucket] : kHitJobs) {
    const double whole = exposed(job, 1, "", bucket);
    const double slow = exposed(job, 1, "", bucket, kSlowNode);
    CHECK(slow > 1.4 * whole);
    for (const char* nic : {"node 0 nic 0", "node 0 nic 3", "node 2 nic 0", "node 3 nic 5"}) {
      CAPTURE(job);
      CAPTURE(nic);
      const double one =
          exposed(job, 1, fmt::format(R"({{"nic": "{}", "rate": 0.5}})", nic), bucket);
      // Ranks of a context group also exchange gradients beside it, over the same NICs, and those
      // wait for the slow one, too: it is the step that takes as long.
      if (bucket == Bucket::context_exposed) {
        CHECK(one > 1.4 * whole);
        const std::string fault = fmt::format(R"({{"nic": "{}", "rate": 0.5}})", nic);
        CHECK(step_with(job, 1, fault).step_s ==
              near(step_with(job, 1, "", kSlowNode).step_s).epsilon(2e-3));
      } else {
        CHECK(one == near(slow).epsilon(2e-3));
      }
    }
  }
}

double waits(const StepReport& step, Bucket bucket) {
  return step.seconds[static_cast<std::size_t>(bucket)];
}

StepReport pipeline_step(int stages, int sequences, const std::string& faults) {
  return simulate_step(
      read_scenario("t.json",
                    fmt::format(R"({{{}, "model": "llama3_8b", "stack": "megatron_core",
          "parallelism": {{"tensor": 8, "pipeline": {}}},
          "batch": {{"sequences": {}, "tokens": 4096, "micro": 1}}}})",
                                cluster(1, faults, kNode, stages), stages, sequences),
                    PresetStore{}));
}

// One micro batch through stages on nodes of their own: over the slow NIC a message there and one
// back, of which each GPU of eight sends its part of 4096 x 4096 values of 2 bytes. Every stage
// waits for both, the last of four at second hand.
TEST_CASE("a slow NIC under one micro batch: stages wait longer for its messages, nothing else") {
  constexpr double kSent = 4096.0 * 4096 * 2 / 8, kNicRate = 0.965 * 50e9;  // of InfiniBand
  for (const int stages : {2, 4}) {
    CAPTURE(stages);
    const auto step = [&](const std::string& faults) { return pipeline_step(stages, 1, faults); };
    const StepReport whole = step("");
    const StepReport slow = step(R"({"nic": "node 0 nic 0", "rate": 0.02})");
    const StepReport slower = step(R"({"nic": "node 0 nic 0", "rate": 0.01})");
    CHECK(slower.step_s - slow.step_s == near(2 * kSent / kNicRate * (100 - 50)));
    for (const StepReport& each : {slow, slower}) {
      CHECK(waits(each, Bucket::pipeline_exposed) - waits(whole, Bucket::pipeline_exposed) ==
            near(each.step_s - whole.step_s));
      for (std::size_t b = 0; b < each.seconds.size(); ++b) {
        if (b == static_cast<std::size_t>(Bucket::pipeline_exposed)) continue;
        CAPTURE(b);
        CHECK(each.seconds[b] == near(whole.seconds[b]));
      }
    }
  }
}

// A slow NIC of the second of eight stages; stages wait behind each other for it.
TEST_CASE("a slow NIC under many micro batches: what stages wait longer is not a bubble") {
  const StepReport whole = pipeline_step(8, 16, "");
  const StepReport slow = pipeline_step(8, 16, R"({"nic": "node 1 nic 0", "rate": 0.01})");
  const double longer = slow.step_s - whole.step_s;
  CHECK(longer > 0.2 * whole.step_s);
  CHECK(waits(slow, Bucket::pipeline_bubble) <= waits(whole, Bucket::pipeline_bubble));
  CHECK(waits(slow, Bucket::pipeline_exposed) - waits(whole, Bucket::pipeline_exposed) >= longer);
  double all = 0;
  for (const double seconds : slow.seconds) all += seconds;
  CHECK(all == near(slow.step_s));
}

TEST_CASE("NICs that GPUs share: half as many carry an exchange in twice the time") {
  constexpr const char* kFour = R"({"preset": "dgx_h100", "nics": 4})";
  constexpr const char* kTwo = R"({"preset": "dgx_h100", "nics": 2})";
  const double eight = exposed(kFaultyExperts, 1, "", Bucket::expert_exposed);
  const double four = exposed(kFaultyExperts, 1, "", Bucket::expert_exposed, kFour);
  const double two = exposed(kFaultyExperts, 1, "", Bucket::expert_exposed, kTwo);
  // The part that moves at the pace of NICs doubles, and what goes over NVLink stays. Gradients on
  // the same NICs take up to a hundredth of the time.
  CHECK(four > 1.5 * eight);
  CHECK(two - four == near(2 * (four - eight)).epsilon(0.01));
}

// What crosses a dead cable waits while it is dead, an all-to-all as a whole, and what is computed
// between two of them is much shorter than an outage: a cable that is down for a share q of the
// time makes a step take 1 / (1 - q) of its time.
TEST_CASE("a flapping cable: a step of exchanges goes on in the time in which it is up") {
  const auto step = [](const std::string& events) {
    const std::string text = fmt::format(
        R"({{{}, "steps": 1, "jobs": [{{"name": "a", "nodes": {{"count": 8}}, {}}}]{}}})",
        cluster(4, "", kNode, 8), kFaultyExperts, events);
    return simulate_shared(read_shared_scenario(JsonCursor::parse("t.json", text), PresetStore{}),
                           {.alone = false, .limits = {}})
        .jobs.front()
        .steps_s.front();
  };
  const double whole = step("");
  constexpr double kEvery = 0.1, kLasts = 0.02;
  const double flapping = step(
      R"(, "events": [{"fault": {"cable": ["leaf 0", "spine 0"]}, "at": "1 ms", "lasts": "20 ms",
                       "every": "100 ms", "reroute_after": "1 s"}])");
  // The first and the last outage may count or not; in each, one piece of compute may go on.
  const double stretched = whole * kLasts / (kEvery - kLasts);
  CHECK(flapping - whole < stretched + kLasts);
  CHECK(flapping - whole > 0.95 * stretched - kLasts);
}

}  // namespace
}  // namespace lockstep
