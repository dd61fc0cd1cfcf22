/// The error of a person who wrote an input file: a line that says where, what, and what instead.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// A key of a document that no reader knows.
struct UnknownKey {
  std::string pointer;
  std::string nearest;  ///< the key that was probably meant; empty: none is near
  friend bool operator==(const UnknownKey&, const UnknownKey&) = default;
};

/// What was wrong, in parts. `file` and `allowed` are never empty.
struct InputProblem {
  std::string file;     ///< as the person named it
  std::string pointer;  ///< JSON pointer (RFC 6901), "/cluster/nodes"; empty: the whole file
  std::string found;    ///< as JSON writes it: "\"fattree\"", "6", "an object"
  std::string allowed;  ///< the rule, not just the value
  std::string nearest;  ///< the name that was probably meant; empty: none is near
  std::vector<UnknownKey> unknown_too{};  ///< of an unknown key: others of the same document

  /// `found`, with the first of the others: `the unknown key "x", and also /levles ("levels"?)`.
  [[nodiscard]] std::string all_found() const;
  friend bool operator==(const InputProblem&, const InputProblem&) = default;
};

/// Of a document with more mistakes only so many are looked for.
inline constexpr std::size_t kMostMistakes = 1000;

/// A mistake in a person's input, and others of the same document that do not depend on it. what()
/// is a line for each, without a newline at its end; after 20 of them it says how many more ("at
/// least", where that was the most that were looked for):
///     plan.json#/cluster/nodes: found 0; allowed: a whole number from 1 to 1000000
/// followed by `. Did you mean "X"?` where a name is near. Tools print it and exit with status 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(InputProblem problem, std::vector<InputProblem> also = {});

  [[nodiscard]] const InputProblem& problem() const { return problem_; }
  [[nodiscard]] std::span<const InputProblem> also() const { return also_; }
  /// The line of the first mistake alone, for a cell or a row of a table.
  [[nodiscard]] std::string first_line() const;

 private:
  InputProblem problem_;
  std::vector<InputProblem> also_;
};

/// The same mistakes as `tell`, which is called with each InputProblem, changes them; of an unknown
/// key beside another, which is one for `tell` too, it changes the pointer.
template <class Tell>
InputError retold(const InputError& error, const Tell& tell) {
  const auto anew = [&tell](InputProblem problem) {
    for (UnknownKey& key : problem.unknown_too) {
      InputProblem other{problem.file, key.pointer, problem.found, problem.allowed, key.nearest};
      tell(other);
      key.pointer = std::move(other.pointer);
    }
    tell(problem);
    return problem;
  };
  std::vector<InputProblem> also;
  for (const InputProblem& each : error.also()) also.push_back(anew(each));
  return InputError(anew(error.problem()), std::move(also));
}

/// The same mistake, told of the option that the person wrote: `told` is what changed the document
/// ("--set cluster.nodes=0"), `written` what stood for it ("--nodes 0").
InputError told_of(const InputError& error, std::string_view told, std::string_view written);

/// `name` as JSON writes it, cut to a readable length, with bytes that are no text escaped.
std::string in_quotes(std::string_view name);

/// "a, b, c", cut after 40 names with the number of those left out.
std::string listed(std::span<const std::string> names);
std::string listed(std::span<const std::string_view> names);

/// The candidate that `name` was probably meant to be, letter case aside: what frameworks call so
/// ("bfloat16" and "bf16"); the shortest that begins with it; the one that the fewest single-letter
/// insertions, deletions, replacements and swaps of neighbours make of it, up to a third of the
/// length; the one that shares the most of its words ("h100" and "dgx_h100", "org/Llama-3.1-70B"
/// and "llama3_70b"); or one that contains it. The first of equals; empty if none.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace lockstep
