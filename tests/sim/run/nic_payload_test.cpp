// The same bytes over the same NICs, whoever asks: every command takes what a NIC carries of
// payload from payload_bandwidth().
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "models/checkpoint.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/step/step.hpp"
#include "sim/traffic/simulate_traffic.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

constexpr Bytes kSent{4e12};
/// Of the eight NICs of a DGX H100.
constexpr BytesPerSecond kLine{8 * 50e9};

struct Network {
  const char* transport;
  double efficiency;  ///< as the preset has it
  [[nodiscard]] std::string cluster(int nodes) const {
    return fmt::format(R"("cluster": {{"node": "dgx_h100", "nodes": {},
                           "fabric": {{"kind": "ideal", "transport": "{}"}}}})",
                       nodes, transport);
  }
  [[nodiscard]] BytesPerSecond payload() const { return efficiency * kLine; }
};
constexpr std::array kNetworks{Network{"infiniband", 0.965}, Network{"ethernet", 0.5}};

/// All within a node: whatever else its NICs carry has them to itself.
constexpr const char* kPayloadJob = R"("model": "llama3_8b",
  "parallelism": {"data": 8, "sharding": "zero1"},
  "batch": {"sequences": 8, "micro": 1, "tokens": 2048},
  "recompute": "full", "stack": "megatron_core")";

Scenario job_on(const Network& network) {
  return read_scenario("t.json", fmt::format("{{{}, {}}}", network.cluster(1), kPayloadJob),
                       test::presets());
}

/// `comm`: NICs of nodes that send to those of another.
Seconds traffic(const Network& network, int nodes, const std::string& entry) {
  const std::string text = fmt::format(R"({{{}, "traffic": [{}]}})", network.cluster(nodes), entry);
  return Seconds{simulate_traffic(read_traffic("t.json", text, test::presets())).end_s};
}

/// Traffic beside jobs, alone: from so many nodes to the last one.
Seconds background(const Network& network, int senders) {
  std::string from;
  for (int node = 0; node < senders; ++node) from += fmt::format("{}{}", node ? "," : "", node);
  const std::string text = fmt::format(
      R"({{{}, "steps": 1, "jobs": [{{"name": "a", "nodes": [{}], {}}}],
          "background": [{{"name": "copy", "from": [{}], "to": [{}], "size": {}}}]}})",
      network.cluster(senders + 2), senders + 1, kPayloadJob, from, senders,
      kSent.base_units() / senders);
  const auto scenario = read_shared_scenario(JsonCursor::parse("t.json", text), test::presets());
  return Seconds{simulate_shared(scenario).congestion.jobs.at(1).alone_s};
}

/// Two GPUs of two nodes, a NIC each: half of an all-gather's buffer leaves either of them.
Seconds collective(const Scenario& scenario) {
  return collective_time(
      {.op = CollectiveOp::all_gather, .payload = 2.0 / 8 * kSent, .ranks = 2, .ranks_per_node = 1},
      scenario.node.gpu, scenario.transport, 1.0 / 8 * kLine);
}

/// Servers that are no limit.
StorageSpec wide_storage(StorageNetwork network) {
  StorageSpec storage;
  storage.write = storage.read = BytesPerSecond{1e16};
  storage.network = network;
  return storage;
}

CheckpointSpec to_storage() {
  CheckpointSpec spec;
  spec.storage = wide_storage(StorageNetwork::training);
  return spec;
}
CheckpointSpec payload_to_peers() {
  CheckpointSpec spec;
  spec.target = CheckpointTarget::peers;
  return spec;
}

/// What a run of weeks makes of its checkpoints, as time for kSent.
Seconds campaign(const Scenario& scenario, const std::string& checkpoint) {
  const std::string run = fmt::format(
      R"({{"duration": "1 d", "reliability": {{"modes": []}}, "checkpoint": {}}})", checkpoint);
  const CampaignPlan plan =
      plan_campaign(scenario, read_run_spec(JsonCursor::parse("t.json", run), test::presets()));
  return kSent / plan.checkpoint.all * plan.campaign.tiers.at(0).finishes;
}

Seconds dataset(const Scenario& scenario, StorageNetwork network) {
  const double step_s = simulate_step(scenario).step_s;
  const double tokens_per_s = simulate_step(scenario).tokens_per_s;
  const std::optional<DataSpec> data =
      DataSpec{.bytes_per_token = 1e12 / tokens_per_s, .storage = wide_storage(network)};
  return kSent / StorageTraffic(scenario, data, step_s).data_read();
}

struct Asked {
  const char* of;
  Seconds takes;
};
std::vector<Asked> ask_all(const Network& network) {
  const Scenario scenario = job_on(network);
  const CheckpointBytes bytes{.all = kSent, .per_gpu = Bytes{1e9}};
  const auto written = [&](CheckpointTarget target, const StorageSpec& storage) {
    return checkpoint_cost(bytes, scenario.node, scenario.transport, 1, target, true, storage)
        .finishes;
  };
  const auto uploaded = [&](const CheckpointSpec& spec) {
    const double step_s = simulate_step(scenario).step_s;
    return StorageTraffic(scenario, {}, step_s).upload(spec, bytes).finishes;
  };
  const StorageSpec own = wide_storage(StorageNetwork::own);
  return {
      {"traffic, a node to another",
       traffic(network, 2, R"({"kind": "shift", "by": 8, "members": "nics", "size": "500 GB"})")},
      {"traffic, two nodes to a third", traffic(network, 3, R"({"kind": "storage", "size": "250 GB",
         "members": {"of": "nics", "nodes": {"count": 2}},
         "servers": {"of": "nics", "nodes": {"first": 2}}})")},
      {"background, a node to another", background(network, 1)},
      {"background, two nodes to a third", background(network, 2)},
      {"a collective", collective(scenario)},
      {"a checkpoint to peers", written(CheckpointTarget::peers, {})},
      {"a checkpoint to storage", written(CheckpointTarget::storage, own)},
      {"an upload to peers", uploaded(payload_to_peers())},
      {"an upload to storage", uploaded(to_storage())},
      {"weeks, to peers", campaign(scenario, R"({"to": "peers", "interval": "1 h"})")},
      {"weeks, to storage", campaign(scenario, R"({"interval": "1 h", "storage":
         {"write": 9e15, "read": 9e15, "network": "training"}})")},
      {"a dataset, over a network of its own", dataset(scenario, StorageNetwork::own)},
      {"a dataset, over the training network", dataset(scenario, StorageNetwork::training)},
  };
}

}  // namespace

TEST_CASE("NIC payload: the same bytes take the same time in every command") {
  for (const Network& network : kNetworks) {
    CAPTURE(std::string(network.transport));
    for (const Asked& asked : ask_all(network)) {
      CAPTURE(std::string(asked.of));
      const double ratio = asked.takes / (kSent / network.payload());
      // A collective has a latency of 0.1 ms before its ten seconds.
      CHECK(ratio == test::near(1).epsilon(1e-4));
    }
  }
}

TEST_CASE("NIC payload: what a storage states of itself is payload as it stands") {
  for (const Network& network : kNetworks) {
    const Scenario scenario = job_on(network);
    StorageSpec storage = wide_storage(StorageNetwork::training);
    storage.client_write = storage.client_read = BytesPerSecond{100e9};
    const StorageRates by_client = storage_rates(storage, scenario.node, scenario.transport, 2);
    CHECK(by_client.write == BytesPerSecond{200e9});
    CHECK(by_client.read == BytesPerSecond{200e9});
    storage = wide_storage(StorageNetwork::own);
    storage.write = storage.read = BytesPerSecond{50e9};
    const StorageRates by_servers = storage_rates(storage, scenario.node, scenario.transport, 2);
    CHECK(by_servers.write == BytesPerSecond{50e9});
    CHECK(by_servers.read == BytesPerSecond{50e9});
  }
}

TEST_CASE("NIC payload: no collective sends more than its NIC carries, of any size or kind") {
  for (const Network& network : kNetworks) {
    const Scenario scenario = job_on(network);
    const BytesPerSecond nic = 1.0 / 8 * network.payload();
    for (const CollectiveKind& kind : collective_kinds()) {
      for (const int nodes : {2, 3, 16, 64}) {
        for (double size = 1e3; size < 1e11; size *= 4) {
          CAPTURE(std::string(kind.name));
          CAPTURE(nodes);
          CAPTURE(size);
          const bool pair = kind.op == CollectiveOp::send_receive;
          const CollectiveCost cost =
              collective_cost({.op = kind.op,
                               .payload = Bytes{size},
                               .ranks = pair ? 2 : 8 * nodes,
                               .ranks_per_node = pair ? 1 : 8},
                              scenario.node.gpu, scenario.transport, 1.0 / 8 * kLine);
          const double of_nic = cost.network_coefficient * cost.payload_rate / nic;
          CHECK(of_nic <= 1 + 1e-12);
        }
      }
    }
  }
}

}  // namespace lockstep
