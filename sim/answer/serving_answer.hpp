/// The answer to a scenario with "serving", requests on pools of replicas, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/step_answer.hpp"
#include "sim/serving/simulate_serving.hpp"

namespace lockstep {

/// What a load on pools came to, and the scenario that it is of.
struct ServingAnswer {
  const ServingSpec& spec;
  const ServingReport& report;
  const WrittenScenario& written;
};

/// With units in the names, at most 12 significant digits, in a fixed order.
nlohmann::ordered_json serving_json(const ServingAnswer& answer);

}  // namespace lockstep
