#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/advice.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/rl_spec.hpp"

namespace lockstep {
namespace {

using RlChanges = std::vector<StandardChange>;

void add_rl(RlChanges& out, std::string words, std::vector<std::string> sets) {
  out.push_back({.words = std::move(words), .sets = std::move(sets)});
}

/// As many responses, in twice and half as many optimiser steps.
void add_updates(RlChanges& out, const RlScenario& s) {
  const int updates = s.rl.updates, sequences = s.training.job.batch.sequences;
  const auto change = [&](int to, int batch) {
    add_rl(out, fmt::format("updates of a rollout {} -> {}", updates, to),
           {fmt::format("rl.updates={}", to), fmt::format("batch.sequences={}", batch)});
  };
  if (updates % 2 == 0) change(updates / 2, 2 * sequences);
  if (sequences % 2 == 0) change(2 * updates, sequences / 2);
}

/// What a step of training leaves room for, with the same responses.
void add_training(RlChanges& out, const RlScenario& s, const PresetStore& presets) {
  for (StandardChange& change : standard_changes(s.training, presets)) {
    const auto sets_batch = [](const std::string& set) {
      return set.starts_with("batch.sequences=");  // it is what rollout and updates make of it
    };
    if (std::ranges::none_of(change.sets, sets_batch)) out.push_back(std::move(change));
  }
}

void add_generation_pool(RlChanges& out, const RlScenario& s) {
  const GenerationPool& pool = s.rl.generation;
  const int per_node = s.training.node.gpus;
  if (pool.nodes == 0) {
    const int nodes = s.training.nodes;
    add_rl(out,
           fmt::format("generation on nodes of its own, a step ahead ({} more GPUs)",
                       grouped(1.0 * nodes * per_node)),
           {fmt::format("rl.generation.nodes={}", nodes), "rl.schedule=one_step_off"});
    add_rl(out, pool.offload ? "training state stays on the GPUs" : "training state is offloaded",
           {fmt::format("rl.generation.offload={}", !pool.offload)});
    return;
  }
  const auto nodes = [&](int to) {
    add_rl(out, fmt::format("nodes that generate {} -> {}", pool.nodes, to),
           {fmt::format("rl.generation.nodes={}", to)});
  };
  nodes(pool.nodes + 1);
  if (pool.nodes > 1) nodes(pool.nodes - 1);
  const std::string_view now = kRlScheduleNames[static_cast<std::size_t>(s.rl.schedule)];
  for (const std::string_view name : kRlScheduleNames) {
    if (name == now) continue;
    add_rl(out, fmt::format("schedule {} -> {}", now, name), {fmt::format("rl.schedule={}", name)});
  }
}

void add_engine(RlChanges& out, const RlSpec& rl, const PresetStore& presets) {
  const EngineSpec& engine = rl.generation.engine;
  for (const std::string& name : presets.names("engines")) {
    if (name == engine.name) continue;
    // The name alone would take along what the scenario changes of the engine.
    add_rl(out, fmt::format("engine {} -> {}", engine.name, name),
           {"rl.generation.engine.preset=" + name});
  }
  add_rl(out,
         fmt::format("sequences of a replica {} -> {}", grouped(engine.most_sequences),
                     grouped(2.0 * engine.most_sequences)),
         {"rl.generation.engine.preset=" + engine.name,
          fmt::format("rl.generation.engine.most_sequences={}", 2 * engine.most_sequences)});
}

void add_generation(RlChanges& out, const RlScenario& s, const PresetStore& presets) {
  const GenerationPool& pool = s.rl.generation;
  const auto tensor = [&](int to) {
    add_rl(out, fmt::format("GPUs of a replica {} -> {}", pool.tensor, to),
           {fmt::format("rl.generation.tensor={}", to)});
  };
  tensor(2 * pool.tensor);
  if (pool.tensor % 2 == 0) tensor(pool.tensor / 2);
  add_generation_pool(out, s);
  add_engine(out, s.rl, presets);
  if (pool.cache_bytes > 1) {
    add_rl(out, "cache bf16 -> fp8", {"rl.generation.cache=fp8"});
  }
  const bool wide = pool.precision == Precision::bf16 || pool.precision == Precision::fp16;
  if (wide && s.training.node.gpu.peak_fp8 > FlopsPerSecond{}) {
    add_rl(out, fmt::format("generation {} -> fp8", name_of(pool.precision)),
           {"rl.generation.precision=fp8"});
  }
  if (s.rl.log_probabilities) {
    add_rl(out, "log-probabilities of the engine, not computed anew",
           {"rl.log_probabilities=false"});
  }
}

}  // namespace

std::vector<StandardChange> rl_changes(const RlScenario& scenario, const PresetStore& presets) {
  RlChanges out;
  if (!scenario.rl.algorithm->offline) add_generation(out, scenario, presets);
  add_updates(out, scenario);
  if (!scenario.rl.packing) add_rl(out, "responses packed into rows", {"rl.packing=true"});
  add_training(out, scenario, presets);
  return out;
}

}  // namespace lockstep
