/// Reads a whole input file, with the limits that keep a mistake from becoming a hang.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

constexpr std::size_t kInputFileLimit = std::size_t{16}
                                        << 20;  ///< bytes; the largest input is ~2 MB

/// The bytes of a regular file of at most `limit` bytes. Throws InputError if it is missing, no
/// regular file, too large or unreadable.
std::string read_text_file(const std::string& path, std::size_t limit = kInputFileLimit);

}  // namespace lockstep
