/// Names of the nodes of a queue: "n1" of the cluster's, "cloud1" of rented ones.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Of a node's number, from 0; rented ones are behind the cluster's.
std::string node_name(const QueueSpec& spec, int node);

/// "n[1-4]" of numbers from 1, all of the cluster or all rented; empty of none.
std::string node_list(const QueueSpec& spec, std::vector<int> from_one);

/// Whether they are rented nodes, numbered from 1.
bool are_rented(const QueueSpec& spec, const std::vector<int>& from_one);

/// The rows that a picture of all nodes has: the cluster's, and as many rented ones as there were
/// at a time.
int pictured_nodes(const QueueSpec& spec, const QueueResult& result);

}  // namespace lockstep
