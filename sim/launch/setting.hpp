/// What a launch file says, key by key, before anybody knows what the keys mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// One key of a file with its value.
struct Setting {
  std::string key;                  ///< as the file writes it: "--num-layers", "model.num_layers"
  std::vector<std::string> values;  ///< words behind it, elements of a list; none: a bare flag
  std::string file;

  /// The values with blanks between them; "true" of a bare flag.
  [[nodiscard]] std::string text() const;
  /// Whether it holds a variable or a command that only a run of the file would fill.
  [[nodiscard]] bool is_open() const;
  /// Whether its value is null, "None", or nothing.
  [[nodiscard]] bool is_null() const;
  /// Whether it switches something off: null, false, no, none, 0 or nothing.
  [[nodiscard]] bool is_off() const;

  // All throw InputError, with the key as its place.
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] int count(int low = 1) const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool flag() const;
  [[noreturn]] void fail(const std::string& allowed) const;
};

/// A whole number, also as programs in Python write it: "4_096", "1e3", "8.0". False for others.
bool parse_whole(std::string_view text, std::int64_t& out);
bool parse_real(std::string_view text, double& out);

/// "num-layers" as "num_layers", without dashes in front and in small letters.
std::string plain_key(std::string_view key);
/// What stands behind the last point of a key.
std::string_view last_part(std::string_view key);
/// In small letters.
std::string lower(std::string_view text);
/// The words between blanks.
std::vector<std::string> words_of(std::string_view text);

}  // namespace lockstep
