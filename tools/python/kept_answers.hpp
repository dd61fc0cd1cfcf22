/// Answers of a function that is asked once for each question.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace lockstep {

/// Keeps answers by their questions, for any thread, and forgets all of them before they weigh
/// more than a million numbers (8 to 16 MB): a search over layouts asks for many, each for a short
/// while.
template <class Question, class Answer>
class KeptAnswers {
 public:
  /// `ask` gives the answer and its weight, the numbers that it and its question hold.
  template <class Ask>
  Answer of(const Question& question, const Ask& ask) {
    {
      const std::scoped_lock lock(mutex_);
      const auto known = known_.find(question);
      if (known != known_.end()) return known->second;
    }
    // Unlocked: Python's lock may be with somebody who waits for this one.
    std::pair<Answer, std::size_t> asked = ask();
    const std::scoped_lock lock(mutex_);
    weight_ += asked.second;
    if (weight_ > kMost) {
      known_.clear();
      weight_ = asked.second;
    }
    known_.insert_or_assign(question, asked.first);
    return std::move(asked.first);
  }

 private:
  static constexpr std::size_t kMost = 1'000'000;
  std::mutex mutex_;
  std::map<Question, Answer> known_;
  std::size_t weight_ = 0;
};

}  // namespace lockstep
