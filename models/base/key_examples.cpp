#include "models/base/key_examples.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

struct KeyExample {
  std::string_view key, value;
  std::string_view object = {};  ///< or list of objects, that has the key; empty: any
};
constexpr std::array kExamples{
    KeyExample{"nodes", R"({"first": 0, "count": 4})", "jobs"},
    KeyExample{"from", R"({"first": 0, "count": 4})", "background"},
    KeyExample{"to", R"({"first": 4, "count": 4})", "background"},
    KeyExample{"servers", R"({"of": "nics", "nodes": {"first": 1}})", "traffic"},
    KeyExample{"fault", R"({"switch": "spine 0"})", "events"},
    KeyExample{"tokens", R"("15 T tokens")", "training"},
    KeyExample{"of", R"([{"at": "/cluster/nodes", "uniform": [2, 8], "whole": true}])", "axes"},
    KeyExample{"pairs", "[[0, 1]]"},
    KeyExample{"gpus", "[[8, 1]]", "generate"},
    KeyExample{"gpus", "[[8, 1]]", "stand_in"},
    KeyExample{"mean", R"("1 h")", "generate"},
    KeyExample{"mean", R"("1 h")", "stand_in"},
    KeyExample{"count", "1000", "generate"},
    KeyExample{"count", "1000", "stand_in"},
    KeyExample{"jobs", R"([{"generate": {"count": 1000, "gpus": [[8, 1]], "mean": "1 h"}}])",
               "queue"},
    KeyExample{"cluster_queues", R"([{"name": "team", "nominal_gpus": 64}])", "queue"},
    KeyExample{"nominal_gpus", "64"},
    KeyExample{"load", R"({"rate": 4, "input": {"mean": 1000}, "output": {"mean": 200}})",
               "serving"},
    KeyExample{"pools", R"({"both": {"tensor": 8}})", "serving"},
    KeyExample{"mean", "1000", "input"},
    KeyExample{"mean", "200", "output"},
    KeyExample{"filling", R"({"nodes": [{"count": 16, "cpus": 96, "memory": "384 GiB", "gpus": 8}],
                              "pods": [{"count": 64, "cpus": 6, "gpus": 1, "gpu_milli": 500}]})"},
    KeyExample{"nodes", R"([{"count": 16, "cpus": 96, "memory": "384 GiB", "gpus": 8}])",
               "filling"},
    KeyExample{"pods", R"([{"count": 64, "cpus": 6, "gpus": 1, "gpu_milli": 500}])", "filling"},
    KeyExample{"cpus", "96", "nodes"},
    KeyExample{"memory", R"("384 GiB")", "nodes"},
    KeyExample{"cable_latency", R"("100 ns")"},
    KeyExample{"switch_latency", R"("300 ns")"},
    KeyExample{"axes", R"([{"at": "/cluster/nodes", "values": [2, 4]}])"},
    // Without a checkpoint every failure would start the run again.
    KeyExample{"run", R"({"reliability": "llama3_54_days", "checkpoint": {"to": "storage",
                          "interval": "30 min", "storage": "minio_nvme"}})"},
    KeyExample{"responses", R"({"mean": 1000})"},
    KeyExample{"model", R"("llama3_2_1b")"},
    KeyExample{"cluster", R"({"node": "dgx_h100", "nodes": 4})"},
    KeyExample{"node", R"("dgx_h100")"},
    KeyExample{"nodes", "4"},
    KeyExample{"batch", R"({"sequences": 256, "tokens": 4096})"},
    KeyExample{"sequences", "256"},
    KeyExample{"tokens", "4096"},
    KeyExample{"layers", "32"},
    KeyExample{"hidden", "4096"},
    KeyExample{"heads", "32"},
    KeyExample{"ffn", "14336"},
    KeyExample{"vocabulary", "128256"},
    KeyExample{"reliability", R"("llama3_54_days")"},
    KeyExample{"duration", R"("30 d")"},
    KeyExample{"interval", R"("30 min")"},
    KeyExample{"bytes_per_token", "4"},
    KeyExample{"op", R"("all_reduce")"},
    KeyExample{"prompts", "512"},
    KeyExample{"generations", "8"},
    KeyExample{"prompt_tokens", "512"},
    KeyExample{"trials", "27", "campaigns"},
    KeyExample{"least", "0.04", "stopping"},
};

/// Of objects that a scenario may do without, by their pointers.
constexpr std::array kObjectExamples{
    KeyExample{"/parallelism", R"({"tensor": 8, "pipeline": 1})"},
    KeyExample{"/lora", R"({"rank": 16})"},
    KeyExample{"/offload", R"({"optimiser": 1})"},
    KeyExample{"/frozen", R"({"layers": 8})"},
    KeyExample{"/routing", R"({"imbalance": 1.2})"},
    KeyExample{"/training", R"({"tokens": "15 T tokens"})"},
    KeyExample{"/price", R"({"usd_per_gpu_hour": 2.5})"},
    KeyExample{"/power", R"({"facility": "air_chiller"})"},
    KeyExample{"/cost", R"({"usd_per_gpu": 25000, "usd_per_kwh": 0.07})"},
    KeyExample{"/expect", R"({"mfu": 0.4})"},
    KeyExample{"/run", R"({"duration": "30 d", "reliability": "llama3_54_days",
                           "checkpoint": {"to": "storage", "interval": "30 min",
                                          "storage": "minio_nvme"}})"},
    KeyExample{"/run/recovery", R"({"restarts": "5 min"})"},
    KeyExample{"/run/spares", R"({"hot": 1, "repair": "2 d"})"},
    KeyExample{"/serving/objectives", R"({"ttft": "1 s", "tpot": "50 ms"})"},
    KeyExample{"/serving/cache_tiers", R"({"host": {"memory": "1 TB"}})"},
    KeyExample{"/serving/batching", R"({"pass_tokens": 8192})"},
    KeyExample{"/serving/speculation", R"({"drafts": 1, "acceptance": 0.8})"},
};

/// "/jobs/0" and "/a/jobs": "jobs".
std::string_view last_name(std::string_view pointer) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!pointer.empty()) {
    const std::size_t slash = pointer.rfind('/');
    const std::string_view name = pointer.substr(slash + 1);
    if (!std::ranges::all_of(name, is_digit)) return name;
    pointer = pointer.substr(0, slash);
  }
  return {};
}

}  // namespace

std::string_view key_example(std::string_view object, std::string_view key) {
  for (const KeyExample& example : kExamples) {
    if (example.key != key) continue;
    if (example.object.empty() || last_name(object) == example.object) return example.value;
  }
  return {};
}

std::string_view object_example(std::string_view pointer) {
  const auto listed = std::ranges::find(kObjectExamples, pointer, &KeyExample::key);
  if (listed != kObjectExamples.end()) return listed->value;
  const std::size_t slash = pointer.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view value = key_example(pointer.substr(0, slash), pointer.substr(slash + 1));
  return value.starts_with('{') ? value : std::string_view{};
}

}  // namespace lockstep
