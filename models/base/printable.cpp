#include "models/base/printable.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

struct Range {
  char32_t first, last;
};
// Unicode 15: general category Cc, then Zl and Zp, then the property Bidi_Control; of zero width
// the space, the joiners, the word joiner and its invisible kin, and the byte order mark.
constexpr std::array kControls{Range{0x00, 0x1F},     Range{0x7F, 0x9F},     Range{0x2028, 0x2029},
                               Range{0x061C, 0x061C}, Range{0x200E, 0x200F}, Range{0x202A, 0x202E},
                               Range{0x2066, 0x2069}, Range{0x200B, 0x200D}, Range{0x2060, 0x2064},
                               Range{0xFEFF, 0xFEFF}};

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

void append_hex(std::string& out, char32_t code, int digits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += kHex[(code >> static_cast<unsigned>(shift)) & 15U];
  }
}

}  // namespace

Utf8Letter first_letter(std::string_view text) {
  constexpr std::array<char32_t, 5> kFewest{0, 0, 0x80, 0x800, 0x10000};  // else it is overlong
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes > text.size()) return {};
  char32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80U) return {};
    code = code << 6U | (byte_at(text, i) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kFewest[bytes] || code > 0x10FFFF || surrogate) return {};
  return {code, bytes};
}

bool is_control(char32_t code) {
  for (const Range& range : kControls) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Letter letter = first_letter(text);
    if (letter.bytes == 0 || (letter.bytes == 1 && is_control(letter.code))) {
      out += "\\x";
      append_hex(out, byte_at(text, 0), 2);
      text.remove_prefix(1);
      continue;
    }
    if (is_control(letter.code)) {
      out += "\\u";
      append_hex(out, letter.code, 4);
    } else {
      out += text.substr(0, letter.bytes);
    }
    text.remove_prefix(letter.bytes);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\r\t"), text.size());
    out += printable(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = first_letter(text).bytes;
    out += bytes == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

}  // namespace lockstep
