/// For tests of pages: whether a text is in them.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::test {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace lockstep::test
