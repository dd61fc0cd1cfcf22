/// One type for the text of each medium. A string of unknown origin becomes such a text only by
/// being escaped, and what an answer is put together from has the type of its medium: so no name
/// from a file reaches a spreadsheet, a page or a shell as it is. (HTML: report/html.hpp; JSON:
/// models/base/write_json.hpp; terminals: table.hpp and Answer.)
#pragma once

#include <concepts>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// Text of a medium, whose `Medium::escaped()` makes any text harmless in it.
template <class Medium>
class Written {
 public:
  Written() = default;
  /// Escapes the text; that is why it may be implicit.
  template <std::convertible_to<std::string_view> Text>
  Written(const Text& text)  // NOLINT(google-explicit-constructor)
      : text_(Medium::escaped(std::string_view(text))) {}

  [[nodiscard]] const std::string& str() const { return text_; }
  Written& operator+=(const Written& more) {
    text_ += more.text_;
    return *this;
  }
  friend Written operator+(Written a, const Written& b) { return a += b; }

  /// An argument of write(): numbers as they are, text of this medium too, other text escaped.
  template <class Value>
  static auto argument(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>) {
      return value;
    } else {
      return Written(value).str();
    }
  }
  template <class Value>
  using Argument = decltype(argument(std::declval<const Value&>()));

  /// fmt::format(), with a pattern that is a literal of ours.
  template <class... Values>
  static Written write(fmt::format_string<std::type_identity_t<Argument<Values>>&...> pattern,
                       const Values&... values) {
    Written out;
    out.text_ = [&](auto... arguments) {
      return fmt::vformat(fmt::string_view(pattern), fmt::make_format_args(arguments...));
    }(argument(values)...);
    return out;
  }

 private:
  std::string text_;
};

struct MarkdownMedium {
  /// One line whose letters are all shown as they are: no markup, no end of a table's cell.
  static std::string escaped(std::string_view text);
};
using Markdown = Written<MarkdownMedium>;

struct ShellMedium {
  /// One word of a POSIX shell.
  static std::string escaped(std::string_view text);
};
using ShellText = Written<ShellMedium>;

struct SvgMedium {
  /// Fits between tags and in a quoted attribute.
  static std::string escaped(std::string_view text);
};
using SvgText = Written<SvgMedium>;

struct CsvMedium {
  /// A cell, quoted where RFC 4180 asks for it. What a spreadsheet would take for a formula (it
  /// begins with = + - @, a tab or a carriage return, and is no number) gets an apostrophe before
  /// it; control characters but line breaks and tabs are written as printable() writes them.
  static std::string escaped(std::string_view cell);
};
using CsvText = Written<CsvMedium>;

/// The text of a JSON document that answers a command.
class JsonText {
 public:
  /// An object begins with the version of the program that wrote it.
  explicit JsonText(const nlohmann::ordered_json& answer, int indent = 2);
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  std::string text_;
};

/// What a command prints, complete.
class Answer {
 public:
  Answer(const JsonText& text) : text_(text.str()) {}   // NOLINT(google-explicit-constructor)
  Answer(const CsvText& text) : text_(text.str()) {}    // NOLINT(google-explicit-constructor)
  Answer(const Markdown& text) : text_(text.str()) {}   // NOLINT(google-explicit-constructor)
  Answer(const ShellText& text) : text_(text.str()) {}  // NOLINT(google-explicit-constructor)
  /// Lines for a person; whatever a terminal would obey is escaped, as terminal_text() says.
  static Answer terminal(std::string_view lines);
  /// A file of a format that has a writer of its own: an exported fabric, a profile.
  static Answer file(std::string text) { return Answer(std::move(text)); }

  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  explicit Answer(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace lockstep
