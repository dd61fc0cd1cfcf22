/// What takes long is announced, also where nothing estimated it before it began.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tools/console/progress.hpp"

namespace lockstep {

/// Work of more seconds is announced.
inline constexpr double kWorthSaying = 30;

/// "a.json: 3 points take about 60.0 s".
std::string work_announcement(const std::string& place, const std::string& what, double seconds);

/// How long work takes in all of which `share` is done after `elapsed` seconds; nothing where that
/// is not worth saying, or too early to say.
std::optional<double> foreseen_seconds(double elapsed, double share);

/// Work that is announced, once, when its course foretells that it takes long.
class ForeseenWork {
 public:
  /// `what` of the file: "3 points".
  ForeseenWork(std::string place, std::string what, Progress& progress);
  /// So much is done, from 0 to 1.
  void reached(double share);

 private:
  std::string place_, what_;
  Progress& progress_;
  std::chrono::steady_clock::time_point start_;
  bool said_ = false;
};

}  // namespace lockstep
