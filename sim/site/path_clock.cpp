#include "sim/site/path_clock.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::uint32_t kGeneratorPurpose = 0x4753;  // draws independent of all others of a run
constexpr double kEmpty = 1e-9;                      // of a full battery
constexpr double kLongestOutage = 9e9;               // s, of to_run_time()

/// Whether nodes have more: more of them have power, or, where those in service are held lower
/// than when nothing is broken, they get a larger share.
bool has_more(const PathDelivery& got, const PathDelivery& than, const PathDelivery& nominal) {
  constexpr double kSame = 1e-9;
  if (got.nodes != than.nodes) return got.nodes > than.nodes;
  return than.share < nominal.share - kSame && got.share > than.share + kSame;
}

/// Mean fuel rates of the running generators, weighted by capacity, or by number if one has no
/// limit.
FuelRates mean_fuel(std::span<const PowerPart> path, std::span<const int> down) {
  const bool limited = std::ranges::all_of(
      path, [](const PowerPart& part) { return !part.generator || part.capacity > Watts{}; });
  double all = 0;
  FuelRates sum;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!path[i].generator) continue;
    const double unit = limited ? path[i].capacity.base_units() : 1;
    const double weight = (path[i].bank.units - down[i]) * unit;
    all += weight;
    sum.usd_per_kwh += weight * path[i].generator->usd_per_kwh.value_or(0);
    sum.grams_per_kwh += weight * path[i].generator->grams_per_kwh.value_or(0);
  }
  if (all <= 0) return {};
  return {.usd_per_kwh = sum.usd_per_kwh / all, .grams_per_kwh = sum.grams_per_kwh / all};
}

RunTime later(RunTime now, Seconds after) {
  if (!(after < Seconds{kLongestOutage})) return INT64_MAX;
  return now + std::max<RunTime>(1, to_run_time(after));
}

}  // namespace

PathClock::PathClock(std::span<const PowerPart> path, Watts per_node, std::uint64_t seed,
                     std::uint32_t trajectory)
    : path_(path),
      per_node_(per_node),
      failed_(path.size(), 0),
      stored_(path.size(), 1.0),
      taken_(path.size()) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto number = static_cast<std::uint32_t>(i);
    banks_.emplace_back(path[i].bank, seed, trajectory, number);
    starts_.emplace_back(StreamName{
        .seed = seed, .trajectory = trajectory, .component = number, .purpose = kGeneratorPurpose});
    standby_ = standby_ || path[i].generator || path[i].bridge > Seconds{};
  }
  if (path.empty()) return;
  const std::vector<int> none(path.size(), 0);
  nominal_ = got_ = delivered(path, without_generators(path, none), per_node);
}

void PathClock::load(RunTime now, Watts per_node) {
  if (path_.empty() || per_node == per_node_) return;
  spend(now);
  per_node_ = per_node;
  const std::vector<int> none(path_.size(), 0);
  nominal_ = delivered(path_, without_generators(path_, none), per_node);
  next_ = INT64_MAX;
  update(now);
}

RunTime PathClock::next_at() const {
  RunTime next = next_;
  for (const BankProcess& bank : banks_) next = std::min(next, bank.next_at());
  return next;
}

void PathClock::advance(RunTime now) {
  for (RunTime at = next_at(); at <= now; at = next_at()) {
    spend(at);
    next_ = INT64_MAX;
    for (BankProcess& bank : banks_) bank.advance(at);
    update(at);
  }
}

/// Takes from the batteries what they have given since the last change.
void PathClock::spend(RunTime now) {
  const Seconds length = to_seconds(now - spent_at_);
  spent_at_ = now;
  for (std::size_t i = 0; i < path_.size(); ++i) {
    if (taken_[i] <= Watts{}) continue;
    const double full = full_store(path_[i], banks_[i].down()).base_units();
    stored_[i] -= taken_[i].base_units() * length.base_units() / full;
    if (stored_[i] < kEmpty) stored_[i] = 0;
  }
}

void PathClock::update(RunTime now) {
  std::vector<int> down;
  for (const BankProcess& bank : banks_) down.push_back(bank.down());
  got_ = delivered(path_, without_generators(path_, down), per_node_);
  generated_ = 0;
  if (!standby_) return;
  if (!standby_helps(got_, down)) {
    end_outage();
    return;
  }
  if (!since_) begin_outage(now, down);
  meet_outage(now, got_, down);
}

/// Whether nodes would have more with all batteries full and all generators running.
bool PathClock::standby_helps(const PathDelivery& base, std::span<const int> down) const {
  std::vector<Watts> stored(path_.size());
  for (std::size_t i = 0; i < path_.size(); ++i) {
    const PowerPart& part = path_[i];
    if (part.bridge > Seconds{}) stored[i] = (part.bank.units - down[i]) * part.capacity;
  }
  return has_more(delivered(path_, down, per_node_, stored), base, nominal_);
}

void PathClock::begin_outage(RunTime now, std::span<const int> down) {
  since_ = now;
  covered_ = true;
  ++record_.outages;
  for (std::size_t i = 0; i < path_.size(); ++i) {
    failed_[i] = 0;
    if (!path_[i].generator) continue;
    for (int unit = down[i]; unit < path_[i].bank.units; ++unit) {
      ++record_.starts;
      if (starts_[i].uniform() < path_[i].generator->fails_to_start) ++failed_[i];
    }
    record_.failed_starts += failed_[i];
  }
}

void PathClock::end_outage() {
  since_.reset();
  std::ranges::fill(stored_, 1.0);
  std::ranges::fill(taken_, Watts{});
}

/// Units that are down during an outage, including generators that have not started yet, failed to
/// start or have no fuel left. Remembers when that changes next.
std::vector<int> PathClock::running(RunTime now, std::span<const int> down) {
  std::vector<int> out(down.begin(), down.end());
  for (std::size_t i = 0; i < path_.size(); ++i) {
    if (!path_[i].generator) continue;
    const GeneratorLaw& law = *path_[i].generator;
    const RunTime start = *since_ + to_run_time(law.start);
    const RunTime stop = law.fuel > Seconds{} ? later(start, law.fuel) : INT64_MAX;
    const bool runs = now >= start && now < stop;
    out[i] = runs ? std::min(path_[i].bank.units, down[i] + failed_[i]) : path_[i].bank.units;
    if (now < stop) next_ = std::min(next_, runs ? stop : start);
  }
  return out;
}

/// Power that batteries can give, by part.
std::vector<Watts> PathClock::held_power(std::span<const int> down) const {
  std::vector<Watts> out(path_.size());
  for (std::size_t i = 0; i < path_.size(); ++i) {
    const PowerPart& part = path_[i];
    if (part.bridge <= Seconds{} || stored_[i] <= 0) continue;
    out[i] = (part.bank.units - down[i]) * part.capacity;
  }
  return out;
}

void PathClock::meet_outage(RunTime now, PathDelivery base, std::span<const int> down) {
  const std::vector<int> with_generators = running(now, down);
  got_ = delivered(path_, with_generators, per_node_);
  const double watts = got_.nodes * got_.share;
  if (watts > 0) generated_ = std::max(0.0, 1 - base.nodes * base.share / watts);
  fuel_ = mean_fuel(path_, with_generators);
  bridge(now, with_generators);
  const bool lacks = standby_helps(got_, down);
  if (lacks && covered_) ++record_.uncovered;
  covered_ = covered_ && !lacks;
}

/// Lets batteries carry the missing power as long as they can.
void PathClock::bridge(RunTime now, std::span<const int> down) {
  std::ranges::fill(taken_, Watts{});
  const PathDelivery with_stores = delivered(path_, down, per_node_, held_power(down));
  if (!has_more(with_stores, got_, nominal_)) return;
  std::vector<Joules> energy(path_.size());
  for (std::size_t i = 0; i < path_.size(); ++i) {
    energy[i] = stored_[i] * full_store(path_[i], down[i]);
  }
  const PathBridge bridge = bridged(path_, down, per_node_, with_stores, energy);
  got_ = with_stores;
  taken_ = bridge.from;
  next_ = std::min(next_, later(now, bridge.lasts));
}

}  // namespace lockstep
