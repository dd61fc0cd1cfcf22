#include "sim/site/standby_figures.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/site/power_path.hpp"

namespace lockstep {
namespace {

using Path = std::span<const PowerPart>;

/// All units that bring power from outside, or stand by for it.
std::vector<int> outside_down(Path path) {
  std::vector<int> down(path.size(), 0);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].from.empty()) down[i] = path[i].bank.units;
  }
  return down;
}

/// The fewest units of a bank that bring all machines what they have when nothing is broken, with
/// all generators of other banks; none: it takes more than there are.
std::optional<int> needed_units(Path path, std::size_t generator, Watts per_node,
                                const PathDelivery& nominal) {
  std::vector<int> down = outside_down(path);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].generator) down[i] = 0;
  }
  const int units = path[generator].bank.units;
  const auto enough = [&](int running) {
    down[generator] = units - running;
    const PathDelivery got = delivered(path, down, per_node);
    return got.nodes >= nominal.nodes && got.share >= nominal.share - 1e-9;
  };
  if (!enough(units)) return std::nullopt;
  int low = -1, high = units;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

/// Chance that enough generators start: broken ones do not.
double starts_of(const PowerPart& part, int needed) {
  const std::vector<double> broken = units_down(part.bank);
  double sum = 0;
  for (std::size_t i = 0; i < broken.size(); ++i) {
    sum += broken[i] * enough_start(part.bank.units - static_cast<int>(i), needed,
                                    part.generator->fails_to_start);
  }
  return std::min(1.0, sum);
}

/// One law for all generators: the slowest start, and the fuel that is used up first.
GeneratorLaw together(Path path) {
  GeneratorLaw out{.start = {}, .fails_to_start = 0, .fuel = {}};
  for (const PowerPart& part : path) {
    if (!part.generator) continue;
    const GeneratorLaw& law = *part.generator;
    out.start = std::max(out.start, law.start);
    if (law.fuel <= Seconds{}) continue;
    out.fuel = out.fuel > Seconds{} ? std::min(out.fuel, law.fuel) : law.fuel;
  }
  return out;
}

/// How long full batteries carry all machines alone; 0 where some are lost at once.
Seconds bridge_of(Path path, Watts per_node, const PathDelivery& nominal) {
  const std::vector<int> lost = outside_down(path);
  std::vector<Joules> energy;
  std::vector<Watts> power;
  for (const PowerPart& part : path) {
    energy.push_back(full_store(part, 0));
    power.push_back(part.bridge > Seconds{} ? part.bank.units * part.capacity : Watts{});
  }
  const PathDelivery carried = delivered(path, lost, per_node, power);
  if (carried.nodes < nominal.nodes || carried.share < nominal.share - 1e-9) return {};
  return bridged(path, lost, per_node, carried, energy).lasts;
}

double all_start(Path path, Watts per_node, const PathDelivery& nominal) {
  double starts = 1;
  bool any = false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!path[i].generator) continue;
    any = true;
    const std::optional<int> needed = needed_units(path, i, per_node, nominal);
    starts *= needed ? starts_of(path[i], *needed) : 0;
  }
  return any ? starts : 0;
}

std::optional<Blackouts> blackouts_of(Path path, const StandbyFigures& of) {
  const std::optional<std::size_t> outside = only_bank_outside(path);
  if (!outside) return std::nullopt;
  const UnitBank& bank = path[*outside].bank;
  if (bank.mean_time <= Seconds{}) return std::nullopt;
  const int repaired = bank.crews > 0 ? std::min(bank.units, bank.crews) : bank.units;
  constexpr Seconds kYear{365.25 * 86'400};
  Blackouts out{.per_year = 0, .lasts = bank.repair / repaired, .uncovered = 0};
  out.per_year = units_down(bank).back() * (kYear / out.lasts);
  out.uncovered = outlasts_standby(out.lasts, of.bridge, together(path), of.starts);
  out.without = without_standby(out.lasts, of.bridge, together(path), of.starts);
  return out;
}

}  // namespace

std::optional<std::size_t> only_bank_outside(std::span<const PowerPart> path) {
  const auto outside = [](const PowerPart& p) { return p.from.empty() && !p.generator; };
  if (std::ranges::count_if(path, outside) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find_if(path, outside) - path.begin());
}

std::optional<StandbyFigures> standby_figures(const SitePlan& plan) {
  const Path path = plan.spec.path;
  StandbyFigures out;
  bool generators = false;
  for (const PowerPart& part : path) {
    out.stored += part.over_machines * full_store(part, 0);
    if (!part.generator) continue;
    generators = true;
    out.generators += part.bank.units * part.over_machines * part.capacity;
  }
  if (!generators && out.stored <= Joules{}) return std::nullopt;
  const Watts per_node = plan.highest_path_demand().per_place;
  const std::vector<int> none(path.size(), 0);
  const PathDelivery nominal = delivered(path, without_generators(path, none), per_node);
  out.bridge = bridge_of(path, per_node, nominal);
  out.starts = all_start(path, per_node, nominal);
  out.blackouts = blackouts_of(path, out);
  return out;
}

}  // namespace lockstep
