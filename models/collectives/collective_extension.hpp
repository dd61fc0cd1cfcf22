/// Algorithms of collectives from code outside the tree. Added, an algorithm is listed, named and
/// weighed against the others like one of algorithms.cpp.
#pragma once

#include "models/base/extension.hpp"
#include "models/collectives/algorithms.hpp"
#include "models/collectives/channels.hpp"

namespace lockstep {

/// Adds a row to collective_algorithms(). Texts are copied. `availability`, `law` and `shape` are
/// pure functions, called from any thread; without a shape it loads the links that a ring does.
/// Throws ExtensionError as check_extension() does, or for a row without availability or law.
///
/// What it offers as Offer::weighed is taken wherever it is the fastest: in steps, replays and
/// services too. Candidates need no name. They are held to these rules wherever they are used, and
/// ExtensionError names the extension, the call and the rule:
/// - a protocol of kProtocols, a time above 0 and finite, coefficients of at least 0;
/// - bytes on NICs where members sit on several nodes, and none inside one node;
/// - no byte sooner than a member's NIC and its NVLink carry it;
/// - edges between members on different nodes (or a switch), with bytes of at least 0.
/// Bytes of all edges that leave members, over the members, are the network coefficient.
void add_collective(const CollectiveAlgorithm& row, int interface = kExtensionInterface);

/// Whether code outside the tree added it.
inline bool is_extension(const CollectiveAlgorithm& row) { return row.added; }

/// Its shape. Requires is_extension(); throws ExtensionError where it breaks a rule.
CollectiveShape added_shape(const CollectiveAlgorithm& row, const ShapeCall& call);

}  // namespace lockstep
