#include "sim/site/fleet.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "models/base/input_error.hpp"
#include "models/site/finance.hpp"
#include "sim/power/step_power.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr double kYearSpan = 365.25 * 86'400;
constexpr double kMonthSpan = kYearSpan / 12;

/// A part of a lot, and the time that it is there.
struct Shipment {
  const Lot* lot;
  int nodes;
  double from_s, until_s;
};

double last_shipment(const Lot& lot) {
  return (lot.ordered + lot.lead_time + lot.delivery).base_units();
}

std::vector<Shipment> shipments_of(const PurchaseSpec& spec) {
  std::vector<Shipment> out;
  for (const Lot& lot : spec.lots) {
    double until = lot.until ? lot.until->base_units() : INFINITY;
    if (lot.term) until = std::min(until, last_shipment(lot) + lot.term->base_units());
    for (int i = 0; i < lot.shipments; ++i) {
      const int nodes = lot.nodes / lot.shipments + (i < lot.nodes % lot.shipments ? 1 : 0);
      const double from = (lot.ordered + lot.lead_time).base_units() +
                          lot.delivery.base_units() * (i + 1) / lot.shipments;
      out.push_back({&lot, nodes, from, until});
    }
  }
  return out;
}

/// The job on fewer nodes: replicas that fit and share its batch evenly.
class Widths {
 public:
  explicit Widths(const Scenario& scenario)
      : scenario_(scenario), full_(simulate_step(scenario, {}).tokens_per_s) {}

  FleetStep on(int nodes) {
    const Parallelism& cut = scenario_.job.parallelism;
    const int replica = cut.tensor * cut.context * cut.pipeline;
    const int node = scenario_.node.gpus;
    const int most = std::min(nodes, scenario_.nodes);
    const Batch& batch = scenario_.job.batch;
    const int passes = batch.sequences / batch.micro_sequences;
    int data = static_cast<int>(static_cast<std::int64_t>(most) * node / replica);
    data = std::min(data, cut.data);
    while (data > 0 &&
           (passes % data != 0 || static_cast<std::int64_t>(data) * replica % node != 0))
      --data;
    if (data == 0) return {.at = {}, .nodes = nodes, .used = 0, .speed = 0};
    const int used = data * replica / node;
    if (!known_.contains(data)) known_[data] = speed_on(data, used);
    return {.at = {}, .nodes = nodes, .used = used, .speed = known_[data]};
  }

 private:
  [[nodiscard]] double speed_on(int data, int nodes) const {
    if (data == scenario_.job.parallelism.data) return 1;
    Scenario narrow = scenario_;
    narrow.nodes = nodes;
    narrow.job.parallelism.data = data;
    return std::min(1.0, simulate_step(narrow, {}).tokens_per_s / full_);
  }

  const Scenario& scenario_;
  double full_;
  std::map<int, double> known_;
};

std::vector<FleetStep> steps_of(const Scenario& scenario, const PurchaseSpec& spec) {
  std::map<double, int> changes;
  for (const Shipment& each : shipments_of(spec)) {
    changes[each.from_s] += each.nodes;
    if (std::isfinite(each.until_s)) changes[each.until_s] -= each.nodes;
  }
  Widths widths(scenario);
  std::vector<FleetStep> out;
  int nodes = 0;
  for (const auto& [at, more] : changes) {
    nodes += more;
    FleetStep step = widths.on(nodes);
    step.at = Seconds{at};
    out.push_back(step);
  }
  return out;
}

/// Spreads an amount per second over the months of [from, until).
template <class Add>
void spread(double from, double until, std::size_t months, Add add) {
  for (std::size_t m = 0; m < months; ++m) {
    const double begin = static_cast<double>(m) * kMonthSpan;
    const double end = begin + kMonthSpan;
    const double length = std::min(end, until) - std::max(begin, from);
    if (length > 0) add(m, length);
  }
}

/// Books one plan.
class Ledger {
 public:
  Ledger(const Fleet& fleet, double end_s, const MoneyFactors& factors)
      : fleet_(fleet),
        factors_(factors),
        end_s_(end_s),
        months_(static_cast<std::size_t>(std::max(1.0, std::ceil(end_s / kMonthSpan)))) {
    spread(0, end_s_, months_.size(),
           [&](std::size_t m, double length) { months_[m].lasts = Seconds{length}; });
  }

  std::vector<MonthMoney> book() {
    for (const Lot& lot : fleet_.spec.lots) {
      if (lot.terms == LotTerms::buy) buy(lot);
      if (lot.terms == LotTerms::lease) lease(lot);
    }
    for (const Shipment& each : shipments_of(fleet_.spec)) hold(each);
    add_staff();
    add_interest();
    return std::move(months_);
  }

 private:
  [[nodiscard]] std::size_t month_of(double at_s) const {
    return std::min(months_.size() - 1, static_cast<std::size_t>(at_s / kMonthSpan));
  }
  [[nodiscard]] double price_of(const Lot& lot) const {
    const double years = lot.ordered.base_units() / kYearSpan;
    return factors_.price * lot.nodes * declined(lot.usd_per_node, fleet_.spec.price_fall, years);
  }

  /// What is ordered before the end is paid for, whenever it comes.
  void buy(const Lot& lot) {
    const double ordered = lot.ordered.base_units();
    if (ordered >= end_s_) return;
    const double price = price_of(lot);
    months_[month_of(ordered)].bought += fleet_.spec.deposit * price;
    const double there = std::max(ordered, last_shipment(lot));
    months_[month_of(there)].bought += (1 - fleet_.spec.deposit) * price;
    const double sold = std::min(end_s_, lot.until ? lot.until->base_units() : end_s_);
    const double years = std::max(0.0, sold - there) / kYearSpan;
    months_[month_of(sold)].residual -= declined(price, fleet_.spec.loses, years);
  }

  void lease(const Lot& lot) {
    if (lot.ordered.base_units() >= end_s_) return;
    const double term = lot.term->base_units();
    const double rate = period_rate(fleet_.spec.interest, 12);
    const double monthly = annuity_payment(price_of(lot), rate, term / kMonthSpan);
    const double from = last_shipment(lot);
    spread(from, std::min(from + term, end_s_), months_.size(), [&](std::size_t m, double length) {
      months_[m].leased += monthly * length / kMonthSpan;
    });
    owe(std::max(0.0, from + term - std::max(from, end_s_)) / kMonthSpan * monthly,
        &MonthMoney::leased);
  }

  /// What has to be paid after the end falls due in the last month.
  void owe(double usd, double MonthMoney::* what) { months_.back().*what += usd; }

  void hold(const Shipment& each) {
    const Lot& lot = *each.lot;
    const double until = std::min(each.until_s, end_s_);
    const double hourly = factors_.price * lot.usd_per_gpu_hour * fleet_.gpus_per_node * each.nodes;
    const bool own = lot.terms == LotTerms::buy || lot.terms == LotTerms::lease;
    const double kilowatts = fleet_.facility_per_node.base_units() * 1e-3 * each.nodes;
    spread(each.from_s, until, months_.size(), [&](std::size_t m, double length) {
      MonthMoney& month = months_[m];
      month.nodes += each.nodes * length / month.lasts.base_units();
      month.rented += hourly * length / 3600;
      if (own) {
        month.energy += factors_.energy * kilowatts * fleet_.usd_per_kwh * length / 3600;
      }
    });
    if (lot.terms == LotTerms::reserved && lot.ordered.base_units() < end_s_ &&
        std::isfinite(each.until_s)) {
      owe(hourly * std::max(0.0, each.until_s - std::max(each.from_s, end_s_)) / 3600,
          &MonthMoney::rented);
    }
  }

  void add_staff() {
    const double from = fleet_.steps.front().at.base_units();
    spread(from, end_s_, months_.size(), [&](std::size_t m, double length) {
      months_[m].staff += fleet_.spec.staff_usd_per_month * length / kMonthSpan;
    });
  }

  /// Month by month on what was spent in those before, interest included.
  void add_interest() {
    const double rate = period_rate(fleet_.spec.interest, 12);
    double balance = 0;
    for (MonthMoney& month : months_) {
      month.interest = balance * rate;
      balance += month.spent() + month.interest;
    }
  }

  const Fleet& fleet_;
  MoneyFactors factors_;
  double end_s_;
  std::vector<MonthMoney> months_;
};

}  // namespace

SitePace Fleet::pace(RunTime now) const {
  const double at = begins.base_units() + to_seconds(now).base_units();
  SitePace out;
  out.speed = 0;
  for (const FleetStep& step : steps) {
    if (step.at.base_units() > at) {
      out.until = std::max(now + 1, to_run_time(step.at - begins));
      return out;
    }
    out.speed = step.speed;
  }
  return out;
}

double Fleet::mean_nodes(Seconds run) const {
  const double from = begins.base_units();
  const double until = from + run.base_units();
  double node_seconds = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double end = i + 1 < steps.size() ? steps[i + 1].at.base_units() : INFINITY;
    const double length = std::min(end, until) - std::max(steps[i].at.base_units(), from);
    node_seconds += steps[i].nodes * std::max(0.0, length);
  }
  return until > from ? node_seconds / (until - from) : 0;
}

int Fleet::standing_by() const {
  int least = INT_MAX;
  for (const FleetStep& step : steps) {
    if (step.speed > 0) least = std::min(least, step.nodes - step.used);
  }
  return least == INT_MAX ? 0 : least;
}

Fleet plan_fleet(const Scenario& scenario, const PurchaseSpec& spec) {
  if (scenario.unequal()) {
    throw InputError({.file = scenario.file,
                      .pointer = "/run/purchase",
                      .found = "lots of nodes",
                      .allowed = "one kind of node and an even batch beside them",
                      .nearest = {}});
  }
  Fleet out{.spec = spec,
            .steps = steps_of(scenario, spec),
            .begins = {},
            .gpus_per_node = scenario.node.gpus,
            .facility_per_node = {},
            .usd_per_kwh = 0,
            .assumptions = spec.assumptions};
  const auto first =
      std::ranges::find_if(out.steps, [](const FleetStep& step) { return step.speed > 0; });
  if (first == out.steps.end()) {
    int most = 0;
    for (const FleetStep& step : out.steps) most = std::max(most, step.nodes);
    throw InputError({.file = scenario.file,
                      .pointer = "/run/purchase/lots",
                      .found = fmt::format("{} nodes at the most", most),
                      .allowed = "nodes for at least one replica that shares the batch evenly",
                      .nearest = {}});
  }
  out.begins = first->at;
  if (scenario.power) {
    const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
    out.facility_per_node = step_power(scenario, step).levels.training.facility / scenario.nodes;
    const std::vector<double>& tariff = scenario.power->cost.usd_per_kwh.values;
    double sum = 0;
    for (const double usd : tariff) sum += usd;
    out.usd_per_kwh = sum / static_cast<double>(tariff.size());
  }
  out.assumptions.emplace_back(
      "run.purchase: on fewer nodes the job runs as many replicas as share its batch evenly; it "
      "grows and shrinks without a stop, and meets the failures of all its nodes from the start; "
      "a node that is there draws what one of the whole cluster does");
  return out;
}

std::vector<MonthMoney> money_by_month(const Fleet& fleet, Seconds run,
                                       const MoneyFactors& factors) {
  return Ledger(fleet, (fleet.begins + run).base_units(), factors).book();
}

MonthMoney sum_of(const std::vector<MonthMoney>& months) {
  MonthMoney out;
  for (const MonthMoney& month : months) {
    for (const auto part :
         {&MonthMoney::bought, &MonthMoney::leased, &MonthMoney::rented, &MonthMoney::energy,
          &MonthMoney::staff, &MonthMoney::interest, &MonthMoney::residual}) {
      out.*part += month.*part;
    }
    out.nodes += month.nodes * month.lasts.base_units();
    out.lasts += month.lasts;
  }
  if (out.lasts > Seconds{}) out.nodes /= out.lasts.base_units();
  return out;
}

}  // namespace lockstep
