/// A fabric as a page.
#pragma once

#include <string>

#include "topologies/analysis/analysis.hpp"

namespace lockstep {

/// The page of `lockstep topology show --report`: the fabric drawn as --svg draws it, what each
/// layer takes and gives, what must not break. Throws UsageError without a chart library
/// (assets.hpp).
std::string topology_page(const DrawnFabric& fabric, const TopologyAnalysis& analysis);

}  // namespace lockstep
