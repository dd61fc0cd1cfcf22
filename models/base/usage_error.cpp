#include "models/base/usage_error.hpp"

#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

UsageParts parts_of_line(std::string_view line) {
  constexpr std::string_view kFound = ": found ", kAllowed = "; allowed: ";
  constexpr std::string_view kNearest = ". Did you mean ";
  UsageParts out;
  const std::size_t allowed = line.find(kAllowed);
  if (allowed == std::string_view::npos) return out;
  if (const std::size_t found = line.find(kFound); found < allowed) {
    out.found = line.substr(found + kFound.size(), allowed - found - kFound.size());
  }
  std::string_view rule = line.substr(allowed + kAllowed.size());
  const std::size_t nearest = rule.rfind(kNearest);
  if (nearest != std::string_view::npos && rule.ends_with('?')) {
    out.nearest = rule.substr(nearest + kNearest.size());
    out.nearest.pop_back();
    std::erase(out.nearest, '"');
    rule = rule.substr(0, nearest);
  }
  out.allowed = rule;
  return out;
}

}  // namespace

UsageError::UsageError(const std::string& line)
    : std::runtime_error(line), parts_(parts_of_line(line)) {}

std::string did_you_mean(std::string_view found, std::span<const std::string> names,
                         std::string_view prefix) {
  const std::string nearest = nearest_name(found, names);
  return nearest.empty() ? std::string() : fmt::format(". Did you mean {}{}?", prefix, nearest);
}

int asked_count(std::string_view option, std::string_view text, int high) {
  int number = 0;
  const char *const first = text.begin(), *const last = text.end();
  const auto [end, error] = std::from_chars(first, last, number);
  if (error != std::errc{} || end != last || number < 1 || number > high) {
    throw UsageError(fmt::format("--{}: found {}; allowed: a whole number from 1 to {}", option,
                                 in_quotes(text), high));
  }
  return number;
}

}  // namespace lockstep
