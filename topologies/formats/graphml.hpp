/// GraphML, as graph libraries and editors write it: a reader that names the line of a mistake
/// (Boost's names none), and a writer.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/named_graph.hpp"

namespace lockstep {

/// Format: graphml.graphdrawing.org. A vertex is called by its attribute "name", else "label", else
/// by its id. Refuses graphs in graphs and edges of more than two ends. Throws InputError with the
/// number of the line.
NamedGraph read_graphml(const std::string& file, std::string_view text);

std::string write_graphml(const NamedGraph& graph);

}  // namespace lockstep
