/// What an InputError says: fuzz targets require it of every error.
#pragma once

#include <string_view>

/// Whether it is a line for each mistake, at least one, without gaps and without a newline at the
/// end.
inline bool are_whole_lines(std::string_view lines) {
  return !lines.empty() && lines.front() != '\n' && lines.back() != '\n' &&
         lines.find("\n\n") == std::string_view::npos;
}
