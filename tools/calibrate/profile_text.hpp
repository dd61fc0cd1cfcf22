/// A profile of what was measured, as scenarios/profile.schema.json has it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/calibrate/card.hpp"
#include "tools/calibrate/collective_plan.hpp"
#include "tools/calibrate/communicator.hpp"
#include "tools/calibrate/timing.hpp"

namespace lockstep {

struct MeasuredTask {
  Task task;
  Timing timing;
};
struct MeasuredCollective {
  CollectiveTask task;
  Timing timing;
};
struct Calibration {
  std::string gpu;  ///< preset
  std::string about, source, date;
  std::vector<std::pair<std::string, std::string>> conditions;
  std::optional<Watts> power_limit;  ///< of the card, where it is not its preset's
  std::vector<MeasuredTask> measured;
  std::vector<MeasuredCollective> collectives;
  RankShape shape;   ///< what they ran on
  std::string node;  ///< preset of its machines; empty: not said
};

/// True for a task that is a point of a profile; launches and copies are conditions.
bool is_point(const Task& task);

/// The profile's JSON, a point a line.
std::string profile_text(const Calibration& calibration);

}  // namespace lockstep
