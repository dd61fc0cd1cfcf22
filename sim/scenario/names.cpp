#include "sim/scenario/names.hpp"

#include <cstddef>

#include "models/collectives/collective_options.hpp"
#include "models/kernels/attention.hpp"
#include "models/pipeline/schedule.hpp"

namespace lockstep {
namespace {

template <class Rows>
std::vector<std::string_view> names_in(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace

std::vector<std::string_view> precision_names() { return names_in(training_precisions()); }
std::vector<std::string_view> attention_names() { return names_in(attention_kernels()); }
std::vector<std::string_view> schedule_names() { return names_in(schedules()); }
std::vector<std::string_view> fabric_kind_names() { return names_in(fabric_kinds()); }
std::vector<std::string_view> routing_names() { return names_in(routings()); }
std::vector<std::string_view> sharp_names() { return names_in(sharp_generations()); }

std::string_view name_of(Precision precision) { return info(precision).name; }
std::string_view name_of(Sharding sharding) {
  return kShardingNames[static_cast<std::size_t>(sharding)];
}
std::string_view name_of(TensorOverlap overlap) {
  return kTensorOverlapNames[static_cast<std::size_t>(overlap)];
}
std::string_view name_of(ContextExchange exchange) {
  return kContextExchangeNames[static_cast<std::size_t>(exchange)];
}
std::string_view name_of(ExpertDispatch dispatch) {
  return kExpertDispatchNames[static_cast<std::size_t>(dispatch)];
}
std::string_view name_of(Recompute recompute) {
  return kRecomputeNames[static_cast<std::size_t>(recompute)];
}
std::string_view name_of(Schedule schedule) {
  return schedule == Schedule::fixed ? "file" : info(schedule).name;
}
Schedule schedule_at(std::size_t place) { return schedules()[place].schedule; }
std::string_view name_of(AttentionKernel kernel) {
  return attention_kernels()[static_cast<std::size_t>(kernel)].name;
}
std::string_view name_of(FabricKind kind) {
  return fabric_kinds()[static_cast<std::size_t>(kind)].name;
}
std::string_view name_of(Routing routing) {
  return routings()[static_cast<std::size_t>(routing)].name;
}

}  // namespace lockstep
