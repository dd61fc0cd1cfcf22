/// Jobs of a queue that are a model and a layout instead of a duration.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// What a queue says of a training, beside what it trains and how.
struct QueuedTraining {
  std::string name;
  int nodes = 1, count = 1;
  double steps = 0;
  Seconds submit{}, every{}, limit{};
  std::string user, account, partition, qos;
  int priority = 0;
  std::vector<int> widths{};  ///< in nodes, rising; empty: no others
};
void declare_queue_training(const DeclaredMembers& member, QueuedTraining& out);

/// Keys of a training that are as in a scenario of one job.
std::span<const std::string_view> queue_training_keys();

/// Adds the training that `at` has, and its jobs. Throws InputError for a partition and such that
/// the scenario lacks.
void add_trainings(const JsonCursor& at, const PresetStore& presets, QueueSpec& out);

/// Adds the training alone, and gives a job of it. How long that runs is known when the training is
/// timed (sim/cluster/job_speeds.hpp).
QueueJob add_training(const JsonCursor& at, const PresetStore& presets, QueuedTraining& written,
                      QueueSpec& out);

}  // namespace lockstep
