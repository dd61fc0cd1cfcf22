#include "sim/run/storage_traffic.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "sim/congestion/shared_run.hpp"
#include "sim/run/shared_step.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr int kNodes = 8;
/// What the eight NICs of a DGX H100 carry of payload, as InfiniBand gives it 96.5 %.
constexpr double kNodePayload = 0.965 * 8 * 50e9;

/// Gradients of all nodes run at once.
constexpr const char* kDataParallel = R"("model": "llama3_8b",
  "parallelism": {"data": 64, "sharding": "zero1"},
  "batch": {"sequences": 64, "micro": 1, "tokens": 2048},
  "recompute": "full", "stack": "megatron_core")";
/// Gradients and messages of two stages, at different times.
constexpr const char* kPipelined = R"("model": "llama3_70b",
  "parallelism": {"tensor": 8, "pipeline": 2, "data": 4, "sequence": true, "sharding": "zero1"},
  "batch": {"sequences": 16, "micro": 1, "tokens": 2048},
  "recompute": "full", "stack": "megatron_core")";

constexpr const char* kIdeal = R"({"kind": "ideal"})";
/// Two nodes a leaf, with uplinks for a quarter of what they send.
constexpr const char* kNarrow = R"({"kind": "fat_tree", "routing": "spray", "levels": 2,
  "leaf_ports_down": 16, "leaf_oversubscription": 4})";

Scenario job_alone(const char* job, const char* fabric = kIdeal) {
  return read_scenario(
      "t.json",
      fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": {}, "fabric": {}}}, {}}})", kNodes,
                  fabric, job),
      PresetStore{});
}

/// Like dgx_h100, and nothing slower than its NICs behind them.
StorageSpec storage_nodes(int servers, double link = kNodePayload) {
  StorageSpec storage;
  storage.servers = servers;
  storage.server_write = storage.server_read = BytesPerSecond{1e13};
  storage.server_link = BytesPerSecond{link};
  storage.network = StorageNetwork::training;
  add_up_servers(storage);
  return storage;
}

constexpr CheckpointBytes kCheckpoint{.all = Bytes{1e13}, .per_gpu = Bytes{1e9}};

CheckpointSpec to(const StorageSpec& storage) {
  CheckpointSpec spec;
  spec.storage = storage;
  return spec;
}
CheckpointSpec to_peers() {
  CheckpointSpec spec;
  spec.target = CheckpointTarget::peers;
  return spec;
}
UploadPlan plan_upload(const Scenario& scenario, const CheckpointSpec& spec,
                       const std::optional<DataSpec>& data = {}) {
  return StorageTraffic(scenario, data, simulate_step(scenario).step_s).upload(spec, kCheckpoint);
}

/// Total bandwidths, on a network of its own.
StorageSpec file_system(double write, double read) {
  StorageSpec storage;
  storage.write = BytesPerSecond{write};
  storage.read = BytesPerSecond{read};
  return storage;
}
/// Data of which the job needs so many bytes per second.
DataSpec data_of(const Scenario& scenario, double bytes_per_s, const StorageSpec& storage) {
  return {.bytes_per_token = bytes_per_s / simulate_step(scenario).tokens_per_s,
          .storage = storage};
}

/// Every flow by itself: the job's nodes send `size` to storage nodes, which follow them, or read
/// it from there.
struct FlowLevel {
  const char* job;
  const char* fabric;
  int servers;
  bool reads = false;

  [[nodiscard]] std::vector<JobCongestion> simulate(int steps, Bytes size) const {
    const std::string nodes = fmt::format(R"({{"count": {}}})", kNodes);
    const std::string storage = fmt::format(R"({{"first": {}, "count": {}}})", kNodes, servers);
    const std::string text = fmt::format(
        R"({{"cluster": {{"node": "dgx_h100", "nodes": {}, "fabric": {}}},
             "steps": {}, "jobs": [{{"name": "training", "nodes": {}, {}}}],
             "background": [{{"name": "checkpoint", "from": {}, "to": {}, "size": {}}}]}})",
        kNodes + servers, fabric, steps, nodes, job, reads ? storage : nodes,
        reads ? nodes : storage, size.base_units() / (reads ? servers : kNodes));
    const JsonCursor root = JsonCursor::parse("t.json", text);
    return simulate_shared(read_shared_scenario(root, PresetStore{})).congestion.jobs;
  }
  /// Of a stream that lasts for all steps.
  [[nodiscard]] double drag() const { return 1 - 1 / simulate(4, Bytes{1e17})[0].slowdown(); }
  [[nodiscard]] double upload_s() const { return simulate(160, kCheckpoint.all)[1].step_s; }
};

}  // namespace

TEST_CASE("storage traffic: drag and upload are those of every flow by itself") {
  // Two storage nodes are the limit themselves; with eight it is the way to them. Uploads of six
  // steps end inside one, which need not be as far on as a mean one: 1.1 % (0.1 % in 60 steps).
  for (const char* fabric : {kIdeal, kNarrow}) {
    // Behind narrow uplinks storage nodes receive a quarter too.
    const double link = fabric == kIdeal ? kNodePayload : kNodePayload / 4;
    for (const char* job : {kDataParallel, kPipelined}) {
      for (const int servers : {2, 8}) {
        CAPTURE(fabric);
        CAPTURE(job);
        CAPTURE(servers);
        const FlowLevel flows{job, fabric, servers};
        const UploadPlan upload =
            plan_upload(job_alone(job, fabric), to(storage_nodes(servers, link)));
        CHECK(upload.drag > 0.003);
        CHECK(upload.drag == test::near(flows.drag()).epsilon(0.001));
        CHECK(upload.finishes.base_units() == test::near(flows.upload_s()).epsilon(0.015));
      }
    }
  }
}

TEST_CASE("storage traffic: a step's band beside it holds what every replica by itself takes") {
  // Hashed onto few uplinks, 48 replicas of four GPUs; a sample of 32 is what the least budget
  // buys.
  for (const char* const routing : {"ecmp", "spray"}) {
    for (const int draw : {1, 2, 3}) {
      CAPTURE(routing);
      CAPTURE(draw);
      const Scenario scenario =
          read_scenario("t.json",
                        fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": 24,
              "fabric": {{"kind": "fat_tree", "routing": "{}", "levels": 2, "hash_draw": {},
                "leaf_ports_down": 16, "leaf_oversubscription": 4}}}},
              "model": "llama3_8b", "stack": "megatron_core",
              "parallelism": {{"tensor": 2, "pipeline": 2, "data": 48}},
              "batch": {{"sequences": 192, "micro": 1, "tokens": 2048}}}})",
                                    routing, draw),
                        PresetStore{});
      const std::vector<NodeStream> streams{
          {.all = BytesPerSecond{1e12}, .node = BytesPerSecond{5e10}}};
      const SharedStep exact = shared_step(scenario, streams, 1e12);
      const SharedStep sampled = shared_step(scenario, streams, 1);
      CHECK_FALSE(exact.band);
      // Sprayed replicas fold exactly: there is nothing to sample.
      REQUIRE(sampled.band.has_value() == (std::string(routing) == "ecmp"));
      if (!sampled.band) continue;
      CHECK(exact.step_s >= sampled.band->low_s);
      CHECK(exact.step_s <= sampled.band->high_s);
      CHECK(exact.step_s > simulate_step(scenario).step_s);
    }
  }
}

TEST_CASE("storage traffic: reading data slows a step as every flow by itself does") {
  for (const char* job : {kDataParallel, kPipelined}) {
    CAPTURE(job);
    // Four storage nodes give all that a port has to share: half of it.
    const Scenario scenario = job_alone(job);
    const std::optional<DataSpec> data = data_of(scenario, 4 * kNodePayload, storage_nodes(4));
    const StorageTraffic traffic(scenario, data, simulate_step(scenario).step_s);
    const FlowLevel flows{job, kIdeal, 4, true};
    CHECK(1 - traffic.data_speed() == test::near(flows.drag()).epsilon(0.001));
    CHECK(traffic.first_epoch().limit == DataLimit::network);
    // A tenth of that on a network of its own slows nothing.
    StorageSpec apart = storage_nodes(4);
    apart.network = StorageNetwork::own;
    const StorageTraffic beside(scenario, data_of(scenario, 0.4 * kNodePayload, apart),
                                simulate_step(scenario).step_s);
    CHECK(beside.data_speed() == 1);
    CHECK(beside.first_epoch().limit != DataLimit::network);
  }
}

TEST_CASE("storage traffic: narrow uplinks limit what all nodes write and read back at once") {
  StorageSpec storage = storage_nodes(8);
  const Scenario wide = job_alone(kDataParallel), narrow = job_alone(kDataParallel, kNarrow);
  CHECK(node_towards(storage, wide).nic_bandwidth == wide.node.nic_bandwidth);
  CHECK(node_towards(storage, narrow).nic_bandwidth / narrow.node.nic_bandwidth ==
        test::near(0.25));
  storage.network = StorageNetwork::own;
  CHECK(node_towards(storage, narrow).nic_bandwidth == narrow.node.nic_bandwidth);
}

TEST_CASE("storage traffic: a network of its own, and NICs without limit, cost the job nothing") {
  Scenario scenario = job_alone(kDataParallel);
  StorageSpec storage = storage_nodes(8);
  CHECK(plan_upload(scenario, to(storage)).drag > 0.01);
  storage.network = StorageNetwork::own;
  CHECK(plan_upload(scenario, to(storage)).drag == 0);
  storage.network = StorageNetwork::training;
  scenario.node.nic_bandwidth = BytesPerSecond{1e16};
  CHECK(plan_upload(scenario, to(storage)).drag == doctest::Approx(0));
}

TEST_CASE("storage traffic: an upload that hardly sends costs hardly anything") {
  CheckpointSpec slow = to(storage_nodes(8));
  slow.finishes = Seconds{1e6};
  const UploadPlan upload = plan_upload(job_alone(kDataParallel), slow);
  CHECK(upload.drag == 0);
  CHECK(upload.finishes.base_units() == test::near(1e6));
}

TEST_CASE("storage traffic: drag is never more than the share of the NICs that is taken") {
  const Scenario scenario = job_alone(kDataParallel);
  const double nics = kNodes * kNodePayload;
  double before = 0;
  for (const double share : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0}) {
    CAPTURE(share);
    StorageSpec storage = file_system(share * nics, nics);
    storage.network = StorageNetwork::training;
    const UploadPlan upload = plan_upload(scenario, to(storage));
    CHECK(upload.drag <= std::min(share, 0.5));
    CHECK(upload.drag >= before);
    CHECK(upload.rate.base_units() <= share * nics * (1 + 1e-12));
    // So it costs no more time than its bytes need on the NICs.
    CHECK(upload.drag * upload.finishes <= kCheckpoint.all / BytesPerSecond{nics});
    before = upload.drag;
  }
  // Gradients keep half of each port.
  StorageSpec half = file_system(0.5 * nics, nics), all = file_system(nics, nics);
  half.network = all.network = StorageNetwork::training;
  CHECK(plan_upload(scenario, to(all)).drag == plan_upload(scenario, to(half)).drag);
  CHECK(plan_upload(scenario, to(all)).rate > plan_upload(scenario, to(half)).rate);
}

TEST_CASE("storage traffic: twice the servers take half the time where they are the limit") {
  const Scenario scenario = job_alone(kDataParallel);
  StorageSpec one = storage_nodes(1), two = storage_nodes(2);
  one.metadata = two.metadata = Seconds{3};
  const Seconds slow = plan_upload(scenario, to(one)).finishes - Seconds{3};
  const Seconds quick = plan_upload(scenario, to(two)).finishes - Seconds{3};
  CHECK(slow.base_units() == test::near(1e13 / kNodePayload));
  CHECK(slow / quick == test::near(2));
}

TEST_CASE("storage traffic: a copy to peers crosses ports both ways") {
  const Scenario scenario = job_alone(kPipelined);
  const UploadPlan copy = plan_upload(scenario, to_peers());
  StorageSpec storage = storage_nodes(8);
  CHECK(copy.drag >= plan_upload(scenario, to(storage)).drag);
  CHECK(copy.drag < 0.5);
  // 10 TB over 3.1 TB/s, and no sooner.
  const Seconds least = kCheckpoint.all / BytesPerSecond{kNodes * kNodePayload};
  CHECK(copy.finishes > least);
  CHECK(copy.finishes < 2 * least);
}

TEST_CASE("storage traffic: a job whose checkpoints it waits for is not dragged on") {
  CheckpointSpec spec = to(storage_nodes(8));
  spec.asynchronous = false;
  CHECK(plan_upload(job_alone(kDataParallel), spec).drag == 0);
}

TEST_CASE("data: a job that gets what it needs runs at full speed, with half of it at half speed") {
  const Scenario scenario = job_alone(kDataParallel);
  const double step_s = simulate_step(scenario).step_s;
  for (const double needed : {1e9, 9.999e9, 20e9}) {
    CAPTURE(needed);
    const std::optional<DataSpec> data = data_of(scenario, needed, file_system(1e9, 10e9));
    const StorageTraffic traffic(scenario, data, step_s);
    CHECK(traffic.data_speed() == test::near(std::min(1.0, 10e9 / needed)));
    CHECK(traffic.data_read().base_units() == test::near(std::min(needed, 10e9)));
  }
}

TEST_CASE("data: what comes through the training NICs meets gradients there") {
  const Scenario scenario = job_alone(kDataParallel);
  const double step_s = simulate_step(scenario).step_s;
  StorageSpec storage = storage_nodes(8);
  const std::optional<DataSpec> text = data_of(scenario, 1e9, storage);
  CHECK(StorageTraffic(scenario, text, step_s).data_speed() == 1);
  const std::optional<DataSpec> video = data_of(scenario, 1e12, storage);
  const double speed = StorageTraffic(scenario, video, step_s).data_speed();
  CHECK(speed < 1);
  CHECK(speed > 1 - 1e12 / (kNodes * kNodePayload));
}

TEST_CASE("data: servers that also write a checkpoint divide their time") {
  const Scenario scenario = job_alone(kDataParallel);
  StorageSpec storage = file_system(10e9, 40e9);
  const auto beside = [&](double needed) {
    return plan_upload(scenario, to(storage), data_of(scenario, needed, storage));
  };
  // A quarter of their time: data first, and the checkpoint gets the rest.
  CHECK(beside(10e9).rate.base_units() == test::near(7.5e9));
  CHECK(beside(10e9).drag == doctest::Approx(0));
  // Four fifths: half each.
  CHECK(beside(32e9).rate.base_units() == test::near(5e9));
  CHECK(beside(32e9).drag == test::near(1 - 0.5 / 0.8));
  // More than they have: the job is slow already.
  CHECK(beside(80e9).drag == test::near(0.5));
  // Other servers.
  const std::optional<DataSpec> elsewhere = data_of(scenario, 32e9, file_system(10e9, 41e9));
  CHECK(plan_upload(scenario, to(storage), elsewhere).rate.base_units() == test::near(10e9));
  // Nodes that write no more than a tenth of what the servers can leave data what it needs.
  storage.client_write = BytesPerSecond{1e9 / kNodes};
  CHECK(beside(32e9).rate.base_units() == test::near(1e9));
  CHECK(beside(32e9).drag == doctest::Approx(0));
}

}  // namespace lockstep
