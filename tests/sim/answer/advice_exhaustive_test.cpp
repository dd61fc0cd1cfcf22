// The change that advice puts first is the best one of a search that knows nothing of it.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/advice.hpp"
#include "sim/scenario/names.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/thorough.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;
using Sets = std::vector<std::string>;

/// Jobs that differ in what holds them back.
struct AdvisedJob {
  std::string_view what, text;
};
constexpr std::array kAdvisedJobs{
    AdvisedJob{"small micro batch, wide tensor parallelism",
               R"({"model": "llama3_8b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 4}, "parallelism": {"tensor": 8, "data": 4},
      "batch": {"sequences": 128, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"a deep pipeline with few micro batches",
               R"({"model": "llama2_13b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": {"tensor": 2, "pipeline": 8, "data": 2},
      "batch": {"sequences": 16, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"full recomputation that memory does not need",
               R"({"model": "llama2_7b", "stack": "megatron_core", "recompute": "full",
      "cluster": {"node": "dgx_a100_80gb", "nodes": 2},
      "parallelism": {"tensor": 4, "data": 4},
      "batch": {"sequences": 64, "micro": 1, "tokens": 2048}})"},
    AdvisedJob{"weights sharded over a thin network",
               R"({"model": "llama3_8b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 8, "fabric": "fat_tree_2_to_1"},
      "parallelism": {"data": 64, "sharding": "zero3"},
      "batch": {"sequences": 64, "micro": 1, "tokens": 2048}})"},
    AdvisedJob{"a long context", R"({"model": "llama3_8b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": {"tensor": 4, "context": 2, "data": 4},
      "batch": {"sequences": 16, "micro": 1, "tokens": 16384}})"},
    AdvisedJob{"one node", R"({"model": "llama2_7b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"tensor": 2, "data": 4},
      "batch": {"sequences": 32, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"a 70B over eight nodes", R"({"model": "llama3_70b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 8},
      "parallelism": {"tensor": 4, "pipeline": 8, "data": 2},
      "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"interleaved stages", R"({"model": "llama2_70b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 8},
      "parallelism": {"tensor": 8, "pipeline": 4, "data": 2, "schedule": "interleaved",
                      "virtual_stages": 5},
      "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"two nodes over one thin NIC",
               R"({"model": "llama2_7b", "stack": "megatron_core",
      "cluster": {"node": {"preset": "dgx_a100_80gb", "nics": 1}, "nodes": 2},
      "parallelism": {"tensor": 1, "data": 16},
      "batch": {"sequences": 32, "micro": 1, "tokens": 2048}})"},
    AdvisedJob{"experts over two nodes that a thin network joins",
               R"({"model": "qwen3_30b_a3b", "stack": "megatron_core", "recompute": "full",
      "cluster": {"node": {"preset": "dgx_h100", "nics": 2}, "nodes": 2},
      "parallelism": {"expert": 16, "data": 16, "sharding": "zero1"},
      "batch": {"sequences": 32, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"a mixture of experts", R"({"model": "mixtral_8x7b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": {"tensor": 2, "pipeline": 2, "expert": 8, "data": 8},
      "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"experts whose exchange another micro batch could hide",
               R"({"model": "mixtral_8x7b", "stack": "megatron_core", "recompute": "full",
      "cluster": {"node": {"preset": "dgx_h200", "nics": 1}, "nodes": 2},
      "parallelism": {"expert": 8, "tensor": 2, "data": 8, "sharding": "zero1"},
      "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})"},
    AdvisedJob{"experts over four nodes, to which tokens go one by one",
               R"({"model": "deepseek_v3", "stack": "megatron_core", "recompute": "full",
      "cluster": {"node": {"preset": "dgx_h100", "nics": 2}, "nodes": 32},
      "parallelism": {"expert": 32, "pipeline": 8, "data": 32, "sharding": "zero1"},
      "batch": {"sequences": 512, "micro": 1, "tokens": 4096}})"}};

int layout_width(const Json& layout, const char* key) {
  return layout.contains(key) && layout[key].is_number_integer() ? layout[key].get<int>() : 1;
}

void add_width_changes(const Json& layout, std::vector<Sets>& out) {
  const int data = layout_width(layout, "data");
  for (const char* width : {"tensor", "context", "pipeline"}) {
    const int now = layout_width(layout, width);
    const auto change = [&](int to, int with) {
      out.push_back(
          {fmt::format("parallelism.{}={}", width, to), fmt::format("parallelism.data={}", with)});
    };
    if (data % 2 == 0) change(2 * now, data / 2);
    if (now % 2 == 0) change(now / 2, 2 * data);
  }
  for (const int width : {1, 2, 4, 8, 16, 32, 64, 128})
    out.push_back({fmt::format("parallelism.expert={}", width)});
}

/// Each single change: what the neighbours of every key are, possible or not.
std::vector<Sets> single_changes(const Json& answer) {
  const Json& job = answer["job"];
  const Json& layout = job["parallelism"];
  std::vector<Sets> out;
  const int micro = job["batch"]["micro"].get<int>();
  out.push_back({fmt::format("batch.micro={}", 2 * micro)});
  if (micro % 2 == 0) out.push_back({fmt::format("batch.micro={}", micro / 2)});
  out.push_back({fmt::format("batch.sequences={}", 2 * job["batch"]["sequences"].get<int>())});
  add_width_changes(layout, out);
  if (layout_width(layout, "pipeline") > 1) {
    const int now = layout_width(layout, "virtual_stages");
    out.push_back({"parallelism.schedule=interleaved",
                   fmt::format("parallelism.virtual_stages={}", now > 1 ? 2 * now : 2)});
    out.push_back({"parallelism.schedule=zb_h1", "parallelism.virtual_stages=1"});
  }
  for (const char* exchange : {"expert_dispatch=two_level", "expert_overlap=true", "sequence=true",
                               "tensor_overlap=pieces", "reshard=false"})
    out.push_back({fmt::format("parallelism.{}", exchange)});
  for (const std::string_view name : kContextExchangeNames)
    out.push_back({fmt::format("parallelism.context_exchange={}", name)});
  for (const int group : {8, 8 / layout_width(layout, "tensor"), layout_width(layout, "data")})
    out.push_back({fmt::format("parallelism.shard_group={}", group)});
  for (const std::string& name : presets().names("stacks"))
    if (!presets().stack(name).spec.composed) out.push_back({"stack=" + name});
  for (const std::string_view name : kShardingNames)
    out.push_back({fmt::format("parallelism.sharding={}", name)});
  for (const std::string_view name : kRecomputeNames)
    out.push_back({fmt::format("recompute={}", name)});
  for (const char* precision : {"bf16", "fp8", "mxfp8", "nvfp4"})
    out.push_back({fmt::format("precision={}", precision)});
  const double nic = answer["hardware"]["nic_bytes_per_s"].get<double>();
  out.push_back({fmt::format("cluster.node.nic_bandwidth={} B/s", 2 * nic)});
  out.push_back({fmt::format("cluster.node.nic_bandwidth={} B/s", 2 * nic),
                 fmt::format("cluster.fabric.link_bandwidth={} B/s", 2 * nic)});
  out.push_back({"cluster.fabric.leaf_oversubscription=1"});
  out.push_back({"cluster.fabric.routing=adaptive"});
  // Every card of the maker, older ones and those of another form too.
  for (const std::string& name : presets().names("gpus")) {
    if (!presets().gpu(name).architecture.starts_with("cdna"))
      out.push_back({"cluster.node.gpu=" + name});
  }
  return out;
}

std::optional<double> advised_throughput(const std::string& text, const StepIntervals& intervals,
                                         const Sets& sets) {
  try {
    return answer_text("job.json", text, presets(), intervals, {.set = sets, .full_fabric = false})
        ->number("tokens_per_s_per_gpu");
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// A search's best, and what it sets.
struct BestChange {
  double reached = 0;
  Sets by{};
};

/// Of software alone, or of the machine too: cards and networks are behind most of the best.
bool is_of_software(const Sets& sets) {
  return std::ranges::none_of(sets,
                              [](const std::string& set) { return set.starts_with("cluster."); });
}

/// The first of the changes, of those of software alone if asked, reaches what the search's best
/// does.
void check_first(const Advice& advice, const BestChange& best, bool of_software) {
  const auto first = std::ranges::find_if(advice.changes, [&](const AdvisedChange& each) {
    return !of_software || is_of_software(each.change.sets);
  });
  REQUIRE(first != advice.changes.end());
  CAPTURE(first->change.words);
  REQUIRE_FALSE(best.by.empty());
  CAPTURE(best.by.front());
  const double now = number_named(advice.numbers, "tokens_per_s_per_gpu").value();
  CHECK((1 + first->gain) * now == doctest::Approx(best.reached).epsilon(1e-9));
}

/// What advice gains at first for a job, held against the search.
double check_job(const std::string& text, const StepIntervals& intervals) {
  const ScenarioAnswer own = answer_text("job.json", text, presets(), {.allow_oom = true});
  BestChange best, of_software;
  for (const Sets& sets : single_changes(own.json())) {
    const double reached = advised_throughput(text, intervals, sets).value_or(0);
    if (reached > best.reached) best = {reached, sets};
    if (reached > of_software.reached && is_of_software(sets)) of_software = {reached, sets};
  }
  const Advice advice =
      advise("job.json", text, presets(), {.allow_oom = true}, [](std::size_t, std::size_t) {});
  REQUIRE_FALSE(advice.changes.empty());
  check_first(advice, best, false);
  check_first(advice, of_software, true);
  // Other software is there once at most, and a pair only where it beats the first.
  CHECK(std::ranges::count_if(advice.changes, [](const AdvisedChange& each) {
          return each.change.other_stack;
        }) <= 1);
  for (const AdvisedChange& pair : advice.pairs) CHECK(pair.gain > advice.changes.front().gain);
  return advice.changes.front().gain;
}

}  // namespace

TEST_CASE("advice: what it puts first is the best of all single changes, and of software's") {
  int helped = 0;
  const StepIntervals intervals(presets());
  for (const AdvisedJob& job : kAdvisedJobs) {
    CAPTURE(job.what);
    if (check_job(std::string(job.text), intervals) > 0.01) ++helped;
  }
  CHECK(helped >= 8);  // else ten jobs that nothing helps would be no test
}

TEST_CASE("advice: of steps that ship too" * doctest::skip(kSlowBuild)) {
  const StepIntervals intervals(presets());
  // The shortest two always.
  for (const std::string_view name :
       {"llama3-8b-b200", "qwen3-30b-experts-8-nodes", "llama2-7b-hsdp-a100", "mixtral-8x7b-h100",
        "gpt3-175b-selective", "llama3-405b-16k"}) {
    CAPTURE(name);
    const std::string file = fmt::format("{}/scenarios/{}.json", LOCKSTEP_SOURCE_DIR, name);
    CHECK(check_job(read_text_file(file), intervals) > 0.01);
    if (name == "qwen3-30b-experts-8-nodes" && !thorough()) break;
  }
}

}  // namespace lockstep::test
