#include "sim/site/fleet.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/layer/memory.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "models/power/gpu_power.hpp"
#include "models/site/finance.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/balance.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr double kDaySpan = 86'400;
constexpr double kYearSpan = 365.25 * kDaySpan;
constexpr double kMonthSpan = kYearSpan / 12;

double arrived(const Lot& lot) { return last_shipment(lot).base_units(); }

/// Whether the owner or lessee pays for the lot's energy; a price by the hour includes energy.
bool is_own(const Lot& lot) { return lot.terms == LotTerms::buy || lot.terms == LotTerms::lease; }

/// The job on fewer nodes: replicas that fit and share its batch evenly.
class Widths {
 public:
  /// `full`: what the scenario trains on its own nodes, tokens per second.
  /// `own`: the scenario is on its own kind of node.
  Widths(Scenario scenario, double full, bool own)
      : scenario_(std::move(scenario)), full_(full), own_(own) {}

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
    FleetStep out{.at = {}, .nodes = nodes, .used = 0, .speed = 0};
    if (data == 0) return out;
    out.used = data * replica / node;
    if (!known_.contains(data)) known_[data] = speed_on(data, out.used);
    out.speed = known_[data];
    return out;
  }

 private:
  [[nodiscard]] double speed_on(int data, int nodes) const {
    if (own_ && data == scenario_.job.parallelism.data) return 1;
    Scenario narrow = scenario_;
    narrow.nodes = nodes;
    narrow.job.parallelism.data = data;
    const double speed = simulate_step(narrow, {}).tokens_per_s / full_;
    return own_ ? std::min(1.0, speed) : speed;
  }

  Scenario scenario_;
  double full_;
  bool own_;
  std::map<int, double> known_;
};

int nodes_that_nvlink_joins(const NodeSpec& node) {
  return std::max(1, node.nvlink_domain / node.gpus);
}

/// Replicas on nodes of several kinds at once, each on nodes of one kind.
struct MixedNodes {
  std::vector<int> used;  ///< nodes of each kind
  double speed = 0;
};

/// The job on several kinds of node at once: as many replicas on the first kind as it has nodes
/// for, then on the next, with micro batches in proportion to their speed, or alike where the job
/// can have no unequal ones. The last replica sets the pace.
class Mixes {
 public:
  Mixes(const Scenario& scenario, double full) : scenario_(scenario), full_(full) {
    const Parallelism& cut = scenario.job.parallelism;
    unequal_ = !cut.order && !is_extension(cut.schedule) && cut.sharding != Sharding::zero3 &&
               !cut.reduces_each_micro_batch();
  }

  /// `nodes`: that are there of each kind. None: fewer than two kinds have a place in it, or they
  /// cannot work together.
  std::optional<MixedNodes> on(const std::vector<const NodeSpec*>& kinds,
                               const std::vector<int>& nodes) {
    const Parallelism& cut = scenario_.job.parallelism;
    const int span = std::max(1, cut.expert * cut.expert_tensor / (cut.tensor * cut.context));
    std::vector<int> replicas(kinds.size());
    int left = cut.data;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (nodes[k] == 0 || !alike(*kinds[k])) continue;
      replicas[k] = std::min(left, room(*kinds[k], nodes[k])) / span * span;
      while (replicas[k] > 0 && !whole(*kinds[k], replicas[k])) replicas[k] -= span;
      left -= replicas[k];
    }
    if (std::ranges::count_if(replicas, [](int n) { return n > 0; }) < 2) return std::nullopt;
    if (!known_.contains(replicas)) known_[replicas] = speed_of(kinds, replicas);
    MixedNodes out{.used = {}, .speed = known_[replicas]};
    for (const int n : replicas) out.used.push_back(n * replica_gpus() / scenario_.node.gpus);
    return out;
  }

 private:
  [[nodiscard]] int replica_gpus() const {
    const Parallelism& cut = scenario_.job.parallelism;
    return cut.tensor * cut.context * cut.pipeline;
  }
  /// What nodes of one job have to have in common: sim/scenario/read_pools.cpp.
  [[nodiscard]] bool alike(const NodeSpec& node) const {
    const NodeSpec& own = scenario_.node;
    const bool same_way = !scenario_.fabric.transport.empty() || scenario_.fabric.own_transport ||
                          node.transport == own.transport;
    return node.gpus == own.gpus && node.nvlink_domain == own.nvlink_domain &&
           nic_ports(node).count == nic_ports(own).count && same_way;
  }
  [[nodiscard]] int room(const NodeSpec& node, int nodes) const {
    return static_cast<int>(static_cast<std::int64_t>(nodes) * node.gpus / replica_gpus());
  }
  /// Whether so many replicas fill whole nodes, and whole domains of NVLink.
  [[nodiscard]] bool whole(const NodeSpec& node, int replicas) const {
    const std::int64_t gpus = static_cast<std::int64_t>(replicas) * replica_gpus();
    return gpus % (static_cast<std::int64_t>(node.gpus) * nodes_that_nvlink_joins(node)) == 0;
  }

  /// 0: it cannot be.
  [[nodiscard]] double speed_of(const std::vector<const NodeSpec*>& kinds,
                                const std::vector<int>& replicas) const {
    Scenario mixed = scenario_;
    mixed.stack.placement = "tp-pp-dp";  // a replica after the other
    mixed.job.parallelism.data = 0;
    mixed.nodes = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (replicas[k] == 0) continue;
      mixed.job.parallelism.data += replicas[k];
      const int nodes = replicas[k] * replica_gpus() / kinds[k]->gpus;
      mixed.pools.push_back({*kinds[k], nodes});
      mixed.nodes += nodes;
    }
    mixed.node = mixed.pools.front().node;
    const NicPorts ports = fabric_ports(mixed.node, mixed.pools);
    if (lockstep::check(mixed.fabric, mixed.nodes, ports.count, ports.bandwidth)) return 0;
    const Batch& batch = mixed.job.batch;
    if (unequal_) {
      mixed.micro_batches = balanced_micro_batches(mixed);
      if (mixed.micro_batches.empty()) return 0;
    } else if (batch.sequences / batch.micro_sequences % mixed.job.parallelism.data != 0) {
      return 0;
    }
    if (!check_memory(mixed).fits) return 0;
    return std::min(1.0, simulate_step(mixed, {}).tokens_per_s / full_);
  }

  Scenario scenario_;
  double full_;
  bool unequal_;
  std::map<std::vector<int>, double> known_;
};

/// A kind of node that lots bring, and the job on it.
struct LotKind {
  const NodeSpec* node;  ///< none: the scenario's
  NodeSpec card;         ///< the same, as the job has it
  std::string name;
  Widths widths;
  /// What one of them draws over one of the scenario's, while it works and idle.
  double work_share = 1, idle_share = 1;
};

[[noreturn]] void refuse_kind(const Scenario& scenario, std::size_t lot, std::string found,
                              std::string allowed) {
  throw InputError({.file = scenario.file,
                    .pointer = fmt::format("/run/purchase/lots/{}/node", lot),
                    .found = std::move(found),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

/// The scenario on nodes of that kind, as many as it has GPUs for. Throws InputError where it
/// cannot be there.
Scenario on_kind(const Scenario& scenario, const NodeSpec& node, std::size_t lot) {
  Scenario out = scenario;
  out.node = node;
  if (scenario.power && scenario.power->cap && node.gpu.power) {
    const Watts cap = *scenario.power->cap, lowest = lowest_cap(node.gpu);
    if (cap < lowest) {
      refuse_kind(scenario, lot, node.name,
                  fmt::format("a node whose GPUs keep power.cap, {:g} W; these draw {:g} W at "
                              "their lowest clock",
                              cap.base_units(), lowest.base_units()));
    }
    if (cap < node.gpu.power_limit) lay_card(out.node, out.transport, {}, cap);
  }
  const int gpus = scenario.gpus();
  out.nodes = (gpus + node.gpus - 1) / node.gpus;
  const Parallelism& cut = scenario.job.parallelism;
  if (cut.tensor > node.gpus || node.gpus % cut.tensor != 0) {
    refuse_kind(scenario, lot, fmt::format("{} GPUs a node", node.gpus),
                fmt::format("a multiple of the {} GPUs of tensor parallelism", cut.tensor));
  }
  if (node.gpu.peak(scenario.job.precision) <= FlopsPerSecond{}) {
    refuse_kind(scenario, lot, node.name, "a node whose GPUs have the job's precision");
  }
  if (!check_memory(scenario.job, scenario.stack, node.gpu).fits) {
    refuse_kind(scenario, lot, node.name, "a node in whose GPUs' memory the job fits");
  }
  if (scenario.power && (!node.chassis || !node.gpu.power)) {
    refuse_kind(scenario, lot, node.name, "a node with power data, beside \"power\"");
  }
  const NicPorts nics = nic_ports(node);
  if (const auto problem = lockstep::check(out.fabric, out.nodes, nics.count, nics.bandwidth)) {
    refuse_kind(scenario, lot, node.name, "a node that the scenario's fabric takes");
  }
  return out;
}

/// What a node draws while it works and idle, at its share of the site.
std::pair<Watts, Watts> draw_of_node(const Scenario& scenario) {
  const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
  const PowerLevels levels = step_power(scenario, step).levels;
  return {(1.0 / scenario.nodes) * levels.training.facility,
          (1.0 / scenario.nodes) * levels.idle.facility};
}

/// The scenario's kind first, then those of the lots.
std::vector<LotKind> kinds_of(const Scenario& scenario, PurchaseSpec& spec, double full) {
  std::vector<LotKind> out;
  out.push_back({.node = nullptr,
                 .card = scenario.node,
                 .name = scenario.node.name,
                 .widths = Widths(scenario, full, true)});
  for (std::size_t i = 0; i < spec.lots.size(); ++i) {
    Lot& lot = spec.lots[i];
    if (!lot.kind || lot.kind->name == scenario.node.name) {
      lot.kind = nullptr;
      continue;
    }
    auto known = std::ranges::find(out, lot.kind->name, &LotKind::name);
    if (known == out.end()) {
      const Scenario there = on_kind(scenario, *lot.kind, i);
      out.push_back({.node = lot.kind.get(),
                     .card = there.node,
                     .name = lot.kind->name,
                     .widths = Widths(there, full, false)});
      known = std::prev(out.end());
      const double speed = known->widths.on(there.nodes).speed;
      if (speed > 1) {
        refuse_kind(
            scenario, i, lot.kind->name,
            fmt::format("a node no faster than {} of the scenario: the job is {:.3g} times as "
                        "fast on it; let cluster.node be the fastest kind, and its lots say "
                        "no \"node\"",
                        scenario.node.name, speed));
      }
      if (scenario.power) {
        const auto [work, idle] = draw_of_node(scenario);
        const auto [works, idles] = draw_of_node(there);
        known->work_share = works / work;
        known->idle_share = idles / idle;
      }
    }
    lot.idle_share = known->idle_share;
  }
  return out;
}

/// The kinds of a job on several at once: their names, as Fleet::kinds has them after the others.
std::size_t mixed_kind(const std::vector<LotKind>& kinds, const MixedNodes& mixed,
                       std::vector<std::string>& names) {
  std::string name;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (mixed.used[k] == 0) continue;
    name += fmt::format("{}{} {}", name.empty() ? "" : " + ", mixed.used[k], kinds[k].name);
  }
  const auto known = std::ranges::find(names, name);
  if (known != names.end()) return static_cast<std::size_t>(known - names.begin());
  names.push_back(std::move(name));
  return names.size() - 1;
}

/// On several kinds at once.
FleetStep step_on(const std::vector<LotKind>& kinds, const std::vector<int>& nodes,
                  const MixedNodes& mixed) {
  FleetStep out{.at = {}, .nodes = 0, .used = 0, .speed = mixed.speed};
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    out.nodes += nodes[k];
    out.used += mixed.used[k];
    out.used_gpus += mixed.used[k] * kinds[k].card.gpus;
    if (mixed.used[k] == 0) out.apart += nodes[k];
    out.more_work += mixed.used[k] * (kinds[k].work_share - 1);
    out.more_idle += (nodes[k] - mixed.used[k]) * (kinds[k].idle_share - 1);
  }
  return out;
}

/// The kind on which the job is fastest; the others stand idle.
FleetStep fastest(std::vector<LotKind>& kinds, const std::vector<int>& nodes) {
  FleetStep best{.at = {}, .nodes = 0, .used = 0, .speed = -1};
  int all = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    all += nodes[k];
    FleetStep step = kinds[k].widths.on(nodes[k]);
    step.kind = k;
    if (step.speed > best.speed) best = step;
  }
  best.apart = all - best.nodes;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const int idle = nodes[k] - (k == best.kind ? best.used : 0);
    best.more_idle += idle * (kinds[k].idle_share - 1);
  }
  best.more_work = best.used * (kinds[best.kind].work_share - 1);
  best.used_gpus = best.used * kinds[best.kind].card.gpus;
  best.nodes = all;
  return best;
}

/// `names`: of kinds; those of jobs on several at once are added.
std::vector<FleetStep> steps_of(std::vector<LotKind>& kinds, const PurchaseSpec& spec, Mixes& mixes,
                                std::vector<std::string>& names) {
  std::vector<const NodeSpec*> cards;
  for (const LotKind& kind : kinds) cards.push_back(&kind.card);
  struct Change {
    std::vector<int> nodes;
    int own = 0, spot = 0;
  };
  std::map<double, Change> changes;
  for (const Shipment& each : shipments_of(spec)) {
    const int own = is_own(*each.lot) ? each.nodes : 0;
    const auto of = std::ranges::find_if(kinds, [&](const LotKind& kind) {
      return each.lot->kind ? kind.name == each.lot->kind->name : kind.node == nullptr;
    });
    const auto kind = static_cast<std::size_t>(of - kinds.begin());
    const auto change = [&](double at, int sign) {
      Change& there = changes[at];
      there.nodes.resize(kinds.size());
      there.nodes[kind] += sign * each.nodes;
      there.own += sign * own;
      if (each.lot->taken_away > Seconds{}) there.spot += sign * each.nodes;
    };
    change(each.from_s, 1);
    if (std::isfinite(each.until_s)) change(each.until_s, -1);
  }
  std::vector<FleetStep> out;
  std::vector<int> there(kinds.size());
  int own = 0, spot = 0;
  for (const auto& [at, more] : changes) {
    for (std::size_t k = 0; k < kinds.size(); ++k) there[k] += more.nodes[k];
    own += more.own;
    spot += more.spot;
    FleetStep step = fastest(kinds, there);
    constexpr double kFaster = 1 + 1e-9;
    const std::optional<MixedNodes> mixed = mixes.on(cards, there);
    if (mixed && mixed->speed > kFaster * step.speed) {
      step = step_on(kinds, there, *mixed);
      step.kind = mixed_kind(kinds, *mixed, names);
    }
    step.speed = std::max(0.0, step.speed);
    step.at = Seconds{at};
    step.own = own;
    step.spot = spot;
    out.push_back(step);
  }
  return out;
}

double end_of_step(const std::vector<FleetStep>& steps, std::size_t i) {
  return i + 1 < steps.size() ? steps[i + 1].at.base_units() : INFINITY;
}

/// The first moment, `ready` or later, at which the job has nodes; none: it never has.
std::optional<Seconds> first_run(const std::vector<FleetStep>& steps, Seconds ready) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].speed <= 0 || end_of_step(steps, i) <= ready.base_units()) continue;
    return std::max(steps[i].at, ready);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_size(const Scenario& scenario, const std::vector<FleetStep>& steps) {
  int most = 0;
  for (const FleetStep& step : steps) most = std::max(most, step.nodes);
  throw InputError({.file = scenario.file,
                    .pointer = "/run/purchase/lots",
                    .found = fmt::format("{} nodes at the most", most),
                    .allowed = "nodes for at least one replica that shares the batch evenly",
                    .nearest = {}});
}

[[noreturn]] void refuse_dates(const Scenario& scenario, const std::vector<FleetStep>& steps,
                               Seconds ready) {
  double last = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].speed > 0) last = end_of_step(steps, i);
  }
  throw LotsGone({.file = scenario.file,
                  .pointer = "/run/purchase/lots",
                  .found = fmt::format("nodes for the job until day {:.4g}", last / kDaySpan),
                  .allowed = fmt::format("nodes for it when its data is there, on day {:.4g}",
                                         ready.base_units() / kDaySpan),
                  .nearest = {}});
}

/// Cuts [from, until) at the ends of months: add(month, where a piece begins, its length).
template <class Add>
void spread(double from, double until, std::size_t months, Add add) {
  for (std::size_t m = 0; m < months; ++m) {
    const double begin = std::max(static_cast<double>(m) * kMonthSpan, from);
    const double end = std::min(static_cast<double>(m + 1) * kMonthSpan, until);
    if (end > begin) add(m, begin, end - begin);
  }
}

/// A price of the scenario that has no effect beside a purchase.
struct PriceBesideLots {
  std::string_view key;
  double usd;
  std::string_view allowed;
};

/// Books the payments of one plan.
class Ledger {
 public:
  Ledger(const Fleet& fleet, double end_s, const MoneyFactors& factors,
         std::span<const EnergyPayment> energy)
      : fleet_(fleet),
        factors_(factors),
        energy_(energy),
        end_s_(end_s),
        growth_per_s_(std::log1p(fleet.spec.interest) / kYearSpan),
        months_(static_cast<std::size_t>(std::max(1.0, std::ceil(end_s / kMonthSpan)))),
        interest_(months_.size()) {
    spread(0, end_s_, months_.size(),
           [&](std::size_t m, double, double length) { months_[m].lasts = Seconds{length}; });
  }

  std::vector<MonthMoney> book() {
    for (const Lot& lot : fleet_.spec.lots) {
      if (lot.terms == LotTerms::buy) buy(lot);
      if (lot.terms == LotTerms::lease) lease(lot);
    }
    for (const Shipment& each : shipments_of(fleet_.spec)) hold(each);
    for (const EnergyPayment& each : energy_) {
      pay(each.at.base_units(), factors_.energy * each.usd, &MonthMoney::energy);
      months_[month_of(std::min(each.at.base_units(), end_s_))].kwh += factors_.draw * each.kwh;
    }
    pay_evenly(fleet_.steps.front().at.base_units(), end_s_,
               fleet_.spec.staff_usd_per_month / kMonthSpan, &MonthMoney::staff);
    buy_plants();
    add_interest();
    return std::move(months_);
  }

 private:
  [[nodiscard]] std::size_t month_of(double at_s) const {
    return std::min(months_.size() - 1, static_cast<std::size_t>(at_s / kMonthSpan));
  }
  [[nodiscard]] double end_of(std::size_t month) const {
    return std::min(end_s_, static_cast<double>(month + 1) * kMonthSpan);
  }
  [[nodiscard]] double price_of(const Lot& lot) const {
    const double years = lot.ordered.base_units() / kYearSpan;
    return factors_.price * lot.nodes * declined(lot.usd_per_node, fleet_.spec.price_fall, years);
  }
  /// Compound interest on 1 over a time.
  [[nodiscard]] double interest_over(double time_s) const {
    return std::expm1(growth_per_s_ * time_s);
  }

  /// Pays at a moment. What falls due after the end is paid at the end.
  void pay(double at_s, double usd, double MonthMoney::* part) {
    const double at = std::min(at_s, end_s_);
    const std::size_t m = month_of(at);
    months_[m].*part += usd;
    interest_[m] += usd * interest_over(end_of(m) - at);
  }

  /// Pays at a steady rate between two moments. The interest until the month's end E on what is
  /// paid between a and b is the integral of exp(d (E - t)) - 1 over t.
  void pay_evenly(double from, double until, double usd_per_s, double MonthMoney::* part) {
    spread(from, std::min(until, end_s_), months_.size(),
           [&](std::size_t m, double begin, double length) {
             months_[m].*part += usd_per_s * length;
             if (growth_per_s_ == 0) return;
             const double left = end_of(m) - begin;
             const double grown = interest_over(left) - interest_over(left - length);
             interest_[m] += usd_per_s * (grown / growth_per_s_ - length);
           });
  }

  /// Pays at a steady rate for a term. What is left of the term at the end falls due at the end.
  void pay_term(double from, double until, double usd_per_s, double MonthMoney::* part) {
    pay_evenly(from, until, usd_per_s, part);
    const double left = usd_per_s * std::max(0.0, until - std::max(from, end_s_));
    pay(end_s_, left, part);
    months_.back().terms_left += left;
  }

  /// Pays for a lot that is ordered before the end, even if it is delivered later. Each shipment
  /// loses value from its own arrival on.
  void buy(const Lot& lot) {
    const double ordered = lot.ordered.base_units();
    if (ordered >= end_s_) return;
    const double price = price_of(lot);
    pay(ordered, fleet_.spec.deposit * price, &MonthMoney::bought);
    const double there = std::max(ordered, arrived(lot));
    pay(there, (1 - fleet_.spec.deposit) * price, &MonthMoney::bought);
    const double sold = std::min(end_s_, lot.until ? lot.until->base_units() : end_s_);
    const double loses = std::min(1.0, factors_.value_loss * fleet_.spec.loses);
    double left = 0;
    for (const Shipment& each : shipments_of(fleet_.spec)) {
      if (each.lot != &lot) continue;
      const double years = std::max(0.0, sold - each.from_s) / kYearSpan;
      left += declined(price * each.nodes / lot.nodes, loses, years);
    }
    pay(sold, -left, &MonthMoney::residual);
  }

  /// Of the site: paid for as the first machines come, worth less from then on as these are.
  void buy_plants() {
    const double at = fleet_.steps.front().at.base_units();
    if (fleet_.plants_usd <= 0 || at >= end_s_) return;
    const double price = factors_.price * fleet_.plants_usd;
    const double loses = std::min(1.0, factors_.value_loss * fleet_.spec.loses);
    pay(at, price, &MonthMoney::plants);
    pay(end_s_, -declined(price, loses, (end_s_ - at) / kYearSpan), &MonthMoney::residual);
  }

  /// Each shipment is paid for from its own arrival on, for a term.
  void lease(const Lot& lot) {
    if (lot.ordered.base_units() >= end_s_) return;
    const double term = lot.term->base_units();
    const double rate = period_rate(fleet_.spec.interest, 12);
    const double price = price_of(lot);
    const double monthly = lease_payment(price, lot.residual * price, rate, term / kMonthSpan);
    for (const Shipment& each : shipments_of(fleet_.spec)) {
      if (each.lot != &lot) continue;
      const double share = static_cast<double>(each.nodes) / lot.nodes;
      pay_term(each.from_s, each.from_s + term, share * monthly / kMonthSpan, &MonthMoney::leased);
    }
  }

  void hold(const Shipment& each) {
    const Lot& lot = *each.lot;
    const double nodes = share_there(fleet_, lot) * each.nodes;
    const double until = std::min(each.until_s, end_s_);
    const double usd_per_s =
        factors_.price * lot.usd_per_gpu_hour.value_or(0) * gpus_of(fleet_, lot) * nodes / 3600;
    spread(each.from_s, until, months_.size(), [&](std::size_t m, double, double length) {
      months_[m].nodes += nodes * length / months_[m].lasts.base_units();
    });
    if (is_own(lot)) {
      const double kilowatts =
          fleet_.waiting_node.base_units() * 1e-3 * lot.idle_share * each.nodes;
      const double from = std::max(each.from_s, factors_.waits_from.base_units());
      const double to = std::min(until, fleet_.begins.base_units());
      pay_evenly(from, to, factors_.energy * kilowatts * fleet_.usd_per_kwh / 3600,
                 &MonthMoney::energy);
      spread(from, to, months_.size(), [&](std::size_t m, double, double length) {
        months_[m].kwh += factors_.draw * kilowatts * length / 3600;
      });
    } else if (lot.terms != LotTerms::reserved) {
      pay_evenly(each.from_s, until, usd_per_s, &MonthMoney::rented);
    } else if (lot.ordered.base_units() < end_s_) {
      // A reservation that is given back early is paid for its whole term.
      pay_term(each.from_s, each.from_s + lot.term->base_units(), usd_per_s, &MonthMoney::rented);
    }
  }

  /// Adds each month's interest on all that was spent before, interest included, and within the
  /// month.
  void add_interest() {
    double balance = 0;
    for (std::size_t m = 0; m < months_.size(); ++m) {
      MonthMoney& month = months_[m];
      month.interest = balance * interest_over(month.lasts.base_units()) + interest_[m];
      balance += month.usd();
    }
  }

  const Fleet& fleet_;
  MoneyFactors factors_;
  std::span<const EnergyPayment> energy_;
  double end_s_;
  double growth_per_s_;  ///< what is owed grows by exp(growth_per_s x time)
  std::vector<MonthMoney> months_;
  std::vector<double> interest_;  ///< of each month, on what was spent within it
};

/// Lots on demand that say no price have the scenario's, else the list price of its node; spot lots
/// what that list asks for capacity that may be taken away.
PurchaseSpec with_list_prices(const Scenario& scenario, PurchaseSpec spec) {
  for (std::size_t i = 0; i < spec.lots.size(); ++i) {
    Lot& lot = spec.lots[i];
    const NodeSpec& node = lot.kind ? *lot.kind : scenario.node;
    const bool spot = lot.terms == LotTerms::spot;
    if ((!spot && lot.terms != LotTerms::on_demand) || lot.usd_per_gpu_hour) continue;
    lot.usd_per_gpu_hour = spot       ? node.spot_usd_per_gpu_hour
                           : lot.kind ? node.usd_per_gpu_hour
                                      : scenario.usd_per_gpu_hour;
    if (!lot.usd_per_gpu_hour) {
      throw InputError({.file = scenario.file,
                        .pointer = fmt::format("/run/purchase/lots/{}/usd_per_gpu_hour", i),
                        .found = "nothing",
                        .allowed = fmt::format("a price, as {} has none{} in its list", node.name,
                                               spot ? " on spot" : ""),
                        .nearest = {}});
    }
    const bool listed = spot || lot.usd_per_gpu_hour == node.usd_per_gpu_hour;
    spec.assumptions.push_back(fmt::format(
        "run.purchase.lots: \"{}\" for {:g} USD a GPU-hour, {} (usd_per_gpu_hour not given)",
        lot.name, *lot.usd_per_gpu_hour,
        listed ? fmt::format("the list price of {}{}", node.name, spot ? " on spot" : "")
               : "the scenario's price"));
  }
  return spec;
}

}  // namespace

double share_there(const Fleet& fleet, const Lot& lot) {
  if (lot.taken_away <= Seconds{}) return 1;
  return lot.taken_away / (lot.taken_away + fleet.returns);
}

void set_returns(Fleet& fleet, Seconds returns) {
  fleet.returns = returns;
  for (FleetStep& step : fleet.steps) step.away = 0;
  for (const Shipment& each : shipments_of(fleet.spec)) {
    for (FleetStep& step : fleet.steps) {
      const double at = step.at.base_units();
      if (at < each.from_s || at >= each.until_s) continue;
      step.away += (1 - share_there(fleet, *each.lot)) * each.nodes;
    }
  }
}

int gpus_of(const Fleet& fleet, const Lot& lot) {
  return lot.kind ? lot.kind->gpus : fleet.gpus_per_node;
}

Seconds last_shipment(const Lot& lot) { return lot.ordered + lot.lead_time + lot.delivery; }

std::vector<Shipment> shipments_of(const PurchaseSpec& spec) {
  std::vector<Shipment> out;
  for (const Lot& lot : spec.lots) {
    double until = lot.until ? lot.until->base_units() : INFINITY;
    for (int i = 0; i < lot.shipments; ++i) {
      const int nodes = lot.nodes / lot.shipments + (i < lot.nodes % lot.shipments ? 1 : 0);
      const double from = (lot.ordered + lot.lead_time).base_units() +
                          lot.delivery.base_units() * (i + 1) / lot.shipments;
      const double ends = lot.term ? from + lot.term->base_units() : INFINITY;
      out.push_back({&lot, nodes, from, std::min(until, ends)});
    }
  }
  return out;
}

FleetStep Fleet::at(RunTime now) const {
  const Seconds moment = begins + to_seconds(now);
  FleetStep out;
  for (const FleetStep& step : steps) {
    if (step.at > moment) break;
    out = step;
  }
  return out;
}

SitePace Fleet::pace(RunTime now) const {
  SitePace out;
  out.speed = out.machines = at(now).speed;
  const Seconds moment = begins + to_seconds(now);
  const auto next =
      std::ranges::find_if(steps, [&](const FleetStep& step) { return step.at > moment; });
  if (next != steps.end()) out.until = std::max(now + 1, to_run_time(next->at - begins));
  return out;
}

Seconds Fleet::soonest(Seconds work) const {
  double left = work.base_units();
  const double from = begins.base_units();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double at = std::max(from, steps[i].at.base_units());
    const double length = std::max(0.0, end_of_step(steps, i) - at);
    const double done = steps[i].speed > 0 ? steps[i].speed * length : 0;
    if (done >= left) return Seconds{at - from + left / steps[i].speed};
    left -= done;
  }
  return Seconds{INFINITY};
}

std::optional<Seconds> Fleet::gone() const {
  std::optional<Seconds> out;
  for (const FleetStep& step : steps) {
    if (step.speed > 0) {
      out.reset();
    } else if (!out) {
      out = step.at;
    }
  }
  return out;
}

int Fleet::most_nodes() const {
  int most = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (end_of_step(steps, i) > begins.base_units()) most = std::max(most, steps[i].nodes);
  }
  return most;
}

double Fleet::mean_nodes(Seconds run) const {
  const double from = begins.base_units();
  const double until = from + run.base_units();
  double node_seconds = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double length =
        std::min(end_of_step(steps, i), until) - std::max(steps[i].at.base_units(), from);
    node_seconds += steps[i].nodes * std::max(0.0, length);
  }
  return until > from ? node_seconds / (until - from) : 0;
}

double Fleet::held_gpu_hours(Seconds run) const {
  const double from = begins.base_units(), until = from + run.base_units();
  double seconds = 0;
  for (const Shipment& each : shipments_of(spec)) {
    const double length = std::min(each.until_s, until) - std::max(each.from_s, from);
    seconds += share_there(*this, *each.lot) * gpus_of(*this, *each.lot) * each.nodes *
               std::max(0.0, length);
  }
  return seconds / 3600;
}

double Fleet::used_gpu_hours(Seconds run) const {
  const double from = begins.base_units(), until = from + run.base_units();
  double seconds = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double length =
        std::min(end_of_step(steps, i), until) - std::max(steps[i].at.base_units(), from);
    seconds += steps[i].used_gpus * std::max(0.0, length);
  }
  return seconds / 3600;
}

namespace {

/// Nodes of the kind that the job runs on, without a place in it.
int in_reserve(const FleetStep& step) { return step.nodes - step.apart - step.used; }

}  // namespace

FleetStep Fleet::fullest(Seconds run) const {
  const FleetStep* out = &steps.front();
  bool found = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const FleetStep& step = steps[i];
    const bool of_run = end_of_step(steps, i) > begins.base_units() && step.at < begins + run;
    if (step.speed > 0 && of_run && (!found || in_reserve(step) < in_reserve(*out))) {
      out = &step;
      found = true;
    }
  }
  assert(found);
  return *out;
}

int Fleet::standing_by(Seconds run) const { return in_reserve(fullest(run)); }

std::optional<InputProblem> excess_price(const Scenario& scenario) {
  if (!scenario.power) return std::nullopt;
  constexpr std::string_view kOfLots =
      "none beside run.purchase: a lot's usd_per_node has its GPUs, network and building in it";
  constexpr std::string_view kByMonth =
      "none beside run.purchase: what is paid by the month is its staff_usd_per_month";
  const CostSpec& cost = scenario.power->cost;
  const std::array prices{
      PriceBesideLots{"usd_per_gpu", cost.usd_per_gpu, kOfLots},
      PriceBesideLots{"usd_per_node", cost.usd_per_node, kOfLots},
      PriceBesideLots{"usd_per_100g_port", cost.usd_per_100g_port, kOfLots},
      PriceBesideLots{"usd_per_facility_w", cost.usd_per_facility_w, kOfLots},
      PriceBesideLots{"people_usd_per_hour", cost.people_usd_per_hour, kByMonth},
      PriceBesideLots{"hosting_usd_per_kw_month", cost.hosting_usd_per_kw_month, kByMonth}};
  const auto given =
      std::ranges::find_if(prices, [](const PriceBesideLots& each) { return each.usd > 0; });
  if (given == prices.end()) return std::nullopt;
  return InputProblem{.file = scenario.file,
                      .pointer = fmt::format("/cost/{}", given->key),
                      .found = fmt::format("{:g}", given->usd),
                      .allowed = std::string(given->allowed),
                      .nearest = {}};
}

namespace {

/// The lot that leaves at a moment, by the key that says when.
std::string leaving_lot(const PurchaseSpec& spec, Seconds at) {
  for (const Shipment& each : shipments_of(spec)) {
    if (each.until_s != at.base_units()) continue;
    const Lot& lot = *each.lot;
    const bool given_back = lot.until && lot.until->base_units() == each.until_s;
    return fmt::format("/{}/{}", each.lot - spec.lots.data(), given_back ? "until" : "term");
  }
  return {};
}

int nodes_from(const std::vector<FleetStep>& steps, Seconds at) {
  const auto step = std::ranges::find(steps, at, &FleetStep::at);
  return step == steps.end() ? 0 : step->nodes;
}

}  // namespace

void require_lots_for(const Scenario& scenario, const Fleet& fleet, Seconds work,
                      std::optional<Seconds> duration) {
  const std::optional<Seconds> gone = fleet.gone();
  if (!gone) return;
  const bool lasts = duration ? fleet.begins + *duration <= *gone
                              : std::isfinite(fleet.soonest(work).base_units());
  if (lasts) return;
  const Parallelism& cut = scenario.job.parallelism;
  const int replica = cut.tensor * cut.context * cut.pipeline;
  const double day = gone->base_units() / kDaySpan;
  double done = 0;
  for (std::size_t i = 0; i < fleet.steps.size(); ++i) {
    const double from = std::max(fleet.begins, fleet.steps[i].at).base_units();
    const double until = std::min(end_of_step(fleet.steps, i), gone->base_units());
    done += fleet.steps[i].speed * std::max(0.0, until - from);
  }
  const std::string until =
      duration ? fmt::format("until the run is done, on day {:.4g}",
                             (fleet.begins + *duration).base_units() / kDaySpan)
               : fmt::format("until all is trained: {:.3g} % is by then, though nothing fails",
                             100 * done / work.base_units());
  throw LotsGone(
      {.file = scenario.file,
       .pointer = "/run/purchase/lots" + leaving_lot(fleet.spec, *gone),
       .found = fmt::format("{} left from day {:.4g} on",
                            counted(nodes_from(fleet.steps, *gone), "node"), day),
       .allowed = fmt::format(
           "the {} of a replica {}",
           counted(std::ceil(static_cast<double>(replica) / fleet.gpus_per_node), "node"), until),
       .nearest = {}});
}

Fleet begun_at(Fleet fleet, Seconds ready) {
  fleet.begins = first_run(fleet.steps, ready).value_or(ready);
  return fleet;
}

Fleet plan_fleet(const Scenario& scenario, const PurchaseSpec& spec, Seconds data_ready) {
  if (scenario.unequal()) {
    throw InputError({.file = scenario.file,
                      .pointer = "/run/purchase",
                      .found = "lots of nodes",
                      .allowed = "one kind of node and an even batch beside them",
                      .nearest = {}});
  }
  if (std::optional<InputProblem> excess = excess_price(scenario)) {
    throw InputError(*std::move(excess));
  }
  const double full = simulate_step(scenario, {}).tokens_per_s;
  PurchaseSpec priced = spec;
  std::vector<LotKind> kinds = kinds_of(scenario, priced, full);
  priced = with_list_prices(scenario, std::move(priced));
  std::vector<std::string> names;
  for (const LotKind& kind : kinds) names.push_back(kind.name);
  Mixes mixes(scenario, full);
  Fleet out{.spec = priced,
            .steps = steps_of(kinds, priced, mixes, names),
            .begins = {},
            .gpus_per_node = scenario.node.gpus,
            .waiting_node = {},
            .usd_per_kwh = 0,
            .assumptions = priced.assumptions};
  out.kinds = std::move(names);
  if (kinds.size() > 1) {
    out.assumptions.emplace_back(
        "run.purchase.lots: the job runs on the kind of node on which it is fastest, or on several "
        "at once where that is faster: each replica on nodes of one kind, with micro batches in "
        "proportion to its speed; it moves there without a stop, nodes without a place stand idle, "
        "and failures are those of the scenario's kind");
  }
  const std::optional<Seconds> first = first_run(out.steps, Seconds{});
  if (!first) refuse_size(scenario, out.steps);
  const std::optional<Seconds> begins = first_run(out.steps, data_ready);
  if (!begins) refuse_dates(scenario, out.steps, data_ready);
  out.begins = *begins;
  if (scenario.power) {
    const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
    out.waiting_node = (1.0 / scenario.nodes) * step_power(scenario, step).levels.idle.facility;
    const std::vector<double>& tariff = scenario.power->cost.usd_per_kwh.values;
    double sum = 0;
    for (const double usd : tariff) sum += usd;
    out.usd_per_kwh = sum / static_cast<double>(tariff.size());
  }
  out.assumptions.emplace_back(
      "run.purchase: on fewer nodes the job runs as many replicas as share its batch evenly; it "
      "grows and shrinks without a stop, and meets the failures of the nodes that it runs on, of "
      "switches, cables and feeds in proportion; "
      "a node that waits for the run to begin, or has no place in the job, draws what an idle one "
      "does; network and building are in the price of a lot");
  if (*begins > *first) {
    out.assumptions.push_back(fmt::format(
        "run.purchase: there are nodes for the job on day {:.4g}; it begins on day {:.4g}, when "
        "its data is there, and what is there before is paid for all the same",
        first->base_units() / kDaySpan, begins->base_units() / kDaySpan));
  }
  if (std::ranges::any_of(priced.lots, [](const Lot& lot) { return lot.term.has_value(); })) {
    out.assumptions.emplace_back(
        "run.purchase: what is left of the term of a lease or a reservation when the run is done "
        "falls due then");
  }
  return out;
}

std::vector<MonthMoney> money_by_month(const Fleet& fleet, Seconds run, const MoneyFactors& factors,
                                       std::span<const EnergyPayment> energy) {
  return Ledger(fleet, (fleet.begins + run).base_units(), factors, energy).book();
}

std::vector<MonthMoney> further_money(const Fleet& fleet, Seconds run, const MoneyFactors& factors,
                                      std::span<const EnergyPayment> energy,
                                      const KeptFleet& kept) {
  MoneyFactors changed = factors;
  changed.waits_from = kept.from;
  std::vector<MonthMoney> out = money_by_month(fleet, run, changed, energy);
  Fleet until = fleet;
  until.begins = kept.from;
  const std::vector<MonthMoney> before = money_by_month(until, Seconds{}, changed);
  const double growth_per_s = std::log1p(fleet.spec.interest) / kYearSpan;
  double known = 0;
  for (std::size_t m = 0; m < before.size(); ++m) {
    known += before[m].spent() + before[m].interest;
    MonthMoney& month = out[m];
    for (const auto part :
         {&MonthMoney::bought, &MonthMoney::leased, &MonthMoney::rented, &MonthMoney::energy,
          &MonthMoney::staff, &MonthMoney::interest, &MonthMoney::residual, &MonthMoney::terms_left,
          &MonthMoney::kwh, &MonthMoney::plants}) {
      month.*part -= before[m].*part;
    }
    const Seconds lasts = month.lasts - before[m].lasts;
    const double nodes =
        month.nodes * month.lasts.base_units() - before[m].nodes * before[m].lasts.base_units();
    month.lasts = lasts;
    month.nodes = lasts > Seconds{} ? nodes / lasts.base_units() : 0;
  }
  // What `before` does not know of, above all the energy of the trainings before.
  const double owed = kept.spent - known;
  const double begin = kept.from.base_units(), end = (fleet.begins + run).base_units();
  spread(begin, end, out.size(), [&](std::size_t m, double at, double length) {
    out[m].interest += owed * (std::expm1(growth_per_s * (at + length - begin)) -
                               std::expm1(growth_per_s * (at - begin)));
  });
  return out;
}

MonthMoney sum_of(const std::vector<MonthMoney>& months) {
  MonthMoney out;
  for (const MonthMoney& month : months) {
    for (const auto part :
         {&MonthMoney::bought, &MonthMoney::leased, &MonthMoney::rented, &MonthMoney::energy,
          &MonthMoney::staff, &MonthMoney::interest, &MonthMoney::residual, &MonthMoney::terms_left,
          &MonthMoney::kwh, &MonthMoney::plants}) {
      out.*part += month.*part;
    }
    out.nodes += month.nodes * month.lasts.base_units();
    out.lasts += month.lasts;
  }
  if (out.lasts > Seconds{}) out.nodes /= out.lasts.base_units();
  return out;
}

}  // namespace lockstep
