/// Reads a whole input file that may be compressed.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// A gzip file may unpack to this much whatever its size, and beyond it to so many times its size.
/// Traces of profilers shrink 10 to 25 times; zlib's best is 1,032, of bytes that say nothing.
constexpr std::size_t kUnpackedFreely = std::size_t{64} << 20;
constexpr std::size_t kMostUnpacking = 100;

/// The bytes of a file, pipe or standard input ("-"), unpacked where they are gzip's, at most
/// `limit` of them. Throws InputError if there are none, they are broken, too many or unpack to too
/// many.
std::string read_maybe_gzip(const std::string& path, std::size_t limit);

/// The first bytes of a regular file, at most that many; none if it does not open.
std::string read_head(const std::string& path, std::size_t bytes);

}  // namespace lockstep
