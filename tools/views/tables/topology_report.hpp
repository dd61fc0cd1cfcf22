/// What `lockstep topology show` prints.
#pragma once

#include <string>

#include "tools/console/table.hpp"
#include "topologies/analysis/analysis.hpp"

namespace lockstep {

std::string topology_table(const DrawnFabric& fabric, const TopologyAnalysis& analysis,
                           const TextStyle& style);
/// The same as JSON, rates in bytes per second.
JsonText topology_json(const DrawnFabric& fabric, const TopologyAnalysis& analysis);

}  // namespace lockstep
