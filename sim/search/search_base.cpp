#include "sim/search/search_base.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// Whether a search may find another value than the one that is wrong.
bool is_searched(std::string_view pointer) {
  constexpr std::array<std::string_view, 7> kSearched{
      "/parallelism",   "/batch/sequences", "/batch/tokens", "/batch/micro",
      "/cluster/nodes", "/cluster/pools",   "/recompute"};
  return std::ranges::any_of(kSearched,
                             [&](std::string_view key) { return pointer.starts_with(key); });
}

/// GPUs that the draft's own layout uses, where it says how many replicas there are.
std::optional<int> gpus_of_layout(const ScenarioDraft& draft) {
  if (!draft.data) return std::nullopt;
  std::int64_t gpus = 1;
  for (const int ways : {draft.tensor, draft.context, draft.pipeline, *draft.data}) {
    gpus *= ways;
    if (gpus > kMaxGpus) return std::nullopt;
  }
  return static_cast<int>(gpus);
}

/// The draft with every GPU as a replica of its own.
ScenarioDraft without_layout(const ScenarioDraft& from) {
  const std::optional<int> gpus = gpus_of_layout(from);
  ScenarioDraft draft = from;
  draft.layout_open = true;
  draft.tensor = draft.context = draft.expert = draft.pipeline = 1;
  draft.expert_tensor = 1;
  draft.virtual_stages.reset();
  draft.sharding.reset();
  draft.shard_group = 0;
  draft.reshard.reset();
  draft.prefetch.reset();
  draft.schedule.reset();
  draft.order.reset();
  draft.layers_per_stage.clear();
  draft.embedding = draft.output = EndPlace::automatic;
  draft.recompute.reset();
  draft.least_recompute = false;
  draft.batch.micro_sequences = 1;
  // The layout says how large the job is where the cluster does not, and on a part of one node.
  const bool part = draft.nodes == 1 && gpus && *gpus <= draft.node.gpus;
  if (draft.nodes && !part) {
    draft.data.reset();
  } else {
    draft.data = gpus;
  }
  return draft;
}

}  // namespace

SearchBase search_base_of(const ScenarioDraft& draft, const PresetStore& presets,
                          const ScenarioOptions& options) {
  SearchBase base;
  try {
    base.scenario = complete_measured(draft, presets, options);
  } catch (const InputError& error) {
    if (!is_searched(error.problem().pointer)) throw;
    base.own_problem = error.problem().pointer + ": found " + error.problem().found +
                       "; allowed: " + error.problem().allowed;
    base.scenario = complete_measured(without_layout(draft), presets, options);
  }
  return base;
}

}  // namespace lockstep
