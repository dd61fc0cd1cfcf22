/// What is wrong with a running job and does not stop it: stragglers, degraded parts, and wrong
/// numbers that nobody has seen yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/run/campaign.hpp"
#include "sim/run/failure_source.hpp"
#include "sim/run/run_books.hpp"

namespace lockstep {

class PendingFaults {
 public:
  struct Fault {
    std::uint32_t mode;
    RunTime since;
    RunTime found;  ///< degraded: when it is mended
    double slowdown;
    RunTime cost = 0;  ///< degraded: by how much it slowed the job so far
  };

  /// Both outlive this.
  PendingFaults(const std::vector<FailureMode>& modes, RunBooks& books)
      : modes_(modes), books_(books) {}

  [[nodiscard]] bool empty() const { return faults_.empty(); }
  /// From now on.
  void add(std::uint32_t mode, RunTime found, double slowdown) {
    faults_.push_back({mode, books_.now, found, slowdown});
  }
  /// By how much the slowest of them slows the job.
  [[nodiscard]] double slowest() const {
    double slowest = 1;
    for (const Fault& p : faults_) slowest = std::max(slowest, p.slowdown);
    return slowest;
  }
  /// Of that time, what the slowest part of the job costs, if it is one that is degraded.
  void charge_slowest(RunTime dt) {
    const auto slowest = std::ranges::max_element(faults_, {}, &Fault::slowdown);
    if (slowest == faults_.end() || modes_[slowest->mode].stops_job()) return;
    slowest->cost += static_cast<RunTime>(static_cast<double>(dt) * (1 - 1 / slowest->slowdown));
  }
  void mend_all() {
    for (const Fault& p : faults_) mend(p);
  }
  /// Books what a degraded part has cost.
  void mend(const Fault& part) {
    if (modes_[part.mode].stops_job()) return;
    books_.out.cost[part.mode] += part.cost;
    if (books_.timeline) books_.out.events.push_back({part.since, part.mode, part.cost});
  }

  [[nodiscard]] RunTime next_found() const {
    RunTime next = FailureSource::kNever;
    for (const Fault& p : faults_) next = std::min(next, p.found);
    return std::max(next, books_.now);
  }
  /// The one that is found first.
  Fault take_found() {
    const auto found = std::ranges::min_element(faults_, {}, &Fault::found);
    const Fault p = *found;
    faults_.erase(found);
    return p;
  }
  /// Those since then are gone with the work.
  void forget_wrong_numbers(RunTime since) {
    std::erase_if(faults_, [&](const Fault& p) {
      return modes_[p.mode].effect == FailureEffect::silent && p.since >= since;
    });
  }

 private:
  const std::vector<FailureMode>& modes_;
  RunBooks& books_;
  std::vector<Fault> faults_;
};

}  // namespace lockstep
