/// Text of unknown origin (names from files, bytes of a log) as what can be shown: a terminal obeys
/// control characters, and bidirectional marks make a line read otherwise than it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// The first letter of a text that is not empty.
struct Utf8Letter {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: the first byte begins no letter of UTF-8
};
Utf8Letter first_letter(std::string_view text);

/// C0, DEL and C1, line and paragraph separators, marks that change the direction of text, and
/// characters that take no room, by which two names look the same.
bool is_control(char32_t code);

/// One line: control characters become \xNN or \uNNNN, and bytes that are not UTF-8 \xNN.
std::string printable(std::string_view text);

/// printable() applied to each line: line breaks and tabs stay.
std::string printable_lines(std::string_view text);

/// The text with U+FFFD for every byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace lockstep
