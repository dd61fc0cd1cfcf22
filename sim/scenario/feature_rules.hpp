/// Which parts of a scenario cannot stand in one file, and why: in one place, whatever the command.
/// Rules that depend on values, not on a part being there, are in scenario_rules.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "models/base/json_cursor.hpp"

namespace lockstep {

/// Parts that change what is simulated.
enum class Feature : std::uint8_t {
  pools,         ///< cluster.pools, of several kinds of node
  uneven_batch,  ///< batch.micro_batches
  run,
  run_data,
  run_site,
  run_purchase,
  run_elastic,  ///< run.spares.elastic
  jobs,
  rl,
  queue,
  serving,
  power,
  cost,
  price,
  training,
  stragglers,
  traffic,
  collective,
};
/// As scenarios write it: "cluster.pools".
std::string_view name_of(Feature feature);

struct FeatureConflict {
  Feature key, beside;
  std::string_view reason;        ///< why both together are not simulated
  std::optional<Feature> with{};  ///< only where this part is there too
};
std::span<const FeatureConflict> feature_conflicts();

/// Throws InputError at the first key of a scenario that cannot stand beside another one. Whether
/// it has pools and uneven batches is said by who has read them: a list of one pool is none.
void check_features(const JsonCursor& root, bool pools, bool uneven_batch);

}  // namespace lockstep
