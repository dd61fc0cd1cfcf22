#include "tools/lockstep/tune/tune_options.hpp"

#include <charconv>
#include <fmt/format.h>

namespace lockstep {

constexpr int kMostWays = 1'000'000;

void fail_value(std::string_view option, const std::string& found, const std::string& allowed) {
  throw UsageError(fmt::format("--{}: found {}; allowed: {}", option, in_quotes(found), allowed));
}

std::vector<std::string> words_of(const ParsedOptions& options, std::string_view option) {
  std::vector<std::string> words;
  if (!options.has(option)) return words;
  std::string rest = options.get(option);
  for (std::size_t comma; (comma = rest.find(',')) != std::string::npos;) {
    words.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  words.push_back(rest);
  return words;
}

std::vector<int> numbers_of(const ParsedOptions& options, std::string_view option) {
  std::vector<int> numbers;
  for (const std::string& word : words_of(options, option)) {
    int number = 0;
    const char* last = word.data() + word.size();
    const auto [end, error] = std::from_chars(word.data(), last, number);
    if (error != std::errc{} || end != last || number < 1 || number > kMostWays) {
      fail_value(option, word, fmt::format("whole numbers from 1 to {} with commas", kMostWays));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace lockstep
