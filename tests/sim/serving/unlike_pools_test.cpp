// A pool of prompts and a decoding pool on nodes of unlike kinds: against the same service on one
// kind, against pass times of either card, and what is refused.
#include <array>
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/generation/serving_replica.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/serving/kv_network.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Two replicas of eight GPUs in each pool, which fill two nodes each.
Json two_pool_service(const Json& cluster) {
  Json out = Json::parse(R"({"model": "llama3_70b", "serving": {
    "load": {"rate": 4, "requests": 300, "input": {"mean": 1000, "sigma": 0.5},
             "output": {"mean": 60, "sigma": 0.5}},
    "pools": {"prefill": {"replicas": 2, "tensor": 8}, "decode": {"replicas": 2, "tensor": 8}}},
    "power": {}, "cost": {"usd_per_kwh": 0.1}})");
  out["cluster"] = cluster;
  return out;
}

Json priced_node(const char* preset, double usd) {
  return {{"preset", preset}, {"usd_per_gpu_hour", usd}};
}

/// Two nodes of each kind.
Json two_kinds_of(const Json& first, const Json& second) {
  return {{"pools", {{{"node", first}, {"nodes", 2}}, {{"node", second}, {"nodes", 2}}}},
          {"fabric", "rail_optimised"}};
}

Json four_of(const Json& node) {
  return {{"node", node}, {"nodes", 4}, {"fabric", "rail_optimised"}};
}

ServingSpec read_pools_service(const Json& scenario) {
  return read_serving(JsonCursor::parse("s.json", scenario.dump()), test::presets());
}

void refuses_service(const Json& scenario, const std::string& pointer, const std::string& words) {
  try {
    (void)read_pools_service(scenario);
    FAIL("not refused: " << words);
  } catch (const InputError& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find("s.json#" + pointer + ":") != std::string::npos);
    CHECK(what.find(words) != std::string::npos);
  }
}

const Json kH100 = priced_node("dgx_h100", 3);
const Json kA100 = priced_node("dgx_a100_80gb", 1);

/// One pass with a prompt of a thousand tokens, and one that decodes 32 sequences.
std::array<double, 2> pass_times(const ServingSpec& spec, std::size_t pool) {
  ServingReplica replica(replica_spec(spec.pools[pool], spec));
  const ServingPass prompt =
      replica.pass({.prompts = 1, .prompt_tokens = 1000, .prompt_pairs = 500e3});
  const ServingPass decode = replica.pass({.sequences = 32, .context = 32e3});
  return {prompt.total().base_units(), decode.total().base_units()};
}

}  // namespace

TEST_CASE("unlike pools: two kinds that are equal answer as one kind does, to the last bit") {
  ServingSpec one = read_pools_service(two_pool_service(four_of(kH100)));
  ServingSpec two = read_pools_service(two_pool_service(two_kinds_of(kH100, kH100)));
  REQUIRE(two.cluster.pools.size() == 2);
  CHECK(place_replicas(one) == place_replicas(two));
  const ServingReport a = simulate_serving(one), b = simulate_serving(two);
  REQUIRE(one.requests.size() == two.requests.size());
  for (std::size_t i = 0; i < one.requests.size(); ++i) {
    CHECK(one.requests[i].first == two.requests[i].first);
    CHECK(one.requests[i].last == two.requests[i].last);
  }
  CHECK(a.transfer_s == b.transfer_s);
  CHECK(a.rent->usd == b.rent->usd);
  CHECK(a.power->pools[0] == b.power->pools[0]);
  CHECK(mean_power(a.power->gpus) == mean_power(b.power->gpus));
  // A node's power is affine in that of its GPUs: only rounding differs.
  CHECK(mean_power(a.power->facility).base_units() ==
        test::near(mean_power(b.power->facility).base_units()).epsilon(1e-9));
  CHECK(a.pools[0].node.empty());
  CHECK(b.pools[0].node == "dgx_h100");
}

TEST_CASE("unlike pools: each pool has its card's pass times, and swapping kinds swaps them") {
  const ServingSpec there = read_pools_service(two_pool_service(two_kinds_of(kH100, kA100)));
  const ServingSpec back = read_pools_service(two_pool_service(two_kinds_of(kA100, kH100)));
  CHECK(pass_times(there, 0) == pass_times(back, 1));
  CHECK(pass_times(there, 1) == pass_times(back, 0));
  CHECK(pass_times(there, 0)[0] < pass_times(there, 1)[0]);
  const ServingSpec alone = read_pools_service(two_pool_service(four_of(kA100)));
  CHECK(pass_times(there, 1) == pass_times(alone, 1));
  // "cluster_pool" crosses them where they stand.
  Json crossed = two_pool_service(two_kinds_of(kH100, kA100));
  crossed["serving"]["pools"]["prefill"]["cluster_pool"] = 1;
  crossed["serving"]["pools"]["decode"]["cluster_pool"] = 0;
  const ServingSpec over = read_pools_service(crossed);
  CHECK(pass_times(over, 0) == pass_times(back, 0));
  const auto placed = place_replicas(over);
  CHECK(placed[0] == std::vector{16, 24});
  CHECK(placed[1] == std::vector{0, 8});
}

TEST_CASE("unlike pools: a transfer goes at the rate of the slower pool's NICs, either way") {
  const auto alone = [](const Json& first, const Json& second) {
    const ServingSpec spec = read_pools_service(two_pool_service(two_kinds_of(first, second)));
    const NicPorts ports = fabric_ports(spec.cluster.node, spec.cluster.pools);
    const Fabric fabric(spec.cluster.fabric, spec.cluster.nodes, ports.count, ports.bandwidth);
    FlowNetwork network;
    FabricLinks links(fabric, network, spec.cluster.transport.efficiency,
                      nic_shares(spec.cluster.pools, fabric));
    KvNetwork kv(spec, links);
    const BytesPerSecond closed = kv_rate({spec.node_of(spec.pools[0]), kv_cut(spec.pools[0])},
                                          {spec.node_of(spec.pools[1]), kv_cut(spec.pools[1])},
                                          spec.transfer.efficiency, false);
    const BytesPerSecond flow = kv.take({}, {}).alone;
    CHECK(flow / closed == test::near(1.0).epsilon(1e-12));
    return closed.base_units();
  };
  // Eight NICs of 400 Gb/s of H100, of 200 of A100, at the transfers' default 80 %.
  CHECK(alone(kH100, kH100) == test::near(0.8 * 8 * 400e9 / 8));
  CHECK(alone(kH100, kA100) == test::near(0.8 * 8 * 200e9 / 8));
  CHECK(alone(kA100, kH100) == test::near(0.8 * 8 * 200e9 / 8));
}

TEST_CASE("unlike pools: rent, GPUs' power and limits are each kind's own, and add up") {
  ServingSpec spec = read_pools_service(two_pool_service(two_kinds_of(kH100, kA100)));
  const ServingReport report = simulate_serving(spec);
  // The prices are 3 and 1 USD an hour, and both pools hold 16 GPUs to the end.
  CHECK(*report.pools[0].rent_usd / *report.pools[1].rent_usd == test::near(3.0));
  CHECK(report.rent->usd == test::near(*report.pools[0].rent_usd + *report.pools[1].rent_usd));
  CHECK(mean_power(report.power->gpus).base_units() ==
        test::near(16 * (report.power->pools[0] + report.power->pools[1]).base_units()));
  CHECK(report.power->pools[1] < spec.cluster.pools[1].node.gpu.power_limit);
  CHECK(gpu_limit(spec).base_units() == test::near((700.0 + 400.0) / 2));
  // A price of the scenario is every GPU's.
  Json priced = two_pool_service(two_kinds_of(kH100, kA100));
  priced["price"]["usd_per_gpu_hour"] = 2;
  ServingSpec same = read_pools_service(priced);
  const ServingReport paid = simulate_serving(same);
  CHECK(*paid.pools[0].rent_usd == *paid.pools[1].rent_usd);
  // Where one kind has no price, nobody knows the rent.
  ServingSpec open =
      read_pools_service(two_pool_service(two_kinds_of(kH100, Json("dgx_a100_80gb"))));
  CHECK_FALSE(simulate_serving(open).rent);
}

TEST_CASE("unlike pools: what cannot stand with them is refused in one line") {
  const Json base = two_pool_service(two_kinds_of(kH100, kA100));
  Json s = base;
  s["serving"]["pools"] = {{"both", {{"replicas", 2}, {"tensor", 8}}}};
  refuses_service(s, "/serving/pools/both", R"("prefill" and "decode")");
  s = base;
  s["serving"]["pools"]["decode"]["cluster_pool"] = 2;
  refuses_service(s, "/serving/pools/decode/cluster_pool", "0 to 1: the pools of the cluster");
  s = base;
  s["serving"]["pools"]["decode"]["cluster_pool"] = 0;
  refuses_service(s, "/serving/pools", "at most the 16 GPUs of cluster.pools.0, not 32");
  s = base;
  s["serving"]["nodes"] = {0, 1, 2, 3};
  refuses_service(s, "/serving/nodes", R"("cluster_pool")");
  s = base;
  s["cluster"]["across"] = "data";
  refuses_service(s, "/cluster/across", R"("cluster_pool")");
  s = two_pool_service(four_of(kH100));
  s["serving"]["pools"]["decode"]["cluster_pool"] = 0;
  refuses_service(s, "/serving/pools/decode/cluster_pool", R"(unless the cluster has "pools")");
}

}  // namespace lockstep
