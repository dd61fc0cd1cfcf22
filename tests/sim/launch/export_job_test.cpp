#include "sim/launch/export_job.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/partition.hpp"
#include "sim/core/random.hpp"
#include "sim/launch/import_job.hpp"
#include "sim/scenario/parallelism_json.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Draws layouts that fit together; the reader refuses those that do not.
class RandomLayouts {
 public:
  explicit RandomLayouts(std::uint64_t seed) : random_({.seed = seed, .purpose = 23}) {}

  Scenario next() {
    while (true) {
      text_ = write_json(draw());
      try {
        return read_scenario("drawn.json", text_, test::presets());
      } catch (const InputError&) {
        continue;  // widths that do not go together
      }
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  int one_of(std::initializer_list<int> values) {
    return *(values.begin() +
             static_cast<std::ptrdiff_t>(random_.below(static_cast<std::uint32_t>(values.size()))));
  }
  bool maybe() { return random_.below(2) == 0; }

  Json draw() {
    constexpr std::array<const char*, 4> kModels{"llama3_8b", "llama3_70b", "mixtral_8x7b",
                                                 "deepseek_v3"};
    const std::string model = kModels.at(random_.below(kModels.size()));
    const bool experts = model == "mixtral_8x7b" || model == "deepseek_v3";
    constexpr std::array<const char*, 4> kShardings{"none", "zero1", "zero2", "zero3"};
    constexpr std::array<const char*, 3> kExchanges{"ring", "all_gather", "all_to_all"};
    Json cut{{"tensor", one_of({1, 2, 4, 8})},
             {"context", one_of({1, 1, 2})},
             {"pipeline", one_of({1, 1, 2, 4})},
             {"virtual_stages", one_of({1, 1, 2})},
             {"sharding", kShardings.at(random_.below(kShardings.size()))},
             {"context_exchange", kExchanges.at(random_.below(kExchanges.size()))}};
    if (cut["tensor"] > 1) cut["sequence"] = maybe();
    if (cut["sequence"] == true && maybe()) cut["tensor_overlap"] = "pieces";
    if (cut["sharding"] == "zero3" && maybe()) cut["shard_group"] = one_of({2, 4, 8});
    if (experts) {
      cut["expert"] = one_of({1, 2, 4, 8});
      cut["expert_tensor"] = one_of({1, 1, 2});
      cut["expert_dispatch"] = maybe() ? "two_level" : "all_to_all";
    }
    constexpr std::array<const char*, 3> kRecompute{"none", "selective", "full"};
    constexpr std::array<const char*, 3> kPrecisions{"bf16", "fp8", "mxfp8"};
    return {{"model", model},
            {"cluster", {{"node", "dgx_b200"}, {"nodes", one_of({1, 2, 4, 8, 16})}}},
            {"parallelism", std::move(cut)},
            {"batch",
             {{"sequences", one_of({64, 128, 512})}, {"micro", one_of({1, 2})}, {"tokens", 4096}}},
            {"recompute", kRecompute.at(random_.below(kRecompute.size()))},
            {"precision", kPrecisions.at(random_.below(kPrecisions.size()))}};
  }

  RandomStream random_;
  std::string text_;
};

/// A layout's keys without those that a format could not say; stages by what they hold.
Json told_layout(const Scenario& scenario, const std::vector<NotExported>& left_out) {
  Json out = written_parallelism(scenario.job.parallelism);
  out["stages"] = layers_per_virtual_stage(scenario.job.model, scenario.job.parallelism);
  out["batch"] = {{"sequences", scenario.job.batch.sequences},
                  {"micro", scenario.job.batch.micro_sequences}};
  for (const char* const key : {"layers_per_stage", "embedding", "output"}) out.erase(key);
  for (const NotExported& one : left_out) {
    const std::string key = one.path.substr(one.path.find('.') + 1);
    out.erase(key);
    if (key == "micro") out.erase("batch");
    // Widths decide how many replicas and stages there are, and what they share.
    if (key == "pipeline" || key == "expert" || key == "virtual_stages" || key == "sharding") {
      for (const char* const other :
           {"data", "stages", "schedule", "virtual_stages", "batch", "shard_group", "reshard",
            "expert_tensor", "expert_dispatch", "expert_overlap", "sharding", "prefetch"}) {
        out.erase(other);
      }
    }
    if (key == "sequence") out.erase("tensor_overlap");
    if (key == "shard_group") out.erase("reshard");
  }
  return out;
}

std::string file_name(std::string_view format) {
  if (format == "megatron") return "job.sh";
  if (format == "torchtitan") return "job.toml";
  return format == "deepspeed" ? "job.json" : "job.yaml";
}

}  // namespace

TEST_CASE("export job: out and in again is the same layout, but for what the format names") {
  const test::TemporaryFolder folder;
  RandomLayouts layouts(1);
  for (int i = 0; i < 60; ++i) {
    const Scenario scenario = layouts.next();
    for (const ExportFormat& format : export_formats()) {
      CAPTURE(format.name);
      CAPTURE(layouts.text());
      const ExportedJob exported = format.write(scenario);
      CAPTURE(exported.text);
      const bool pipeline_lost = std::ranges::any_of(
          exported.left_out, [](const auto& one) { return one.path == "parallelism.pipeline"; });
      if (pipeline_lost) continue;  // what is left is another job
      const std::string file = folder.write(file_name(format.name), exported.text);
      const JobImport found = import_job({file},
                                         {.node = scenario.node.name,
                                          .nodes = scenario.nodes,
                                          .model = scenario.job.model.name,
                                          .tokens = scenario.job.batch.tokens},
                                         test::presets());
      const Scenario back = read_scenario("back.json", found.scenario, test::presets());
      CHECK(told_layout(back, exported.left_out).dump() ==
            told_layout(scenario, exported.left_out).dump());
      CHECK(std::ranges::none_of(
          found.keys, [](const KeyFinding& key) { return key.fate == KeyFate::unknown; }));
    }
  }
}

TEST_CASE("export job: formats that have the model read back to the same one") {
  const test::TemporaryFolder folder;
  for (const char* const model : {"llama3_8b", "mixtral_8x7b", "deepseek_v3", "gpt3_175b",
                                  "qwen3_30b_a3b", "nemotron_h_8b"}) {
    const Scenario scenario =
        read_scenario("my.json",
                      write_json(Json{{"model", model},
                                      {"cluster", {{"node", "dgx_h100"}, {"nodes", 4}}},
                                      {"batch", {{"sequences", 64}, {"tokens", 2048}}}}),
                      test::presets());
    for (const char* const name : {"megatron", "nemo", "bridge"}) {
      CAPTURE(model);
      CAPTURE(name);
      const auto format = std::ranges::find(export_formats(), name, &ExportFormat::name);
      const std::string file = folder.write(file_name(name), format->write(scenario).text);
      const JobImport found = import_job({file}, {.nodes = 4}, test::presets());
      const Scenario back = read_scenario("back.json", found.scenario, test::presets());
      CHECK(total_parameters(back.job.model) == total_parameters(scenario.job.model));
      CHECK(back.job.model.layers == scenario.job.model.layers);
      CHECK(back.node.name == "dgx_h100");  // the comment speaks of it
    }
  }
}

TEST_CASE("export job: a fused kernel that runs again is Megatron's core_attn, out and in") {
  const Json job{{"model", "llama3_8b"},
                 {"cluster", {{"node", "dgx_h100"}, {"nodes", 4}}},
                 {"stack", "megatron_core"},
                 {"recompute", {{"modules", {"layer_norm", "fused_attention"}}}},
                 {"batch", {{"sequences", 64}, {"tokens", 2048}}}};
  const ExportedJob exported =
      export_megatron(read_scenario("my.json", write_json(job), test::presets()));
  CHECK(std::ranges::none_of(exported.left_out,
                             [](const auto& one) { return one.path == "recompute"; }));
  const test::TemporaryFolder folder;
  const JobImport found =
      import_job({folder.write("job.sh", exported.text)}, {.nodes = 4}, test::presets());
  CHECK(Json::parse(found.scenario)["recompute"].dump() ==
        R"({"modules":["fused_attention","layer_norm"]})");
}

TEST_CASE("export job: what a format has no word for is named, with its value") {
  const Scenario scenario = read_scenario(
      "my.json",
      write_json(
          Json{{"model", "llama3_8b"},
               {"cluster", {{"node", "dgx_h100"}, {"nodes", 4}}},
               {"parallelism",
                {{"tensor", 2}, {"pipeline", 4}, {"schedule", "zb_v"}, {"virtual_stages", 2}}},
               {"batch", {{"sequences", 64}, {"tokens", 2048}}}}),
      test::presets());
  const auto named = [&](const ExportedJob& exported, std::string_view path) {
    const auto found = std::ranges::find(exported.left_out, path, &NotExported::path);
    return found == exported.left_out.end() ? "" : found->value;
  };
  CHECK(named(export_megatron(scenario), "parallelism.schedule") == "zb_v");
  CHECK(named(export_torchtitan(scenario), "parallelism.schedule").empty());
  CHECK(named(export_deepspeed(scenario), "parallelism.pipeline").empty());
  CHECK(named(export_deepspeed(scenario), "parallelism.schedule") == "zb_v");
  CHECK(Json::parse(export_deepspeed(scenario).text)["pipeline"]["stages"] == 4);
  // Accelerate has pipelines by its Megatron-LM plugin.
  CHECK(named(export_accelerate(scenario), "parallelism.pipeline").empty());
  CHECK(export_accelerate(scenario).text.find("megatron_lm_pp_degree: 4\n") != std::string::npos);
  CHECK(named(export_accelerate(scenario), "batch.tokens") == "2048");
}

TEST_CASE("export job: NeMo's FSDP keeps weights or lets them go, and has no ZeRO-2") {
  const auto nemo_with = [](const Json& parallelism) {
    return export_nemo(
        read_scenario("my.json",
                      write_json(Json{{"model", "llama3_8b"},
                                      {"cluster", {{"node", "dgx_h100"}}},
                                      {"parallelism", parallelism},
                                      {"stack", "huggingface_fsdp2"},
                                      {"batch", {{"sequences", 64}, {"tokens", 4096}}}}),
                      test::presets()));
  };
  const ExportedJob keeps = nemo_with({{"sharding", "zero3"}, {"reshard", false}});
  CHECK(keeps.text.find("  fsdp_sharding_strategy: grad\n") != std::string::npos);
  CHECK(keeps.left_out.empty());
  CHECK(nemo_with({{"sharding", "zero3"}}).text.find("  fsdp_sharding_strategy: full\n") !=
        std::string::npos);
  const ExportedJob two = nemo_with({{"sharding", "zero2"}});
  CHECK(two.text.find("fsdp") == std::string::npos);
  REQUIRE(two.left_out.size() == 1);
  CHECK(two.left_out[0].path == "parallelism.sharding");
  CHECK(two.left_out[0].value == "zero2");
}

}  // namespace lockstep
