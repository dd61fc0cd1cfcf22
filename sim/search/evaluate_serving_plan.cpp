#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <utility>

#include "sim/scenario/serving_load.hpp"
#include "sim/search/serving_plan.hpp"

namespace lockstep {
namespace {

SizedService size_service(const ServingPlanSpec& plan, const ServingSpec& base, bool two_pools,
                          const std::function<bool()>& interrupted) {
  const FoundLayouts layouts = serving_layouts(base, base.pools.front(), plan.space);
  const ServingTrials trials(base, interrupted);
  return two_pools ? size_two_pools(trials, layouts.pools) : size_one_pool(trials, layouts.pools);
}

/// What a million tokens of answers cost with the spares, while the service goes on: rent by GPUs,
/// machines by the nodes that are held, people as many as without.
double with_spares(const ServingOption& option, const ServingSpec& spec,
                   const ServingMoney& money) {
  const ServingTrial& best = option.sized.best;
  const double price = money.price.per_million_output * best.coming_share;
  if (money.of == MoneyOf::rent) return price * option.gpus() / best.gpus();
  const NodeSpec& node = spec.cluster.node;
  const double nodes = nodes_held(option.gpus(), node) / nodes_held(best.gpus(), node);
  const double people =
      token_price(best.report.power->cost.people_usd, best.report.figures).per_million_output *
      best.coming_share;
  return (price - people) * nodes + people;
}

void add_spares(const ServingPlanSpec& plan, ServingOption& option) {
  const ServingTrial& best = option.sized.best;
  option.spares = plan.failures ? spare_replicas(best.pools, *plan.failures)
                                : std::vector<int>(best.pools.size());
  for (std::size_t p = 0; p < best.pools.size(); ++p) {
    option.spare_gpus += option.spares[p] * best.pools[p].gpus();
  }
  const ServingSpec& spec = plan.candidates[option.candidate].base;
  if (const std::optional<ServingMoney> money = money_of(spec, best.report)) {
    option.billed = money->of;
    option.usd_per_million = with_spares(option, spec, *money);
  }
}

std::vector<ServingOption> options_of(const ServingPlanSpec& plan) {
  std::vector<ServingOption> out;
  for (std::size_t c = 0; c < plan.candidates.size(); ++c) {
    if (plan.one_pool) out.push_back({.candidate = c, .two_pools = false});
    if (plan.two_pools) out.push_back({.candidate = c, .two_pools = true});
  }
  return out;
}

/// What decides between options, the smaller the better.
double measure_of(const ServingPlanSpec& plan, const ServingOption& option) {
  return plan.goal == ServingPlanGoal::money ? option.usd_per_million.value_or(0) : option.gpus();
}

std::optional<std::size_t> choice_of(const ServingPlanSpec& plan,
                                     const std::vector<ServingOption>& options) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!options[i].sized.possible) continue;
    if (!best || measure_of(plan, options[i]) < measure_of(plan, options[*best])) best = i;
  }
  return best;
}

/// The chosen layouts with half to twice the replicas, as far as the candidate has machines.
std::vector<ServingTrial> capacity_curve(const ServingPlanSpec& plan, const ServingOption& option,
                                         const std::function<bool()>& interrupted) {
  constexpr std::array kFactors{0.5, 0.75, 1.0, 1.25, 1.5, 2.0};
  const ServingTrials trials(plan.candidates[option.candidate].base, interrupted);
  std::vector<ServingTrial> out;
  for (const double factor : kFactors) {
    std::vector<ServingPool> pools = option.sized.best.pools;
    int gpus = 0;
    for (ServingPool& pool : pools) {
      pool.replicas = std::max(1, static_cast<int>(std::ceil(factor * pool.replicas)));
      gpus += pool.replicas * pool.gpus();
    }
    if (gpus > trials.base().cluster.gpus()) break;
    ServingTrial trial = trials.run_steady(pools);
    const bool known = !out.empty() && out.back().gpus() == trial.gpus();
    if (!known) out.push_back(std::move(trial));
  }
  return out;
}

/// The candidate's scenario with a drawn load of these lengths and this rate.
ServingSpec with_load(const ServingSpec& base, const ServingMapCell& cell, int requests) {
  constexpr double kSigma = 0.5;  // of the lengths' logarithms: as conversations' (assumed)
  const auto lengths = [](double mean) {
    ServingLengths of;
    of.mean = mean;
    of.sigma = kSigma;
    of.most = static_cast<int>(8 * mean);
    return of;
  };
  WrittenLoad load;
  load.rate = cell.rate;
  load.input = lengths(cell.input);
  load.output = lengths(cell.output);
  ServingSpec out = base;
  out.clients = 0;
  out.coming = 0;
  out.drawn = std::make_shared<const WrittenLoad>(load);
  redraw_requests(out, static_cast<std::size_t>(requests));
  return out;
}

std::vector<ServingMapCell> cells_of(const ServingMapSpec& map) {
  std::vector<ServingMapCell> out;
  for (const double rate : map.rate) {
    for (const double output : map.output) {
      for (const double input : map.input) {
        out.push_back({.input = input, .output = output, .rate = rate});
      }
    }
  }
  return out;
}

}  // namespace

ServingPlanReport evaluate_serving_plan(const ServingPlanSpec& spec,
                                        const ServingPlanOptions& options) {
  ServingPlanReport out;
  out.options = options_of(spec);
  const std::size_t cells = cells_of(spec.map).size();
  const std::size_t most = out.options.size() + cells;
  tbb::task_arena arena(options.jobs > 0 ? options.jobs : tbb::task_arena::automatic);
  std::mutex telling;
  std::size_t done = 0;
  const auto tell = [&] {
    const std::scoped_lock lock(telling);
    if (options.progress) options.progress(++done, most);
  };
  arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, out.options.size(), [&](std::size_t i) {
      ServingOption& option = out.options[i];
      option.sized = size_service(spec, spec.candidates[option.candidate].base, option.two_pools,
                                  options.interrupted);
      tell();
    });
  });
  for (ServingOption& option : out.options) {
    out.trials += option.sized.trials;
    out.interrupted = out.interrupted || option.sized.interrupted;
    if (option.sized.possible) add_spares(spec, option);
  }
  out.choice = choice_of(spec, out.options);
  if (!out.choice || out.interrupted) return out;
  out.curve = capacity_curve(spec, out.options[*out.choice], options.interrupted);
  out.trials += static_cast<int>(out.curve.size());
  if (!spec.map.any()) return out;
  const ServingSpec& base = spec.candidates[out.options[*out.choice].candidate].base;
  out.map = cells_of(spec.map);
  std::vector<int> trials(out.map.size());
  arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, out.map.size(), [&](std::size_t i) {
      ServingMapCell& cell = out.map[i];
      const ServingSpec load = with_load(base, cell, spec.map.requests);
      const SizedService one = size_service(spec, load, false, options.interrupted);
      const SizedService two = size_service(spec, load, true, options.interrupted);
      if (one.possible) cell.one_pool = one.best.gpus();
      if (two.possible) cell.two_pools = two.best.gpus();
      trials[i] = one.trials + two.trials;
      tell();
    });
  });
  for (const int count : trials) out.trials += count;
  if (options.interrupted) out.interrupted = options.interrupted();
  return out;
}

}  // namespace lockstep
