/// Goes through the collectives within a time, the same way in every process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/calibrate/communicator.hpp"
#include "tools/calibrate/profile_text.hpp"
#include "tools/calibrate/session.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

class CollectiveSession {
 public:
  /// `seconds`: since this process began. Only rank 0 prints what it measures.
  CollectiveSession(Communicator& communicator, std::function<double()> seconds, Console& console)
      : communicator_(communicator), seconds_(std::move(seconds)), console_(console) {}

  /// Measures what fits before the slowest process' clock shows `deadline`; what does not fit is
  /// counted. An interrupt of any process ends all.
  SessionEnd run(const std::vector<CollectiveTask>& plan, double deadline);
  /// The same of products beside collectives, which are conditions and no points.
  SessionEnd run(const std::vector<OverlapTask>& plan, double deadline);

  [[nodiscard]] const std::vector<MeasuredCollective>& measured() const { return measured_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> conditions() const;
  [[nodiscard]] int failed() const { return failed_; }

 private:
  template <class Task>
  SessionEnd go_through(const std::vector<Task>& plan, double deadline);
  [[nodiscard]] Seconds estimate(const CollectiveTask& task) const;
  [[nodiscard]] Seconds estimate(const OverlapTask& task) const;
  void measure(const CollectiveTask& task);
  void measure(const OverlapTask& task);
  void note(const CardState& state);

  Communicator& communicator_;
  std::function<double()> seconds_;
  Console& console_;
  std::vector<MeasuredCollective> measured_;
  std::map<CollectiveOp, std::map<double, Seconds>> times_;  ///< by size
  std::size_t planned_ = 0, cut_ = 0;
  int failed_ = 0;
  int states_ = 0;
  double mhz_ = 0, watts_ = 0, hottest_ = 0;  ///< rank 0's card: sums over states_, but the last
  std::vector<std::pair<std::string, std::string>> overlaps_;  ///< task, what came out
  std::string error_;
};

}  // namespace lockstep
