#include "sim/scenario/host_list.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

namespace lockstep {
namespace {

std::optional<int> whole_number(std::string_view digits) {
  int out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc() || end != digits.data() + digits.size() || out < 0) return std::nullopt;
  return out;
}

/// "3" or "1-4".
std::optional<std::pair<int, int>> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = whole_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

/// Calls `use` with each part between commas that stand outside brackets.
template <class Use>
bool each_host(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t bracket = text.find('['), comma = text.find(',');
    std::size_t end = comma;
    if (bracket != std::string_view::npos && bracket < comma) {
      const std::size_t close = text.find(']', bracket);
      if (close == std::string_view::npos) return false;
      end = text.find(',', close);
    }
    if (!use(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
  return false;  // nothing behind the last comma
}

}  // namespace

std::optional<std::vector<int>> host_numbers(std::string_view text, std::size_t most) {
  std::vector<int> out;
  const auto add_range = [&](std::string_view range) {
    const auto of = range_of(range);
    if (!of || static_cast<std::size_t>(of->second - of->first) >= most - out.size()) return false;
    for (int number = of->first; number <= of->second; ++number) out.push_back(number);
    return true;
  };
  const auto add_host = [&](std::string_view host) {
    const std::size_t begin = host.find_first_of("0123456789[");
    if (begin == std::string_view::npos || begin == 0) return false;
    host.remove_prefix(begin);
    if (!host.starts_with('[')) return add_range(host);
    if (!host.ends_with(']')) return false;
    return each_host(host.substr(1, host.size() - 2), add_range);
  };
  if (text.empty() || !each_host(text, add_host)) return std::nullopt;
  return out;
}

namespace {

/// "08" and "10" -> 08, 09, 10: with as many digits as the first. False for another text.
bool add_names(std::string_view range, std::size_t most, std::vector<std::string>& out) {
  const auto of = range_of(range);
  if (!of || static_cast<std::size_t>(of->second - of->first) >= most) return false;
  const std::size_t digits = range.substr(0, range.find('-')).size();
  for (int number = of->first; number <= of->second; ++number) {
    out.push_back(fmt::format("{:0{}}", number, digits));
  }
  return true;
}

/// "a[1-2]b[3-4]" -> a1b3, a1b4, a2b3, a2b4.
bool expand_host(std::string_view host, std::size_t most, std::vector<std::string>& out) {
  std::vector<std::string> fronts{""};
  while (!host.empty()) {
    const std::size_t bracket = std::min(host.find('['), host.size());
    for (std::string& front : fronts) front += host.substr(0, bracket);
    host.remove_prefix(bracket);
    if (host.empty()) break;
    const std::size_t close = host.find(']');
    if (close == std::string_view::npos) return false;
    std::string_view ranges = host.substr(1, close - 1);
    host.remove_prefix(close + 1);
    std::vector<std::string> numbers, longer;
    while (!ranges.empty()) {
      const std::size_t comma = std::min(ranges.find(','), ranges.size());
      if (!add_names(ranges.substr(0, comma), most, numbers)) return false;
      ranges.remove_prefix(std::min(comma + 1, ranges.size()));
    }
    if (numbers.empty() || fronts.size() * numbers.size() > most) return false;
    for (const std::string& front : fronts) {
      for (const std::string& number : numbers) longer.push_back(front + number);
    }
    fronts = std::move(longer);
  }
  if (out.size() + fronts.size() > most) return false;
  out.insert(out.end(), fronts.begin(), fronts.end());
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> host_names(std::string_view text, std::size_t most) {
  std::vector<std::string> out;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || (depth != 0 && at < text.size())) continue;
    if (at == from || !expand_host(text.substr(from, at - from), most, out)) return std::nullopt;
    from = at + 1;
  }
  return out;
}

std::string host_list(std::string_view prefix, std::vector<int> numbers) {
  if (numbers.empty()) return {};
  std::ranges::sort(numbers);
  std::string ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!ranges.empty()) ranges += ",";
    ranges += std::to_string(numbers[i]);
    if (end - i > 1) ranges += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  const bool several = numbers.size() > 1;
  return fmt::format(fmt::runtime(several ? "{}[{}]" : "{}{}"), prefix, ranges);
}

}  // namespace lockstep
