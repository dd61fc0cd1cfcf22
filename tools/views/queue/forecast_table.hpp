/// What `lockstep queue forecast` prints.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/cluster/queue_forecast.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// For people: when each waiting job is likely to start.
std::string forecast_table(const QueueSpec& spec, const QueueForecast& f, const TextStyle& style);

/// The forecast as JSON.
nlohmann::ordered_json forecast_json(const QueueSpec& spec, const QueueForecast& f);

}  // namespace lockstep
