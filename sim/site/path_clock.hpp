/// The path of power over a run: units that fail and are repaired, batteries, generators.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/site/standby.hpp"
#include "sim/core/random.hpp"
#include "sim/site/bank_process.hpp"
#include "sim/site/power_path.hpp"

namespace lockstep {

/// What standby power met so far.
struct StandbyRecord {
  int outages = 0;        ///< losses of power that batteries or generators could stand in for
  int uncovered = 0;      ///< of them, in which nodes went without, or were held lower
  int starts = 0;         ///< of generators
  int failed_starts = 0;  ///< of them
};

/// One trajectory of a path whose nodes want `per_node` each: a function of (path, seed,
/// trajectory). In an outage batteries carry what is missing until generators run, and again when
/// these have used their fuel; both are full again as the outage ends.
class PathClock {
 public:
  PathClock(std::span<const PowerPart> path, Watts per_node, std::uint64_t seed,
            std::uint32_t trajectory);

  /// Goes through what happens up to `now`, `now` included. Times of calls rise.
  void advance(RunTime now);
  /// From `now` on nodes want that much each. Requires that advance(now) was called.
  void load(RunTime now, Watts per_node);
  [[nodiscard]] RunTime next_at() const;
  [[nodiscard]] const PathDelivery& got() const { return got_; }
  /// Of what nodes get, the share that comes from generators.
  [[nodiscard]] double generated() const { return generated_; }
  /// Of what generators give: the mean of those that run, by their capacity.
  [[nodiscard]] const FuelRates& fuel() const { return fuel_; }
  [[nodiscard]] const StandbyRecord& record() const { return record_; }

 private:
  void update(RunTime now);
  void begin_outage(RunTime now, std::span<const int> down);
  void end_outage();
  void meet_outage(RunTime now, PathDelivery base, std::span<const int> down);
  void bridge(RunTime now, std::span<const int> down);
  void spend(RunTime now);
  [[nodiscard]] bool standby_helps(const PathDelivery& base, std::span<const int> down) const;
  [[nodiscard]] std::vector<int> running(RunTime now, std::span<const int> down);
  [[nodiscard]] std::vector<Watts> held_power(std::span<const int> down) const;

  std::span<const PowerPart> path_;
  Watts per_node_;
  std::vector<BankProcess> banks_;
  std::vector<RandomStream> starts_;  ///< of generators, by part
  bool standby_ = false;              ///< the path has batteries or generators
  PathDelivery nominal_;              ///< when nothing is broken and nothing stands in
  PathDelivery got_;
  double generated_ = 0;
  FuelRates fuel_;
  std::optional<RunTime> since_;  ///< that there is an outage
  bool covered_ = true;           ///< the outage so far
  std::vector<int> failed_;       ///< generators that did not start in it, by part
  std::vector<double> stored_;    ///< of what batteries hold when full, by part
  std::vector<Watts> taken_;      ///< from them, since spent_at_
  RunTime spent_at_ = 0;
  RunTime next_ = INT64_MAX;  ///< a generator starts or stops, or batteries are empty
  StandbyRecord record_;
};

}  // namespace lockstep
