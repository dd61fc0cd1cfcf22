/// How many layers each virtual pipeline stage gets.
#pragma once

#include <vector>

#include "models/transformer.hpp"

namespace lockstep {

/// Layers of virtual stage chunk * p + rank, for all p * v of them.
///
/// Parallelism::layers_per_stage when given. Otherwise even; where layers don't divide, embedding and
/// output projection take the place of a layer each if that makes it even (Llama 3: 126 + 2; BLOOM:
/// 70 + 2), else the output projection alone does, else the first stages get one layer more.
/// Requires p * v <= layers + 2.
std::vector<int> layers_per_virtual_stage(const TransformerShape& model, const Parallelism& parallelism);

}  // namespace lockstep
