/// Layouts of a replica that serves: how its GPUs share the model out, and what its passes take.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

/// Values to try; empty: those that the model and the card allow.
struct ServingSpace {
  std::vector<int> tensor{}, pipeline{}, attention_data{}, expert{};
  std::vector<int> pass_tokens{}, most_sequences{};  ///< empty: the engine's own alone
};

struct FoundLayouts {
  std::vector<ServingPool> pools;  ///< of a replica each, the smallest first
  int looked_at = 0, refused = 0, over_memory = 0;
};

/// Replicas with the engine of `like` whose ranks can share the model out and whose cache holds the
/// longest request. Where nothing is said: tensor-parallel widths of powers of two within an NVLink
/// domain; 1 stage, or as many as a model needs that one domain cannot hold; data-parallel
/// attention where attention is latent, within a domain; experts whole or cut over all ranks.
FoundLayouts serving_layouts(const ServingSpec& base, const ServingPool& like,
                             const ServingSpace& space);

/// "TP 4, EP 4".
std::string serving_layout_words(const ServingPool& pool);
/// "8 x TP 4", or "prompts 2 x TP 4, decoding 3 x TP 8".
std::string serving_way_words(const std::vector<ServingPool>& pools);
/// The same with the kinds of nodes, where the cluster of `base` has several.
std::string serving_way_words(const std::vector<ServingPool>& pools, const ServingSpec& base);

}  // namespace lockstep
