/// For tests of pages: whether a text is in them, and the options of their charts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace lockstep::test {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// In order.
inline std::vector<nlohmann::json> charts_of(const std::string& html) {
  const std::string opening = "<script type=\"application/json\"";
  std::vector<nlohmann::json> found;
  for (std::size_t at = html.find(opening); at != std::string::npos; at = html.find(opening, at)) {
    const std::size_t begin = html.find('>', at) + 1;
    at = html.find('<', begin);
    found.push_back(nlohmann::json::parse(html.substr(begin, at - begin)));
  }
  return found;
}

}  // namespace lockstep::test
