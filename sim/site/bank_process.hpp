/// How many units of each bank are down, over the time of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/site/plant.hpp"
#include "sim/core/random.hpp"
#include "sim/run/campaign.hpp"

namespace lockstep {

/// One bank: exponential failures of the units that are up, exponential repairs by its crews; all
/// are up at the start. A function of (seed, trajectory, number of the bank).
class BankProcess {
 public:
  BankProcess(UnitBank bank, std::uint64_t seed, std::uint32_t trajectory, std::uint32_t number);

  [[nodiscard]] int down() const { return down_; }
  [[nodiscard]] RunTime next_at() const { return next_; }
  /// Goes through what happens up to `now`, `now` included. Times of calls rise.
  void advance(RunTime now);

 private:
  void draw();

  UnitBank bank_;
  RandomStream draws_;
  RunTime last_ = 0, next_ = INT64_MAX;
  int down_ = 0;
  bool fails_ = true;  ///< what is next
};

}  // namespace lockstep
