/// The error of a person whose file lacks keys: all of them at once, with an example of each.
#pragma once

#include <string>
#include <vector>

#include "models/base/input_error.hpp"

namespace lockstep {

struct MissingKey {
  std::string object;   ///< pointer of the object that lacks it; empty: the root
  std::string key;      ///< or the index of an element
  std::string example;  ///< a valid value as JSON; empty: none is known
};

/// What is wrong with a file that lacks keys:
///     plan.json#/batch: found an object without "sequences" and "tokens"; allowed: an object with
///     them, such as {"sequences":256,"tokens":4096}
/// Keys of several objects are named by their pointers: "/batch/tokens" and "/model".
class MissingKeys : public InputError {
 public:
  /// Requires at least one key. What an example of another key lacks itself becomes part of it.
  MissingKeys(std::string file, std::vector<MissingKey> keys);

  [[nodiscard]] const std::vector<MissingKey>& keys() const { return keys_; }

 private:
  std::vector<MissingKey> keys_;
};

}  // namespace lockstep
