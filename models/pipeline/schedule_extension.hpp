/// Pipeline schedules of code outside the tree. Added, a schedule is named, listed, planned, tuned
/// and drawn like one of schedule.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/base/extension.hpp"
#include "models/pipeline/order_check.hpp"
#include "models/pipeline/schedule.hpp"

namespace lockstep {

/// Adds a row to schedules(). Its `schedule` is not read; texts are copied. `order` is a pure
/// function: the same call gives the same passes, from any thread. `micro_batches` and
/// `chunks_in_flight` may be null: then it takes any number, and what a rank holds is counted in
/// its order. Throws ExtensionError as check_extension() does, or for a row without an order.
///
/// Orders are held to the rules of check_orders() (order_check.hpp) wherever they are used: every
/// pass once, and no rank that waits for ever. A scenario for which they break one is refused with
/// the extension's name, the rank and the pass.
Schedule add_schedule(const ScheduleKind& kind, int interface = kExtensionInterface);

/// Whether code outside the tree added it.
bool is_extension(Schedule schedule);

struct ExtensionProblem {
  std::string found;    ///< `rank 1, pass 3: "F2"`
  std::string allowed;  ///< the rule that it breaks
};
/// What is wrong with the orders of all ranks together, of a schedule of any kind.
std::optional<ExtensionProblem> problem_of(Schedule schedule, int ranks, int chunks,
                                           int micro_batches);

}  // namespace lockstep
