/// Reads "pools" of a cluster: nodes of several kinds on one fabric.
#pragma once

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

/// `pools` of a cluster: an array of a node and a number each. Neighbours that are
/// written alike are one pool, and a cluster of one pool is as if it had "node" and "nodes". What
/// places of ranks and ports of the fabric depend on has to be the same in all: GPUs of a node,
/// GPUs that NVLink joins, ports, and the transport unless the fabric says one. Throws InputError.
void read_pools(const JsonCursor& cluster, const JsonCursor& pools, const PresetStore& presets,
                ClusterDraft& out);

}  // namespace lockstep
