/// What a cluster with a queue has drawn, what that and the machines cost, and who of its users
/// pays for how much.
#pragma once

#include <optional>
#include <string>

#include "models/power/cost.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/power/power_series.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

struct QueuePower {
  Watts given_gpu;       ///< of a GPU that a job of given duration holds
  PowerSeries facility;  ///< means over bins of the run, at the site's meter
  Watts peak;            ///< at any time, not of a bin
  double pue = 1;
  /// `least` and `most`: if GPUs of jobs of given duration drew what a waiting process does, or the
  /// card's limit; both `energy` where the scenario says what they draw.
  Joules energy, least, most;
  CostReport owned;  ///< all 0 without prices
};

/// Nothing unless the scenario says "power".
std::optional<QueuePower> queue_power(const QueueSpec& spec, const QueueResult& result);

/// Of all machines for all of the time.
struct QueueBill {
  std::optional<double> owned_usd;  ///< where the machines have a price
  std::optional<double> rent_usd;   ///< where a GPU has a price by the hour
  /// Where "cost" has prices and the machines have none: what has one, as energy.
  std::optional<double> partial_usd;
  std::optional<MoneyOf> of;  ///< what those who hold GPUs pay for; none: nothing has a price
  double held_gpu_hours = 0;

  /// An hour of a GPU that a job held, of what `of` says, with what stood idle paid by those who
  /// held something. Nothing where nobody held any, or nothing has a price.
  [[nodiscard]] std::optional<double> usd_per_held_gpu_hour() const;
  /// Of what `of` says.
  [[nodiscard]] std::optional<double> usd() const;
};

/// What the bill is of: "owned", "rented", "energy only"; empty: nothing has a price.
std::string billed_words(const QueueSpec& spec, const QueueBill& bill);

QueueBill queue_bill(const QueueSpec& spec, const QueueResult& result,
                     const std::optional<QueuePower>& power);

}  // namespace lockstep
