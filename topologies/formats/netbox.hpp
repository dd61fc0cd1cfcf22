/// NetBox, which documents what is cabled to what: answers of its REST API, as saved to a
/// file, or its table of cables as CSV.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/drawn_fabric.hpp"
#include "topologies/formats/named_graph.hpp"

namespace lockstep {

bool is_netbox(std::string_view text);

/// What GET /api/dcim/cables/ answers, of NetBox 2 (termination_a) to 4 (a_terminations), or
/// /api/dcim/interfaces/, which name both ends of each connection. In one file with the cables (a
/// list or an object of the answers) interfaces (/api/dcim/interfaces/) add rates and what is
/// connected through patch panels, and devices (/api/dcim/devices/) add roles, whose words tell
/// hosts from switches. A rate is an interface's speed, or that of its type. `options` give that of
/// cables without one; CSV (netbox_csv.hpp) tells none. Throws InputError with the pointer
/// or the row.
DrawnFabric read_netbox(const std::string& file, std::string_view text,
                        const ImportOptions& options);

}  // namespace lockstep
