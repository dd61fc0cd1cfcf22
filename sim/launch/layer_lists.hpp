/// Lists of layers, as launch files abbreviate them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/launch/job_sketch.hpp"
#include "sim/launch/setting.hpp"

namespace lockstep {

/// "[0]*3+[1]*58", "([1]*5+[0])*4", "[0, 1]": nothing for other text, or more than 10,000 numbers.
std::optional<std::vector<int>> listed_numbers(std::string_view text);

/// Which layers have experts: every n-th, or a list. Throws InputError.
void read_expert_layers(const Setting& from, ModelSketch& model);

/// Letters of a hybrid model's layers; what predicts further tokens and marks of stages left out.
void read_hybrid_pattern(const Setting& from, ModelSketch& model);

/// Megatron-Core's layout of stages: "Et*3|(tt|)*29,m|L"; t is a layer, E the embedding, L the loss
/// and m a layer that predicts further tokens. Sets the layers of each stage. Throws InputError.
void read_stage_layout(const Setting& from, JobSketch& job);

}  // namespace lockstep
