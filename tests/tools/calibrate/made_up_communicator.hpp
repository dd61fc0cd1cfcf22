/// Ranks that the models make up, for tests of everything around NCCL.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "models/collectives/collectives.hpp"
#include "models/spec/hardware.hpp"
#include "tools/calibrate/communicator.hpp"

namespace lockstep::test {

/// `nodes` machines with `per_node` cards each.
inline CommunicatorFacts facts_of(int nodes, int per_node, Bytes room) {
  CommunicatorFacts facts;
  for (int rank = 0; rank < nodes * per_node; ++rank) {
    facts.hosts.push_back("host-" + std::to_string(rank / per_node));
    facts.devices.emplace_back("NVIDIA H100 80GB HBM3");
  }
  facts.room = room;
  facts.conditions = {{"NCCL", "made up"}};
  return facts;
}

/// What the processes of a made-up launch share. With one process there is nothing to wait for.
struct MadeUpLaunch {
  explicit MadeUpLaunch(int processes) : barrier(processes) {}
  std::barrier<> barrier;
  std::mutex mutex;
  std::vector<double> most;
};

/// Takes 10 % longer than the laws say, with a spread, and moves the clock of the test.
class MadeUpCommunicator : public Communicator {
 public:
  MadeUpCommunicator(CommunicatorFacts facts, const NodeSpec& node, const TransportSpec& transport,
                     MadeUpLaunch& launch, std::atomic<double>& clock)
      : facts_(std::move(facts)),
        node_(node),
        transport_(transport),
        launch_(launch),
        clock_(clock) {}
  [[nodiscard]] const CommunicatorFacts& facts() const override { return facts_; }

  std::vector<double> agree(std::vector<double> values) override {
    {
      const std::scoped_lock lock(launch_.mutex);
      launch_.most.resize(values.size(), -1e300);
      for (std::size_t i = 0; i < values.size(); ++i) {
        launch_.most[i] = std::max(launch_.most[i], values[i]);
      }
    }
    launch_.barrier.arrive_and_wait();
    values = launch_.most;
    launch_.barrier.arrive_and_wait();
    {
      const std::scoped_lock lock(launch_.mutex);
      launch_.most.clear();
    }
    launch_.barrier.arrive_and_wait();
    return values;
  }

  Samples measure(const CollectiveTask& task) override {
    tasks.push_back(task);
    clock_ += seconds_a_task;
    if (before_each) before_each(tasks.size());
    const double t = 1.1 * law(task).base_units();
    return {.seconds = {t, 1.02 * t, 0.98 * t, 1.01 * t, 0.99 * t},
            .state = {.sm_mhz = 1980, .watts = 300, .celsius = 50}};
  }

  OverlapTimes overlap(const OverlapTask& task) override {
    overlaps.push_back(task);
    clock_ += seconds_a_task;
    return {.product_alone = Seconds{1e-3},
            .product_beside = Seconds{1.1e-3},
            .collective_alone = Seconds{2e-3},
            .collective_beside = Seconds{2.5e-3}};
  }

  VariantTimes vary(const VariantTask& task) override {
    variants.push_back(task);
    clock_ += seconds_a_task;
    return {.plain = Seconds{1e-3}, .varied = Seconds{1.9e-3}};
  }

  double seconds_a_task = 0.05;
  std::function<void(std::size_t nth)> before_each;
  std::vector<CollectiveTask> tasks;
  std::vector<OverlapTask> overlaps;
  std::vector<VariantTask> variants;

 private:
  [[nodiscard]] Seconds law(const CollectiveTask& task) const {
    const int per_node = static_cast<int>(
        std::count(facts_.hosts.begin(), facts_.hosts.end(), facts_.hosts.front()));
    return collective_time({task.op, task.size, facts_.ranks(), per_node}, node_.gpu, transport_,
                           static_cast<double>(node_.nics) / node_.gpus * node_.nic_bandwidth);
  }

  CommunicatorFacts facts_;
  const NodeSpec& node_;
  const TransportSpec& transport_;
  MadeUpLaunch& launch_;
  std::atomic<double>& clock_;
};

}  // namespace lockstep::test
