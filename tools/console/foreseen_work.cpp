#include "tools/console/foreseen_work.hpp"

#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

std::string work_announcement(const std::string& place, const std::string& what, double seconds) {
  const bool one = what.starts_with("1 ");
  return terminal_text(fmt::format("{}: {} {} about {}", place, what, one ? "takes" : "take",
                                   duration_text(seconds)));
}

std::optional<double> foreseen_seconds(double elapsed, double share) {
  constexpr double kEarliest = 3;  // seconds: less of its course says little of the rest
  if (elapsed < kEarliest || share <= 0) return std::nullopt;
  const double all = elapsed / share;
  return all < kWorthSaying ? std::nullopt : std::optional(all);
}

ForeseenWork::ForeseenWork(std::string place, std::string what, Progress& progress)
    : place_(std::move(place)),
      what_(std::move(what)),
      progress_(progress),
      start_(std::chrono::steady_clock::now()) {}

void ForeseenWork::reached(double share) {
  if (said_ || share >= 1) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::optional<double> seconds = foreseen_seconds(elapsed.count(), share);
  if (!seconds) return;
  said_ = true;
  progress_.say(work_announcement(place_, what_, *seconds));
}

}  // namespace lockstep
