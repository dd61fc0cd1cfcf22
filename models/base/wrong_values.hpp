/// What is wrong in a document that a person wrote, found by reading it with valid values in the
/// place of wrong ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"

namespace lockstep {

/// The mistakes of one document, in the order in which its reader meets them; one for each place,
/// and kMostMistakes at most.
/// Of the two values that may stand for a wrong one `variant` 0 takes the first: what is wrong
/// with either does not depend on the wrong one.
class WrongValues {
 public:
  using Json = nlohmann::ordered_json;
  /// The two are so far from each other that bounds made of them differ: every other of 4 nodes, or
  /// of 5, is one of 2.
  static constexpr int kApart = 512;
  explicit WrongValues(std::size_t variant) : variant_(variant) {}

  /// Notes the mistake and puts a value in its place. False where that was done before, `node` is
  /// not what the document has there, or there are too many.
  bool replace(Json& root, const Json* node, const InputProblem& problem, const Json& first,
               const Json& second);
  /// Notes a mistake that is one whatever else the document says.
  void note(const InputProblem& problem);
  /// Takes a value that breaks a rule out of its object, and does not note it: the rule may be
  /// about a value that another stands for. False where it is no member of an object.
  bool take_out(Json& root, const InputProblem& problem);
  /// Notes unknown or missing keys, but for those that depend on what was chosen or taken out.
  void note_keys(std::span<const InputProblem> problems);
  /// What stands for a missing key: of a whole number another one in each variant, as bounds of
  /// other values may be made of it.
  [[nodiscard]] Json varied(const Json& example) const;
  /// The value at the place is a name that decides what else its object may have.
  void is_choice(std::string_view pointer);

  [[nodiscard]] std::size_t variant() const { return variant_; }
  [[nodiscard]] std::size_t replaced() const { return places_.size(); }
  /// Whether there are so many that no more are looked for.
  [[nodiscard]] bool full() const {
    return std::max(places_.size(), problems_.size()) >= kMostMistakes;
  }
  /// Whether an empty object or array stands for a wrong value.
  [[nodiscard]] bool emptied() const { return emptied_; }
  [[nodiscard]] const std::vector<InputProblem>& problems() const { return problems_; }

 private:
  std::size_t variant_;
  std::vector<InputProblem> problems_;
  std::vector<std::string> places_;   ///< of values that others stand for
  std::vector<std::string> reduced_;  ///< objects that a member was taken out of
  std::vector<std::string> chosen_;   ///< objects in which another name stands for a wrong one
  bool emptied_ = false;
  std::vector<std::shared_ptr<const Json>>
      kept_;  ///< what was replaced, as cursors may point into it
};

}  // namespace lockstep
