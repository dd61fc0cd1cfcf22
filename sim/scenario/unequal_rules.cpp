#include "sim/scenario/unequal_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "models/pipeline/schedule.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "sim/scenario/balance.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/scenario/scenario_rules.hpp"

namespace lockstep {
namespace {

constexpr int kMostReplicaBatches = 1 << 16;

/// All ranks of a stage of a replica are on one pool.
void check_place(const ScenarioDraft& draft, const Scenario& s, const Placement& placement,
                 const PoolOfNode& pool_of, int replica, int stage) {
  const int lanes = s.job.parallelism.tensor * s.job.parallelism.context;
  const std::uint32_t pool = pool_of(placement.node_of(placement.rank({0, replica, stage})));
  for (int lane = 1; lane < lanes; ++lane) {
    const int rank = placement.rank({lane, replica, stage});
    if (pool_of(placement.node_of(rank)) == pool) continue;
    refuse(draft, "/cluster/pools",
           "stage " + std::to_string(stage) + " of replica " + std::to_string(replica) +
               " on two of them",
           "pools that hold whole groups of " + std::to_string(lanes) + " GPUs (tensor x context)");
  }
}

/// Replicas that share their experts work in step.
void check_expert_groups(const ScenarioDraft& draft, const Scenario& s,
                         const ReplicaVariants& variants) {
  const Parallelism& cut = s.job.parallelism;
  const int span = cut.expert * cut.expert_tensor / (cut.tensor * cut.context);
  for (int replica = 0; span > 1 && replica < cut.data; ++replica) {
    const auto of = [&](int r) { return variants.of[static_cast<std::size_t>(r)]; };
    if (of(replica) == of(replica / span * span)) continue;
    refuse(draft, "/parallelism/expert", std::to_string(cut.expert),
           "groups whose replicas (" + std::to_string(span) +
               " share the experts) run on the same kind of node with as many micro batches; "
               "replicas " +
               std::to_string(replica / span * span) + " and " + std::to_string(replica) +
               " differ");
  }
}

/// One chunk of layers a rank, and nothing else that says where layers go.
void check_balanced_layers(const ScenarioDraft& draft, const Parallelism& cut) {
  const auto wrong = [&](const std::string& where) {
    refuse(draft, "/parallelism/layers_per_stage", "\"balanced\"", "an array, where " + where);
  };
  if (pipeline_shape(cut).chunks > 1) wrong("a rank has several chunks of layers");
  if (draft.embedding != EndPlace::automatic || draft.output != EndPlace::automatic) {
    wrong("embedding or output have a place");
  }
  const double layers = draft.model.layers;
  if (cut.pipeline * layers * layers > kMostSplits) wrong("there are so many layers and stages");
}

void check_counts(const ScenarioDraft& draft, const Scenario& s) {
  const Parallelism& cut = s.job.parallelism;
  const std::int64_t micro = s.job.batch.micro_sequences;
  const std::int64_t sum =
      std::accumulate(s.micro_batches.begin(), s.micro_batches.end(), std::int64_t{0});
  if (sum * micro != s.job.batch.sequences) {
    refuse(draft, "/batch/micro_batches",
           std::to_string(sum) + " micro batches of " + std::to_string(micro),
           std::to_string(s.job.batch.sequences) + " sequences in all (batch.sequences)");
  }
  const int multiple = info(cut.schedule).micro_batches(cut.pipeline).multiple;
  const int least = info(cut.schedule).micro_batches(cut.pipeline).least;
  for (const int count : s.micro_batches) {
    if (count % multiple == 0 && count >= least) continue;
    refuse(draft, "/batch/micro_batches", std::to_string(count),
           "a multiple of " + std::to_string(multiple) + ", at least " + std::to_string(least) +
               ", which the " + std::string(info(cut.schedule).name) + " schedule needs");
  }
  const std::int64_t most = *std::ranges::max_element(s.micro_batches);
  if (most * micro * cut.data > std::numeric_limits<int>::max()) {
    refuse(draft, "/batch/micro_batches", std::to_string(most),
           "at most " + std::to_string(std::numeric_limits<int>::max() / (micro * cut.data)));
  }
}

}  // namespace

void read_micro_batches(const JsonCursor& from, ScenarioDraft& draft) {
  if (from.is_string()) {
    if (from.string() != "balanced") from.fail("\"balanced\", or an array", "balanced");
    draft.balanced_batch = true;
    return;
  }
  if (!from.is_array()) from.fail("\"balanced\", or an array of the micro batches of replicas");
  for (const JsonCursor& count : from.elements(kMaxGpus)) {
    draft.micro_batches.push_back(count.integer(1, kMostReplicaBatches));
  }
  if (draft.micro_batches.empty()) from.fail("the micro batches of every replica, or no such key");
}

void complete_pools(const ScenarioDraft& draft, Scenario& out) {
  out.pools = draft.pools;
  if (draft.across) {
    out.stack.placement = *draft.across == ParallelAxis::data ? "tp-pp-dp" : "tp-dp-pp";
  } else if (!draft.pools.empty()) {
    out.assumptions.push_back("pools: filled in the order of ranks, " + out.stack.placement + " (" +
                              out.stack.name + " default)");
  }
}

void complete_micro_batches(const ScenarioDraft& draft, Scenario& out) {
  const auto replicas = static_cast<std::size_t>(out.job.parallelism.data);
  const std::vector<int>& given = draft.micro_batches;
  if (given.empty() || given.size() == replicas) {
    out.micro_batches = given;
    return;
  }
  const auto wrong = [&](std::string allowed) {
    refuse(draft, "/batch/micro_batches",
           "an array of " + std::to_string(given.size()) + " elements", std::move(allowed));
  };
  const std::string by_replica = std::to_string(replicas) + " elements (data)";
  if (out.pools.empty()) wrong(by_replica);
  if (given.size() != out.pools.size()) {
    wrong(by_replica + ", or " + std::to_string(out.pools.size()) + " (pools)");
  }
  const ReplicaVariants variants = replica_variants(out, Placement{placement_spec(out)});
  std::vector<int> counts;
  for (const std::uint32_t variant : variants.of) {
    const std::vector<std::uint32_t>& pools = variants.list[variant].pools;
    if (std::ranges::any_of(pools, [&](std::uint32_t p) { return p != pools.front(); })) {
      wrong(by_replica + ", as stages of a replica are on several pools");
    }
    counts.push_back(given[pools.front()]);
  }
  out.micro_batches = std::move(counts);
}

std::optional<double> pool_price(const std::vector<NodePool>& pools) {
  double sum = 0, gpus = 0;
  for (const NodePool& pool : pools) {
    if (!pool.node.usd_per_gpu_hour) return std::nullopt;
    const double here = static_cast<double>(pool.nodes) * pool.node.gpus;
    sum += here * *pool.node.usd_per_gpu_hour;
    gpus += here;
  }
  return sum / gpus;
}

void lay_cards(std::span<const Profile> profiles, Scenario& s) {
  const std::optional<Watts> cap = s.power ? s.power->cap : std::nullopt;
  if (s.pools.empty()) return lay_card(s.node, s.transport, profiles, cap);
  for (const Profile& profile : profiles) {
    const auto is_of = [&](const NodePool& pool) { return pool.node.gpu.name == profile.gpu; };
    if (std::ranges::any_of(s.pools, is_of)) continue;
    NodeSpec any = s.node;
    lay_card(any, s.transport, {&profile, 1}, cap);  // refuses it
  }
  for (NodePool& pool : s.pools) {
    std::vector<Profile> own;
    std::ranges::copy_if(profiles, std::back_inserter(own),
                         [&](const Profile& profile) { return profile.gpu == pool.node.gpu.name; });
    lay_card(pool.node, s.transport, own, cap);
  }
  s.node = s.pools.front().node;
}

void check_unequal(const ScenarioDraft& draft, const Scenario& s) {
  const Parallelism& cut = s.job.parallelism;
  const Placement placement{placement_spec(s)};
  if (!s.pools.empty()) {
    const PoolOfNode pool_of(s);
    for (int replica = 0; replica < cut.data; ++replica) {
      for (int stage = 0; stage < cut.pipeline; ++stage) {
        check_place(draft, s, placement, pool_of, replica, stage);
      }
    }
  }
  if (draft.balanced_layers) check_balanced_layers(draft, cut);
  if (!draft.balanced_batch && s.micro_batches.empty()) {
    if (!s.pools.empty()) check_expert_groups(draft, s, replica_variants(s, placement));
    return;
  }
  const std::string found = draft.balanced_batch ? "\"balanced\"" : "unequal batches";
  if (cut.order) {
    refuse(draft, "/batch/micro_batches", found, "no such key, where a file says the schedule");
  }
  if (is_extension(cut.schedule)) {
    refuse(draft, "/batch/micro_batches", found, "no such key, where an extension is the schedule");
  }
  if (cut.sharding == Sharding::zero3) {
    refuse(draft, "/batch/micro_batches", found,
           "no such key, where sharding is zero3: all replicas gather the weights of every micro "
           "batch together");
  }
  if (cut.reduces_each_micro_batch()) {
    refuse(draft, "/batch/micro_batches", found,
           "no such key, where sharding is zero2 without pipeline stages: all replicas reduce the "
           "gradients of every micro batch together");
  }
  if (s.micro_batches.empty()) return;
  check_counts(draft, s);
  check_expert_groups(draft, s, replica_variants(s, placement));
}

}  // namespace lockstep
