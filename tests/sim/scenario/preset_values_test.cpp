// The presets that ship: all can be read, every value says where it is from, and the numbers agree
// with what was published about the whole.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer/flops.hpp"
#include "models/spec/parameter_counts.hpp"
#include "models/spec/transformer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {
namespace {

/// Published parameter counts. The first ones are exact (safetensors index of the checkpoint on
/// Hugging Face, or n_params of the training log), so the shape has to give them to the last
/// weight; Qwen2's leave out the biases of QKV, BLOOM's the norm behind its embedding, Qwen3's the
/// norms of queries and keys, and Kimi K2's the biases of its routers.
struct PublishedSize {
  std::string_view model;
  double parameters;
  double within;  ///< weights
};
constexpr std::array kPublishedSizes{
    PublishedSize{"llama2_7b", 6'738'415'616.0, 0},
    PublishedSize{"llama2_13b", 13'015'864'320.0, 0},
    PublishedSize{"llama2_70b", 68'976'648'192.0, 0},
    PublishedSize{"llama3_8b", 8'030'261'248.0, 0},
    PublishedSize{"llama3_70b", 70'553'706'496.0, 0},
    PublishedSize{"llama3_405b", 405'853'388'800.0, 0},
    PublishedSize{"llama3_2_1b", 1'235'814'400.0, 0},
    PublishedSize{"llama3_2_3b", 3'212'749'824.0, 0},
    PublishedSize{"mistral_7b", 7'241'732'096.0, 0},
    PublishedSize{"gemma_7b", 8'537'680'896.0, 0},
    PublishedSize{"gpt_neox_20b", 20'554'567'680.0, 0},
    PublishedSize{"gptj_6b", 6'050'882'784.0, 28 * 4 * 4096},
    PublishedSize{"falcon_40b", 41'303'293'952.0, 121 * 8192},
    PublishedSize{"command_r_35b", 34'980'831'232.0, 0},
    PublishedSize{"command_r7b", 8'028'033'024.0, 0},
    PublishedSize{"lfm2_1_2b", 1'170'340'608.0, 6 * 2 * 64},
    PublishedSize{"t5_v1_1_xxl", 11'135'332'352.0, 0},
    PublishedSize{"sd_1_5", 859'520'964.0, 0},
    PublishedSize{"sd_2_1", 865'910'724.0, 0},
    PublishedSize{"sdxl", 2'567'463'684.0, 0},
    PublishedSize{"bert_large", 336'226'108.0, 0},
    // arXiv:2212.09748, table 4: 675 M, with a table of positions that is not trained.
    PublishedSize{"dit_xl_2", 675'129'632.0 - 256 * 1152, 0},
    // Weights of the checkpoints' transformers on https://huggingface.co.
    PublishedSize{"sd3_medium", 2'028'328'000.0, 0},
    PublishedSize{"flux1_dev", 11'901'408'320.0, 0},
    PublishedSize{"mpt_30b", 29'975'214'080.0, 0},
    PublishedSize{"mpt_70b", 64'862'437'376.0, 0},
    PublishedSize{"qwen2_7b", 7'615'616'512.0, 28 * (3584 + 2 * 512)},
    PublishedSize{"qwen2_72b", 72'706'203'648.0, 80 * (8192 + 2 * 1024)},
    PublishedSize{"bloom_176b", 176'247'271'424.0, 2 * 14336},
    PublishedSize{"qwen3_0_6b", 596'049'920.0, 28 * 2 * 128},
    PublishedSize{"qwen3_1_7b", 1'720'574'976.0, 28 * 2 * 128},
    PublishedSize{"qwen3_4b", 4'022'468'096.0, 36 * 2 * 128},
    PublishedSize{"qwen3_8b", 8'190'735'360.0, 36 * 2 * 128},
    PublishedSize{"qwen3_14b", 14'768'307'200.0, 40 * 2 * 128},
    PublishedSize{"qwen3_32b", 32'762'123'264.0, 64 * 2 * 128},
    PublishedSize{"qwen3_30b_a3b", 30'532'122'624.0, 48 * 2 * 128},
    PublishedSize{"qwen3_235b_a22b", 235'093'634'560.0, 94 * 2 * 128},
    PublishedSize{"mixtral_8x7b", 46'702'792'704.0, 0},
    PublishedSize{"mixtral_8x22b", 140'620'634'112.0, 0},
    PublishedSize{"dbrx", 131'596'523'520.0, 0},
    PublishedSize{"deepseek_v2", 235'741'434'880.0, 0},
    PublishedSize{"deepseek_v2_lite", 15'706'484'224.0, 0},
    PublishedSize{"kimi_k2", 1'026'408'232'448.0, 60 * 384},
    // README_WEIGHTS.md of DeepSeek-V3: 671 B and 11.5 B for the second token, both rounded.
    PublishedSize{"deepseek_v3", 671e9 + 11.5e9, 0.5e9 + 0.05e9},
    // arXiv:2508.10925, table 1: 20.91 B and 116.83 B; without the biases of experts (6.6 and 39.8
    // million weights).
    PublishedSize{"gpt_oss_20b", 20.91e9, 0.005e9 + 6.6e6},
    PublishedSize{"gpt_oss_120b", 116.83e9, 0.005e9 + 39.8e6},
    // Model cards: 109 B and 400 B, rounded, with a vision encoder of 0.9 B.
    PublishedSize{"llama4_scout", 109e9 - 0.9e9, 0.5e9},
    PublishedSize{"llama4_maverick", 400e9, 2e9},
    // https://x.ai/news/grok-os: "314 billion"; the shape in its code gives 315.7.
    PublishedSize{"grok1_314b", 314e9, 2e9},
    // Narayanan et al. 2021, table 1: billions with one decimal, from a formula without the last
    // norm.
    PublishedSize{"megatron_1_7b", 1.7e9, 0.05e9},
    PublishedSize{"megatron_3_6b", 3.6e9, 0.05e9},
    PublishedSize{"megatron_7_5b", 7.5e9, 0.05e9},
    PublishedSize{"megatron_18b", 18.4e9, 0.051e9},
    PublishedSize{"megatron_39b", 39.1e9, 0.05e9},
    PublishedSize{"megatron_76b", 76.1e9, 0.05e9},
    PublishedSize{"megatron_145b", 145.6e9, 0.05e9},
    PublishedSize{"megatron_310b", 310.1e9, 0.05e9},
    PublishedSize{"megatron_530b", 529.6e9, 0.05e9},
    PublishedSize{"megatron_1t", 1008.0e9, 0.05e9},
    PublishedSize{"gpt3_175b", 174.6e9, 0.05e9},
    // arXiv:2507.22448, table 1; arXiv:2411.02265, abstract; arXiv:2404.05892, table 2.
    PublishedSize{"falcon_h1_34b", 33.6e9, 0.05e9},
    PublishedSize{"hunyuan_large", 389e9, 0.5e9},
    PublishedSize{"finch_7b", 7.64e9, 0.005e9},
    // Model card: 8 B, of which some 0.47 B see and hear.
    PublishedSize{"gemma_4_e4b", 8e9 - 0.47e9, 0.5e9},
    // arXiv:2406.11704, section 2: 9.4 B of embeddings and 331.6 B others.
    PublishedSize{"nemotron4_340b", 341.0e9, 0.1e9},
};

}  // namespace

TEST_CASE("presets: every model has the number of weights that was published") {
  const PresetStore presets;
  for (const PublishedSize& row : kPublishedSizes) {
    CAPTURE(row.model);
    const double predicted = total_parameters(presets.model(row.model));
    CHECK(std::abs(predicted - row.parameters) <= row.within);
  }
}

// Peebles and Xie 2023, arXiv:2212.09748, table 4: 118.6 G multiply-adds of an image. What
// modulates the layers, 6 h^2 of each and once an image, is 0.2 % of them and is not counted here.
TEST_CASE("presets: DiT-XL/2 does the work that its paper counts, all of attention's square") {
  TrainingJob job;
  job.model = PresetStore{}.model("dit_xl_2");
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 256};
  const StepFlops step = step_flops(job);
  CHECK(step.causal == step.full);
  CHECK(step.full.base_units() / 6 == doctest::Approx(118.6e9).epsilon(0.003));
}

namespace {

// Models whose authors count the vision tower, and leave modules that predict further tokens out.
constexpr std::array kPublishedCounts{
    // Names of the models, rounded to billions.
    PublishedSize{"qwen3_next_80b_a3b", 80e9, 0.5e9},
    PublishedSize{"qwen3_5_397b_a17b", 397e9, 0.5e9},
    PublishedSize{"qwen3_5_122b_a10b", 122e9, 0.6e9},
    PublishedSize{"qwen3_5_35b_a3b", 35e9, 0.5e9},
    PublishedSize{"qwen3_5_27b", 27e9, 0.5e9},
    PublishedSize{"qwen3_coder_480b_a35b", 480e9, 0.5e9},
    PublishedSize{"nemotron3_super_120b_a12b", 120e9, 1e9},
    PublishedSize{"nemotron3_ultra_550b_a55b", 550e9, 1e9},
    // V3's 671 B (arXiv:2412.19437) and an index in each layer, 0.85 B.
    PublishedSize{"deepseek_v3_2", 671.9e9, 0.1e9},
    // arXiv:2602.15763; the weights of GLM-5.2 but for the biases of its routers.
    PublishedSize{"glm_5", 744e9, 0.5e9},
    PublishedSize{"glm_5_2", 743'377'000'704.0, 0.5},
    // DeepSeek-V4's report, abstract.
    PublishedSize{"deepseek_v4_flash", 284e9, 0.5e9},
    PublishedSize{"deepseek_v4_pro", 1600e9, 50e9},
    // Model cards.
    PublishedSize{"minimax_m2", 229e9, 0.5e9},
    PublishedSize{"mimo_v2_flash", 309e9, 0.5e9},
    PublishedSize{"step_3_7_flash", 196e9, 0.5e9},
    PublishedSize{"nemotron_super_49b", 49.9e9, 0.05e9},
    PublishedSize{"gemma4_26b_a4b", 25.2e9 + 0.55e9, 0.1e9},
    // Names and cards: 355 and 106 billion; which tables and modules they count they don't say.
    PublishedSize{"glm_4_5", 355e9, 2.5e9},
    PublishedSize{"glm_4_5_air", 106e9, 1e9},
    PublishedSize{"gemma_3_12b", 12.2e9, 0.05e9},
    PublishedSize{"gemma_3_27b", 27.4e9, 0.05e9},
    PublishedSize{"phi_4", 14.7e9, 0.05e9},
    PublishedSize{"olmo2_32b", 32.2e9, 0.05e9},
    PublishedSize{"olmo3_32b", 32.2e9, 0.05e9},
    PublishedSize{"mistral_small_3_24b", 23.6e9, 0.05e9},
    PublishedSize{"seed_oss_36b", 36e9, 0.5e9},
    PublishedSize{"qwen2_5_72b", 72'706'203'648.0, 80 * (8192 + 2 * 1024)},
    PublishedSize{"ernie_4_5_300b_a47b", 300e9, 1e9},
    PublishedSize{"granite_4_h_small", 32e9, 0.5e9},
    PublishedSize{"kimi_linear_48b_a3b", 49.1e9, 0.05e9},
    PublishedSize{"longcat_flash_560b", 560e9, 1e9},
    PublishedSize{"step_3_316b_a38b", 316e9, 0.5e9},
};

}  // namespace

TEST_CASE("presets: models with towers and prediction modules have as many weights as is said") {
  const PresetStore presets;
  for (const PublishedSize& row : kPublishedCounts) {
    CAPTURE(row.model);
    const ParameterCounts counts = parameter_counts(presets.model(row.model));
    CHECK(std::abs(counts.total + counts.vision - row.parameters) <= row.within);
  }
}

namespace {

/// Weights, in billions, without tower and prediction modules; active ones with both embeddings.
struct CountedModel {
  std::string_view model;
  double total;
  double active;
  double vision;
};

// Counted by hand from each model's config.json; vision is rounded to 0.01.
constexpr std::array kCountedModels{
    CountedModel{"qwen3_vl_30b_a3b", 30.53, 3.35, 0.54},
    CountedModel{"qwen3_vl_32b", 32.76, 32.76, 0.60},
    CountedModel{"qwen3_vl_4b", 4.02, 4.02, 0.42},
    CountedModel{"kimi_k2_5", 1026.41, 32.9, 0.47},
    CountedModel{"nemotron3_5_lightning_30b_a3b", 31.58, 3.58, 0.0},
};

}  // namespace

TEST_CASE("presets: total and active weights are those that are counted from the config.json") {
  const PresetStore presets;
  for (const CountedModel& row : kCountedModels) {
    CAPTURE(row.model);
    const ParameterCounts counts = parameter_counts(presets.model(row.model));
    CHECK(std::abs(counts.total / 1e9 / row.total - 1) <= 0.003);
    CHECK(std::abs(counts.active / 1e9 / row.active - 1) <= 0.003);
    CHECK(std::abs(counts.vision / 1e9 - row.vision) <= 0.006);
  }
}

TEST_CASE("presets: every file that ships can be read") {
  const PresetStore presets;
  for (const std::string& name : presets.names("gpus")) CHECK(presets.gpu(name).sm_count > 0);
  for (const std::string& name : presets.names("nodes")) {
    CAPTURE(name);
    const NodeSpec& node = presets.node(name);
    // A domain is part of a node, a node, or whole nodes.
    CHECK((node.gpus % node.nvlink_domain == 0 || node.nvlink_domain % node.gpus == 0));
    CHECK(presets.has("transports", node.transport));
    CHECK(node.chassis.has_value());
    CHECK(node.gpu.power.has_value());
  }
  for (const std::string& name : presets.names("models")) CHECK(presets.model(name).layers > 0);
  for (const std::string& name : presets.names("fabrics")) CHECK(presets.fabric(name).levels > 0);
  for (const std::string& name : presets.names("transports")) {
    CHECK(presets.transport(name).efficiency > 0);
  }
  for (const std::string& name : presets.names("stacks")) {
    CHECK(presets.stack(name).assumption.empty());
  }
  for (const std::string& name : presets.names("clusters")) {
    const ClusterPreset& site = presets.cluster(name);
    CHECK(site.cluster.fabric.has_value());
    CHECK(presets.has("facilities", site.facility));
  }
}

TEST_CASE("presets: every value says where it is from") {
  const PresetStore presets;
  for (const std::string_view kind : PresetStore::kinds()) {
    CHECK_FALSE(presets.names(kind).empty());
    for (const std::string& name : presets.names(kind)) {
      for (const PresetRow& row : presets.show(kind, name)) {
        CAPTURE(presets.path(kind, name));
        CAPTURE(row.path);
        CHECK((row.path == "about" || row.path.ends_with(".about") || !row.source.empty()));
      }
    }
  }
}

TEST_CASE("presets: a price by the hour says who read it where and when, or that it is a guess") {
  const PresetStore presets;
  const std::regex place("https://[^ ]+"), date("20[0-9][0-9]"),
      eight("([0-9.]+) USD an hour for eight");
  int listed = 0;
  for (const std::string& name : presets.names("nodes")) {
    CAPTURE(name);
    const NodeSpec& node = presets.node(name);
    if (node.spot_usd_per_gpu_hour) CHECK(*node.spot_usd_per_gpu_hour < *node.usd_per_gpu_hour);
    const std::vector<PresetRow> rows = presets.show("nodes", name);
    const auto price = std::ranges::find(rows, std::string("usd_per_gpu_hour"), &PresetRow::path);
    if (price == rows.end()) continue;
    CAPTURE(price->source);
    if (price->source.starts_with("assumed")) continue;
    CHECK(std::regex_search(price->source, place));
    CHECK(std::regex_search(price->source, date));
    ++listed;
    std::smatch found;
    if (std::regex_search(price->source, found, eight)) {
      CHECK(8 * *node.usd_per_gpu_hour == doctest::Approx(std::stod(found[1])).epsilon(1e-3));
    }
  }
  CHECK(listed >= 20);
}

TEST_CASE("presets: a node has no more NIC bandwidth than its GPUs have PCIe bandwidth") {
  const PresetStore presets;
  for (const std::string& name : presets.names("nodes")) {
    CAPTURE(name);
    const NodeSpec& node = presets.node(name);
    CHECK(node.nics * node.nic_bandwidth <= node.gpus * 1.01 * node.gpu.pcie_bandwidth);
  }
}

}  // namespace lockstep
