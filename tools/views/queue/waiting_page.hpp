/// The pages of `lockstep queue explain` and `queue forecast`: why a job waited, and when those
/// that wait will start.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "sim/cluster/queue_forecast.hpp"
#include "tools/views/queue/followed_job.hpp"

namespace lockstep {

class PresetStore;

/// `written`: the scenario as it was parsed; `presets` has what it names.
std::string followed_page(const Followed& followed, const WrittenScenario& written,
                          const PresetStore& presets);

std::string forecast_page(const QueueSpec& spec, const QueueForecast& forecast,
                          const WrittenScenario& written, const PresetStore& presets);

}  // namespace lockstep
