/// Walks through the lines of a tool's output and words of a line, for the readers in this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Lines of a text, with the number that messages give them.
class TextLines {
 public:
  TextLines(const std::string& file, std::string_view text) : file_(file), rest_(text) {}

  /// Goes to the next line; false: there is none.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }  ///< without its end
  [[nodiscard]] int number() const { return number_; }           ///< from 1
  /// Throws InputError: `file:17: found ...; allowed: ...`.
  [[noreturn]] void refuse(std::string found, std::string allowed) const {
    refuse_line(number_, std::move(found), std::move(allowed));
  }
  [[noreturn]] void refuse_line(int number, std::string found, std::string allowed,
                                std::string nearest = "") const;

 private:
  const std::string& file_;
  std::string_view rest_;
  std::string_view line_;
  int number_ = 0;
};

/// Reads a line from its left: each function takes what it finds and leaves the rest, or takes
/// nothing.
class LineCursor {
 public:
  explicit LineCursor(std::string_view line) : rest_(line) {}

  void skip_spaces();
  bool skip(std::string_view text);
  /// Up to the next `end`, which is taken too.
  std::optional<std::string_view> until(char end);
  /// "text" in quotes.
  std::optional<std::string_view> quoted();
  /// Up to the next space.
  std::string_view word();
  /// Digits of that base, below 2^64.
  std::optional<std::uint64_t> number(int base = 10);
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// Less as people sort names: runs of digits by their value, so that "leaf 2" comes before
/// "leaf 10".
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

}  // namespace lockstep
