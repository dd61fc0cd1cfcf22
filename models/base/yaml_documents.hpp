/// The documents of a YAML text.
#pragma once

#include <string_view>
#include <vector>

namespace YAML {  // NOLINT(readability-identifier-naming): the library has it
class Node;
}

namespace lockstep {

/// As YAML::LoadAll(), which at a stray "," or "]" between documents finds empty ones without end:
/// those are a YAML::ParserException here, like all that is no YAML.
std::vector<YAML::Node> yaml_documents(std::string_view text);

}  // namespace lockstep
