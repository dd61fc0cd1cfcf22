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
  /// The same of collectives that are called otherwise.
  SessionEnd run(const std::vector<VariantTask>& plan, double deadline);

  /// Says that nothing more can be done, and why.
  void end_by(const std::string& error);

  [[nodiscard]] const std::vector<MeasuredCollective>& measured() const { return measured_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> conditions() const;
  [[nodiscard]] int failed() const { return failed_; }

 private:
  template <class Task>
  SessionEnd go_through(const std::vector<Task>& plan, double deadline);
  [[nodiscard]] Seconds estimate(const CollectiveTask& task) const;
  [[nodiscard]] Seconds estimate(const OverlapTask& task) const;
  [[nodiscard]] Seconds estimate(const VariantTask& task) const;
  /// These return a line for the console.
  std::string result_of(const CollectiveTask& task);
  std::string result_of(const OverlapTask& task);
  std::string result_of(const VariantTask& task);
  std::string keep(const std::string& task, const std::string& result);
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
  std::vector<std::pair<std::string, std::string>> comparisons_;  ///< task, what came out
  std::string error_;
};

}  // namespace lockstep
