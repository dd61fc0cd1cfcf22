#include "models/base/input_error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "models/base/letter_case.hpp"
#include "models/base/printable.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kQuotedLength = 60;
constexpr std::size_t kPointerLength = 200;
constexpr std::size_t kListedNames = 40;

std::string sentence(const InputProblem& problem) {
  std::string line = problem.file;
  if (!problem.pointer.empty()) line += "#" + problem.pointer.substr(0, kPointerLength);
  if (problem.pointer.size() > kPointerLength) line += "...";
  line += ": found " + problem.all_found() + "; allowed: " + problem.allowed;
  if (!problem.nearest.empty()) line += ". Did you mean \"" + problem.nearest + "\"?";
  return printable(line);
}

/// A line for each, the first ones of many.
std::string sentences(const InputProblem& problem, std::span<const InputProblem> also) {
  constexpr std::size_t kMostTold = 20;
  std::string lines = sentence(problem);
  const std::size_t told = std::min(also.size(), kMostTold - 1);
  for (const InputProblem& each : also.first(told)) lines += "\n" + sentence(each);
  if (told == also.size()) return lines;
  const char* const at_least = also.size() + 1 >= kMostMistakes ? "at least " : "";
  lines += "\nand " + (at_least + std::to_string(also.size() - told)) + " more";
  return lines;
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

/// Words of a name, in which letters and digits part too: "Llama-3.1-70B" is llama, 3, 1, 70, b.
/// What stands before the last slash, an organisation on a hub, is none of it.
std::vector<std::string> name_words(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  const auto kind = [](char c) {
    if (c >= '0' && c <= '9') return 1;
    return c >= 'a' && c <= 'z' ? 2 : 0;
  };
  std::vector<std::string> words;
  int last = 0;
  for (const char c : lowered(name)) {
    if (kind(c) != 0 && kind(c) != last) words.emplace_back();
    if (kind(c) != 0) words.back() += c;
    last = kind(c);
  }
  return words;
}

/// The name that shares the most words of both; of names that share as much the shortest.
std::string name_with_words(std::string_view name, std::span<const std::string> candidates) {
  constexpr double kLeast = 0.5;  // of the words of both
  const std::vector<std::string> wanted = name_words(name);
  std::string best;
  double most = 0;
  for (const std::string& candidate : candidates) {
    std::vector<std::string> left = name_words(candidate);
    const std::size_t all = wanted.size() + left.size();
    std::size_t shared = 0;
    for (const std::string& word : wanted) {
      const auto at = std::ranges::find(left, word);
      if (at == left.end()) continue;
      left.erase(at);
      ++shared;
    }
    const double share = static_cast<double>(2 * shared) / static_cast<double>(all);
    if (share < most || (share == most && candidate.size() >= best.size())) continue;
    most = share;
    best = candidate;
  }
  return most > kLeast ? best : std::string();
}

/// What frameworks call a thing that we call otherwise: torch's dtypes, checkpoints' formats,
/// FSDP's strategies.
struct Synonym {
  std::string_view theirs, ours;
};
constexpr std::array kSynonyms{
    Synonym{"bfloat16", "bf16"},       Synonym{"float16", "fp16"},
    Synonym{"half", "fp16"},           Synonym{"float8", "fp8"},
    Synonym{"mxfp8", "fp8"},           Synonym{"nvfp4", "fp4"},
    Synonym{"mxfp4", "fp4"},           Synonym{"awq", "int4"},
    Synonym{"gptq", "int4"},           Synonym{"fsdp", "zero3"},
    Synonym{"fsdp2", "zero3"},         Synonym{"full_shard", "zero3"},
    Synonym{"shard_grad_op", "zero3"}, Synonym{"distributed_optimizer", "zero1"},
};

/// The candidate of which `wanted`, in small letters, is another word; empty if none.
std::string name_of_same(std::string_view wanted, std::span<const std::string> candidates) {
  const auto known = std::ranges::find(kSynonyms, wanted, &Synonym::theirs);
  if (known == kSynonyms.end()) return {};
  const auto found = std::ranges::find(candidates, known->ours);
  return found == candidates.end() ? std::string() : *found;
}

/// The shortest candidate that begins with `wanted`, which is in small letters; empty if none.
std::string name_begun(std::string_view wanted, std::span<const std::string> candidates) {
  std::string_view best;
  for (const std::string& candidate : candidates) {
    if (!lowered(candidate).starts_with(wanted)) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  return std::string(best);
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

InputError told_of(const InputError& error, std::string_view told, std::string_view written) {
  return retold(error, [&](InputProblem& problem) {
    for (std::string* part : {&problem.file, &problem.found}) {
      const std::size_t at = part->find(told);
      if (at != std::string::npos) part->replace(at, told.size(), written);
    }
  });
}

std::string InputProblem::all_found() const {
  constexpr std::size_t kMostNamed = 19;
  std::string out = found;
  for (std::size_t i = 0; i < unknown_too.size() && i < kMostNamed; ++i) {
    out += (i == 0 ? ", and also " : ", ") + unknown_too[i].pointer;
    if (!unknown_too[i].nearest.empty()) out += " (" + in_quotes(unknown_too[i].nearest) + "?)";
  }
  if (unknown_too.size() > kMostNamed) {
    out += " and " + std::to_string(unknown_too.size() - kMostNamed) + " more";
  }
  return out;
}

InputError::InputError(InputProblem problem, std::vector<InputProblem> also)
    : std::runtime_error(sentences(problem, also)),
      problem_(std::move(problem)),
      also_(std::move(also)) {}

std::string InputError::first_line() const { return sentence(problem_); }

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
  const bool is_word = wanted.size() >= 3;
  if (std::string same = name_of_same(wanted, candidates); !same.empty()) return same;
  if (std::string begun = is_word ? name_begun(wanted, candidates) : ""; !begun.empty()) {
    return begun;
  }
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
  if (!best.empty() || !is_word) return best;
  if (std::string with = name_with_words(name, candidates); !with.empty()) return with;
  for (const std::string& candidate : candidates) {
    if (lowered(candidate).find(wanted) != std::string::npos) return candidate;
  }
  return {};
}

}  // namespace lockstep
