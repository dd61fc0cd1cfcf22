/// NCCL's topology file, as NCCL_TOPO_DUMP_FILE writes it or a cloud ships it (NCCL_TOPO_FILE):
/// processors, PCIe bridges, GPUs with their NVLinks, NICs with their speeds.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/node_drawing.hpp"

namespace lockstep {

/// Knows GPUs and NICs by <gpu> and <net>, and, in files that list only PCI devices, by their
/// class. Throws InputError with the number of the line.
NodeDrawing read_nccl_topology(const std::string& file, std::string_view text);

}  // namespace lockstep
