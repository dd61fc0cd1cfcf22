/// The forwarding tables of a fabric whose routing is static: an InfiniBand subnet manager's, or
/// those that the user gave.
#pragma once

#include <memory>
#include <optional>

#include "topologies/routes/forwarding_tables.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// What keeps the fabric from having such tables: it is no InfiniBand subnet, or the subnet
/// manager's engine refuses it. Throws InputError, with the line, about a dump of tables.
std::optional<FabricProblem> check_static_tables(const FabricSpec& spec, const ClusterGraph& graph);

/// Null where the routing is no static one. Requires that check_static_tables() finds nothing.
std::shared_ptr<const ForwardingTables> static_tables(const FabricSpec& spec,
                                                      const ClusterGraph& graph);

}  // namespace lockstep
