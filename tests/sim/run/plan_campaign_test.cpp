#include "sim/run/plan_campaign.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "sim/run/summary.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

constexpr const char* kJob = R"("cluster": {"node": "dgx_h100", "nodes": 8},
  "model": "llama3_8b", "parallelism": {"data": 64, "sharding": "zero1"},
  "batch": {"sequences": 64, "micro": 1, "tokens": 2048},
  "recompute": "full", "stack": "megatron_core")";

using test::presets;

RunSpec read_run(const std::string& members) {
  const std::string run =
      fmt::format(R"({{"duration": "1 d", "reliability": {{"modes": []}}, {}}})", members);
  return read_run_spec(JsonCursor::parse("t.json", run), presets());
}
CampaignPlan plan_of(const std::string& members) {
  static const Scenario scenario = read_scenario("t.json", fmt::format("{{{}}}", kJob), presets());
  return plan_campaign(scenario, read_run(members));
}
CheckpointTier tier_of_storage(const std::string& storage, const std::string& more = {}) {
  return plan_of(
             fmt::format(R"("checkpoint": {{"interval": "1 h", "storage": {}{}}})", storage, more))
      .campaign.tiers.at(0);
}

std::string problem_of(const std::string& members) {
  try {
    (void)read_run(members);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
std::string problem_of_storage(const std::string& storage) {
  return problem_of(fmt::format(R"("checkpoint": {{"interval": "1 h", "storage": {}}})", storage));
}

}  // namespace

TEST_CASE("plan: checkpoints over the training network drag on the job, others do not") {
  const std::string servers =
      R"("servers": 8, "server_write": "100 GB/s", "server_read": "100 GB/s")";
  const CheckpointTier own = tier_of_storage("{" + servers + "}");
  const CheckpointTier shared = tier_of_storage("{" + servers + R"(, "network": "training"})");
  CHECK(own.drag == 0);
  CHECK(shared.drag > 0.001);
  CHECK(shared.finishes >= own.finishes);
  CHECK(shared.blocks == own.blocks);
  CHECK(shared.restores == own.restores);
}

TEST_CASE("plan: an interval shorter than a step is one checkpoint for each step, and said") {
  const auto plan = [](const std::string& interval) {
    return plan_of(fmt::format(
        R"("checkpoint": {{"interval": "{}", "storage": {{"write": "1 TB/s", "read": "1 TB/s"}}}})",
        interval));
  };
  const auto said = [](const CampaignPlan& of) {
    return std::ranges::count_if(of.assumptions, [](const std::string& words) {
      return words.starts_with("run.checkpoint to storage: one for each step, every ") &&
             words.ends_with(", as none is taken within a step (1.00 ms given)");
    });
  };
  const CampaignPlan shorter = plan("1 ms"), longer = plan("1 h");
  REQUIRE(shorter.step_s > 1e-3);
  CHECK(shorter.campaign.tiers.at(0).interval.base_units() == shorter.step_s);
  CHECK(said(shorter) == 1);
  CHECK(longer.campaign.tiers.at(0).interval == Seconds{3600});
  CHECK(said(longer) == 0);
}

TEST_CASE("plan: a drag that was measured stands, a time that was measured too") {
  const std::string fast = R"({"write": "10 TB/s", "read": "1 TB/s", "network": "training"})";
  CHECK(tier_of_storage(fast).drag > 0.001);
  CHECK(tier_of_storage(fast, R"(, "drag": 0)").drag == 0);
  CHECK(tier_of_storage(fast, R"(, "drag": 0.25)").drag == 0.25);
  const CheckpointTier slow = tier_of_storage(fast, R"(, "finishes": "10 min")");
  CHECK(slow.drag == 0);  // 0.2 GB/s on ports of 50
  CHECK(slow.finishes.base_units() == doctest::Approx(600));
}

TEST_CASE("plan: a preset may be given another network or more servers") {
  const CheckpointTier as_it_is = tier_of_storage(R"("minio_nvme")");
  const CheckpointTier twice = tier_of_storage(R"({"preset": "minio_nvme", "servers": 64})");
  CHECK((as_it_is.finishes - Seconds{1}) / (twice.finishes - Seconds{1}) == doctest::Approx(2));
}

TEST_CASE("plan: drives of the nodes as a rate, or as a preset") {
  const auto local = [&](const char* what) {
    return plan_of(fmt::format(R"("checkpoint": {{"to": "local", "interval": "1 h", {}}})", what));
  };
  const CampaignPlan rate = local(R"("drive": "3.72 GB/s")");
  const CampaignPlan preset = local(R"("storage": "frontier_nvme")");
  CHECK(rate.campaign.tiers[0].finishes == preset.campaign.tiers[0].finishes);
  CHECK(rate.campaign.tiers[0].restores > preset.campaign.tiers[0].restores);
  CHECK_FALSE(preset.campaign.tiers[0].survives_node);
}

TEST_CASE("plan: a job that gets half of its data runs at half speed, and no faster on fewer") {
  const CampaignPlan full = plan_of(R"("data": {"bytes_per_token": 4, "storage":
      {"write": "1 GB/s", "read": "1 TB/s"}}, "spares": {"elastic": 8})");
  CHECK(full.data_speed == 1);
  const double tokens_per_s = 64 * 2048 / full.step_s;
  CHECK(full.data_read_bytes_per_s == doctest::Approx(4 * tokens_per_s));
  REQUIRE(full.campaign.width_speed.size() == 9);
  CHECK(full.campaign.width_speed[0] == 1);
  const CampaignPlan half = plan_of(fmt::format(
      R"("data": {{"bytes_per_token": 1e6, "storage": {{"write": "1 GB/s", "read": {}}}}},
         "spares": {{"elastic": 8}})",
      0.5 * 1e6 * tokens_per_s));
  CHECK(half.data_speed == doctest::Approx(0.5));
  CHECK(half.campaign.width_speed.front() == doctest::Approx(0.5));
  CHECK(half.campaign.width_speed.back() == doctest::Approx(0.5));
  for (const double speed : half.campaign.width_speed) CHECK(speed <= 0.5 * (1 + 1e-12));
}

TEST_CASE("plan: fewer replicas are as fast as their rings, over the sequences that they do") {
  // NICs so slow that a step is its gradients' reduce-scatter and its weights' all-gather, of the
  // same bytes in every width. Each byte crosses (n - 1) / n of the n members' ring, which enters
  // each node once on every NIC of the node that has fewest.
  const auto speeds_at = [](const std::string& nic) {
    const Scenario scenario = read_scenario("t.json", fmt::format("{{{}}}", kJob), presets(),
                                            {.set = {"cluster.node.nic_bandwidth=" + nic}});
    return plan_campaign(scenario, read_run(R"("spares": {"elastic": 8})"));
  };
  const CampaignPlan slow = speeds_at("10 MB/s"), fast = speeds_at("100 TB/s");
  const auto per_byte = [](double ranks, double nics) { return (ranks - 1) / ranks / nics; };
  // What else there is in a step is at most the whole step on fast NICs.
  const double rest = fast.step_s / slow.step_s;
  REQUIRE(rest < 1e-3);
  REQUIRE(slow.campaign.width_speed.size() == 9);
  // Without a whole node, 56 GPUs in seven: eight NICs in each, and 56 of 64 sequences.
  CHECK(slow.campaign.width_speed[8] ==
        doctest::Approx(per_byte(64, 8) / per_byte(56, 8) * 56 / 64).epsilon(rest));
  // From 57 to 63 GPUs the last node has one to seven, and every ring has to pass them.
  for (int missing = 1; missing < 8; ++missing) {
    CAPTURE(missing);
    const int left = 64 - missing;
    const double law = per_byte(64, 8) / per_byte(left, 8 - missing) * left / 64;
    CHECK(slow.campaign.width_speed[static_cast<std::size_t>(missing)] ==
          doctest::Approx(law).epsilon(rest));
  }
}

TEST_CASE("plan: fewer replicas on NICs that are never waited for do as much as they are") {
  const Scenario scenario = read_scenario("t.json", fmt::format("{{{}}}", kJob), presets(),
                                          {.set = {"cluster.node.nic_bandwidth=100 Tb/s"}});
  const StepReport step = simulate_step(scenario);
  const CampaignPlan plan = plan_campaign(scenario, read_run(R"("spares": {"elastic": 8})"));
  // Passes stay as they are. Rings, the optimiser's shards and the wait for the slowest GPU change
  // with the number of nodes, which is an eighth less: by no more than a seventh each.
  double changing = 0;
  for (const Bucket bucket : {Bucket::data_exposed, Bucket::variation, Bucket::optimiser}) {
    changing += step.seconds[static_cast<std::size_t>(bucket)] / step.step_s;
  }
  REQUIRE(changing < 0.2);
  CHECK(plan.campaign.width_speed[8] == doctest::Approx(56.0 / 64).epsilon(changing / 7));
}

TEST_CASE("plan: replicas that hold weights or experts together cannot lose one of them") {
  const auto problem = [](const std::string& change, const std::string& elastic) {
    const Scenario scenario =
        read_scenario("t.json", fmt::format("{{{}}}", kJob), presets(), {.set = {change}});
    try {
      (void)plan_campaign(scenario,
                          read_run(fmt::format(R"("spares": {{"elastic": {}}})", elastic)));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("fine");
  };
  const std::string groups = R"(parallelism={"data": 64, "sharding": "zero3", "shard_group": 8})";
  CHECK(problem(groups, "2") ==
        "t.json#/run/spares/elastic: found 2; allowed: 0, as replicas hold weights together "
        "(shard_group)");
  CHECK(problem(groups, "0") == "fine");
  CHECK(problem(R"(parallelism={"data": 64, "sharding": "zero3"})", "2") == "fine");
}

TEST_CASE("plan: ranks that share a sequence are one replica") {
  const Scenario scenario =
      read_scenario("t.json", fmt::format("{{{}}}", kJob), presets(),
                    {.set = {R"(parallelism={"tensor": 8, "context": 2, "data": 4})"}});
  CHECK(plan_campaign(scenario, read_run(R"("spares": {})")).campaign.nodes_per_replica == 2);
}

TEST_CASE("plan: data come from the checkpoints' storage where they name none") {
  const RunSpec run = read_run(R"("data": {"bytes_per_token": 2}, "checkpoint": [
      {"to": "peers", "interval": "5 min"},
      {"interval": "1 h", "storage": "minio_nvme"}])");
  REQUIRE(run.data);
  CHECK(run.data->storage == presets().storage("minio_nvme"));
  CHECK(problem_of(R"("data": {"bytes_per_token": 2})") ==
        "t.json#/data: found an object without \"storage\"; allowed: an object with it");
  CHECK(problem_of(R"("data": {"bytes_per_token": 0, "storage": "minio_nvme"})")
            .starts_with("t.json#/data/bytes_per_token: found 0; allowed: "));
}

TEST_CASE("plan: mistakes about storage are named with their place") {
  CHECK(problem_of_storage(R"({"write": "1 GB/s"})")
            .starts_with("t.json#/checkpoint/storage: found an object without \"read\""));
  CHECK(problem_of_storage(R"({"servers": 4, "server_write": "1 GB/s"})")
            .starts_with("t.json#/checkpoint/storage: found an object without \"server_read\""));
  CHECK(problem_of_storage(R"({"servers": 4, "server_write": "1 GB/s", "server_read": "1 GB/s",
                               "write": "4 GB/s"})") ==
        "t.json#/checkpoint/storage/write: found \"4 GB/s\"; allowed: nothing beside "
        "\"servers\", which add up to it");
  CHECK(problem_of_storage(R"({"write": "1 GB/s", "read": "1 GB/s", "server_link": "1 GB/s"})") ==
        "t.json#/checkpoint/storage/server_link: found \"1 GB/s\"; allowed: only beside "
        "\"servers\"");
  CHECK(problem_of_storage(R"({"write": "1 GB/s", "read": "1 GB/s", "network": "fabric"})")
            .starts_with("t.json#/checkpoint/storage/network: found \"fabric\"; allowed: own, "
                         "training, local"));
  CHECK(problem_of_storage(R"("frontier_nvme")") ==
        "t.json#/checkpoint/storage: found \"frontier_nvme\"; allowed: one that outlives a node; "
        "drives of the nodes are for \"to\": \"local\"");
  CHECK(problem_of_storage(R"({"servers": 0, "server_write": "1 GB/s", "server_read": "1 GB/s"})")
            .starts_with("t.json#/checkpoint/storage/servers: found 0; allowed: "));
  CHECK(problem_of_storage(R"({"preset": "minio_nvme", "network": "local"})")
            .starts_with("t.json#/checkpoint/storage/network: found \"local\"; allowed: own, "
                         "training"));
  CHECK(
      problem_of(R"("checkpoint": {"to": "local", "interval": "1 h", "storage": "minio_nvme"})") ==
      "t.json#/checkpoint/storage: found \"minio_nvme\"; allowed: drives of each node: a storage "
      "with \"network\": \"local\"");
  CHECK(problem_of(R"("checkpoint": {"to": "local", "interval": "1 h", "storage": "frontier_nvme",
                                     "drive": "1 GB/s"})")
            .starts_with("t.json#/checkpoint/drive: found \"1 GB/s\"; allowed: nothing beside"));
}

namespace {

RunSpec run_of_modes(const std::string& modes) {
  return read_run_spec(JsonCursor::parse("t.json", fmt::format(R"({{"duration": "1 d",
        "reliability": {{"modes": [{}]}}}})",
                                                               modes)),
                       presets());
}
std::string degraded(const char* name, const char* rest) {
  return fmt::format(R"({{"name": "{}", "component": "nic", "mean_time": "1000 d",
                          "effect": "degraded", "lasts": "1 h", {}}})",
                     name, rest);
}
Scenario small_job() { return read_scenario("t.json", fmt::format("{{{}}}", kJob), presets()); }

std::string problem_of_modes(const std::string& modes) {
  try {
    (void)plan_campaign(small_job(), run_of_modes(modes));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("plan: a degraded part slows a step by what the step simulated with it says") {
  const Scenario whole = small_job();
  const CampaignPlan plan = plan_campaign(
      whole,
      run_of_modes(degraded("half", R"("fault": {"nic": "node 5 nic 2", "rate": 0.5})") + "," +
                   degraded("tenth", R"("fault": {"nic": "node 5 nic 2", "rate": 0.1})") + "," +
                   degraded("said", R"("slowdown": 1.5)")));
  const std::vector<FailureMode>& modes = plan.campaign.modes;
  REQUIRE(modes.size() == 3);
  Scenario broken = whole;
  FabricFault fault;
  fault.part = FabricFault::Part::nic;
  fault.from = "node 5 nic 2";
  for (const std::size_t mode : {std::size_t{0}, std::size_t{1}}) {
    fault.rate = mode == 0 ? 0.5 : 0.1;
    broken.fabric.faults = {fault};
    CHECK(modes[mode].slowdown ==
          doctest::Approx(simulate_step(broken).step_s / simulate_step(whole).step_s));
  }
  CHECK(modes[0].slowdown > 1.001);
  CHECK(modes[1].slowdown > modes[0].slowdown);
  CHECK(modes[2].slowdown == 1.5);
  CHECK(modes[0].components == 64);
  CHECK(modes[0].lasts.base_units() == 3600);
  CHECK(std::ranges::count_if(plan.assumptions, [](const std::string& text) {
          return text.starts_with(
              "run.reliability: half: each as if NIC node 5 nic 2 keeps 50 % of its rate");
        }) == 1);
}

namespace {

/// The job on two nodes a leaf, whose uplinks carry a quarter of what its NICs send: 4 leaves of 16
/// ports down and 4 up.
Scenario job_on_leaves() {
  const std::string job = std::string(kJob).substr(std::string_view(kJob).find("\"model\""));
  return read_scenario("t.json",
                       fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": 8, "fabric":
                           {{"kind": "fat_tree", "routing": "spray", "leaf_ports_down": 16,
                             "leaf_oversubscription": 4}}}}, {}}})",
                                   job),
                       presets());
}
constexpr double kDaySeconds = 86'400;

std::string cable_mode(const char* name, const char* rest) {
  return fmt::format(R"({{"name": "{}", "component": "cable", "mean_time": "30 d", {}}})", name,
                     rest);
}

}  // namespace

TEST_CASE("plan: cables of the fabric fail as often as there are of them, and slow the step") {
  const Scenario whole = job_on_leaves();
  const RunSpec run = read_run_spec(
      JsonCursor::parse(
          "t.json",
          fmt::format(R"({{"duration": "300 d", "reliability": {{"modes": [{}, {}, {}]}}}})",
                      cable_mode("dead", R"("effect": "degraded", "lasts": "6 h",
                                                          "fault": {"cables_missing": 1})"),
                      cable_mode("half", R"("effect": "degraded", "lasts": "6 h",
                                        "fault": {"cables_missing": 1, "rate": 0.5})"),
                      cable_mode("crash", R"("effect": "crash")"))),
      presets());
  const CampaignPlan plan = plan_campaign(whole, run);
  const std::vector<FailureMode>& modes = plan.campaign.modes;
  REQUIRE(modes.size() == 3);
  constexpr double kCables = 16;
  for (const FailureMode& mode : modes) CHECK(mode.components == kCables);
  CHECK(modes[2].scope == FailureScope::process);
  // A dead cable slows the step as the fault of the fabric does, which it is.
  Scenario broken = whole, drawn = whole;
  FabricFault fault;
  fault.part = FabricFault::Part::some_cables;
  drawn.fabric.faults = {fault};
  fault.count = 1;
  broken.fabric.faults = {fault};
  const double slowdown = simulate_step(broken).step_s / simulate_step(drawn).step_s;
  CHECK(modes[0].slowdown == doctest::Approx(slowdown));
  CHECK(slowdown > 1.01);
  // Routes go around a dead cable; sprayed messages wait for a slow one, at most for its rate.
  CHECK(modes[1].slowdown > modes[0].slowdown);
  CHECK(modes[1].slowdown <= 2);

  // Expected number of events: cables x time / mean time; within four standard deviations.
  constexpr double kRuns = 50, kExpected = kCables * 300 / 30;
  SampleOptions fifty;
  fifty.trajectories = 50;
  const RunSummary summary = summarise(plan.campaign, sample(plan.campaign, fifty));
  for (std::size_t m = 0; m < 2; ++m) {
    CAPTURE(m);
    CHECK(std::abs(summary.modes[m].failures - kExpected) < 4 * std::sqrt(kExpected / kRuns));
  }
  CHECK(summary.wall_s.mean == doctest::Approx(300 * kDaySeconds));
  CHECK(summary.mttf.mean_s.value() ==
        doctest::Approx(30 * kDaySeconds / kCables).epsilon(4 / std::sqrt(kExpected * kRuns)));
}

TEST_CASE("plan: a cable that fails is one between switches of the job's fabric") {
  const auto problem = [](const Scenario& scenario) -> std::string {
    try {
      (void)plan_campaign(scenario, run_of_modes(cable_mode("a", R"("effect": "crash")")));
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  Scenario one_leaf = job_on_leaves();
  CHECK(problem(one_leaf).empty());
  one_leaf.fabric.leaf_ports_down = 64;
  CHECK(problem(one_leaf) ==
        "t.json#/run/reliability/modes/0/component: found \"cable\", of which this fabric has none "
        "between switches; allowed: a fabric of several switches, or another component; the cable "
        "of a NIC fails with \"nic\"");
  one_leaf.fabric.kind = FabricKind::ideal;
  CHECK(problem(one_leaf).find("has none between switches") != std::string::npos);
}

TEST_CASE("plan: a degraded part is one that the fabric has and the job can go on with") {
  CHECK(problem_of_modes(degraded("a", R"("fault": {"nic": "node 5 nic 9", "rate": 0.5})"))
            .starts_with("t.json#/run/reliability/modes/0/fault: found \"node 5 nic 9\""));
  const std::string dead = problem_of_modes(degraded("a", R"("fault": {"nic": "node 5 nic 2"})"));
  CHECK(dead.starts_with("t.json#/run/reliability/modes/0/fault: found "));
  CHECK(dead.find("cannot reach") != std::string::npos);
  CHECK(dead.find("as the job goes on") != std::string::npos);
  CHECK(problem_of_modes(degraded("a", R"("fault": {"nic": "node 5 nic 2"}, "slowdown": 2)")) ==
        R"(t.json#/reliability/modes/0/slowdown: found 2; allowed: either "slowdown" or "fault")");
  CHECK(problem_of_modes(degraded("a", R"("slowdown": 2, "replaced": 1)")) ==
        "t.json#/reliability/modes/0/replaced: found 1; allowed: nothing: what is degraded is "
        "mended while the job runs");
  CHECK(problem_of_modes(
            R"({"name": "a", "component": "nic", "mean_time": "1 d", "lasts": "1 h"})") ==
        R"(t.json#/reliability/modes/0/lasts: found "1 h"; allowed: "effect": "degraded" with it)");
}

}  // namespace lockstep
