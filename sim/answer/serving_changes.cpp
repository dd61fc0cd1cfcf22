#include <array>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/generation/serving_engine.hpp"
#include "sim/answer/advice.hpp"
#include "sim/answer/exact_rate.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {
namespace {

using ServingChanges = std::vector<StandardChange>;

std::string pool_path(const ServingPool& pool, std::string_view key) {
  return fmt::format("serving.pools.{}.{}", pool.name, key);
}
/// " of prefill"; empty for the only pool.
std::string of_pool(const ServingSpec& serving, const ServingPool& pool) {
  return serving.pools.size() > 1 ? " of " + pool.name : std::string();
}

/// Twice and half of each width, on as many GPUs.
void add_pool_widths(ServingChanges& out, const ServingSpec& serving, const ServingPool& pool) {
  struct PoolWidth {
    std::string_view words, key;
    int ServingPool::* member;
  };
  constexpr std::array kWidths{
      PoolWidth{"tensor-parallel width", "tensor", &ServingPool::tensor},
      PoolWidth{"pipeline stages", "pipeline", &ServingPool::pipeline},
      PoolWidth{"data-parallel attention", "attention_data", &ServingPool::attention_data}};
  for (const PoolWidth& width : kWidths) {
    const int now = pool.*width.member;
    const auto change = [&](int to, int replicas) {
      out.push_back({.words = fmt::format("{}{} {} -> {}, replicas {} -> {}", width.words,
                                          of_pool(serving, pool), now, to, pool.replicas, replicas),
                     .sets = {fmt::format("{}={}", pool_path(pool, width.key), to),
                              fmt::format("{}={}", pool_path(pool, "replicas"), replicas)}});
    };
    if (pool.replicas % 2 == 0) change(2 * now, pool.replicas / 2);
    if (now % 2 == 0) change(now / 2, 2 * pool.replicas);
  }
}

/// One more, on another node where the cluster is full.
void add_replica(ServingChanges& out, const ServingSpec& serving, const ServingPool& pool) {
  std::vector<std::string> sets{
      fmt::format("{}={}", pool_path(pool, "replicas"), pool.replicas + 1)};
  const Cluster& cluster = serving.cluster;
  const int per_node = cluster.node.gpus;
  const int wanted = serving.gpus() + pool.gpus();
  if (cluster.pools.empty() && serving.nodes.empty() && wanted > cluster.nodes * per_node) {
    sets.push_back(fmt::format("cluster.nodes={}", (wanted + per_node - 1) / per_node));
  }
  out.push_back({.words = fmt::format("replicas{} {} -> {} ({} more GPUs)", of_pool(serving, pool),
                                      pool.replicas, pool.replicas + 1, pool.gpus()),
                 .sets = std::move(sets)});
}

/// A replica of one pool for one of the other, of as many GPUs.
void add_shift(ServingChanges& out, const ServingPool& from, const ServingPool& to) {
  if (from.gpus() != to.gpus() || from.replicas < 2) return;
  out.push_back({.words = fmt::format("a replica of {} for one of {}", from.name, to.name),
                 .sets = {fmt::format("{}={}", pool_path(from, "replicas"), from.replicas - 1),
                          fmt::format("{}={}", pool_path(to, "replicas"), to.replicas + 1)}});
}

void add_batching(ServingChanges& out, const ServingEngine& engine) {
  const auto change = [&out](std::string_view words, std::string_view key, int now, int to) {
    if (to < 1) return;
    out.push_back({.words = fmt::format("{} {} -> {}", words, grouped(now), grouped(to)),
                   .sets = {fmt::format("serving.batching.{}={}", key, to)}});
  };
  for (const int times : {2, 1}) {
    const auto scaled = [times](int now) { return times == 2 ? 2 * now : now / 2; };
    change("tokens of a pass", "pass_tokens", engine.pass_tokens, scaled(engine.pass_tokens));
    change("sequences of a replica", "most_sequences", engine.most_sequences,
           scaled(engine.most_sequences));
  }
}

void add_formats(ServingChanges& out, const ServingSpec& serving) {
  const std::string_view now = kWeightFormatNames[static_cast<std::size_t>(serving.weights)];
  for (const std::string_view name : kWeightFormatNames) {
    if (name == now) continue;
    out.push_back({.words = fmt::format("weights {} -> {}", now, name),
                   .sets = {fmt::format("serving.weights={}", name)}});
  }
  const bool wide = serving.cache_bytes > 1;
  out.push_back({.words = wide ? "cache bf16 -> fp8" : "cache fp8 -> bf16",
                 .sets = {wide ? "serving.cache=fp8" : "serving.cache=bf16"}});
}

void add_choice_of_router(ServingChanges& out, const ServingSpec& serving) {
  const std::string_view now = kServingRouterNames[static_cast<std::size_t>(serving.router)];
  for (const std::string_view name : kServingRouterNames) {
    if (name == now) continue;
    out.push_back({.words = fmt::format("router {} -> {}", now, name),
                   .sets = {fmt::format("serving.router={}", name)}});
  }
}

void add_engines(ServingChanges& out, const ServingSpec& serving, const PresetStore& presets) {
  for (const std::string& name : presets.names("engines")) {
    if (!engine_preset(presets, name).serving) continue;
    std::vector<std::string> sets;
    for (const ServingPool& pool : serving.pools) {
      // The name alone would take along what the scenario changes of the engine.
      if (pool.engine.name != name) sets.push_back(pool_path(pool, "engine.preset") + "=" + name);
    }
    if (sets.empty()) continue;
    out.push_back({.words = fmt::format("engine {} -> {}", serving.pools.front().engine.name, name),
                   .sets = std::move(sets)});
  }
}

void add_machines(ServingChanges& out, const ServingSpec& serving, const PresetStore& presets) {
  const Cluster& cluster = serving.cluster;
  if (!cluster.pools.empty()) return;
  add_newer_cards(cluster.node.gpu, presets, out);
  // Keys and values between two pools go over them.
  if (serving.pools.size() > 1 && cluster.node.nics > 0) {
    out.push_back({.words = "NICs of twice the bandwidth",
                   .sets = {"cluster.node.nic_bandwidth=" +
                            exact_rate(2 * cluster.node.nic_bandwidth.base_units())}});
  }
  if (serving.power && serving.power->cap) {
    out.push_back(
        {.words = "power cap lifted",
         .sets = {fmt::format("power.cap={} W", serving.power->gpu_nameplate / Watts{1})}});
  }
}

}  // namespace

std::vector<StandardChange> serving_changes(const ServingSpec& serving,
                                            const PresetStore& presets) {
  ServingChanges out;
  for (const ServingPool& pool : serving.pools) {
    add_pool_widths(out, serving, pool);
    add_replica(out, serving, pool);
  }
  if (serving.pools.size() == 2) {
    add_shift(out, serving.pools[0], serving.pools[1]);
    add_shift(out, serving.pools[1], serving.pools[0]);
  }
  add_batching(out, *serving.pools.front().engine.serving);
  add_formats(out, serving);
  add_choice_of_router(out, serving);
  add_engines(out, serving, presets);
  add_machines(out, serving, presets);
  return out;
}

}  // namespace lockstep
