/// JSON with a comment above its members, as `lockstep new` writes it and every command reads it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// What is said of the member at a JSON pointer; "*" stands for every element of an array.
struct JsonComment {
  std::string_view pointer;
  std::string_view text;
};

/// The document with "// text" lines above each member that has a comment.
std::string commented_json(const nlohmann::ordered_json& document,
                           std::span<const JsonComment> comments);

}  // namespace lockstep
