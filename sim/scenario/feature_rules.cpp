#include "sim/scenario/feature_rules.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 14> kFeatureNames{"cluster.pools",
                                                         "batch.micro_batches",
                                                         "run",
                                                         "jobs",
                                                         "rl",
                                                         "queue",
                                                         "serving",
                                                         "power",
                                                         "cost",
                                                         "price",
                                                         "training",
                                                         "stragglers",
                                                         "traffic",
                                                         "collective"};

constexpr std::string_view kOneStepOfEach = "each of \"jobs\" repeats one training step";
constexpr std::string_view kManyJobs = "\"queue\" has jobs of its own, by their durations";
constexpr std::string_view kOnlyServes = "a pool that serves trains nothing";
constexpr std::string_view kNoJob = "only the network is simulated";

constexpr std::array kFeatureConflicts{
    FeatureConflict{Feature::rl, Feature::pools,
                    "rollouts and training take turns on GPUs of one kind"},
    FeatureConflict{Feature::rl, Feature::uneven_batch,
                    "the rollout decides how many sequences a replica gets"},
    FeatureConflict{Feature::run, Feature::rl,
                    "what a failure costs a rollout that is under way is not modelled"},
    FeatureConflict{Feature::power, Feature::rl,
                    "what engines draw while they generate is not modelled"},
    FeatureConflict{Feature::cost, Feature::rl,
                    "what engines draw while they generate is not modelled"},
    FeatureConflict{Feature::price, Feature::rl, "a step has no price"},
    FeatureConflict{Feature::training, Feature::rl, "one step is simulated"},
    FeatureConflict{Feature::stragglers, Feature::rl, "rollouts are on GPUs of one speed"},
    FeatureConflict{Feature::pools, Feature::jobs, "several jobs run on nodes of one kind"},
    FeatureConflict{Feature::rl, Feature::jobs, kOneStepOfEach},
    FeatureConflict{Feature::run, Feature::jobs, kOneStepOfEach},
    FeatureConflict{Feature::power, Feature::jobs, "power is worked out of one job's timeline"},
    FeatureConflict{Feature::cost, Feature::jobs, "power is worked out of one job's timeline"},
    FeatureConflict{Feature::price, Feature::jobs, kOneStepOfEach},
    FeatureConflict{Feature::training, Feature::jobs, kOneStepOfEach},
    FeatureConflict{Feature::pools, Feature::queue, "a queue is for nodes of one kind"},
    FeatureConflict{Feature::run, Feature::queue, kManyJobs},
    FeatureConflict{Feature::jobs, Feature::queue, kManyJobs},
    FeatureConflict{Feature::rl, Feature::queue, kManyJobs},
    FeatureConflict{Feature::training, Feature::queue, kManyJobs},
    FeatureConflict{Feature::stragglers, Feature::queue, kManyJobs},
    FeatureConflict{Feature::run, Feature::serving, kOnlyServes},
    FeatureConflict{Feature::rl, Feature::serving, kOnlyServes},
    FeatureConflict{Feature::queue, Feature::serving, kOnlyServes},
    FeatureConflict{Feature::training, Feature::serving, kOnlyServes},
    FeatureConflict{Feature::stragglers, Feature::serving, "replicas are on GPUs of one speed"},
    FeatureConflict{Feature::serving, Feature::traffic, kNoJob},
    FeatureConflict{Feature::queue, Feature::traffic, kNoJob},
    FeatureConflict{Feature::jobs, Feature::traffic, kNoJob},
    FeatureConflict{Feature::rl, Feature::traffic, kNoJob},
    FeatureConflict{Feature::run, Feature::traffic, kNoJob},
    FeatureConflict{Feature::power, Feature::traffic, kNoJob},
    FeatureConflict{Feature::traffic, Feature::collective, kNoJob},
};

}  // namespace

std::string_view name_of(Feature feature) {
  return kFeatureNames[static_cast<std::size_t>(feature)];
}

std::span<const FeatureConflict> feature_conflicts() { return kFeatureConflicts; }

void check_features(const JsonCursor& root, bool pools, bool uneven_batch) {
  const std::vector<std::string> keys = root.keys();  // asking for one would count it as known
  const auto has = [&](Feature feature) {
    if (feature == Feature::pools) return pools;
    if (feature == Feature::uneven_batch) return uneven_batch;
    return std::ranges::find(keys, name_of(feature)) != keys.end();
  };
  for (const FeatureConflict& conflict : kFeatureConflicts) {
    if (!has(conflict.key) || !has(conflict.beside)) continue;
    const bool inside = conflict.key == Feature::pools;
    const JsonCursor at = inside ? root.at("cluster").at("pools") : root.at(name_of(conflict.key));
    at.fail(
        fmt::format("no such key beside \"{}\": {}", name_of(conflict.beside), conflict.reason));
  }
}

}  // namespace lockstep
