/// Files beside the answer to a scenario with "queue".
#pragma once

#include <string>

#include "sim/answer/queue_answer.hpp"

namespace lockstep {

/// Chrome Trace JSON: a process for each node that a job was on, in which each job is an interval.
/// Requires that spans are kept.
std::string queue_timeline(const QueueAnswer& answer);

/// OpenMetrics text of how it went over time, in bins, with times from 0: under the names of the
/// Slurm exporter (github.com/vpenso/prometheus-slurm-exporter) where it has one.
std::string queue_metrics(const QueueAnswer& answer);

}  // namespace lockstep
