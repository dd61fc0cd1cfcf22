/// A JSON document to text. Every JSON text of the program is written here, so that one place
/// decides what becomes of bytes that are not UTF-8 (file names and logs have them): each is
/// replaced by U+FFFD, and no answer is lost for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// Which letters stand as they are; the others are written as \uXXXX.
enum class JsonLetters : std::uint8_t { utf8, ascii };

/// The value on one line, or with `indent` spaces for each level.
std::string write_json(const nlohmann::ordered_json& value, int indent = -1,
                       JsonLetters letters = JsonLetters::utf8);
std::string write_json(const nlohmann::json& value, int indent = -1,
                       JsonLetters letters = JsonLetters::utf8);
/// The text as a JSON string, in quotes.
std::string json_string(std::string_view text, JsonLetters letters = JsonLetters::utf8);

}  // namespace lockstep
