/// Who slowed whom, on which links, and when: what the transfers of several jobs did on one fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fabric/fabric_use.hpp"

namespace lockstep {

/// Time over that alone; of what is not over, over that of its part that is done. 1: nobody asked
/// how long it takes alone, or it has not begun.
inline double slowdown_of(double time_s, double alone_s, double done_share) {
  if (alone_s <= 0 || time_s <= 0) return 1;
  return time_s / (done_share > 0 ? alone_s * done_share : alone_s);
}

/// One transfer that ran more than once (a collective of every step) is one entry: its mean.
struct TransferCongestion {
  std::string job;   ///< whose: "training-a", "checkpoint"
  std::string name;  ///< "gradients of stage 0", "flow 17: node 3 to node 9"
  std::uint32_t runs = 1;
  double bytes = 0;    ///< payload of a run
  double start_s = 0;  ///< of the first run
  double mean_s = 0;   ///< of a run, its latency left out
  double alone_s = 0;  ///< of a run with nothing else on the fabric; 0: not asked for
  /// Of the bytes of its only run, where that is not over: mean_s is how long it has gone on.
  double done_share = 1;
  [[nodiscard]] double slowdown() const { return slowdown_of(mean_s, alone_s, done_share); }
  double stalled_s = 0;          ///< of mean_s: waited for a way, a link of it being dead
  std::int32_t worst_link = -1;  ///< into CongestionReport::links: cost it most time; -1: none
                                 ///< of the fabric (its own pace)
  double worst_link_share = 0;   ///< of the transfer's time that this link held it back
  /// A dead link cost it more than any full one.
  [[nodiscard]] bool mostly_stalled() const { return stalled_s > worst_link_share * mean_s; }
  std::string cause;       ///< who else put most bytes on that link meanwhile: "job: transfer";
                           ///< empty: nobody, the link is too narrow for this transfer alone
  double cause_share = 0;  ///< of the bytes that crossed the link meanwhile
};

struct LinkCongestion {
  std::string name;  ///< "leaf 2 to spine 0"
  double capacity_bytes_per_s = 0;
  double mean_utilisation = 0;       ///< over the whole time, 0 to 1
  double peak_utilisation = 0;       ///< of a bin
  std::vector<float> utilisation;    ///< by bin
  std::vector<double> bytes_by_job;  ///< in the order of CongestionReport::jobs
};

struct JobCongestion {
  std::string name;
  std::string about;   ///< "llama3_70b, 64 GPUs, TP 8 PP 1 DP 8" or "incast to node 0"
  double step_s = 0;   ///< training: mean step; other traffic: a round, to its last end
  double alone_s = 0;  ///< the same with nothing else on the fabric
  double bytes = 0;    ///< put on the fabric, NIC links
  /// Of the bytes of its only round, where that is not over: step_s is how long it has gone on.
  double done_share = 1;
  [[nodiscard]] double slowdown() const { return slowdown_of(step_s, alone_s, done_share); }
};

/// An event of the scenario, and what it touched; events that touched nothing are listed too.
struct EventOutcome {
  std::string what;               ///< "switch spine 1 goes down"
  double at_s = 0, lasts_s = 0;   ///< lasts_s 0: for good
  std::uint32_t times = 0;        ///< it happened while the jobs ran
  std::uint32_t links = 0;        ///< that lost capacity, the first time
  std::uint32_t transfers = 0;    ///< under way on such a link as it happened, all times together
  std::vector<std::string> jobs;  ///< whose they were, by name
};

struct CongestionReport {
  std::string title, about;
  std::string file{};  ///< the scenario's, with its path; empty: of no file
  std::string fabric;  ///< "rail_optimised, ecmp, 64 nodes x 8 NICs of 50 GB/s"
  double end_s = 0;
  double bin_s = 0;  ///< width of a bin of LinkCongestion::utilisation
  std::vector<JobCongestion> jobs;
  std::size_t links_used = 0;                 ///< that carried anything, whether listed or not
  std::vector<LinkCongestion> links;          ///< the most telling of those, fullest first
  std::vector<CarriedLink> carried{};         ///< all links that somebody may use
  std::optional<FabricUse> use{};             ///< the fabric as a drawing, where it is known
  std::size_t transfers_run = 0;              ///< whether listed or not
  std::vector<TransferCongestion> transfers;  ///< the most slowed of those, these first
  std::vector<EventOutcome> events;           ///< in the order of the scenario
  std::vector<std::string> notes;             ///< approximations made, in words
};

}  // namespace lockstep
