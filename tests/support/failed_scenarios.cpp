#include "tests/support/failed_scenarios.hpp"

#include <array>

namespace lockstep::test {
namespace {

constexpr std::array kFailed{
    FailedScenario{
        .law = "hardware.gemm_bandwidth",
        .why = "faster products move a balanced layer to another stage, where the schedule has "
               "less room for it: an anomaly to name",
        .text =
            R"({"model": {"layers": 17, "hidden": 256, "heads": 1, "ffn": 2048, "vocabulary": 1},
                "cluster": {"pools": [{"node": "dgx_h100", "nodes": 1},
                                      {"node": "dgx_h100", "nodes": 1}]},
                "parallelism": {"pipeline": 8, "schedule": "zb_h2",
                                "layers_per_stage": "balanced"},
                "batch": {"sequences": 12, "tokens": 1024}})"},
    FailedScenario{
        .law = "work",
        .why = "without sequence parallelism every tensor-parallel rank did all of the product "
               "that a further predicted token has",
        .text =
            R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192,
                  "vocabulary": 32000, "predicted_tokens": 1},
                "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
                "parallelism": {"tensor": 8, "sequence": false},
                "batch": {"sequences": 4, "micro": 2, "tokens": 2048},
                "recompute": "none", "stack": "megatron_core"})"},
    FailedScenario{.law = "work",
                   .why = "norms of a further predicted token counted as useful FLOP",
                   .text =
                       R"({"model": {"layers": 1, "hidden": 2048, "heads": 16, "ffn": 8192,
                  "vocabulary": 32000, "predicted_tokens": 1},
                "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
                "parallelism": {"data": 8},
                "batch": {"sequences": 8, "tokens": 2048},
                "recompute": "none", "stack": "megatron_core"})"},
    FailedScenario{.law = "work",
                   .why = "products of key-value heads that several tensor-parallel ranks hold "
                          "counted as useful on each of them",
                   .text =
                       R"({"model": {"layers": 2, "hidden": 2048, "heads": 16, "kv_heads": 2,
                  "ffn": 8192, "vocabulary": 32000},
                "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
                "parallelism": {"tensor": 8},
                "batch": {"sequences": 4, "tokens": 2048}, "recompute": "none",
                "stack": {"preset": "megatron_core",
                  "allow": ["layouts.replicated_key_values"]}})"},
    FailedScenario{.law = "work",
                   .why = "a stage without layer, embedding and head read the program of another "
                          "one, or waited for ever",
                   .text =
                       R"({"model": {"layers": 2, "hidden": 1024, "heads": 2, "ffn": 8,
                  "vocabulary": 32},
                "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "ideal"},
                "parallelism": {"tensor": 2, "context": 2, "pipeline": 4,
                  "layers_per_stage": [1, 0, 0, 1]},
                "batch": {"sequences": 1, "tokens": 2048}, "recompute": "none",
                "stack": "megatron_core"})"},
    FailedScenario{
        .law = "books of a run",
        .why = "a node that came back from repair while a warm spare was fetched turned time back",
        .text =
            R"({"model": {"layers": 12, "hidden": 2048, "heads": 16, "ffn": 8192,
                  "vocabulary": 32000},
                "cluster": {"node": "dgx_h100", "nodes": 12, "fabric": "ideal"},
                "parallelism": {"tensor": 8, "data": 12},
                "batch": {"sequences": 24, "tokens": 2048}, "recompute": "none",
                "stack": "megatron_core",
                "run": {"duration": "60 d", "seed": 701,
                  "reliability": {"modes": [{"name": "feed", "component": "feed",
                    "effect": "crash", "mean_time": "2 d", "replaced": 1}]},
                  "spares": {"hot": 1, "warm": 1, "warm_takes": "2 h", "repair": "1 h"},
                  "nodes_per_feed": 4,
                  "checkpoint": {"interval": "1 h", "storage": {"write": "1 GB/s",
                    "read": "2 GB/s"}}}})"},
    FailedScenario{
        .law = "books of a run",
        .why = "a checkpoint of one tier remembered time that going back to another's had lost",
        .text =
            R"({"model": {"layers": 12, "hidden": 2048, "heads": 16, "ffn": 8192,
                  "vocabulary": 32000},
                "cluster": {"node": "dgx_h100", "nodes": 12, "fabric": "ideal"},
                "parallelism": {"tensor": 8, "data": 12},
                "batch": {"sequences": 24, "tokens": 2048}, "recompute": "none",
                "stack": "megatron_core",
                "run": {"duration": "60 d", "seed": 329,
                  "reliability": {"modes": [
                    {"name": "slow", "component": "node", "effect": "slow", "mean_time": "8 d",
                     "replaced": 0, "scope": "process", "slowdown": 2, "found_after": "10 min"},
                    {"name": "crash", "component": "node", "mean_time": "2 d"}]},
                  "checkpoint": [
                    {"to": "local", "interval": "20 min", "drive": "5 GB/s"},
                    {"to": "storage", "interval": "20 min", "mode": "synchronous",
                     "storage": {"write": "100 MB/s", "read": "2 GB/s"}}]}})"},
    FailedScenario{
        .law = "replays",
        .why = "in a replay, ranks of a group on a node with more of them than the next sent to "
               "the same NIC there: 18 % of this step",
        .text =
            R"({"model": {"layers": 6, "hidden": 2048, "heads": 16, "ffn": 8192,
                  "vocabulary": 32000},
                "cluster": {"node": "dgx_a100_80gb", "nodes": 3, "fabric": "ideal"},
                "parallelism": {"pipeline": 3, "data": 8},
                "batch": {"sequences": 24, "tokens": 2048}, "recompute": "full",
                "stack": {"preset": "megatron_core", "placement": "tp-pp-dp"}})"},
    FailedScenario{
        .law = "replays",
        .why = "where some shards lie in one node and others across two, the step put their rings "
               "on no link at all",
        .text =
            R"({"model": {"layers": 1, "hidden": 512, "heads": 1, "ffn": 1, "vocabulary": 16000},
                "cluster": {"node": "dgx_h100", "fabric": {"kind": "torus"}},
                "parallelism": {"pipeline": 3, "data": 4, "sharding": "zero3", "shard_group": 2},
                "batch": {"sequences": 12, "tokens": 1},
                "stack": {"placement": "tp-pp-dp"}})"},
};

}  // namespace

std::span<const FailedScenario> failed_scenarios() { return kFailed; }

}  // namespace lockstep::test
