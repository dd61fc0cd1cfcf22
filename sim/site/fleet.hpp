/// The nodes that a run has from day to day, how fast it is on them, and what they cost by month.
#pragma once

#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "sim/run/campaign.hpp"
#include "sim/scenario/purchase_spec.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Nodes from a moment of the plan on.
struct FleetStep {
  Seconds at;
  int nodes = 0;     ///< there
  int used = 0;      ///< by the job
  double speed = 0;  ///< of the scenario's own nodes; 0: it cannot run
};

struct Fleet {
  PurchaseSpec spec;
  std::vector<FleetStep> steps;  ///< rising; the run begins with the first that it can run on
  Seconds begins;                ///< of the run, after the start of the plan
  int gpus_per_node = 8;
  Watts facility_per_node;  ///< while it trains; 0: the scenario has no "power"
  double usd_per_kwh = 0;   ///< mean of the tariff
  std::vector<std::string> assumptions;

  /// Of the run at a moment since it began.
  [[nodiscard]] SitePace pace(RunTime now) const;
  /// Nodes that are there, averaged over `run` from the moment that it begins.
  [[nodiscard]] double mean_nodes(Seconds run) const;
  /// Nodes that are there and have no place in the job, at least, whenever it runs.
  [[nodiscard]] int standing_by() const;
};

/// Simulates the step on each number of nodes: as many replicas as fit and share the batch evenly.
/// Throws InputError where the job can run on none of them.
Fleet plan_fleet(const Scenario& scenario, const PurchaseSpec& spec);

/// A month of 1/12 of 365.25 days; below 0: money that comes back.
struct MonthMoney {
  double bought = 0, leased = 0, rented = 0, energy = 0, staff = 0;
  double interest = 0;  ///< on all that was spent before
  double residual = 0;  ///< below 0: what machines that were bought are worth at the end
  double nodes = 0;     ///< mean that are there, while the plan lasts
  Seconds lasts;        ///< of the month, before the plan's end

  [[nodiscard]] double spent() const { return bought + leased + rented + energy + staff; }
  [[nodiscard]] double usd() const { return spent() + interest + residual; }
};

/// Factors on what prices and tariffs turn out to be.
struct MoneyFactors {
  double price = 1, energy = 1;
};

/// From the start of the plan until the run is done, `run` after it began. Own and leased nodes
/// take energy as if they trained all the time. The last month has what reserved lots still owe,
/// and the residual value.
std::vector<MonthMoney> money_by_month(const Fleet& fleet, Seconds run,
                                       const MoneyFactors& factors = {});
MonthMoney sum_of(const std::vector<MonthMoney>& months);

}  // namespace lockstep
