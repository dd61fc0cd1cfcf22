#include "sim/launch/setting.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

constexpr int kMostCount = 100'000'000;
constexpr double kMostWhole = 9e15;  // below 2^53

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  const std::string small = lower(text);
  return std::ranges::find(words, std::string_view(small)) != words.end();
}

constexpr std::array<std::string_view, 5> kNullWords{"", "null", "~", "None", "Null"};
constexpr std::array<std::string_view, 7> kOffWords{"false", "no",  "none",    "off",
                                                    "0",     "0.0", "disabled"};
constexpr std::array<std::string_view, 4> kOnWords{"true", "yes", "on", "1"};

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string plain_key(std::string_view key) {
  while (key.starts_with('-')) key.remove_prefix(1);
  std::string out = lower(key);
  std::ranges::replace(out, '-', '_');
  return out;
}

std::string_view last_part(std::string_view key) {
  const std::size_t point = key.rfind('.');
  return point == std::string_view::npos ? key : key.substr(point + 1);
}

bool parse_real(std::string_view text, double& out) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  std::string_view number = digits;
  if (number.starts_with('+')) number.remove_prefix(1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out);
  return error == std::errc() && end == number.data() + number.size() && std::isfinite(out);
}

bool parse_whole(std::string_view text, std::int64_t& out) {
  double value = 0;
  if (!parse_real(text, value) || value != std::floor(value)) return false;
  if (std::abs(value) > kMostWhole) return false;
  out = static_cast<std::int64_t>(value);
  return true;
}

std::string Setting::text() const {
  return values.empty() ? "true" : fmt::format("{}", fmt::join(values, " "));
}

bool Setting::is_open() const {
  return std::ranges::any_of(values, [](const std::string& value) {
    return value.find("${") != std::string::npos || value.find("$(") != std::string::npos;
  });
}

bool Setting::is_null() const {
  return values.size() == 1 && std::ranges::find(kNullWords, values[0]) != kNullWords.end();
}

bool Setting::is_off() const {
  return is_null() || (values.size() == 1 && is_one_of(values[0], kOffWords));
}

void Setting::fail(const std::string& allowed) const {
  throw InputError({.file = file,
                    .pointer = "/" + key,
                    .found = values.empty() ? "no value" : in_quotes(text()),
                    .allowed = allowed,
                    .nearest = {}});
}

std::int64_t Setting::integer(std::int64_t low, std::int64_t high) const {
  std::int64_t out = 0;
  if (values.size() != 1 || !parse_whole(values[0], out) || out < low || out > high) {
    fail(fmt::format("a whole number from {} to {}", low, high));
  }
  return out;
}

int Setting::count(int low) const { return static_cast<int>(integer(low, kMostCount)); }

double Setting::number() const {
  double out = 0;
  if (values.size() != 1 || !parse_real(values[0], out)) fail("a number");
  return out;
}

bool Setting::flag() const {
  if (values.empty()) return true;
  if (is_off()) return false;
  if (values.size() != 1 || !is_one_of(values[0], kOnWords)) fail("true or false");
  return true;
}

}  // namespace lockstep
