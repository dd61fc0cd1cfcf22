/// Members of the JSON of commands beside `run`. Each is defined beside its command's output, out
/// of the same rows: what is written has a declaration.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/answer/fields.hpp"

namespace lockstep {

std::vector<FieldInfo> comparison_fields();      ///< of `lockstep compare`
std::vector<FieldInfo> replay_fields();          ///< of `lockstep replay`
std::vector<FieldInfo> loggops_fields();         ///< of `lockstep replay --loggops`
std::vector<FieldInfo> collective_fields();      ///< of `lockstep comm`, of collectives
std::vector<FieldInfo> traffic_fields();         ///< of `lockstep comm`, of traffic
std::vector<FieldInfo> tune_fields();            ///< of `lockstep tune`
std::vector<FieldInfo> serving_tune_fields();    ///< of `lockstep tune`, of a service
std::vector<FieldInfo> plan_fields();            ///< of `lockstep plan`
std::vector<FieldInfo> serving_plan_fields();    ///< of `lockstep plan`, of a service
std::vector<FieldInfo> learnt_fields();          ///< of `lockstep learn`
std::vector<FieldInfo> row_fields();             ///< of `lockstep validate`, of training runs
std::vector<FieldInfo> point_fields();           ///< of `lockstep validate`, of a file of points
std::vector<FieldInfo> interval_check_fields();  ///< of `lockstep validate --intervals`
std::vector<FieldInfo> profile_fit_fields();     ///< of `lockstep validate --fit`

/// A kind of answer of a command, and its members.
struct CommandFields {
  std::string_view answer;  ///< as `lockstep list fields` and the Python package name it
  std::vector<FieldInfo> (*fields)();
};
/// All of the above.
std::span<const CommandFields> command_fields();

}  // namespace lockstep
