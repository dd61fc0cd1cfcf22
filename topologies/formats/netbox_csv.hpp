/// NetBox's table of cables as CSV, as it exports it and as it imports cables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/formats/netbox_cables.hpp"

namespace lockstep {

bool is_netbox_csv(std::string_view text);

/// Columns, in any order and any capitals: "Termination A" and "Device A" ("Side A" before NetBox
/// 3.3), the same of B, maybe "Status" and "Type"; or those of an import, side_a_device,
/// side_a_name and side_a_type. Several ports of one side are divided by commas. Throws InputError
/// with the row.
std::vector<NetboxCable> read_netbox_csv(const std::string& file, std::string_view text);

}  // namespace lockstep
