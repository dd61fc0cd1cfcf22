#include "models/pipeline/schedule_extension.hpp"

#include <exception>
#include <vector>

namespace lockstep {

bool is_extension(Schedule schedule) { return schedule > Schedule::fixed; }

std::optional<ExtensionProblem> problem_of(Schedule schedule, int ranks, int chunks,
                                           int micro_batches) {
  const ScheduleKind& kind = info(schedule);
  std::vector<std::vector<WorkItem>> orders;
  for (int rank = 0; rank < ranks; ++rank) {
    const ScheduleCall call{
        .ranks = ranks, .chunks = chunks, .micro_batches = micro_batches, .rank = rank};
    try {
      orders.push_back(kind.order(call));
    } catch (const std::exception& error) {
      return ExtensionProblem{"rank " + std::to_string(rank) + ": " + error.what(), "an order"};
    }
  }
  const PipelineShape shape{kind.layout, ranks, chunks};
  const std::optional<OrderProblem> problem = check_orders(shape, micro_batches, orders);
  if (!problem) return std::nullopt;
  const auto& order = orders[static_cast<std::size_t>(problem->rank)];
  const std::string rank = "rank " + std::to_string(problem->rank);
  if (problem->place >= order.size()) {
    return ExtensionProblem{rank + ": no more passes", problem->rule};
  }
  return ExtensionProblem{rank + ", pass " + std::to_string(problem->place) + ": \"" +
                              pass_text(order[problem->place]) + "\"",
                          problem->rule};
}

}  // namespace lockstep
