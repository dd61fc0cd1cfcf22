/// The nodes that a run has from day to day, how fast it is on them, and what they cost by month.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
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
  int own = 0;       ///< there, bought or leased: their energy is paid for by the kWh
  double speed = 0;  ///< of the scenario's own nodes; 0: it cannot run
  int apart = 0;     ///< there, of another kind than those that the job runs on
  /// Which kind it runs on: index into Fleet::kinds.
  std::size_t kind = 0;
  /// By how many of the scenario's nodes those that work draw more than their number says, and
  /// those that stand idle; 0 where all are of the scenario's kind.
  double more_work = 0, more_idle = 0;
  int used_gpus = 0;  ///< of the nodes that the job uses
  int spot = 0;       ///< there or taken away, of spot lots whose nodes are taken away
  /// Mean of those that are away: of `nodes`, and they draw nothing.
  double away = 0;

  [[nodiscard]] double working() const { return used + more_work; }
  /// Less those that are away: a spare works in the place of each, or the job waits for it and
  /// all others stand. Below 0 where the job has a place for all: a mean, over such waits too.
  [[nodiscard]] double standing() const { return nodes - used + more_idle - away; }
  /// Of the nodes that draw, the share whose energy is paid for by the kWh.
  [[nodiscard]] double own_share() const { return nodes > away ? own / (nodes - away) : 0; }
};

/// A part of a lot, and the time that it is there, since the plan's start; until infinity: to its
/// end.
struct Shipment {
  const Lot* lot;
  int nodes;
  double from_s, until_s;
};
/// Of all lots, in their order. `spec` outlives them.
std::vector<Shipment> shipments_of(const PurchaseSpec& spec);

struct Fleet {
  PurchaseSpec spec;
  std::vector<FleetStep> steps;  ///< rising
  Seconds begins;  ///< of the run, after the start of the plan: nodes and data are there
  int gpus_per_node = 8;
  std::vector<std::string> kinds{};  ///< of node: the scenario's first
  Watts waiting_node;      ///< a node before the run begins; 0: the scenario has no "power"
  double usd_per_kwh = 0;  ///< mean of the tariff
  double plants_usd = 0;   ///< price of the site's battery, path and cooling; 0: none is given
  /// Mean time until there is another node for one of a spot lot that was taken away:
  /// set_returns().
  Seconds returns{};
  std::vector<std::string> assumptions;

  /// What is there at a moment since the run began.
  [[nodiscard]] FleetStep at(RunTime now) const;
  /// Of the run at that moment.
  [[nodiscard]] SitePace pace(RunTime now) const;
  /// What work, as long as the run would take on all its nodes, takes on those that are there;
  /// infinity: it is never done.
  [[nodiscard]] Seconds soonest(Seconds work) const;
  /// From when on there are never again nodes for the job; none: the last ones stay.
  [[nodiscard]] std::optional<Seconds> gone() const;
  /// Nodes that are there, averaged over `run` from the moment that it begins.
  [[nodiscard]] double mean_nodes(Seconds run) const;
  /// GPU-hours of `run`, from the moment that it begins: of the nodes that are there, those of spot
  /// lots for the share of the time that they are, and of those that the job uses.
  [[nodiscard]] double held_gpu_hours(Seconds run) const;
  [[nodiscard]] double used_gpu_hours(Seconds run) const;
  /// At once, from the moment that it begins.
  [[nodiscard]] int most_nodes() const;
  /// In the first `run` after it began, while the job runs, when the fewest nodes have no place in
  /// it; and how many those are.
  [[nodiscard]] FleetStep fullest(Seconds run = Seconds{INFINITY}) const;
  [[nodiscard]] int standing_by(Seconds run = Seconds{INFINITY}) const;
};

/// Share of the time that nodes of a spot lot are there: the mean long after the start; 1 of
/// others.
double share_there(const Fleet& fleet, const Lot& lot);
/// With that Fleet::returns, and so many nodes away at each of its steps.
void set_returns(Fleet& fleet, Seconds returns);
int gpus_of(const Fleet& fleet, const Lot& lot);  ///< of one of its nodes
/// When the last of it arrives, after the start of the plan.
Seconds last_shipment(const Lot& lot);

/// A price of "cost" that a purchase would have to ignore: what machines cost is said by lots, what
/// is paid by the month by the purchase. Nothing: there is none.
std::optional<InputProblem> excess_price(const Scenario& scenario);

/// When the data has come, or before the run can be done, no lot is there any more that the job
/// could run on.
class LotsGone : public InputError {
 public:
  using InputError::InputError;
};

/// Simulates the step on each number of nodes: as many replicas as fit and share the batch evenly.
/// The run begins with the first of them from `data_ready` on, a moment since the plan's start.
/// Throws InputError where the job can run on none of them, or there is an excess_price(), and
/// LotsGone.
Fleet plan_fleet(const Scenario& scenario, const PurchaseSpec& spec, Seconds data_ready = {});

/// Throws LotsGone, with the pointer of the lot whose end leaves fewer nodes than a replica needs,
/// where that is before the run can be done though nothing fails: `work` at the fleet's pace, or
/// all of a `duration`.
void require_lots_for(const Scenario& scenario, const Fleet& fleet, Seconds work,
                      std::optional<Seconds> duration);

/// The same machines for a run that can begin at `ready`, a moment since the plan's start: with the
/// first nodes for it from then on. Where there are none any more it begins then, and stands still.
Fleet begun_at(Fleet fleet, Seconds ready);

/// A month of 1/12 of 365.25 days; below 0: money that comes back.
struct MonthMoney {
  double bought = 0, leased = 0, rented = 0, energy = 0, staff = 0;
  double plants = 0;      ///< bought too: Fleet::plants_usd, as the first machines come
  double kwh = 0;         ///< that `energy` pays for; rented machines have theirs in their price
  double interest = 0;    ///< on all that was spent before
  double residual = 0;    ///< below 0: what was bought is worth at the end
  double terms_left = 0;  ///< of leased and rented: of terms that go on after the plan's end
  double nodes = 0;       ///< mean that are there, while the plan lasts
  Seconds lasts;          ///< of the month, before the plan's end

  [[nodiscard]] double spent() const { return bought + plants + leased + rented + energy + staff; }
  [[nodiscard]] double usd() const { return spent() + interest + residual; }
};

/// Factors on what prices and tariffs turn out to be.
struct MoneyFactors {
  double price = 1, energy = 1;
  double draw = 1;        ///< of energy, what machines draw more or less
  double value_loss = 1;  ///< of what is lost a year, which is no more than all
  /// Nodes that wait for the run take energy from then on: what they took before is paid elsewhere.
  Seconds waits_from{};
};

/// Energy that is paid for at a moment of the plan.
struct EnergyPayment {
  Seconds at;
  double usd = 0;
  double demand_usd = 0;  ///< of it, for the highest hour of a month
  double kwh = 0;
};

/// From the start of the plan until the run is done, `run` after it began. Until it begins own and
/// leased nodes take energy idle, at the mean tariff; from then on `energy` says what they pay.
/// Spot nodes are paid for while they are there, taken_away / (taken_away + Fleet::returns) of the
/// time. Interest is compound, on all that is owed, from the moment at which it is spent until the
/// end. The last month has what leases and reservations still owe then, and the residual value.
std::vector<MonthMoney> money_by_month(const Fleet& fleet, Seconds run,
                                       const MoneyFactors& factors = {},
                                       std::span<const EnergyPayment> energy = {});
MonthMoney sum_of(const std::vector<MonthMoney>& months);

/// What a purchase has cost until a training on its machines is done, and what for the next on the
/// same ones is more.
struct KeptFleet {
  Seconds from;      ///< the end of the training before, after the plan's start
  double spent = 0;  ///< until then, interest included and residual value left out
};
/// By month, from `kept.from` until the run is done: money_by_month() until then, less that until
/// `kept.from`, and interest on what the trainings before have spent, their energy included.
std::vector<MonthMoney> further_money(const Fleet& fleet, Seconds run, const MoneyFactors& factors,
                                      std::span<const EnergyPayment> energy, const KeptFleet& kept);

}  // namespace lockstep
