/// What pools draw while they serve, and what that and the machines cost.
///
/// A GPU draws its passes' energy (models/generation/serving_replica.hpp); between passes a process
/// holds it. The nodes that the replicas fill are held whole, with their share of the fabric; CPUs,
/// fans, supplies and cooling follow the GPUs. Pools on nodes of several kinds are added up kind by
/// kind.
#pragma once

#include <optional>
#include <vector>

#include "models/power/cost.hpp"
#include "sim/power/power_series.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/serve.hpp"
#include "sim/serving/serving_figures.hpp"

namespace lockstep {

struct ServingPower {
  std::vector<Watts> pools;  ///< a GPU of each, on average
  PowerSeries gpus;          ///< all of the replicas'
  PowerSeries facility;      ///< everything: means over bins of the run
  double pue = 1;
  double joules_per_output_token = 0;  ///< at the site's meter
  double joules_per_token = 0;         ///< of prompts and answers
  CostReport cost;                     ///< of owning; all 0 without prices
};

/// A region's part of it.
struct RegionPower {
  PowerSeries gpus, facility;
  double pue = 1;
  CostReport cost;
};

/// A share of `usd` in a million tokens of answers, and of prompts and answers.
struct TokenPrice {
  double usd = 0;
  double per_million_output = 0, per_million = 0;
};

/// Of the replicas of a region alone, with its prices and its weather. Requires spec.power.
RegionPower region_power(const ServingSpec& spec, const ServeResult& result, std::size_t region);
/// Requires spec.power. Of several regions it is the sum of theirs.
ServingPower serving_power(const ServingSpec& spec, const ServeResult& result,
                           const ServingFigures& figures);

/// The limit of a card under the replicas; on average, where pools have cards of several kinds.
Watts gpu_limit(const ServingSpec& spec);

/// Of so much money for all of it; 0 where no token came.
TokenPrice token_price(double usd, const ServingFigures& figures);

/// Nodes that so many GPUs fill, the last one maybe in part: these are held whole.
double nodes_held(int gpus, const NodeSpec& node);

/// GPU-hours of a pool's replicas that are switched on, at what a cloud asks for such a GPU; none:
/// nobody said a price.
std::optional<double> pool_rent_usd(const ServingSpec& spec, const ServeResult& result,
                                    std::size_t pool);
/// The same of a region's replicas.
std::optional<double> region_rent_usd(const ServingSpec& spec, const ServeResult& result,
                                      std::size_t region);
/// Of all pools; none: one of them has no price.
std::optional<TokenPrice> rent_of(const ServingSpec& spec, const ServeResult& result,
                                  const ServingFigures& figures);

}  // namespace lockstep
