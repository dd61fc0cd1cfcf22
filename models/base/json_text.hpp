/// JSON text to a document tree, with the checks that a general parser leaves out.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// Levels of objects and arrays that a text may nest.
constexpr std::size_t kJsonDepth = 64;

/// Throws InputError (file `file`, and the pointer of the place) for text that is not UTF-8 JSON, a
/// key twice in one object, a number beyond the range of double, more than kJsonDepth levels, or an
/// empty text. A UTF-8 byte order mark is skipped, and so are comments (// to the end of the line,
/// /* */). What begins as YAML does is called that. Takes time proportional to the text.
nlohmann::ordered_json parse_json_text(const std::string& file, std::string_view text);

/// "line 3, column 9" of a byte.
std::string place_in_text(std::string_view text, std::size_t offset);

/// Throws InputError for an empty text, or one of blanks alone; `allowed`: "a JSON object".
void require_json_text(const std::string& file, std::string_view text, std::string allowed);

/// JSON as Python writes it, as JSON: the numbers that JSON lacks, `Infinity`, `-Infinity` and
/// `NaN` (and `inf`, `-inf`, `nan`, `-nan`, which C++ prints), become strings. Strings stay as they
/// are.
std::string quote_non_finite(std::string_view text);

/// `key` as a part of a JSON pointer: "~" and "/" escaped.
std::string pointer_part(std::string_view key);

}  // namespace lockstep
