/// Goes through a plan on a card within a time, prints each result, and keeps the books.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/calibrate/plan.hpp"
#include "tools/calibrate/profile_text.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// How a session ended: at the end of the plan, or of what fitted into its time, or before.
enum class SessionEnd : std::uint8_t { done, interrupted, card_error };

class Session {
 public:
  Session(Card& card, std::function<double()> seconds, Console& console)
      : card_(card), seconds_(std::move(seconds)), console_(console) {}

  /// Measures what fits before the clock shows `deadline`; what does not fit is counted.
  SessionEnd run(const std::vector<PlannedTask>& plan, double deadline);

  [[nodiscard]] const std::vector<MeasuredTask>& measured() const { return measured_; }
  /// Launch gaps, copies, the card's state by group, what was left out: conditions of a profile.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> conditions() const;
  /// Points that a wrong result or a refused call cost.
  [[nodiscard]] int failed() const { return failed_; }

 private:
  struct Group {
    int planned = 0, measured = 0, cut = 0, failed = 0;
    int states = 0;
    double mhz = 0, watts = 0, hottest = 0;  ///< sums over `states`, but for the last
  };
  bool measure(const PlannedTask& planned);
  void note(const CardState& state, Group& group);

  Card& card_;
  std::function<double()> seconds_;
  Console& console_;
  std::vector<MeasuredTask> measured_;
  std::vector<std::string> order_;  ///< of the groups
  std::map<std::string, Group> groups_;
  int failed_ = 0;
  std::string error_;  ///< of the card, where it ended the session
};

}  // namespace lockstep
