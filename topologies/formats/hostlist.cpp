#include "topologies/formats/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kMostDigits = 9;  // of a number in brackets

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::uint32_t> number(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// "1-4,7" as the texts that it stands for.
std::optional<std::vector<std::string>> expand_ranges(std::string_view text, std::size_t limit) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const std::string_view low_text = part.substr(0, dash);
    const auto low = number(low_text);
    const auto high = dash == std::string_view::npos ? low : number(part.substr(dash + 1));
    if (!low || !high || *high < *low || *high - *low >= limit) return std::nullopt;
    const std::size_t width = low_text.starts_with('0') ? low_text.size() : 0;
    for (std::uint32_t i = *low; i <= *high; ++i) out.push_back(fmt::format("{:0{}}", i, width));
    if (out.size() > limit) return std::nullopt;
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

/// One name with brackets, anywhere in it.
std::optional<std::vector<std::string>> expand_name(std::string_view text, std::size_t limit) {
  std::vector<std::string> out{""};
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('['), text.size());
    const std::string_view plain = text.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return std::nullopt;
    for (std::string& name : out) name += plain;
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const auto ranges = expand_ranges(text.substr(1, close - 1), limit);
    if (!ranges || ranges->size() > limit / out.size()) return std::nullopt;
    std::vector<std::string> longer;
    for (const std::string& name : out) {
      for (const std::string& digits : *ranges) longer.push_back(name + digits);
    }
    out = std::move(longer);
    text.remove_prefix(close + 1);
  }
  return out;
}

/// A name as its text and the number at its end.
struct Numbered {
  std::string_view prefix;
  std::uint32_t number = 0;
  std::size_t width = 0;  ///< with leading zeros; 0: without
  bool has_number = false;
};
Numbered split(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && name.size() - at < kMostDigits && is_digit(name[at - 1])) --at;
  const std::string_view digits = name.substr(at);
  const auto value = number(digits);
  if (!value || at == 0) return {.prefix = name};
  const bool zeros = digits.size() > 1 && digits.front() == '0';
  return {.prefix = name.substr(0, at),
          .number = *value,
          .width = zeros ? digits.size() : 0,
          .has_number = true};
}

/// Whether a range that holds `before` as its last can go on with `next`.
bool same_kind(const Numbered& before, const Numbered& next) {
  if (!before.has_number || !next.has_number || before.prefix != next.prefix) return false;
  const std::size_t digits = fmt::formatted_size("{}", next.number);
  // "n[08-12]" is all of two digits; 10 itself says nothing about zeros.
  return before.width == next.width || (next.width == 0 && digits == before.width);
}

}  // namespace

std::optional<std::vector<std::string>> expand_hostlist(std::string_view text, std::size_t limit) {
  std::vector<std::string> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    const std::string_view part = text.substr(start, i - start);
    if (part.empty() || depth > 0) return std::nullopt;
    auto names = expand_name(part, limit - out.size());
    if (!names || names->size() > limit - out.size()) return std::nullopt;
    std::move(names->begin(), names->end(), std::back_inserter(out));
    start = i + 1;
  }
  return out;
}

std::string compress_hostlist(std::span<const std::string> names) {
  std::string out;
  for (std::size_t i = 0, end = 0; i < names.size(); i = end) {
    std::string ranges;
    const Numbered first = split(names[i]);
    Numbered low = first, last = first;
    const auto close_range = [&] {
      ranges += fmt::format("{}{:0{}}", ranges.empty() ? "" : ",", low.number, first.width);
      if (last.number > low.number) ranges += fmt::format("-{:0{}}", last.number, first.width);
    };
    for (end = i + 1; end < names.size(); ++end) {
      Numbered next = split(names[end]);
      next.width = same_kind(first, next) ? first.width : next.width;
      if (!same_kind(first, next)) break;
      if (next.number != last.number + 1) {
        close_range();
        low = next;
      }
      last = next;
    }
    if (!out.empty()) out += ",";
    if (end - i == 1) {
      out += names[i];
    } else {
      close_range();
      out += fmt::format("{}[{}]", first.prefix, ranges);
    }
  }
  return out;
}

}  // namespace lockstep
