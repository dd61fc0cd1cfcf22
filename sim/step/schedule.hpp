/// Pipeline schedules: in which order a stage runs the forward and backward passes of its micro
/// batches.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/transformer.hpp"

namespace lockstep {

enum class Pass : std::uint8_t { forward, backward };

/// One pass of one micro batch through one chunk (virtual stage) of a pipeline rank.
struct WorkItem {
  Pass pass;
  std::uint16_t chunk;
  std::uint32_t micro_batch;
  friend bool operator==(const WorkItem&, const WorkItem&) = default;
};

/// What a schedule is asked for: p ranks, v chunks each, m micro batches, this rank.
struct ScheduleCall {
  int ranks = 1;
  int chunks = 1;
  int micro_batches = 1;
  int rank = 0;
};

/// To add a schedule: extend the Schedule enumeration, write its order, and give it one row in
/// schedule.cpp. Every order runs each (pass, chunk, micro batch) once, a forward before its
/// backward.
struct ScheduleKind {
  Schedule schedule;
  std::string_view name;  ///< as scenarios say it
  std::string_view summary;
  std::string_view source;
  std::vector<WorkItem> (*order)(const ScheduleCall& call);
};
/// Every schedule, in the order of the enumeration.
std::span<const ScheduleKind> schedules();
std::vector<WorkItem> stage_order(Schedule schedule, const ScheduleCall& call);

}  // namespace lockstep
