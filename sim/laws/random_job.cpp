#include "sim/laws/random_job.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/laws/draws.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// One scenario, part by part. What does not fit together the reader refuses.
class JobDraw : Draws {
 public:
  JobDraw(RandomStream& random, const JobDrawOptions& options) : Draws(random), options_(options) {}

  /// Nothing where the widths do not divide the GPUs.
  std::optional<Json> scenario() {
    draw_node();
    draw_widths();
    const int rest = gpus_ * nodes_ / replica_;
    if (rest * replica_ != gpus_ * nodes_) return std::nullopt;
    data_ = rest;
    draw_schedule();
    draw_sharding();
    Json out{{"model", model()},
             {"cluster", cluster()},
             {"parallelism", parallelism()},
             {"batch", batch()},
             {"precision", one_of<std::string>({"bf16", "bf16", "bf16", "fp8"})},
             {"recompute", one_of<std::string>({"none", "none", "selective", "full"})},
             {"stack", stack()}};
    if (has_experts_) add_routing(out);
    if (options_.straggler) out["stragglers"] = stragglers();
    if (!options_.many_replicas) add_trained_parts(out);
    if (options_.power) out["power"] = power();
    if (options_.weeks) out["run"] = run();
    return out;
  }

 private:
  bool yes_or_no() { return once_in(2); }

  // --- the machine -----------------------------------------------------------------------------

  /// With NICs of their own, with shared ones, with two NVLink domains a node, with one of several
  /// nodes.
  void draw_node() {
    node_ = one_of<Json>({"dgx_h100",
                          "dgx_a100_80gb",
                          {{"preset", "dgx_h100"}, {"nics", 4}},
                          {{"preset", "dgx_h100"}, {"nvlink_domain", 4}},
                          "gb200_nvl72"});
    if (options_.pools || options_.many_replicas) node_ = "dgx_h100";
    gpus_ = node_ == "gb200_nvl72" ? 4 : 8;
    std::vector<int> sizes;
    for (const int nodes : {1, 2, 3, 4, 6, 8, 12, 16, 32, 48, 64}) {
      const bool enough = !options_.many_replicas || nodes >= 16;
      if (enough && nodes <= options_.most_nodes) sizes.push_back(nodes);
    }
    nodes_ = one_of(sizes);
  }

  Json cluster() {
    if (!options_.pools) return {{"node", node_}, {"nodes", nodes_}, {"fabric", fabric()}};
    const Json other = one_of<Json>({"dgx_a100_80gb",
                                     "dgx_b200",
                                     "mi300x_8",
                                     {{"preset", "dgx_h100"}, {"nic_bandwidth", "100 Gb/s"}}});
    const int first = 1 + below(std::max(1, nodes_ - 1));
    Json pools = Json::array();
    pools.push_back({{"node", node_}, {"nodes", first}});
    pools.push_back({{"node", other}, {"nodes", std::max(1, nodes_ - first)}});
    if (yes_or_no()) std::swap(pools[0], pools[1]);
    return {{"pools", std::move(pools)},
            {"across", one_of<std::string>({"pipeline", "data"})},
            {"fabric", fabric()}};
  }

  Json fabric() {
    switch (options_.fabrics) {
      case RandomFabrics::symmetric:
        return once_in(4) ? Json("ideal") : tree({"spray"});
      case RandomFabrics::hashed:
        return tree({"ecmp"});
      case RandomFabrics::every:
        break;
    }
    switch (below(6)) {
      case 0:
        return rails();
      case 1:
        return groups();
      case 2:
        return torus();
      default:
        return drawn_tree();
    }
  }
  Json tree(const std::vector<std::string>& routings) {
    return {{"kind", one_of<std::string>({"fat_tree", "rail_optimised"})},
            {"routing", one_of(routings)},
            {"levels", one_of<int>({2, 2, 3})},
            {"leaf_ports_down", one_of<int>({8, 16, 32})},
            {"leaf_oversubscription", one_of<int>({1, 2, 4})},
            {"switch_latency", "0.5 us"}};
  }
  /// In planes, or with something broken.
  Json drawn_tree() {
    Json out = tree({"spray", "ecmp", "adaptive", "minhop", "updn", "ftree"});
    switch (below(5)) {
      case 0:
        out["planes"] = 2;
        break;
      case 1:
        out["faults"].push_back(Json::object({{"switch", "spine 1"}}));
        break;
      case 2:
        out["faults"].push_back({{"cable", "leaf 0 to spine 0"}, {"rate", 0.25}});
        break;
      default:
        break;
    }
    return out;
  }
  Json rails() {
    return {{"kind", "rail_only"},
            {"leaf_ports_down", one_of<int>({2, 4, 16})},
            {"routing", one_of<std::string>({"spray", "ecmp", "adaptive"})},
            {"pxn", true}};
  }
  Json groups() {
    return {{"kind", one_of<std::string>({"dragonfly", "dragonfly_plus"})},
            {"leaf_ports_down", one_of<int>({8, 16})},
            {"group_switches", one_of<int>({2, 4})},
            {"routing", one_of<std::string>({"spray", "ecmp", "adaptive"})}};
  }
  Json torus() {
    Json out{{"kind", "torus"},
             {"routing", one_of<std::string>({"spray", "ecmp", "adaptive"})},
             {"queue_pairs", one_of<int>({1, 4})}};
    if (nodes_ % 4 == 0) out["torus"] = {4, nodes_ / 4};
    return out;
  }
  Json stragglers() {
    Json out = Json::array();
    out.push_back({{"gpu", below(gpus_ * nodes_)}, {"slowdown", one_of<double>({1.05, 1.3, 2})}});
    return out;
  }

  // --- the model -------------------------------------------------------------------------------

  Json model() {
    if (options_.many_replicas) return one_of<std::string>({"llama3_8b", "llama3_70b"});
    Json out{{"layers", pipeline_ * chunks_ * one_of<int>({1, 2}) + one_of<int>({0, 0, 1})},
             {"hidden", 2048},
             {"heads", 16},
             {"kv_heads", one_of<int>({16, 16, 8})},
             {"ffn", 8192},
             {"vocabulary", 32000},
             {"tied", yes_or_no()}};
    if (has_experts_) {
      out["experts"] = {{"count", 16},
                        {"per_token", 2},
                        {"ffn", 2048},
                        {"leading_dense", below(2)},
                        {"interval", one_of<int>({1, 1, 2})},
                        {"shared_ffn", one_of<int>({0, 2048})}};
      out["predicted_tokens"] = below(2);
    }
    return out;
  }
  /// How tokens fall on experts.
  void add_routing(Json& out) {
    switch (below(4)) {
      case 0:
        out["routing"] = {{"imbalance", one_of<double>({1.3, 3})}};
        break;
      case 1:
        out["routing"] = {{"zipf", 0.8}, {"capacity_factor", one_of<double>({1, 1.5})}};
        break;
      default:
        break;
    }
  }
  /// Adapters, parts that stay as they are, what goes to the host.
  void add_trained_parts(Json& out) {
    if (once_in(4)) {
      out["lora"] = {{"rank", one_of<int>({16, 64})},
                     {"modules", one_of<std::vector<std::string>>(
                                     {{"qkv"}, {"qkv", "mlp_down"}, {"projection", "mlp_up"}})},
                     {"base", one_of<std::string>({"bf16", "nf4"})}};
    } else if (once_in(4)) {
      out["frozen"] = {{"embedding", yes_or_no()}, {"layers", below(6)}, {"output", yes_or_no()}};
    }
    if (once_in(4)) {
      out["offload"] = {{"optimiser", one_of<double>({0, 0.5, 1})},
                        {"activation_layers", below(3)}};
    }
  }

  // --- the layout ------------------------------------------------------------------------------

  void draw_widths() {
    const bool many = options_.many_replicas;
    tensor_ = many ? one_of<int>({1, 2, 4}) : one_of<int>({1, 2, 4, 8, 16});
    context_ = many ? 1 : one_of<int>({1, 1, 1, 2, 4});
    pipeline_ = many ? one_of<int>({2, 4}) : one_of<int>({1, 2, 3, 4, 8});
    replica_ = tensor_ * context_ * pipeline_;
    has_experts_ = !many && once_in(3);
  }
  void draw_schedule() {
    if (options_.many_replicas) {
      schedule_ = one_of<std::string>({"1f1b", "gpipe", "dualpipe"});
    } else if (pipeline_ > 1) {
      schedule_ = one_of<std::string>({"", "", "", "gpipe", "breadth_first", "zb_h1", "zb_h2",
                                       "zb_v", "dualpipe", "dualpipev"});
    }
    const bool folds_back = schedule_ == "zb_v" || schedule_ == "dualpipev";
    const bool chooses = pipeline_ > 1 && (schedule_.empty() || schedule_ == "breadth_first");
    chunks_ = chooses ? one_of<int>({1, 1, 2}) : folds_back ? 2 : 1;
  }
  void draw_sharding() {
    sharding_ = options_.many_replicas
                    ? one_of<std::string>({"none", "zero1", "zero2"})
                    : one_of<std::string>({"none", "zero1", "zero2", "zero3", "zero3"});
    grouped_ = 0;
    if (sharding_ != "zero3") return;
    const int group = one_of<int>({0, 2, 4, 8});
    if (group > 0 && context_ * data_ % group == 0) grouped_ = group;
  }
  Json parallelism() {
    Json out{{"tensor", tensor_}, {"context", context_},       {"pipeline", pipeline_},
             {"data", data_},     {"virtual_stages", chunks_}, {"sharding", sharding_}};
    if (tensor_ > 1) out["sequence"] = yes_or_no();
    if (!schedule_.empty()) out["schedule"] = schedule_;
    if (sharding_ == "zero3") {
      out["prefetch"] = below(3);
      out["reshard"] = yes_or_no();
      if (grouped_ > 0) out["shard_group"] = grouped_;
    }
    if (has_experts_) {
      out["expert"] = one_of<int>({1, 2, 8, 16});
      out["expert_tensor"] = one_of<int>({1, 1, 2});
      out["expert_dispatch"] = one_of<std::string>({"all_to_all", "two_level"});
    }
    if (options_.pools && chunks_ == 1 && once_in(4)) out["layers_per_stage"] = "balanced";
    return out;
  }
  Json batch() {
    const int micro = one_of<int>({1, 1, 2});
    const int rounds = options_.many_replicas ? 8 : pipeline_ * one_of<int>({1, 2, 3});
    Json out{{"sequences", rounds * data_ * micro},
             {"micro", micro},
             {"tokens", one_of<int>({2048, 2048, 4096, 8192})}};
    const bool each = sharding_ == "zero3" || (sharding_ == "zero2" && pipeline_ == 1);
    if (options_.pools && !each && once_in(4)) out["micro_batches"] = "balanced";
    return out;
  }
  Json stack() {
    Json communication{{"overlap_gradients", yes_or_no()},
                       {"overlap_parameters", yes_or_no()},
                       {"overlap_pipeline", yes_or_no()}};
    if (!options_.many_replicas) communication["bucket_parameters"] = one_of<double>({0, 5e6, 4e7});
    Json out{{"preset", "megatron_core"},
             {"allow",
              {"schedules.gpipe", "schedules.breadth_first", "schedules.zb_h1", "schedules.zb_h2",
               "schedules.zb_v", "schedules.dualpipe", "schedules.dualpipev",
               "pipeline_sharding.zero2", "pipeline_sharding.zero3", "lora.bf16", "lora.nf4"}},
             {"communication", std::move(communication)}};
    if (!options_.many_replicas && !options_.pools) {
      out["placement"] = one_of<std::string>({"tp-dp-pp", "tp-pp-dp"});
    }
    return out;
  }

  // --- power -----------------------------------------------------------------------------------

  Json power() {
    Json out{{"facility", one_of<std::string>({"air_chiller", "immersion", "node_meter"})},
             {"outside_celsius", one_of<int>({-5, 20, 35})},
             {"meter", one_of<std::string>({"20 ms", "0.5 s", "2 s"})}};
    if (once_in(3)) out["cap"] = node_ == "gb200_nvl72" ? "900 W" : "340 W";
    if (once_in(3)) {
      out["smoothing"] = {{"floor", one_of<std::string>({"0 W", "250 W"})},
                          {"capacitor_joules", one_of<int>({0, 60, 10'000})}};
    }
    return out;
  }

  // --- a run of weeks --------------------------------------------------------------------------

  Json run() {
    Json modes = Json::array();
    for (int number = 1 + below(4); number > 0; --number) modes.push_back(mode());
    Json out{{"duration", one_of<std::string>({"2 d", "9 d", "30 d"})},
             {"reliability", Json::object({{"modes", std::move(modes)}})},
             {"recovery", recovery()},
             {"spares", spares()},
             {"nodes_per_rack", one_of<int>({1, 4})},
             {"nodes_per_switch", 8},
             {"nodes_per_feed", 16},
             {"trajectories", 8},
             {"seed", below(1000)}};
    if (!once_in(10)) out["checkpoint"] = checkpoints();
    return out;
  }
  /// A way to fail that a job of some hundred GPUs meets every day or week.
  Json mode() {
    const auto component =
        one_of<std::string>({"gpu", "nic", "cpu", "node", "rack", "switch", "feed", "job"});
    const bool many = component == "gpu" || component == "nic" || component == "cpu";
    const auto effect =
        one_of<std::string>({"crash", "crash", "hang", "slow", "silent", "planned"});
    Json out{{"name", component + " " + effect},
             {"component", component},
             {"effect", effect},
             {"mean_time", many ? one_of<std::string>({"100 d", "1000 d"})
                                : one_of<std::string>({"8 d", "60 d"})},
             {"shape", one_of<double>({0.7, 1, 1, 2})},
             {"replaced", one_of<double>({0, 0.3, 1})}};
    if (once_in(3)) out["scope"] = one_of<std::string>({"process", "node", "rack", "switch"});
    if (effect == "slow") out["slowdown"] = one_of<double>({1.1, 2});
    if (effect == "slow" || effect == "silent") {
      out["found_after"] = one_of<std::string>({"10 min", "3 h"});
    }
    return out;
  }
  Json recovery() {
    return {{"detects_crash", one_of<std::string>({"0 s", "1 min"})},
            {"detects_hang", "10 min"},
            {"diagnoses", one_of<std::string>({"0 s", "5 min"})},
            {"misdiagnosed", one_of<double>({0, 0, 0.3})},
            {"restarts", one_of<std::string>({"1 min", "20 min"})}};
  }
  Json spares() {
    Json out{{"hot", below(3)},
             {"warm", below(2)},
             {"warm_takes", "15 min"},
             {"repair", one_of<std::string>({"2 h", "1 d"})},
             {"crews", below(3)}};
    // Replicas that hold weights or experts together cannot go on without one of them.
    if (grouped_ == 0 && !has_experts_ && data_ > 2) out["elastic"] = below(3);
    return out;
  }
  Json checkpoints() {
    Json out = Json::array();
    if (once_in(3)) out.push_back({{"to", "peers"}, {"interval", "5 min"}});
    if (once_in(4)) {
      out.push_back({{"to", "local"}, {"interval", "20 min"}, {"drive", "5 GB/s"}});
    }
    Json storage{{"write", one_of<std::string>({"1 GB/s", "20 GB/s"})},
                 {"read", one_of<std::string>({"2 GB/s", "50 GB/s"})},
                 {"network", one_of<std::string>({"own", "own", "training"})}};
    out.push_back({{"to", "storage"},
                   {"mode", one_of<std::string>({"synchronous", "asynchronous"})},
                   {"interval", one_of<std::string>({"10 min", "1 h", "6 h"})},
                   {"corrupt", one_of<double>({0, 0, 0.1})},
                   {"storage", std::move(storage)}});
    return out;
  }

  const JobDrawOptions& options_;
  Json node_;
  int gpus_ = 8, nodes_ = 1;
  int tensor_ = 1, context_ = 1, pipeline_ = 1, data_ = 1;
  int replica_ = 1;  ///< GPUs
  int chunks_ = 1;
  int grouped_ = 0;  ///< parallelism.shard_group
  std::string schedule_, sharding_;
  bool has_experts_ = false;
};

}  // namespace

std::optional<nlohmann::ordered_json> draw_job(RandomStream& random,
                                               const JobDrawOptions& options) {
  return JobDraw(random, options).scenario();
}

}  // namespace lockstep
