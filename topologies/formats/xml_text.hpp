/// An XML document whose elements know their line, and text for one. For this folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pugixml.hpp>

namespace lockstep {

class XmlText {
 public:
  /// Throws InputError with the number of the line where `text` is no XML.
  XmlText(std::string file, std::string_view text);

  /// The only element at the top.
  [[nodiscard]] pugi::xml_node root() const { return document_.document_element(); }
  [[nodiscard]] int line(pugi::xml_node element) const;
  /// Throws InputError: `file:17: found ...; allowed: ...`.
  [[noreturn]] void fail(pugi::xml_node element, std::string found, std::string allowed,
                         std::string nearest = {}) const;

  /// A whole number from `low` to `high`; nothing: the element has no such attribute, or an empty
  /// one. Throws for anything else.
  [[nodiscard]] std::optional<int> whole_number(pugi::xml_node element, const char* name, int low,
                                                int high) const;

 private:
  [[nodiscard]] int line_at(std::ptrdiff_t offset) const;
  [[noreturn]] void fail_line(int line, std::string found, std::string allowed,
                              std::string nearest) const;

  std::string file_;
  pugi::xml_document document_;
  std::vector<std::ptrdiff_t> line_starts_;
};

/// Text as it stands in an element or in an attribute, with control characters as spaces.
std::string xml_escaped(std::string_view text);

}  // namespace lockstep
