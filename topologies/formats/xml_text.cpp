#include "topologies/formats/xml_text.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/printable.hpp"

namespace lockstep {

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

XmlText::XmlText(std::string file, std::string_view text)
    : file_(std::move(file)), line_starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(static_cast<std::ptrdiff_t>(i) + 1);
  }
  // Another encoding would be converted, and offsets no longer be those of the file.
  const pugi::xml_parse_result result =
      document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    fail_line(line_at(result.offset), fmt::format("broken XML ({})", result.description()),
              "well-formed XML in UTF-8", "");
  }
  if (!root()) fail_line(1, "no element", "an XML document", "");
}

int XmlText::line_at(std::ptrdiff_t offset) const {
  const auto after = std::ranges::upper_bound(line_starts_, offset);
  return static_cast<int>(after - line_starts_.begin());
}

int XmlText::line(pugi::xml_node element) const { return line_at(element.offset_debug()); }

void XmlText::fail(pugi::xml_node element, std::string found, std::string allowed,
                   std::string nearest) const {
  fail_line(line(element), std::move(found), std::move(allowed), std::move(nearest));
}

void XmlText::fail_line(int line, std::string found, std::string allowed,
                        std::string nearest) const {
  throw InputError({fmt::format("{}:{}", file_, line), "", std::move(found), std::move(allowed),
                    std::move(nearest)});
}

std::optional<int> XmlText::whole_number(pugi::xml_node element, const char* name, int low,
                                         int high) const {
  const std::string_view text = element.attribute(name).value();
  if (text.empty()) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    fail(element, fmt::format("{}={}", name, in_quotes(text)),
         fmt::format("a whole number from {} to {}", low, high));
  }
  return value;
}

}  // namespace lockstep
