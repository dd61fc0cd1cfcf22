/// Names and keywords that people may write in capital or small letters.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Whatever the locale: ASCII only, so that bytes of UTF-8 stay as they are.
[[nodiscard]] constexpr char lowered(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lowered(c);
  return out;
}

}  // namespace lockstep
