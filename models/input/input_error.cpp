#include "models/input/input_error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "models/input/letter_case.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kQuotedLength = 60;
constexpr std::size_t kPointerLength = 200;
constexpr std::size_t kListedNames = 40;

/// Length of the UTF-8 sequence at the start of `text`, 0 where there is none.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  std::size_t length = 0;
  if (first < 0x80) length = 1;
  if (first >= 0xC2 && first < 0xE0) length = 2;
  if (first >= 0xE0 && first < 0xF0) length = 3;
  if (first >= 0xF0 && first < 0xF5) length = 4;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

/// Makes one printable line of anything: control characters and broken UTF-8 become \xNN.
std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = byte < 0x20 || byte == 0x7F ? 0 : utf8_length(text);
    if (length == 0) {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string sentence(const InputProblem& problem) {
  std::string line = problem.file;
  if (!problem.pointer.empty()) line += "#" + problem.pointer.substr(0, kPointerLength);
  if (problem.pointer.size() > kPointerLength) line += "...";
  line += ": found " + problem.found + "; allowed: " + problem.allowed;
  if (!problem.nearest.empty()) line += ". Did you mean \"" + problem.nearest + "\"?";
  return printable(line);
}

/// Optimal string alignment distance: insertions, deletions, replacements, swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

template <class Name>
std::string join(std::span<const Name> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kListedNames) return out + ", and " + std::to_string(names.size() - i) + " more";
    if (i > 0) out += ", ";
    out += names[i];
  }
  return out;
}

}  // namespace

InputError::InputError(InputProblem problem)
    : std::runtime_error(sentence(problem)), problem_(std::move(problem)) {}

std::string in_quotes(std::string_view name) {
  if (name.size() <= kQuotedLength) return "\"" + printable(name) + "\"";
  // Cut where a UTF-8 sequence begins, so that the cut makes no broken letter.
  std::size_t cut = kQuotedLength;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;
  return "\"" + printable(name.substr(0, cut)) + "...\"";
}

std::string listed(std::span<const std::string> names) { return join(names); }
std::string listed(std::span<const std::string_view> names) { return join(names); }

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 64;  // nobody misspells a longer name; bounds the work
  if (name.empty() || name.size() > kLongest) return {};
  const std::string wanted = lowered(name);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edit_distance(wanted, lowered(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || wanted.size() < 3) return best;
  for (const std::string& candidate : candidates) {
    if (lowered(candidate).starts_with(wanted)) return candidate;
  }
  for (const std::string& candidate : candidates) {
    if (lowered(candidate).find(wanted) != std::string::npos) return candidate;
  }
  return {};
}

}  // namespace lockstep
