#include "tools/views/report/html.hpp"

#include <algorithm>
#include <array>

#include "models/base/printable.hpp"

namespace lockstep {
namespace {

bool is_ascii_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// "12 us" with the sign for a millionth.
std::string with_micro_sign(std::string_view text) {
  constexpr std::string_view kAscii = " us";
  std::string out;
  while (true) {
    const std::size_t at = text.find(kAscii);
    if (at == std::string_view::npos) return out.append(text);
    const std::size_t end = at + kAscii.size();
    const bool behind_number = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
    const bool ends = end == text.size() || !is_ascii_letter_or_digit(text[end]);
    out.append(text.substr(0, at)).append(behind_number && ends ? " µs" : kAscii);
    text.remove_prefix(end);
  }
}

/// "CO2" with its 2 below the line.
std::string with_subscripts(std::string text) {
  constexpr std::string_view kAscii = "CO2", kSign = "CO₂";
  for (std::size_t at = text.find(kAscii); at != std::string::npos; at = text.find(kAscii, at)) {
    text.replace(at, kAscii.size(), kSign);
  }
  return text;
}

/// What stands behind a number, sorted: units, and letters for thousands and more of them.
constexpr std::array<std::string_view, 49> kUnits{
    "%",    "B",  "CO2",  "EB",      "GB",     "GB/s", "GW",  "GWh", "Gb/s", "GiB",
    "K",    "M",  "MB",   "MB/s",    "MW",     "MWh",  "MiB", "Ml",  "PB",   "PFLOP/s",
    "T",    "TB", "TB/s", "TFLOP/s", "TFLOPS", "TWh",  "TiB", "USD", "W",    "d",
    "days", "g",  "h",    "k",       "kB",     "kB/s", "kJ",  "kW",  "kWh",  "m",
    "min",  "ms", "ns",   "s",       "t",      "us",   "°C",  "µs",  "×"};
static_assert(std::ranges::is_sorted(kUnits));

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// What is numbered, sorted: "leaf 3", "rank 12"; and what stands before a number: "± 5 %".
constexpr std::array<std::string_view, 14> kNumbered{"core",  "gpu",   "group",  "layer", "leaf",
                                                     "nic",   "node",  "point",  "rack",  "rank",
                                                     "spine", "stage", "switch", "±"};
static_assert(std::ranges::is_sorted(kNumbered));

/// "-3.1 %" with the sign for minus; what is an option ("-j 2", "--set") keeps its hyphens.
std::string with_minus_signs(std::string text) {
  constexpr std::string_view kMinus = "−";
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '(';
    if (text[at] == '-' && begins && is_digit(text[at + 1])) text.replace(at, 1, kMinus);
  }
  return text;
}

/// No line ends between a number and its unit or what it numbers: "90 %", "118 M USD", "leaf 3".
std::string with_whole_numbers(std::string text) {
  constexpr std::string_view kNoBreak = "\u00a0";
  bool behind_number = false, is_numbered = false;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string_view word = std::string_view(text).substr(begin, end - begin);
    while (!word.empty() && std::string_view(",.;:)").find(word.back()) != std::string_view::npos) {
      word.remove_suffix(1);
    }
    const bool is_unit = behind_number && std::ranges::binary_search(kUnits, word);
    const bool is_number = is_numbered && !word.empty() && is_digit(word.front());
    is_numbered = begin + word.size() == end && std::ranges::binary_search(kNumbered, word);
    if (is_unit || is_number) {
      text.replace(begin - 1, 1, kNoBreak);
      end += kNoBreak.size() - 1;
      begin += kNoBreak.size() - 1;
    }
    const char last = end > begin ? text[end - 1] : ' ';
    behind_number = is_digit(last) || (is_unit && end - begin == word.size());
    begin = end + 1;
  }
  return text;
}

Html with_references(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return Html::markup(out);
}

}  // namespace

std::string with_arrows(std::string_view text) {
  constexpr std::string_view kAscii = " -> ";
  std::string out(text);
  for (std::size_t at = out.find(kAscii); at != std::string::npos; at = out.find(kAscii, at)) {
    out.replace(at, kAscii.size(), " →\u00a0");
  }
  return out;
}

Html escaped(std::string_view text) {
  return with_references(with_minus_signs(with_whole_numbers(std::string(text))));
}

Html attribute_text(std::string_view text) { return with_references(text); }

Html code(std::string_view text) {
  return Html::markup("<code>") + with_references(text) + Html::markup("</code>");
}

Html prose(std::string_view text) {
  Html out;
  while (true) {
    const std::size_t opens = text.find('`');
    const std::size_t closes = opens == std::string_view::npos ? opens : text.find('`', opens + 1);
    if (closes == std::string_view::npos)
      return out += escaped(with_subscripts(with_micro_sign(text)));
    out += escaped(with_subscripts(with_micro_sign(text.substr(0, opens)))) +
           code(text.substr(opens + 1, closes - opens - 1));
    text.remove_prefix(closes + 1);
  }
}

Html key_words(std::string_view text) {
  const std::string arrows = with_arrows(text);
  const auto is_letter = [&](std::size_t at) {
    return at < arrows.size() && is_ascii_letter_or_digit(arrows[at]) &&
           !(arrows[at] >= '0' && arrows[at] <= '9');
  };
  Html out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at + 1 < arrows.size(); ++at) {
    const char c = arrows[at];
    // A point of a number is none, and neither is what a unit is per: "tokens/s".
    const bool is_per = c == '/' && (at + 2 == arrows.size() || arrows[at + 2] == ' ');
    if (c != '_' && (is_per || !((c == '.' || c == '/') && is_letter(at + 1)))) continue;
    out += escaped(std::string_view(arrows).substr(begin, at + 1 - begin)) + Html::markup("<wbr>");
    begin = at + 1;
  }
  return out += escaped(std::string_view(arrows).substr(begin));
}

Html strong(std::string_view text) {
  return Html::markup("<strong>") + escaped(text) + Html::markup("</strong>");
}

Html script_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";  // "<" stands only within strings of JSON
    } else {
      out += c;
    }
  }
  return Html::markup(out);
}

}  // namespace lockstep
