/// Goes through a plan on a card within a time, prints each result, and keeps the books.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/calibrate/hang_guard.hpp"
#include "tools/calibrate/plan.hpp"
#include "tools/calibrate/profile_text.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// How a session ended: at the end of the plan, or of what fitted into its time, or before.
enum class SessionEnd : std::uint8_t { done, interrupted, card_error };

/// A measurement that never comes back.
struct HangAnswer {
  Seconds patience;  ///< beyond a measurement's estimate
  /// Called on another thread, with the books as they are and the error among the conditions. Has
  /// to end the program.
  std::function<void()> give_up;
};

class Session {
 public:
  Session(Card& card, std::function<double()> seconds, Console& console, HangAnswer hang)
      : card_(card),
        seconds_(std::move(seconds)),
        console_(console),
        hang_(std::move(hang)),
        guard_([this](const char* call) { lose(call); }) {}

  /// Measures what fits before the clock shows `deadline`; what does not fit is counted. Repeats
  /// that are too far apart are done again, up to twice, while there is time; the calmest count.
  SessionEnd run(const std::vector<PlannedTask>& plan, double deadline);

  [[nodiscard]] const std::vector<MeasuredTask>& measured() const { return measured_; }
  /// Launch gaps, copies, the card's state by group, what was left out: conditions of a profile.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> conditions() const;
  /// Points that a wrong result or a refused call cost.
  [[nodiscard]] int failed() const { return failed_; }

 private:
  struct Group {
    int planned = 0, measured = 0, cut = 0, failed = 0;
    int restless = 0;  ///< points whose calmest repeats are still too far apart
    int states = 0;
    double mhz = 0, watts = 0, hottest = 0;  ///< sums over `states`, but for the last
  };
  struct Repeated {
    Timing timing;
    CardState state;
  };
  bool measure(const PlannedTask& planned, double deadline);
  Repeated repeat(const PlannedTask& planned);
  Repeated calmest(const PlannedTask& planned, double deadline);
  void note(const CardState& state, Group& group);
  void lose(const char* call);

  Card& card_;
  std::function<double()> seconds_;
  Console& console_;
  std::vector<MeasuredTask> measured_;
  std::vector<std::string> order_;  ///< of the groups
  std::map<std::string, Group> groups_;
  int failed_ = 0;
  std::string error_;  ///< of the card, where it ended the session
  HangAnswer hang_;
  std::string call_;  ///< what is being measured
  HangGuard guard_;   ///< goes first: its thread reads all of the above
};

}  // namespace lockstep
