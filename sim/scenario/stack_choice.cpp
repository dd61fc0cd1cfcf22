#include "sim/scenario/stack_choice.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/kernels/attention.hpp"
#include "models/spec/compose_stack.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/preset_changes.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

/// Constants at a bound that are in force: those of other releases are not.
std::vector<std::string> at_bounds(const StackSpec& stack) {
  constexpr std::string_view kReleases = "releases.";
  const std::string own = fmt::format("{}{}.", kReleases, stack.release);
  std::vector<std::string> out;
  for (const std::string& path : stack.constants_at_bounds) {
    if (!path.starts_with(kReleases)) {
      out.push_back(path);
    } else if (path.starts_with(own)) {
      out.push_back(path.substr(own.size()));
    }
  }
  return out;
}

/// Time of bytes that SMs move an element at a time over that of as many that stream.
double narrow_slowness_of(const GpuSpec& gpu) {
  const BytesPerSecond streamed = gpu.memory.efficiency * gpu.hbm_bandwidth;
  if (gpu.memory.narrow_bandwidth == BytesPerSecond{}) return 1;
  return std::max<double>(1, streamed / gpu.memory.narrow_bandwidth);
}

/// What of the job and its machine decides which operators run, and how fast.
ComposedFor composed_for(const ScenarioDraft& draft) {
  return {.gated = draft.model.gated,
          .grouped_heads = draft.model.kv_heads < draft.model.heads,
          .host_slowness = draft.node.host ? draft.node.host->launch_slowness : 1,
          .narrow_slowness = narrow_slowness_of(draft.node.gpu)};
}

StackSpec composed(const StackSwitches& switches, const ComposedFor& job,
                   const PresetStore& presets) {
  StackSpec out;
  compose(switches, presets.operator_costs(), job, out);
  return out;
}

/// Of a composed preset, whose numbers are those of any job: makes them those of this one. Numbers
/// that the preset has beside its switches stay.
void compose_for_job(const PresetStore& presets, ScenarioDraft& draft) {
  StackSpec& stack = draft.stack;
  if (!stack.composed || !stack.switches) return;
  const StackSpec any = composed(*stack.switches, {}, presets);
  const ComposedFor job = composed_for(draft);
  const Seconds own = stack.launch_interval;
  shift(any, composed(*stack.switches, job, presets), stack);
  // One that was read off a recording goes with the processors, as the counted one does.
  if (own != any.launch_interval) stack.launch_interval = job.host_slowness * own;
}

void slow_host(const NodeSpec& node, StackSpec& stack) {
  const double factor = node.host_slowed();
  for (Seconds* time :
       {&stack.launch_interval, &stack.expert_host_layer, &stack.expert_host_expert}) {
    *time = factor * *time;
  }
}

}  // namespace

void choose_framework(std::string_view name, const PresetStore& presets, ScenarioDraft& draft) {
  StackSpec stack = presets.stack(name).spec;
  if (!stack.switches) {
    throw InputError({.file = draft.file,
                      .pointer = draft.place + "/stack/framework",
                      .found = in_quotes(name),
                      .allowed = "a stack that says what it does (\"features\")",
                      .nearest = {}});
  }
  if (!stack.composed) {
    compose(*stack.switches, presets.operator_costs(), {}, stack);
    stack.composed = true;
  }
  stack.constants_at_bounds.clear();
  stack.capabilities.reset();
  draft.stack = std::move(stack);
  compose_for_job(presets, draft);
  draft.assumptions.push_back(fmt::format(
      "stack: composed from what {} does, without what was fitted to runs of it", name));
}

void change_switches(const StackSwitches& switches, const PresetStore& presets,
                     ScenarioDraft& draft) {
  StackSpec& stack = draft.stack;
  const ComposedFor job = composed_for(draft);
  shift(composed(stack.switches.value(), job, presets), composed(switches, job, presets), stack);
  stack.switches = switches;
  if (stack.composed) return;
  stack.composed = true;
  draft.assumptions.push_back(
      fmt::format("stack: {} with features changed, by counts of what that changes", stack.name));
}

namespace {

/// Of one thing that no measured job had, in the logarithm of a step; assumed.
constexpr double kDistanceDeviation = 0.03;
constexpr int kFarInGpus = 4;  ///< times more or fewer

int distance_of(const LearntLevel& learnt, const Scenario& scenario) {
  const TransformerShape& model = scenario.job.model;
  const int gpus = scenario.gpus();
  const bool same_model = std::ranges::find(learnt.models, model.name) != learnt.models.end();
  const bool same_scale =
      gpus <= kFarInGpus * learnt.most_gpus && learnt.fewest_gpus <= kFarInGpus * gpus;
  return int{!same_model} + int{!same_scale} + int{learnt.gpu != scenario.node.gpu.name} +
         int{learnt.experts != (model.experts.count > 0)} +
         int{learnt.adapters != scenario.job.adapters.any()};
}

}  // namespace

namespace {

/// The features of the software that the scenario changes. A stack that does not say what it does
/// has none.
void read_switches(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  const StackSwitches before = draft.stack.switches.value_or(StackSwitches{});
  StackSwitches switches = before;
  declare_switches({from, Extent::changes}, switches);
  if (switches == before) return;
  if (!draft.stack.switches) {
    from.fail("no feature of the software, as " + draft.stack.name + " does not say what it does");
  }
  change_switches(switches, presets, draft);
}

/// Notes which formats of gradients a job says, be they those of its stack or not.
void note_gradients(const JsonCursor& from, StackSpec& stack) {
  const auto communication = from.find("communication");
  if (from.find("main_gradient_bytes") || from.find("gradients")) stack.gradients_said = true;
  if ((communication && communication->find("gradient_bytes")) || from.find("reduced_format")) {
    stack.reduction_said = true;
  }
}

}  // namespace

void change_stack(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  read_switches(from, presets, draft);
  const StackSpec before = draft.stack;
  declare_stack({from, Extent::changes}, draft.stack);
  note_gradients(from, draft.stack);
  declare_learnt({from, Extent::changes}, draft.stack.learnt);
  from.finish();
  // Steps that taught a stack were run with what it changes, and on software that ran them.
  if (from.find("learnt")) {
    if (from.find("framework")) draft.stack.capabilities.reset();
    return;
  }
  for (std::string& path : changed_constants(before, draft.stack)) {
    draft.stack.changed.push_back(std::move(path));
  }
}

void apply_learnt(Scenario& scenario) {
  if (scenario.gpus() == 1) scenario.stack.level = scenario.stack.level_alone;
  const LearntLevel* best = nullptr;
  int least = 0;
  for (const LearntLevel& learnt : scenario.stack.learnt) {
    const int distance = distance_of(learnt, scenario);
    if (best != nullptr && distance >= least) continue;
    best = &learnt;
    least = distance;
  }
  if (best == nullptr || best->steps == 0) return;
  const bool same_kind = best->gpu == scenario.node.gpu.name &&
                         best->experts == (scenario.job.model.experts.count > 0) &&
                         best->adapters == scenario.job.adapters.any();
  const double known = same_kind ? best->deviation : best->prior;
  scenario.stack.level *= std::exp(same_kind ? best->log_level : best->log_level / 2);
  scenario.stack.in_force = {.deviation = std::hypot(known, kDistanceDeviation * least),
                             .steps = best->steps,
                             .distance = least};
  scenario.assumptions.push_back(
      fmt::format("stack: {} learnt its level from {} measured job{}{}", scenario.stack.name,
                  best->steps, best->steps == 1 ? "" : "s",
                  same_kind ? "" : " of another kind, of which half is taken to hold here"));
}

void choose_stack(std::string_view name, std::string_view release, const PresetStore& presets,
                  ScenarioDraft& draft) {
  const StackPreset& preset = presets.stack(name, release);
  draft.stack = preset.spec;
  if (!preset.assumption.empty()) draft.assumptions.push_back(preset.assumption);
  if (draft.stack.composed) {
    draft.assumptions.push_back(fmt::format(
        "stack: {} is composed from what its code does; no published run of it", draft.stack.name));
    compose_for_job(presets, draft);
  } else {
    slow_host(draft.node, draft.stack);
  }
  if (const std::vector<std::string> constants = at_bounds(draft.stack); !constants.empty()) {
    draft.assumptions.push_back(
        fmt::format("stack: {} has fitted constants at a bound of what is plausible, which nobody "
                    "has explained: {}",
                    draft.stack.name, fmt::join(constants, ", ")));
  }
}

void choose_default_stack(std::string_view named, std::string_view release,
                          const PresetStore& presets, ScenarioDraft& draft) {
  if (named.empty()) {
    draft.assumptions.push_back(fmt::format("stack: {} (not given)", kDefaultStack));
    draft.unknown_software.emplace_back("no stack given");
  } else {
    draft.assumptions.push_back(fmt::format("stack: {} (stands in for {}, which has no preset)",
                                            kDefaultStack, in_quotes(named)));
    draft.unknown_software.push_back(fmt::format("no preset of {}", in_quotes(named)));
    release = {};  // of other software
  }
  choose_stack(kDefaultStack, release, presets, draft);
  draft.stack.stands_in = true;
  draft.stack_given = false;
}

void take_attention_of_cards(ScenarioDraft& draft) {
  AttentionKernel& attention = draft.stack.attention;
  const auto lacks = [&](const NodeSpec& node) {
    return attention != AttentionKernel::unfused &&
           attention_constants(attention, node.gpu) == nullptr;
  };
  const NodeSpec* without = lacks(draft.node) ? &draft.node : nullptr;
  for (const NodePool& pool : draft.pools) {
    if (without == nullptr && lacks(pool.node)) without = &pool.node;
  }
  if (without == nullptr) return;
  draft.assumptions.push_back(
      fmt::format("attention: unfused instead of {}, as {} has no constants "
                  "for fused kernels",
                  name_of(attention), without->gpu.name));
  attention = AttentionKernel::unfused;
}

}  // namespace lockstep
