/// Reads a whole input file that may be compressed.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// The bytes of a file, unpacked where it is gzip's, at most `limit` of them. Throws InputError if
/// it is missing, broken or larger.
std::string read_maybe_gzip(const std::string& path, std::size_t limit);

/// Its first bytes, at most that many; none if it does not open.
std::string read_head(const std::string& path, std::size_t bytes);

}  // namespace lockstep
