/// fabric.json, this project's own format for a drawn fabric: hosts with their NICs, switches, and
/// every cable with its rate. scenarios/fabric.schema.json describes it for editors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

/// Bounds of every format: they keep a mistake from becoming a hang, and indices within 32 bits.
constexpr int kMaxHosts = 1 << 20;
constexpr int kMaxNicsPerHost = 1024;
constexpr int kMaxSwitches = 1 << 20;
constexpr int kMaxCables = 1 << 22;
constexpr int kMaxLevel = 16;
constexpr int kMaxPortNumber = 65535;
constexpr std::size_t kFabricFileLimit = std::size_t{1} << 29;  ///< bytes

/// Throws InputError with the JSON pointer of the mistake. `file` is the name for messages.
DrawnFabric read_drawn_fabric(const std::string& file, std::string_view text);
/// The graph alone.
ClusterGraph read_fabric_json(const std::string& file, std::string_view text);

/// One host, switch and cable a line; equal cables in a row are one with a count. What is read back
/// is the same fabric, with rates equal to one part in 10^15.
std::string write_fabric_json(const DrawnFabric& fabric);

/// "400 Gb/s": shortest decimal that gives the rate back.
std::string rate_text(BytesPerSecond rate);
/// The rate that most cables have; of equals the fastest. 0 without cables.
BytesPerSecond usual_rate(const ClusterGraph& graph);

}  // namespace lockstep
