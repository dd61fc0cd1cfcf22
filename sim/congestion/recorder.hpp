/// Watches the flows of several jobs on one network, and tells afterwards who slowed whom.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/congestion/congestion_report.hpp"
#include "sim/core/flow_network.hpp"

namespace lockstep {

struct CongestionLimits {
  int bins = 200;           ///< of the time axis
  std::size_t links = 400;  ///< reported at most: the fullest, and those that held somebody back
  std::size_t transfers = 500;  ///< reported at most, the most slowed
};

/// Name links and flows as they are made; the network calls the rest. Flows and links without a
/// name (a collective's own pace, ports inside a node) take part in nothing but what holds a flow
/// back.
class CongestionRecorder final : public FlowObserver {
 public:
  /// `network` outlives the recorder, which observes it from here on.
  explicit CongestionRecorder(FlowNetwork& network);

  /// Numbered from 0.
  std::uint32_t add_job(std::string name, std::string about);
  /// Links of one name are one: the same cable, drawn again after a failure elsewhere. `entry`:
  /// bytes enter the fabric here (a NIC's way up), so that they count once.
  void add_link(LinkIndex index, const std::string& name, BytesPerSecond capacity, bool entry);
  /// A link carries what `job` puts on `simulated`, which has a name, and not what the job is seen
  /// to put on it: of lanes of which one is simulated.
  void add_like(std::uint32_t job, LinkIndex simulated, const std::string& name,
                BytesPerSecond capacity);
  /// Flows of one name and job are one transfer, never two at a time. `unit`: bytes of the flow's
  /// progress per byte of payload.
  void add_flow(FlowIndex flow, std::uint32_t job, const std::string& name, double unit = 1);

  void started(FlowIndex flow, Bytes amount, StepTime now) override;
  void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
             LinkIndex held_by) override;
  void ended(FlowIndex flow, StepTime now) override;

  /// Everything up to `end`, which no end of a flow exceeds and up to which the network has taken
  /// stock. TransferCongestion::alone_s is what its links give it at once and all the time. A link
  /// holds a transfer back for as long as this is slower than alone: than its mean rate in `alone`,
  /// reports of each job alone, or else than its links to itself allow. Of one that is never slower
  /// it is the link that sets its rate.
  /// JobCongestion::step_s is the job's last end, and done_share what is done of all that it began;
  /// who knows better sets them.
  [[nodiscard]] CongestionReport report(StepTime end, const CongestionLimits& limits = {},
                                        std::span<const CongestionReport> alone = {}) const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Named {
    std::string name;
    double capacity;
    bool entry;
  };
  struct Transfer {
    std::uint32_t job;
    std::string name;
  };
  struct Span {
    FlowIndex flow;
    LinkIndex held_by;
    StepTime from, to;
    double rate;
  };
  struct Run {
    StepTime start, end;
    double payload;
    double alone;  ///< seconds that it would take with its links to itself
    bool over = false;
  };
  /// Links of a job that carry what another does.
  struct Likes {
    std::map<std::uint32_t, std::vector<std::uint32_t>> of;  ///< by the one that is simulated
    std::set<std::uint32_t> all;
  };
  class Writer;

  std::uint32_t link_number(const std::string& name, BytesPerSecond capacity, bool entry);
  [[nodiscard]] BytesPerSecond rate_alone(FlowIndex flow) const;
  [[nodiscard]] std::uint32_t link_of(LinkIndex index) const {
    return index < link_of_.size() ? link_of_[index] : kNone;
  }
  [[nodiscard]] std::uint32_t transfer_of(FlowIndex flow) const {
    return flow < transfer_of_.size() ? transfer_of_[flow] : kNone;
  }

  const FlowNetwork& network_;
  std::vector<JobCongestion> jobs_;
  std::vector<Named> links_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> link_of_;      ///< by LinkIndex
  std::vector<Likes> likes_;                ///< by job
  std::vector<std::uint32_t> transfer_of_;  ///< by FlowIndex
  std::vector<double> unit_;                ///< by FlowIndex
  std::map<std::string, std::uint32_t, std::less<>> link_numbers_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> transfer_numbers_;
  std::vector<std::vector<Run>> runs_;  ///< by transfer
  std::vector<Span> spans_;
};

/// Puts alone_s of jobs and transfers as they are in reports of each job alone, by name; sorts the
/// transfers, most slowed first.
void compare_with_alone(std::span<const CongestionReport> alone, CongestionReport& together);

}  // namespace lockstep
