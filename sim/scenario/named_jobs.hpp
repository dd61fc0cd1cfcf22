/// Jobs that share a fate, for a line about them: how many, and who the first ones are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// Jobs by their names, of which the first few are kept.
class NamedJobs {
 public:
  void add(const std::string& name);
  [[nodiscard]] std::size_t count() const { return count_; }
  /// "3, 5, 8_1, 9, 12, and 7 more"; empty of none.
  [[nodiscard]] std::string names() const;
  /// "12 jobs (3, 5, 8_1, 9, 12, and 7 more)"
  [[nodiscard]] std::string words() const;

 private:
  std::size_t count_ = 0;
  std::vector<std::string> first_;
};

}  // namespace lockstep
