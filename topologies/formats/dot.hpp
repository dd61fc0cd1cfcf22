/// DOT, the language of Graphviz: a reader of its whole grammar that names the line of a mistake
/// (Boost's names none), and a writer.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/named_graph.hpp"

namespace lockstep {

/// Grammar: graphviz.org/doc/info/lang.html. Subgraphs pass on their defaults and are forgotten;
/// ports behind a vertex's name are too. Throws InputError with the number of the line.
NamedGraph read_dot(const std::string& file, std::string_view text);

std::string write_dot(const NamedGraph& graph);

}  // namespace lockstep
