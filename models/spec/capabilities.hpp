/// What a training stack can run: which kinds of sharding, schedules, exchanges, formats. A stack
/// preset declares it (models/presets/stacks); a job asks for some of it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/spec/transformer.hpp"

namespace lockstep {

/// The lists of a preset's "capabilities", in the order of their JSON.
enum class CapabilityList : std::uint8_t {
  sharding,           ///< Sharding between replicas
  pipeline_sharding,  ///< Sharding of a job that has pipeline stages too
  schedules,          ///< Schedule; none: no pipeline parallelism
  context_exchange,   ///< ContextExchange; none: no context parallelism
  expert_dispatch,    ///< ExpertDispatch; none: no expert parallelism
  recompute,          ///< Recompute
  recompute_modules,  ///< what Recompute::selective can repeat
  precision,          ///< Precision
  offload,            ///< OffloadFeature
  lora,               ///< BaseFormat of the frozen weights below adapters
  layouts,            ///< LayoutFeature
  models,             ///< ModelFeature
};
inline constexpr std::size_t kCapabilityLists = 12;

enum class OffloadFeature : std::uint8_t { optimiser, parameters, activation_layers };
enum class LayoutFeature : std::uint8_t {
  tensor,                 ///< tensor parallelism
  sequence,               ///< sequence parallelism beside it
  tensor_overlap,         ///< products cut into pieces beside their collectives
  shard_group,            ///< copies of sharded weights (HSDP)
  expert_tensor,          ///< experts shared by other than the tensor-parallel ranks
  expert_overlap,         ///< dispatch and combine beside another micro batch
  layer_ends,             ///< embedding or output in the place of a layer
  uneven_layers,          ///< stages with unequal numbers of layers
  replicated_key_values,  ///< more tensor-parallel ranks than key-value heads
  uneven_ffn,             ///< an MLP width that the tensor-parallel ranks do not divide
};
/// What a model has beside attention and MLPs; behind these, in the order of mixer_kinds(), mixers
/// that ask for a capability.
enum class ModelFeature : std::uint8_t { experts, latent_attention };
/// All of them, as presets and scenarios name them.
std::vector<std::string_view> model_feature_names();

struct Capability {
  CapabilityList list{};
  std::uint8_t value = 0;  ///< of the enumeration that the list names
  friend bool operator==(const Capability&, const Capability&) = default;
};

template <class Enum>
constexpr Capability capability(CapabilityList list, Enum value) {
  return {list, static_cast<std::uint8_t>(value)};
}

/// A set of capabilities.
class Capabilities {
 public:
  [[nodiscard]] bool has(Capability c) const {
    return (sets_[static_cast<std::size_t>(c.list)] >> c.value & 1U) != 0;
  }
  [[nodiscard]] bool any(CapabilityList list) const {
    return sets_[static_cast<std::size_t>(list)] != 0;
  }
  void add(Capability c) { sets_[static_cast<std::size_t>(c.list)] |= 1U << c.value; }
  void clear(CapabilityList list) { sets_[static_cast<std::size_t>(list)] = 0; }

  /// How alike two sets are: shared members over all members, 0 to 1.
  [[nodiscard]] double likeness(const Capabilities& other) const {
    int shared = 0, all = 0;
    for (std::size_t i = 0; i < kCapabilityLists; ++i) {
      shared += std::popcount(sets_[i] & other.sets_[i]);
      all += std::popcount(sets_[i] | other.sets_[i]);
    }
    return all > 0 ? static_cast<double>(shared) / all : 1;
  }

 private:
  std::array<std::uint32_t, kCapabilityLists> sets_{};
};

/// What a job asks of its software, each capability once, in the order of CapabilityList. Sharding
/// among one replica shards nothing and asks for nothing.
std::vector<Capability> needed_capabilities(const TrainingJob& job);

}  // namespace lockstep
