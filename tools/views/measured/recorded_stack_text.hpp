/// What `lockstep import recording` prints.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/measured/recorded_stack.hpp"
#include "sim/measured/recordings.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// What was read off the recordings, as JSON.
nlohmann::ordered_json recorded_stack_json(const RecordedStack& stack,
                                           const StepRecordings& recorded);

/// The same for people.
std::string recorded_stack_report(const RecordedStack& stack, const TextStyle& style);

}  // namespace lockstep
