/// What `rocm-smi --showtopo` prints of AMD's GPUs: which pairs xGMI joins, over how many links it
/// does not say. It tells neither the kind of GPU nor anything of NICs.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/node_drawing.hpp"

namespace lockstep {

bool is_rocm_smi(std::string_view text);

/// Takes the matrix of link types (`rocm-smi --showtopotype` prints it alone) wherever it stands in
/// the text. Each GPU is a die. Throws InputError with the number of the line.
NodeDrawing read_rocm_smi(const std::string& file, std::string_view text);

}  // namespace lockstep
