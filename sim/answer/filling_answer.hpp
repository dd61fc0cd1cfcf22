/// What filling a cluster comes to, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/cluster/fill_cluster.hpp"
#include "sim/scenario/filling_spec.hpp"

namespace lockstep {

/// Shares of the cluster's GPUs, at most 12 significant digits, in a fixed order.
nlohmann::ordered_json filling_json(const FillingSpec& spec, const FillingResult& result);

}  // namespace lockstep
