/// NVIDIA UFM's REST API, as saved to a file: links, and what ports and systems beside them tell.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/drawn_fabric.hpp"
#include "topologies/formats/named_graph.hpp"

namespace lockstep {

bool is_ufm(std::string_view text);

/// What GET /ufmRest/resources/links answers, or /ports, which names both ends of each cable. In
/// one file with the links (a list or an object of the answers) ports add rates and systems
/// (/ufmRest/resources/systems) kinds and names. Without them a description that ends in its port
/// ("leaf01:1/3/1") is of a switch, one of an adapter ("gpu01 mlx5_0", "HCA-1/1") of a host. A rate
/// of `options` replaces those of the file. SHARP's aggregation nodes are left out.
/// Throws InputError with the pointer.
DrawnFabric read_ufm(const std::string& file, std::string_view text, const ImportOptions& options);

}  // namespace lockstep
