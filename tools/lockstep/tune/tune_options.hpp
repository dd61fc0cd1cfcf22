/// Lists of values that options of `tune` take.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// Throws UsageError: what was found, and what is allowed.
[[noreturn]] void fail_value(std::string_view option, const std::string& found,
                             const std::string& allowed);

/// The words between commas; none without the option.
std::vector<std::string> words_of(const ParsedOptions& options, std::string_view option);
/// As whole numbers. Throws UsageError.
std::vector<int> numbers_of(const ParsedOptions& options, std::string_view option);

/// As values of an enum with such names. Throws UsageError.
template <class Enum, class Names>
std::vector<Enum> choices_of(const ParsedOptions& options, std::string_view option,
                             const Names& names) {
  std::vector<Enum> out;
  for (const std::string& word : words_of(options, option)) {
    const auto at = std::ranges::find(names, word);
    if (at == names.end()) {
      const std::vector<std::string> known(names.begin(), names.end());
      fail_value(option, word, listed(known) + " with commas" + did_you_mean(word, known));
    }
    out.push_back(static_cast<Enum>(at - names.begin()));
  }
  return out;
}

}  // namespace lockstep
