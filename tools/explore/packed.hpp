/// Bytes as a page can hold them.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Compressed as gzip, the same bytes each time.
std::string gzip(std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace lockstep
