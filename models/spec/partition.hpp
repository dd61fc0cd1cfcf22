/// How many layers each virtual pipeline stage gets.
#pragma once

#include <vector>

#include "models/spec/transformer.hpp"

namespace lockstep {

/// Layers of virtual stage chunk * p + rank, for all p * v of them.
///
/// Parallelism::layers_per_stage when given, otherwise as Parallelism::split says.
///
/// by_cost: a layer costs its matrix weights, the output projection its own, the embedding
/// nothing; blocks go to the first stage until their running sum passes its share of the whole, and
/// so on, so late stages may have no layer (28 layers on 8 stages: 4,4,4,4,4,4,4,0). Source:
/// build_model() in github:huggingface/nanotron@01de8d94548f:src/nanotron/models/base.py.
///
/// even: where layers don't divide, embedding and
/// output projection take the place of a layer each if that makes it even (Llama 3: 126 + 2; BLOOM:
/// 70 + 2), else the output projection alone does, else the first stages get one layer more. What
/// predicts further tokens stands on the last stage with the output projection; a model that has it
/// gives up three layers there if that makes it even (DeepSeek-V3: 61 + 3; Megatron-Bridge's
/// layouts, github:NVIDIA-NeMo/Megatron-Bridge:src/megatron/bridge/recipes/deepseek).
///
/// Parallelism::embedding and ::output say where those count when it is not to be found out; the
/// layers, and what takes a layer's place, are then spread evenly over the stages that are left,
/// the first stages getting one more where they don't divide.
///
/// Requires p * v <= layers + 2; a stage of its own is beside at least one other, and every other
/// stage has a layer or what takes its place.
std::vector<int> layers_per_virtual_stage(const TransformerShape& model,
                                          const Parallelism& parallelism);

}  // namespace lockstep
