/// Low-rank adapters (LoRA): the model's weights stay as they are, and beside some products
/// y = x W runs y += x A B with two thin matrices, which alone are trained (Hu et al. 2021,
/// arXiv:2106.09685). With QLoRA the frozen weights are stored in 4 bit and brought to 16 bit
/// before each use (Dettmers et al. 2023, arXiv:2305.14314).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

struct TransformerShape;
struct LayerKind;
struct TrainingJob;

/// Products of a layer that can have an adapter. `qkv` of latent attention are the two products
/// that compress queries, and keys and values, with an adapter each, of a gated delta net the one
/// in, and `projection` the one out; the MLP's are those of shared experts too.
enum class AdapterModule : std::uint8_t {
  qkv,
  projection,
  mlp_up,
  mlp_down,
  query_up,
  key_value_up,
  expert_up,
  expert_down
};
constexpr std::array<std::string_view, 8> kAdapterModuleNames{
    "qkv",      "projection",   "mlp_up",    "mlp_down",
    "query_up", "key_value_up", "expert_up", "expert_down"};
constexpr std::size_t kAdapterModules = kAdapterModuleNames.size();

/// How the frozen weights of layers are stored; embedding and output projection stay in 16 bit.
enum class BaseFormat : std::uint8_t { half, nf4 };
constexpr std::array<std::string_view, 2> kBaseFormatNames{"bf16", "nf4"};

/// Adapters of routed experts: one that all experts of an expert-parallel rank share (the default
/// of Megatron-Bridge's LoRA, share_expert_adapters), or one for each expert.
enum class ExpertAdapters : std::uint8_t { shared, own };
constexpr std::array<std::string_view, 2> kExpertAdaptersNames{"shared", "own"};

struct Adapters {
  int rank = 0;                                 ///< r; 0: none, and all weights are trained
  std::array<bool, kAdapterModules> modules{};  ///< by AdapterModule
  BaseFormat base = BaseFormat::half;
  ExpertAdapters experts = ExpertAdapters::shared;

  [[nodiscard]] bool any() const { return rank > 0; }
  [[nodiscard]] bool on(AdapterModule module) const {
    return any() && modules[static_cast<std::size_t>(module)];
  }
};

/// Bytes of a frozen weight as stored. NF4: 4 bits, and 0.127 bits of scales that are quantised
/// themselves (arXiv:2305.14314, section 3).
double frozen_weight_bytes(const Adapters& adapters);
/// Whether such a layer has the product.
bool has_product(const TransformerShape& m, LayerKind kind, AdapterModule module);
/// Adapters of a layer; a product that stands for two has two.
int adapters_of(const Adapters& adapters, const TransformerShape& m, LayerKind kind);
/// Weights of the adapters of one layer, over its tensor-parallel ranks, but for routed experts.
double adapter_parameters(const Adapters& adapters, const TransformerShape& m, LayerKind kind);
/// Those of routed experts of one layer, on one rank.
double expert_adapter_parameters(const TrainingJob& job, LayerKind kind);
/// Of all layers.
double adapter_parameters(const TrainingJob& job);
/// Adapters' weights that a token meets in all layers.
double met_adapter_parameters(const TrainingJob& job);

}  // namespace lockstep
