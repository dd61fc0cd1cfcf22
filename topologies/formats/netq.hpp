/// NVIDIA NetQ's topology graph: devices in tiers, and the cables between their interfaces.
#pragma once

#include <string>
#include <string_view>

#include "models/base/units.hpp"
#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

bool is_netq(std::string_view text);

/// Devices that are no switches are hosts, with a NIC for each interface that has a cable. NetQ's
/// graph tells no rates: all cables have `rate`, above 0. Throws InputError with the pointer.
DrawnFabric read_netq(const std::string& file, std::string_view text, BytesPerSecond rate);

}  // namespace lockstep
