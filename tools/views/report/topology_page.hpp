/// A fabric as a page.
#pragma once

#include <optional>
#include <string>

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "topologies/analysis/analysis.hpp"

namespace lockstep {

/// The page of `lockstep topology show --report`: the fabric drawn as --svg draws it, what each
/// layer takes and gives, what must not break. Throws UsageError without a chart library
/// (assets.hpp).
/// `cluster` and `written`: the machine that the fabric is built for and the words for it, of a
/// scenario or a preset; a fabric that was read from a file has none.
std::string topology_page(const DrawnFabric& fabric, const TopologyAnalysis& analysis,
                          const std::optional<Cluster>& cluster = {},
                          const WrittenScenario& written = {});

}  // namespace lockstep
