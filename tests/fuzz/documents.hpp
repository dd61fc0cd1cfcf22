/// What fuzz targets of documents share: their parts, and what an InputError says.
#pragma once

#include <cstdlib>
#include <string_view>

#include "models/base/input_error.hpp"

/// Whether it is a line for each mistake, at least one, without gaps and without a newline at the
/// end.
inline bool are_whole_lines(std::string_view lines) {
  return !lines.empty() && lines.front() != '\n' && lines.back() != '\n' &&
         lines.find("\n\n") == std::string_view::npos;
}

/// Takes what is before the next 0, and removes it with the 0.
inline std::string_view next_part(std::string_view& bytes) {
  const std::size_t end = bytes.find('\0');
  const std::string_view part = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return part;
}

/// Ends the process where an error is anything but whole lines.
template <class Read>
void read_or_lines(const Read& read) {
  try {
    read();
  } catch (const lockstep::InputError& error) {
    if (!are_whole_lines(error.what())) std::abort();
  }
}
