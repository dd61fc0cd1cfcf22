// One collective by three ways of asking: comm as a collective, comm as traffic, and what a step
// waits for it. And what jobs pay for thin uplinks.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

struct ThinFabric {
  std::string routing;
  int oversubscription;
  std::string transport = "infiniband";
  std::string node = "dgx_h100";
  int leaf_ports = 16;
};
const std::vector<ThinFabric>& thin_fabrics() {
  static const std::vector<ThinFabric> all = [] {
    std::vector<ThinFabric> out;
    for (const char* const routing : {"spray", "adaptive", "ecmp"}) {
      for (const int oversubscription : {1, 2, 8}) out.push_back({routing, oversubscription});
    }
    return out;
  }();
  return all;
}

std::string cluster_of(const ThinFabric& fabric, int nodes) {
  return fmt::format(R"({{"node": "{}", "nodes": {}, "fabric": {{"kind": "fat_tree",
      "levels": 2, "leaf_ports_down": {}, "routing": "{}", "leaf_oversubscription": {},
      "transport": "{}"}}}})",
                     fabric.node, nodes, fabric.leaf_ports, fabric.routing, fabric.oversubscription,
                     fabric.transport);
}

Json answer_of(const char* command, const std::string& text) {
  const TemporaryFolder folder;
  std::vector<std::string> args{command, folder.write("s.json", text), "--format", "json"};
  if (std::string(command) == "run") args.emplace_back("--allow-oom");
  const Ran ran = lockstep_with(args);
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

double waits_for(const Json& step, const std::string& bucket) {
  for (const Json& row : step.at("waterfall")) {
    if (row.at("bucket") == bucket) return row.at("seconds").get<double>();
  }
  return 0;
}

/// One call of all GPUs, as a collective and as traffic, which agree.
double call_of(const std::string& cluster, const char* op, std::int64_t bytes) {
  const Json call = answer_of(
      "comm", fmt::format(R"({{"cluster": {}, "collective": {{"op": "{}", "sizes": ["{} B"]}}}})",
                          cluster, op, bytes));
  const Json traffic = answer_of(
      "comm", fmt::format(R"({{"cluster": {}, "traffic": [{{"kind": "{}", "size": "{} B"}}]}})",
                          cluster, op, bytes));
  const double time = call.at("rows").at(0).at("time_s").get<double>();
  CHECK(traffic.at("end_s").get<double>() == near(time).epsilon(0.01));
  return time;
}

/// A mixture of experts on 64 GPUs, experts on all of them.
Json experts_of_64(const char* model, const ThinFabric& fabric) {
  return answer_of("run", fmt::format(R"({{"model": "{}", "stack": "megatron_core", "cluster": {},
      "parallelism": {{"data": 64, "expert": 64, "sharding": "zero1"}},
      "batch": {{"sequences": 64, "tokens": 4096, "micro": 1}}, "recompute": "full"}})",
                                      model, cluster_of(fabric, 8)));
}

void check_all_to_all(const ThinFabric& fabric) {
  CAPTURE(fabric.node);
  CAPTURE(fabric.routing);
  CAPTURE(fabric.oversubscription);
  // 48 layers send tokens to their experts and back: forward, again for recomputation, backward.
  constexpr double kCalls = 48 * 6;
  // 4,096 tokens for 8 experts each, 2,048 values of 2 bytes.
  constexpr std::int64_t kCopies = std::int64_t{4096} * 8 * 2048 * 2;
  const double call = call_of(cluster_of(fabric, 8), "all_to_all", kCopies);
  const Json step = experts_of_64("qwen3_30b_a3b", fabric);
  CHECK(waits_for(step, "expert_exposed") / kCalls == near(call).epsilon(0.01));
}

/// What a step waits for all gradients of 4 bytes in one bucket, then all weights of 2.
double check_gradients(const ThinFabric& fabric, int nodes, int gpus) {
  CAPTURE(fabric.node);
  CAPTURE(fabric.routing);
  CAPTURE(fabric.oversubscription);
  const std::string cluster = cluster_of(fabric, nodes);
  const Json step = answer_of("run", fmt::format(R"({{"model": "llama3_8b", "cluster": {},
      "stack": {{"preset": "megatron_core", "communication": {{"overlap_gradients": false,
        "overlap_parameters": false, "bucket_parameters": 0}}}},
      "parallelism": {{"data": {}, "sharding": "zero1"}}, "recompute": "full",
      "batch": {{"sequences": {}, "tokens": 4096, "micro": 1}}}})",
                                                 cluster, gpus, gpus));
  const auto parameters = step.at("job").at("parameters").get<double>();
  const double calls =
      call_of(cluster, "reduce_scatter", static_cast<std::int64_t>(4 * parameters)) +
      call_of(cluster, "all_gather", static_cast<std::int64_t>(2 * parameters));
  const double waits = waits_for(step, "data_exposed");
  CHECK(waits == near(calls).epsilon(0.01));
  return waits;
}

}  // namespace

TEST_CASE("the table: an all-to-all takes in comm, as traffic and in a step what it takes") {
  for (const ThinFabric& fabric : thin_fabrics()) check_all_to_all(fabric);
}

TEST_CASE("the table: a reduce-scatter and an all-gather, too") {
  for (const ThinFabric& fabric : thin_fabrics()) check_gradients(fabric, 8, 64);
}

TEST_CASE("the table: two GPUs that share a NIC, too") {
  for (const char* const routing : {"spray", "ecmp"}) {
    for (const int oversubscription : {1, 4}) {
      const ThinFabric fabric{routing, oversubscription, "infiniband", "hgx_a100_80gb_4nic", 8};
      check_all_to_all(fabric);
      check_gradients(fabric, 8, 64);
    }
  }
}

TEST_CASE("the table: racks of 72, where channels leave on few of the NICs, too") {
  // Two racks with half as many channels as NICs, three with a quarter.
  for (const int racks : {2, 3}) {
    double before = 0;
    for (const int oversubscription : {1, 4}) {
      const ThinFabric fabric{"spray", oversubscription, "infiniband", "gb200_nvl72", 8};
      const double waits = check_gradients(fabric, 18 * racks, 72 * racks);
      CHECK(waits > 1.3 * before);
      before = waits;
    }
  }
}

TEST_CASE("the table: all three know the start of DCQCN") {
  constexpr std::int64_t kCopies = std::int64_t{4096} * 8 * 2048 * 2;
  for (const char* const routing : {"spray", "ecmp"}) {
    for (const int oversubscription : {1, 2}) {
      CAPTURE(routing);
      CAPTURE(oversubscription);
      const ThinFabric fabric{routing, oversubscription, "roce_dcqcn"};
      const double call = call_of(cluster_of(fabric, 8), "all_to_all", kCopies);
      const Json step = experts_of_64("qwen3_30b_a3b", fabric);
      CHECK(waits_for(step, "expert_exposed") / (48 * 6) == near(call).epsilon(0.01));
      const double unslowed =
          call_of(cluster_of({routing, oversubscription, "roce"}, 8), "all_to_all", kCopies);
      CHECK(call >= unslowed * (1 - 1e-9));
      for (const char* const op : {"all_reduce", "all_gather"}) {
        CAPTURE(op);
        call_of(cluster_of(fabric, 8), op, std::int64_t{1} << 26);
      }
    }
  }
}

TEST_CASE("the table: experts on 64 GPUs against oversubscription") {
  for (const char* const model : {"deepseek_v3", "qwen3_235b_a22b"}) {
    CAPTURE(model);
    std::map<int, double> waits;
    for (const int oversubscription : {1, 2, 4, 8}) {
      waits[oversubscription] =
          waits_for(experts_of_64(model, {"spray", oversubscription}), "expert_exposed");
    }
    // Of 64 parts 56 leave a node over its NICs and 48 a leaf of two over its uplinks: from 2:1 on
    // those take longest, and the rest of an exchange, its latency, hardly counts.
    CHECK(waits.at(2) > 1.5 * waits.at(1));
    CHECK(waits.at(4) / waits.at(2) == near(2).epsilon(0.03));
    CHECK(waits.at(8) / waits.at(4) == near(2).epsilon(0.03));
  }
}

TEST_CASE("the table: tensor parallelism over four nodes is never faster on a thinner fabric") {
  for (const char* const routing : {"spray", "ecmp", "updn"}) {
    double before = 0;
    for (const int oversubscription : {1, 2, 4, 8, 16}) {
      CAPTURE(routing);
      CAPTURE(oversubscription);
      const Json step = answer_of("run", fmt::format(R"({{"model": "llama3_70b", "cluster": {},
          "stack": {{"preset": "megatron_core", "allow": ["layouts.replicated_key_values"]}},
          "parallelism": {{"tensor": 32, "data": 2}},
          "batch": {{"sequences": 16, "tokens": 4096, "micro": 1}}}})",
                                                     cluster_of({routing, oversubscription}, 8)));
      const double step_s = step.at("step_s").get<double>();
      CHECK(step_s >= before * (1 - 1e-9));
      before = step_s;
    }
  }
}

TEST_CASE("the table: the median of hashes of four nodes is never faster on a thinner fabric") {
  // A single draw may be: with fewer links everybody is dealt anew. Links are whole.
  double before = 0;
  for (const int oversubscription : {1, 2, 4, 8, 16}) {
    CAPTURE(oversubscription);
    const TemporaryFolder folder;
    const std::string file = folder.write(
        "s.json", fmt::format(R"({{"cluster": {}, "collective": {{"op": "all_gather", "ranks": 32,
            "groups": 2, "sizes": ["64 MiB"]}}}})",
                              cluster_of({"ecmp", oversubscription}, 8)));
    const Ran ran = lockstep_with({"comm", file, "--hash-seeds", "32", "--format", "json"});
    REQUIRE(ran.exit == Exit::ok);
    const Json band = Json::parse(ran.out).at("rows").at(0).at("hashing");
    CHECK(band.at("median_s").get<double>() > before);
    before = band.at("median_s").get<double>();
  }
}

TEST_CASE("the table: a ring of context parallelism leaves each node once") {
  // 16 members on two nodes: of a node's eight, one sends to the other node. An eighth of the
  // node's NICs is enough for it.
  const auto step = [](int oversubscription) {
    return answer_of("run", fmt::format(R"({{"model": "llama3_8b",
        "stack": {{"preset": "megatron_core", "communication": {{"overlap_gradients": false}}}},
        "cluster": {{"node": "dgx_h100", "nodes": 2, "fabric": {{"kind": "fat_tree", "levels": 2,
          "leaf_ports_down": 8, "routing": "spray", "leaf_oversubscription": {}}}}},
        "parallelism": {{"context": 16, "context_exchange": "ring"}},
        "batch": {{"sequences": 2, "tokens": 32768, "micro": 1}}}})",
                                        oversubscription));
  };
  const double full = waits_for(step(1), "context_exposed");
  CHECK(full > 0);
  CHECK(waits_for(step(8), "context_exposed") == near(full).epsilon(0.05));
}

TEST_CASE("SHARP: switches sum a step's gradients as comm says, where stack and fabric have it") {
  const auto scenario = [](int oversubscription, bool asked, const char* more) {
    return fmt::format(R"({{"model": "llama3_8b", "cluster": {{"node": "dgx_h100", "nodes": 16,
        "fabric": {{"kind": "fat_tree", "levels": 2, "leaf_ports_down": 16, "routing": "spray",
          "leaf_oversubscription": {}{}}}}},
        "stack": {{"preset": "megatron_core", "communication": {{"overlap_gradients": false,
          "bucket_parameters": 0, "sharp": {}}}}},
        "parallelism": {{"data": 128}}, "recompute": "full",
        "batch": {{"sequences": 256, "tokens": 4096, "micro": 1}}}})",
                       oversubscription, more, asked);
  };
  constexpr const char* kSharp = R"(, "sharp": "quantum2")";
  for (const int oversubscription : {1, 8}) {
    CAPTURE(oversubscription);
    const Json step = answer_of("run", scenario(oversubscription, true, kSharp));
    const Json call =
        answer_of("comm", fmt::format(R"({{"cluster": {}, "collective": {{"op": "all_reduce",
            "sizes": ["{} B"], "sharp": "quantum2"}}}})",
                                      cluster_of({"spray", oversubscription}, 16),
                                      4 * step.at("job").at("parameters").get<std::int64_t>()));
    CHECK(call.at("rows").at(0).at("algorithm") == "nvls");
    CHECK(waits_for(step, "data_exposed") ==
          near(call.at("rows").at(0).at("time_s").get<double>()).epsilon(0.01));
    // A fabric that could sum does so only where it is asked to.
    const Json alone = answer_of("run", scenario(oversubscription, false, kSharp));
    CHECK(alone.at("step_s") == answer_of("run", scenario(oversubscription, false, ""))["step_s"]);
    // A leaf of two nodes sends one sum up in each rail; two trees go up and down between its nodes
    // and others three times as often.
    const double gain = waits_for(alone, "data_exposed") / waits_for(step, "data_exposed");
    CHECK(gain > 1.2);
    if (oversubscription == 8) CHECK(gain == near(3).epsilon(0.01));
  }
  const auto refused = [&](const char* more) {
    const TemporaryFolder folder;
    return lockstep_with({"run", folder.write("s.json", scenario(1, true, more)), "--allow-oom"});
  };
  const Ran none = refused("");
  CHECK(none.exit == Exit::bad_input);
  CHECK(none.err.find("/stack/communication/sharp: found true; allowed: false: the switches of "
                      "this fabric do not sum") != std::string::npos);
  const Ran ethernet = refused(R"(, "sharp": "quantum2", "transport": "roce")");
  CHECK(ethernet.exit == Exit::bad_input);
  CHECK(ethernet.err.find("the transport is roce") != std::string::npos);
}

}  // namespace lockstep::test
