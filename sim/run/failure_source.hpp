/// When what fails: the failures of every component of a job, merged in order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/run/campaign.hpp"

namespace lockstep {

/// What a stream of a run is for; part of its name.
enum class RunDraw : std::uint32_t {
  failures,
  repair,
  replacement,
  corruption,
  discovery,
  diagnosis,
  absence,
  presence,
};
/// The name of draw number `number` of a purpose: draws are apart, so that none need be kept.
constexpr std::uint32_t purpose_of(RunDraw purpose, std::uint32_t number) {
  return static_cast<std::uint32_t>(purpose) | number << 4;
}

/// Exponential modes are drawn as one process of all their components, which is the same in law as
/// each by itself; Weibull modes are renewed component by component, and so are those whose nodes
/// are taken away for a while, each from its return on: a source that is finite. Where not all
/// nodes are there (Campaign::nodes_there), failures of the others are passed over, which leaves
/// those of a process whose rate follows the nodes that are there (thinning: Lewis and Shedler
/// 1979, Naval Research Logistics Quarterly 26(3)); components that are drawn one by one are as old
/// as the run, and the first of them are there. A campaign's log takes the place of all.
class FailureSource {
 public:
  /// `campaign` outlives the source. Nothing after `until` is asked for.
  FailureSource(const Campaign& campaign, std::uint32_t trajectory, RunTime until);

  struct Failure {
    RunTime at;
    std::uint32_t mode;
    RunTime back = 0;  ///< when another node is there, where one is away; 0: none is
  };
  static constexpr RunTime kNever = INT64_MAX;

  [[nodiscard]] RunTime next_at() const { return heap_.empty() ? kNever : heap_.top().at; }
  /// Of the next failure. Requires next_at() != kNever.
  [[nodiscard]] std::uint32_t next_mode() const { return processes_[heap_.top().process].mode; }
  /// The next failure; the one after it is drawn. Requires next_at() != kNever.
  Failure take();

 private:
  struct Entry {
    RunTime at;
    std::uint32_t process;  ///< into processes_; ties go by it
    friend bool operator>(const Entry& a, const Entry& b) {
      return a.at != b.at ? a.at > b.at : a.process > b.process;
    }
  };
  struct Process {
    std::uint32_t mode;
    double scale_ns;  ///< of the exponential or Weibull law
    double shape;
    double away_ns = 0;  ///< mean
    RunTime gone = 0;    ///< for good, or the end of the run
    /// Of a component among all of its mode, from 0 to 1; below 0: it says itself when it is there.
    /// None: the process is that of all components.
    std::optional<double> place{};
    std::uint32_t drawn = 0;
  };

  void draw(std::uint32_t process, RunTime from);
  [[nodiscard]] std::optional<RunTime> draw_failure(std::uint32_t process, RunTime from);
  /// Whether what failed, by the last draw of the process, is there.
  [[nodiscard]] bool is_there(std::uint32_t process, RunTime at) const;
  [[nodiscard]] RunTime draw_return(std::uint32_t process, RunTime from) const;

  bool logged_;
  StreamName name_;
  RunTime until_;
  const std::vector<NodesThere>& nodes_there_;
  std::vector<Process> processes_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace lockstep
