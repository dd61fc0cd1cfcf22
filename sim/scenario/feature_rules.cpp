#include "sim/scenario/feature_rules.hpp"

#include <array>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 18> kFeatureNames{"cluster.pools",
                                                         "batch.micro_batches",
                                                         "run",
                                                         "run.data",
                                                         "run.site",
                                                         "run.purchase",
                                                         "run.spares.elastic",
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
constexpr std::string_view kServiceAlone =
    "power and money of a service are those of its pools, not of trainings beside it";
constexpr std::string_view kNoJob = "only the network is simulated";

constexpr std::array kFeatureConflicts{
    FeatureConflict{Feature::rl, Feature::pools,
                    "rollouts and training take turns on GPUs of one kind"},
    FeatureConflict{Feature::rl, Feature::uneven_batch,
                    "the rollout decides how many sequences a replica gets"},
    FeatureConflict{Feature::run_data, Feature::rl,
                    "an iteration reads prompts alone, a few megabytes"},
    FeatureConflict{Feature::run_site, Feature::rl,
                    "how phases of an iteration share a site's power is not modelled"},
    FeatureConflict{Feature::run_purchase, Feature::rl,
                    "who answers the prompts on fewer machines is not said"},
    FeatureConflict{Feature::run_elastic, Feature::rl,
                    "who takes the responses of a missing replica is not said"},
    FeatureConflict{Feature::stragglers, Feature::rl, "rollouts are on GPUs of one speed"},
    FeatureConflict{Feature::pools, Feature::jobs, "several jobs run on nodes of one kind"},
    FeatureConflict{Feature::rl, Feature::jobs, kOneStepOfEach},
    FeatureConflict{Feature::run, Feature::jobs,
                    "each of \"jobs\" repeats one training step; when one of them is down, others "
                    "have the fabric to themselves, and a run of weeks has one speed"},
    FeatureConflict{Feature::power, Feature::jobs, kServiceAlone, Feature::serving},
    FeatureConflict{Feature::cost, Feature::jobs, kServiceAlone, Feature::serving},
    FeatureConflict{Feature::price, Feature::jobs, kServiceAlone, Feature::serving},
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

/// Whether there is a key at the dotted path. Asks no cursor, which would count it as known.
bool written_at(const nlohmann::ordered_json& in, std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (!in.is_object() || !in.contains(key)) return false;
  return dot == std::string_view::npos || written_at(in[key], path.substr(dot + 1));
}

JsonCursor cursor_at(const JsonCursor& from, std::string_view path) {
  const std::size_t dot = path.find('.');
  const JsonCursor at = from.at(path.substr(0, dot));
  return dot == std::string_view::npos ? at : cursor_at(at, path.substr(dot + 1));
}

}  // namespace

std::string_view name_of(Feature feature) {
  return kFeatureNames[static_cast<std::size_t>(feature)];
}

std::span<const FeatureConflict> feature_conflicts() { return kFeatureConflicts; }

void check_features(const JsonCursor& root, bool pools, bool uneven_batch) {
  const auto has = [&](Feature feature) {
    if (feature == Feature::pools) return pools;
    if (feature == Feature::uneven_batch) return uneven_batch;
    return written_at(root.json(), name_of(feature));
  };
  for (const FeatureConflict& conflict : kFeatureConflicts) {
    if (!has(conflict.key) || !has(conflict.beside)) continue;
    if (conflict.with && !has(*conflict.with)) continue;
    cursor_at(root, name_of(conflict.key))
        .fail(fmt::format("no such key beside \"{}\": {}", name_of(conflict.beside),
                          conflict.reason));
  }
}

}  // namespace lockstep
