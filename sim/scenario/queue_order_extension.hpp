/// Orders of a queue that code outside the tree gives. Added, an order is named in "queue.order"
/// like one of kQueueOrderNames.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/extension.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// What an order knows of a job when it is submitted.
struct SubmittedJob {
  std::size_t number = 0;  ///< by submission, from 0
  Seconds submit{};        ///< since the queue began
  Seconds runs{};          ///< on its GPUs, undisturbed; 0 where the order does not know it
  Seconds limit{};         ///< what its user allowed it
  int gpus = 1;
  int priority = 0;                       ///< higher comes first, where the order says so
  std::string_view user, account, model;  ///< empty: not said
};

struct QueueOrderExtension {
  std::string name;
  std::string summary{};
  /// Whether it is told how long jobs run, which real schedulers do not know. Forecasts of a queue
  /// take an order that goes by durations only where no job was moved.
  bool knows_duration = false;
  /// The job with the least key comes first; of equals the one that was submitted first. Asked once
  /// for each job of a simulation, from any thread: a pure function, whose answer is finite. Jobs
  /// age all alike, so that an order by age too weighs `submit`.
  std::function<double(const SubmittedJob& job)> key;
};

/// Throws ExtensionError as check_extension() does, or for an order without a key.
QueueOrder add_queue_order(QueueOrderExtension order, int interface = kExtensionInterface);

/// Whether code outside the tree added it.
bool is_extension(QueueOrder order);
/// Requires is_extension().
const QueueOrderExtension& extension_of(QueueOrder order);

/// kQueueOrderNames, and those that were added behind them.
std::vector<std::string_view> queue_order_names();
std::string_view name_of(QueueOrder order);

/// The keys of all jobs. Throws InputError at /queue/order for one that is not finite, and for what
/// the extension throws. Requires an order that is an extension.
std::vector<double> added_keys(const QueueSpec& spec);

}  // namespace lockstep
