/// A service and trainings on one fabric: what each gets done alone, and beside the others.
///
/// Keys and values of the service and all transfers of the trainings are flows on one network;
/// every replica of a training is simulated on its own, and repeats its step until the last request
/// has ended. What engines exchange within a replica stays in their passes.
#pragma once

#include <functional>
#include <vector>

#include "sim/serving/serve.hpp"
#include "sim/serving/simulate_serving.hpp"

namespace lockstep {

/// What the service and the trainings came to on one fabric, and each training alone.
struct BesidePlayed {
  ServeResult result;
  std::vector<ServingLink> links;
  ServingBeside beside;  ///< without what the service is alone
};

/// Requires a scenario with trainings. The requests' times are written into the spec.
BesidePlayed serve_beside(const ServePlan& plan, ServingSpec& spec,
                          const std::function<bool(std::size_t)>& go_on);

}  // namespace lockstep
