/// What users of several places or kinds saw, and what replicas in several places did.
#pragma once

#include <vector>

#include "sim/serving/region_router.hpp"
#include "sim/serving/simulate_serving.hpp"

namespace lockstep {

std::vector<ServingPopulationReport> population_reports(const ServingSpec& spec,
                                                        const RegionPlan& regions);
std::vector<ServingRegionReport> region_reports(const ServingSpec& spec, const RegionPlan& regions,
                                                const ServeResult& result, double span_s);

}  // namespace lockstep
