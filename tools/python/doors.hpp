/// What Python code adds to tables of the library: functions of its own under names that scenarios
/// then say. Rows of the tables stay for as long as the process runs; what they ask is replaced
/// where Python adds the name again, and asked no more once it is removed. Functions are asked
/// under Python's lock from any thread, and what they raise is an error at the scenario's key that
/// has one line: the exception, its text, and where it was raised.
#pragma once

#include <pybind11/pybind11.h>

namespace lockstep {

/// Defines add_checkpoint_rule, add_collective, add_queue_admission, add_queue_order, add_schedule,
/// add_traffic_process, add_victim_rule and remove. They raise RuntimeError for what the library's
/// functions of these names throw.
void define_doors(pybind11::module_& module);

}  // namespace lockstep
