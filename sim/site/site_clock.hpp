/// What the site lets the machines have, from hour to hour and from failure to failure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/run/campaign.hpp"
#include "sim/site/bank_process.hpp"
#include "sim/site/path_clock.hpp"
#include "sim/site/site_plan.hpp"

namespace lockstep {

/// What holds the job back.
enum class SiteBound : std::uint8_t { none, grid, cooling, path, ramp };
inline constexpr std::string_view kSiteBounds[]{"none", "grid", "cooling", "path", "ramp"};

/// A pace from which on nothing counts as held back: limits are found by halving.
inline constexpr double kFullSpeed = 1 - 1e-6;

/// From the moment that was asked for until `until`.
struct SiteState {
  RunTime until = 0;
  std::int64_t hour = 0;  ///< since the run began
  SiteBound bound = SiteBound::none;
  bool down = false;     ///< machines have no power
  bool abrupt = false;   ///< and had no warning
  double speed = 1;      ///< of the job; 0: it pauses
  double ramp_took = 0;  ///< of that speed, lost to the rise from a lower one
  Watts training;        ///< all machines that are there, while the job trains at that speed
  SiteMachines machines;
  double coolant = 0;  ///< degrees Celsius; 0: no plant is described
  double pue = 1;
  double generated = 0;  ///< of what the site draws, the share that comes from generators
  FuelRates fuel;        ///< of these
};

/// What all machines draw in a phase of the run. The site's state slows or pauses training.
Watts drawn_in(RunBucket bucket, const SiteState& state, const MachineLevels& levels);

/// Whether what a stop saves of the battery is given back afterwards: it has one, and a limit.
bool gives_back(const SitePlan& plan);

/// Energy into and out of a battery in an hour, at its terminals.
struct BatteryFlow {
  Joules in, out;
};
/// Of an hour, or a part of it, in which the site wants `demand` on average. Charges from what
/// renewables give too much, and from the grid where its limit leaves room and the tariff is low;
/// stands in where the grid gives too little, or costs much, or for what would be taken from it
/// above `shave_above`, which charging keeps below too. `stored`: that it can give.
BatteryFlow dispatched(const SitePlan& plan, std::int64_t hour, Watts demand, Joules stored,
                       Seconds length, Watts shave_above = Watts{INFINITY});
/// What is in it after such a flow.
Joules stored_after(const SitePlan& plan, Joules stored, const BatteryFlow& flow);
/// The lowest power above which the battery can stand in for the grid from hour `first` to the end
/// of its calendar month, if the job trains all the time and nothing fails, and cover no less of
/// what the grid lacks than it would otherwise. `stored`: at the start of that hour.
Watts lowest_shaved(const SitePlan& plan, std::int64_t first, Joules stored);
/// What sun and wind give in an hour.
Watts renewable_power(const SiteSpec& spec, const SiteHour& hour);

/// One trajectory of the site: a function of (plan, trajectory, stops of the job). The battery goes
/// by what the job has drawn, checkpoints counted as training, so that what it promises is there:
/// what a stop saves in an hour of a limit, the rest of the hour and later ones can have. Times of
/// calls rise.
class SiteClock {
 public:
  SiteClock(const SitePlan& plan, std::uint32_t trajectory);

  /// `stops`: of the job until `now`, rising; those of earlier calls first.
  SiteState at(RunTime now, std::span<const RunStop> stops = {});
  /// Of the path, until the last call of at().
  [[nodiscard]] const StandbyRecord& standby() const { return path_.record(); }
  /// Above which the battery stands in, in an hour that at() has been asked about; infinite: it
  /// shaves nothing.
  [[nodiscard]] Watts shave_above(std::int64_t hour) const;

 private:
  void begin_hour();
  void end_hour(std::span<const RunStop> stops);
  void count_until(RunTime to, std::span<const RunStop> stops);
  void aim_battery();
  [[nodiscard]] double coolest_share()
      const;  ///< of the cards' limit; below 0: not even the lowest
  [[nodiscard]] double coolant_at(Watts it) const;
  [[nodiscard]] Watts left_of(Watts supply) const;
  [[nodiscard]] bool too_hot_to_wait() const;
  void meet_path(SiteState& state);
  void bind(SiteState& state);
  void ramp_up(SiteState& state, RunTime now);

  const SitePlan& plan_;
  PathClock path_;
  std::vector<BankProcess> cooling_;  ///< none, or the plant and each stage of its loop
  std::int64_t hour_ = -1;
  double pue_ = 1, sink_ = 20;
  SiteMachines machines_;
  Watts supply_;   ///< grid, renewables and battery together, from now to the hour's end
  Joules budget_;  ///< the same, of the whole hour
  Joules used_;    ///< of it, until counted_
  RunTime counted_ = 0;
  std::size_t next_stop_ = 0;  ///< that is not wholly counted
  Watts training_;             ///< as the last state says
  bool down_ = false;          ///< the same
  Joules stored_;              ///< as this hour begins
  /// Of the battery, from which hour on; where it finds the lowest for each month.
  std::vector<std::pair<std::int64_t, Watts>> aims_;
  int nodes_down_ = 0;
  int needed_ = 0;  ///< of the nodes that the path feeds
  Watts last_training_;
  double last_speed_ = 1;
};

}  // namespace lockstep
