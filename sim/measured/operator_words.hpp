/// Which operators of a model the name of a kernel or of an operator of PyTorch tells.
#pragma once

#include <string_view>
#include <vector>

#include "sim/measured/model_operators.hpp"

namespace lockstep {

/// By a table of words, each operator once: "aten::silu_backward" an activation; of a kernel that
/// torch.compile made of several operators all that it names. Products tell by their sizes alone.
std::vector<ModelOperator> named_operators(std::string_view name);

}  // namespace lockstep
