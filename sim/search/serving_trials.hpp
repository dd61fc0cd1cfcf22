/// What searches over services share: one way of serving a load, simulated and held against the
/// objectives; the least number of replicas, and the greatest rate, that keep them.
///
/// Every trial serves the same requests, or more of the same draws, so that ways differ by what
/// they are. Both searches take it that more replicas, or fewer requests a second, never break what
/// was kept.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/serving/simulate_serving.hpp"

namespace lockstep {

struct ServingTrial {
  std::vector<ServingPool> pools;
  double speed = 1;
  ServingReport report;
  bool kept = false;    ///< all objectives
  bool surely = false;  ///< also at the slow end of the interval, or there is no interval
  /// Of one that keeps the objectives, what they have at that end; none: there is no interval.
  std::vector<ObjectiveCheck> slow_end{};
  std::size_t requests = 0;  ///< of its load
  /// Of the trial's span, the part in which its requests come, where they come at a rate; in the
  /// rest, which a service that goes on does not have, only the last answers are left. Else 1.
  double coming_share = 1;

  [[nodiscard]] int gpus() const;
};

/// Serves the load of `base`. Several may run at once.
class ServingTrials {
 public:
  /// `interrupted` is asked now and then; true: trials end early and keep nothing.
  /// `reshape` makes of requests that are drawn anew what was made of those of `base`.
  explicit ServingTrials(const ServingSpec& base, std::function<bool()> interrupted = {},
                         std::function<void(ServingSpec&)> reshape = {})
      : base_(base), interrupted_(std::move(interrupted)), reshape_(std::move(reshape)) {}

  /// Arrivals come `speed` times as fast.
  [[nodiscard]] ServingTrial run(const std::vector<ServingPool>& pools, double speed = 1) const {
    return run_load(base_, pools, speed, false);
  }

  /// run() with a load that is long enough for its rate to be judged by: while it keeps the
  /// objectives and is not steady, it is drawn anew, twice as long or more, up to 200,000 requests
  /// (or what the scenario has). One that still grows then keeps nothing. A trace is as long as it
  /// is, and so is a load that comes at no rate of its own: clients that wait, or all at once. What
  /// can keep nothing any more is not played to its end: of a trial that is not kept only that is
  /// known.
  [[nodiscard]] ServingTrial run_steady(const std::vector<ServingPool>& pools,
                                        double speed = 1) const;

  [[nodiscard]] const ServingSpec& base() const { return base_; }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] bool stopped() const { return interrupted_ && interrupted_(); }

 private:
  [[nodiscard]] ServingTrial run_load(ServingSpec spec, const std::vector<ServingPool>& pools,
                                      double speed, bool while_kept) const;

  const ServingSpec& base_;
  std::function<bool()> interrupted_;
  std::function<void(ServingSpec&)> reshape_;
  mutable std::atomic<int> count_ = 0;
};

/// By how long a load `what` was judged ("best rate"), where the scenario has `given` requests;
/// empty: there is nothing to say.
std::string load_length_words(const ServingTrial& trial, std::size_t given, std::string_view what);

/// The least n of 1 to `most` for which `keeps`: doubled, then halved. 0: none does. `most_first`:
/// asks for the largest one first, where it is likely not to.
int least_that_keeps(int most, bool most_first, const std::function<bool(int)>& keeps);

/// The greatest factor for which `keeps`, to within a hundredth, at least `floor`; 0: not even that
/// one does, or interrupted. At most 1,000. Asks first at `guess`, or at `floor` where that is
/// more, and then further and further from it.
double greatest_that_keeps(double floor, double guess, const std::function<bool(double)>& keeps);

}  // namespace lockstep
