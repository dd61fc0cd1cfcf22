/// Which trials of a campaign go on, and when: a job of the next rung is submitted when others have
/// ended.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// By which trials of a campaign are ranked: the lowest is the best.
double trial_draw(std::uint64_t seed, std::uint32_t campaign, std::uint32_t trial);

/// Told of every job that is submitted and of every trial that ends. Of two trials the better one
/// has the lower draw of the scenario's seed, which is the same in all rungs; whose job was
/// cancelled, cut or failed does not go on.
class CampaignRungs {
 public:
  /// `spec` outlives it.
  explicit CampaignRungs(const QueueSpec& spec);

  /// Whether there are any campaigns: else nothing here needs to be called.
  [[nodiscard]] bool used() const { return !submitted_.empty(); }

  void submitted(std::uint32_t j, RunTime now);
  /// When it was; below 0: never.
  [[nodiscard]] RunTime submitted_at(std::uint32_t j) const { return submitted_[j]; }
  /// How many were submitted before it.
  [[nodiscard]] std::uint32_t turn_of(std::uint32_t j) const { return turns_[j]; }

  /// Any job has ended. Jobs that have to be submitted now, by number.
  std::vector<std::uint32_t> ended(std::uint32_t j, bool well);
  /// Jobs that will never be submitted, of brackets of which all trials have ended since the last
  /// call.
  std::vector<std::uint32_t> take_left_out() { return std::exchange(left_out_, {}); }

 private:
  /// The draw, then the number of the job.
  using Score = std::pair<double, std::uint32_t>;
  struct Rung {
    std::uint32_t entered = 0, ended = 0;
    std::set<Score> best, rest;  ///< of those that have ended well; asha: the best 1 / eta
  };
  struct Bracket {
    std::vector<Rung> rungs;
    std::uint32_t running = 0;  ///< submitted, and not ended
  };

  [[nodiscard]] Score score_of(std::uint32_t j) const;
  [[nodiscard]] const TrialBracket& bracket_of(std::uint32_t j) const;
  std::vector<std::uint32_t> best_of_all(Rung& rung, std::uint32_t eta);
  std::vector<std::uint32_t> best_so_far(Rung& rung, std::uint32_t eta);
  void leave_out(const TrialBracket& bracket);

  const QueueSpec* spec_;
  std::vector<RunTime> submitted_;    ///< of jobs
  std::vector<std::uint32_t> turns_;  ///< of jobs
  std::uint32_t next_turn_ = 0;
  std::vector<Bracket> brackets_;
  std::vector<std::vector<std::uint32_t>> trials_;  ///< of campaigns: the first job of each trial
  std::vector<std::uint32_t> later_;  ///< of jobs: that of the next rung; kLast: there is none
  std::vector<bool> went_on_;         ///< of jobs
  std::vector<std::uint32_t> left_out_;
};

}  // namespace lockstep
