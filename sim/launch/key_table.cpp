#include "sim/launch/key_table.hpp"

#include <algorithm>
#include <array>

#include "sim/launch/shell_variables.hpp"

namespace lockstep {
namespace {

/// Calls `use` with each name of a row until it says true.
template <class Use>
bool any_name(std::string_view names, const Use& use) {
  std::size_t at = 0;
  while (at < names.size()) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    if (end > at && use(names.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

/// How a strategy of FSDP shards (pytorch.org/docs/stable/fsdp.html, ShardingStrategy).
struct FsdpStrategy {
  std::string_view name;
  const char* sharding;
  bool keeps_weights;  ///< from the forward to the backward pass
  bool of_nodes;       ///< the GPUs of a node hold all weights together
};
constexpr std::array kFsdpStrategies{FsdpStrategy{"full_shard", "zero3", false, false},
                                     FsdpStrategy{"shard_grad_op", "zero3", true, false},
                                     FsdpStrategy{"no_shard", "none", false, false},
                                     FsdpStrategy{"hybrid_shard", "zero3", false, true},
                                     FsdpStrategy{"hybrid_shard_zero2", "zero3", true, true}};

}  // namespace

bool take_fsdp_name(JobSketch& job, std::string_view strategy) {
  const auto* const known = std::ranges::find(kFsdpStrategies, strategy, &FsdpStrategy::name);
  if (known == kFsdpStrategies.end()) return false;
  job.sharding = known->sharding;
  if (known->keeps_weights) job.reshard = false;
  if (known->of_nodes) job.fixed_node_group = 1;
  return true;
}

const KeyRow* find_row(std::span<const std::span<const KeyRow>> tables, std::string_view key) {
  for (const bool whole : {true, false}) {
    for (const std::span<const KeyRow> table : tables) {
      for (const KeyRow& row : table) {
        const bool found = any_name(row.keys, [&](std::string_view name) {
          return whole ? name == key
                       : name.find('*') != std::string_view::npos && matches_glob(key, name);
        });
        if (found) return &row;
      }
    }
  }
  return nullptr;
}

std::vector<std::string> known_keys(std::span<const std::span<const KeyRow>> tables) {
  std::vector<std::string> out;
  for (const std::span<const KeyRow> table : tables) {
    for (const KeyRow& row : table) {
      any_name(row.keys, [&](std::string_view name) {
        if (name.find('*') == std::string_view::npos) out.emplace_back(name);
        return false;
      });
    }
  }
  return out;
}

void take_attention(JobSketch& job, const Setting& from) {
  constexpr std::array<std::string_view, 6> kUnfused{"eager", "unfused",     "local",
                                                     "math",  "dot_product", "disabled"};
  const std::string text = lower(from.text());
  // Megatron-LM names the members of an enumeration too: "AttnBackend.unfused".
  const bool unfused = std::ranges::find(kUnfused, last_part(text)) != kUnfused.end();
  // What is switched off without a word for what stands in its place is the stack's.
  if (unfused) {
    job.attention = "unfused";
  } else if (!text.starts_with("auto") && !from.is_off()) {
    job.attention = "fused";
  }
}

void take_optimiser(JobSketch& job, const Setting& from) {
  // What has "adam" in its name and other states, products or exchanges.
  constexpr std::array<std::string_view, 10> kOdd{"4bit",   "anyprecision", "onebit", "zeroone",
                                                  "adamax", "nadam",        "radam",  "adam_mini",
                                                  "galore", "apollo"};
  const std::string text = lower(from.text());
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (!has("adam") || std::ranges::any_of(kOdd, has)) {
    job.not_modelled = kOtherOptimiser;
  } else if (has("8bit")) {
    job.optimiser_states = "int8";
  }
}

void take_fused_attention(JobSketch& job, const Setting& from) {
  if (from.flag()) job.attention = "fused";
}

}  // namespace lockstep
