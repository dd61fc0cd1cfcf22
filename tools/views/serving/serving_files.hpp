/// Files of a service beside its answer: a timeline of its requests, and what a scrape of its
/// servers would read.
#pragma once

#include <string>

#include "sim/answer/serving_answer.hpp"

namespace lockstep {

/// Chrome Trace JSON: a process a replica, and in it each request with the time that it waited,
/// that its prompt was worked on, and that it decoded. For ui.perfetto.dev.
std::string serving_timeline(const ServingAnswer& answer);

/// OpenMetrics text at the end of the run, under the names that vLLM's servers have.
std::string serving_metrics(const ServingAnswer& answer);

}  // namespace lockstep
