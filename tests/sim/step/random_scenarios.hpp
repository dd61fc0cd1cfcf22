// Random small jobs on random clusters, for what must hold in every run.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/input/input_error.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_scenario.hpp"

namespace lockstep::test {

struct RandomScenarioOptions {
  bool ecmp = false;       ///< hashed routes on a fat tree, else symmetric ones on any fabric
  bool straggler = false;  ///< one GPU is slow
  int most_nodes = 64;
};

/// Draws scenarios until one fits together. `text` is what a failing test prints.
class RandomScenarios {
 public:
  RandomScenarios(std::uint64_t seed, const RandomScenarioOptions& options)
      : random_({.seed = seed, .purpose = 7}), options_(options) {}

  Scenario next() {
    while (true) {
      text_ = draw();
      try {
        return read_scenario("random.json", text_, presets_);
      } catch (const InputError&) {
        // The fabric cannot join that many nodes, or a width does not divide: another one.
      }
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(static_cast<std::uint32_t>(values.size()))];
  }
  const char* yes_or_no() { return random_.below(2) == 0 ? "true" : "false"; }

  std::string fabric() {
    if (options_.ecmp) return R"("fat_tree_ecmp")";
    if (random_.below(4) == 0) return R"("ideal")";
    const int levels = one_of<int>({2, 2, 3});
    return fmt::format(
        R"({{"kind": "{}", "routing": "spray", "levels": {}, "leaf_ports_down": {},
             "leaf_oversubscription": {}, "switch_latency": "0.5 us"}})",
        one_of<std::string>({"fat_tree", "rail_optimised"}), levels, one_of<int>({8, 16, 32}),
        one_of<int>({1, 2, 4}));
  }

  std::string stack() {
    return fmt::format(
        R"({{"preset": "megatron_core", "placement": "{}",
             "allow": ["schedules.gpipe", "schedules.breadth_first", "schedules.zb_h1",
                       "schedules.zb_h2", "schedules.zb_v", "schedules.dualpipe",
                       "schedules.dualpipev", "pipeline_sharding.zero2",
                       "pipeline_sharding.zero3", "lora.bf16", "lora.nf4"],
             "communication": {{"overlap_gradients": {}, "overlap_parameters": {},
                                "overlap_pipeline": {}, "bucket_parameters": {}}}}})",
        one_of<std::string>({"tp-dp-pp", "tp-pp-dp"}), yes_or_no(), yes_or_no(), yes_or_no(),
        one_of<std::string>({"0", "5e6", "4e7"}));
  }

  std::string draw() {
    // With NICs of their own, with shared ones, and with two NVLink domains a node.
    const std::string node = one_of<std::string>({R"("dgx_h100")", R"("dgx_a100_80gb")",
                                                  R"({"preset": "dgx_h100", "nics": 4})",
                                                  R"({"preset": "dgx_h100", "nvlink_domain": 4})"});
    std::vector<int> sizes;
    for (const int nodes : {1, 2, 3, 4, 6, 8, 12, 16, 32, 48, 64}) {
      if (nodes <= options_.most_nodes) sizes.push_back(nodes);
    }
    const int nodes = one_of(sizes);
    const int tensor = one_of<int>({1, 2, 4, 8, 16});
    const int context = one_of<int>({1, 1, 1, 2, 4});
    const int pipeline = one_of<int>({1, 2, 3, 4, 8});
    if (8 * nodes % (tensor * context * pipeline) != 0) return draw();
    const int data = 8 * nodes / (tensor * context * pipeline);
    const auto schedule = pipeline == 1
                              ? std::string{}
                              : one_of<std::string>({"", "", "", "gpipe", "breadth_first", "zb_h1",
                                                     "zb_h2", "zb_v", "dualpipe", "dualpipev"});
    const bool folds_back = schedule == "zb_v" || schedule == "dualpipev";
    const bool chooses = pipeline > 1 && (schedule.empty() || schedule == "breadth_first");
    const int chunks = chooses ? one_of<int>({1, 1, 2}) : folds_back ? 2 : 1;
    const int micro_batches = pipeline * one_of<int>({1, 2, 3});
    const int layers = pipeline * chunks * one_of<int>({1, 2}) + one_of<int>({0, 0, 1});
    const std::string written =
        schedule.empty() ? "" : fmt::format(R"(, "schedule": "{}")", schedule);
    std::string stragglers;
    if (options_.straggler) {
      stragglers = fmt::format(R"(, "stragglers": [{{"gpu": {}, "slowdown": {}}}])",
                               random_.below(static_cast<std::uint32_t>(8 * nodes)),
                               one_of<double>({1.05, 1.3, 2}));
    }
    return fmt::format(
        R"({{"model": {{"layers": {}, "hidden": 2048, "heads": 16, "ffn": 8192,
                        "vocabulary": 32000, "tied": {}{}}},
             "cluster": {{"node": {}, "nodes": {}, "fabric": {}}},
             "parallelism": {{"tensor": {}, "context": {}, "pipeline": {}, "data": {},
                              "virtual_stages": {}, {}{}}},
             "batch": {{"sequences": {}, "tokens": 2048}}, "stack": {}{}{}{}}})",
        layers, yes_or_no(), experts(), node, nodes, fabric(), tensor, context, pipeline, data,
        chunks, sharing(context * data), written, micro_batches * data, stack(), stragglers,
        adapters(), offload());
  }
  std::string offload() {
    if (random_.below(4) != 0) return "";
    return fmt::format(R"(, "offload": {{"optimiser": {}, "activation_layers": {}}})",
                       one_of<std::string>({"0", "0.5", "1"}), random_.below(3));
  }

  /// Of the model; widths of expert parallelism that do not fit are drawn again with the rest.
  std::string experts() {
    has_experts_ = random_.below(3) == 0;
    if (!has_experts_) return "";
    return fmt::format(
        R"(, "experts": {{"count": 16, "per_token": 2, "ffn": 2048, "leading_dense": {},
                          "interval": {}, "shared_ffn": {}}}, "predicted_tokens": {})",
        random_.below(2), one_of<int>({1, 1, 2}), one_of<int>({0, 2048}), random_.below(2));
  }
  std::string adapters() {
    if (random_.below(4) != 0) return frozen();
    return fmt::format(R"(, "lora": {{"rank": {}, "modules": {}, "base": "{}"}})",
                       one_of<int>({16, 64}),
                       one_of<std::string>(
                           {R"(["qkv"])", R"(["qkv", "mlp_down"])", R"(["projection", "mlp_up"])"}),
                       one_of<std::string>({"bf16", "nf4"}));
  }
  /// Parts that stay as they are; those that do not fit are drawn again with the rest.
  std::string frozen() {
    if (random_.below(4) != 0) return "";
    return fmt::format(R"(, "frozen": {{"embedding": {}, "layers": {}, "output": {}}})",
                       yes_or_no(), random_.below(6), yes_or_no());
  }
  /// What replicas share out, and how experts lie.
  std::string sharing(int replicas) {
    std::string text = fmt::format(
        R"("sharding": "{}")", one_of<std::string>({"none", "zero1", "zero2", "zero3", "zero3"}));
    if (text.find("zero3") != std::string::npos) {
      text += fmt::format(R"(, "prefetch": {}, "reshard": {})", random_.below(3), yes_or_no());
      const int group = one_of<int>({0, 2, 4, 8});
      if (group > 0 && replicas % group == 0) text += fmt::format(R"(, "shard_group": {})", group);
    }
    if (has_experts_) {
      text += fmt::format(R"(, "expert": {}, "expert_tensor": {}, "expert_dispatch": "{}")",
                          one_of<int>({1, 2, 8, 16}), one_of<int>({1, 1, 2}),
                          one_of<std::string>({"all_to_all", "two_level"}));
    }
    return text;
  }

  RandomStream random_;
  RandomScenarioOptions options_;
  PresetStore presets_;
  std::string text_;
  bool has_experts_ = false;
};

}  // namespace lockstep::test
