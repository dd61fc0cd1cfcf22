/// Members of the JSON of commands beside `run`. Each is defined beside its command's output, out
/// of the same rows.
#pragma once

#include <vector>

#include "sim/answer/fields.hpp"

namespace lockstep {

std::vector<FieldInfo> comparison_fields();  ///< of `lockstep compare`
std::vector<FieldInfo> replay_fields();      ///< of `lockstep replay`
std::vector<FieldInfo> loggops_fields();     ///< of `lockstep replay --loggops`

}  // namespace lockstep
