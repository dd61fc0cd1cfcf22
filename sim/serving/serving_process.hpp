/// A service as a process of the engine: its clock is the run's nanoseconds, that of the network
/// picoseconds; an end of a flow is seen in the first nanosecond behind it.
#pragma once

#include <functional>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/serving/serving_run.hpp"

namespace lockstep {

class ServingProcess final : public Process {
 public:
  /// `go_on` is asked now and then with the number of requests that have ended. All outlive this.
  ServingProcess(ServingRun& run, KvFlows& flows, const std::function<bool(std::size_t)>& go_on)
      : run_(run), flows_(flows), go_on_(go_on) {}

  [[nodiscard]] StepTime next_event() const override;
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override;
  void handle_events(StepTime now) override;
  /// Also where nothing can happen any more.
  [[nodiscard]] bool done() const override;
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  ServingRun& run_;
  KvFlows& flows_;
  const std::function<bool(std::size_t)>& go_on_;
  std::vector<std::int32_t> arrived_;
  std::size_t handled_ = 0;
  bool stopped_ = false;
};

}  // namespace lockstep
