/// What `nvidia-smi topo -m` prints: a matrix of GPUs and NICs. It tells neither the kind of GPU,
/// which other outputs of nvidia-smi in the same text may, nor the speed of a NIC.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/node_drawing.hpp"

namespace lockstep {

/// Takes the matrix wherever it stands in the text (a job's log), with or without the terminal's
/// underlining, and the names of GPUs from what `nvidia-smi -L`, `nvidia-smi` and `nvidia-smi
/// --query-gpu=name --format=csv` print before or behind it. Throws InputError with the number of
/// the line.
NodeDrawing read_nvidia_smi(const std::string& file, std::string_view text);

}  // namespace lockstep
