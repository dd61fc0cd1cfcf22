#include "sim/scenario/capabilities.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <optional>

#include "models/base/input_error.hpp"
#include "models/pipeline/schedule.hpp"
#include "models/spec/adapters.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/scenario_rules.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kOffloadFeatures{"optimiser", "parameters",
                                                           "activation_layers"};
constexpr std::array<std::string_view, 10> kLayoutFeatures{
    "tensor",         "sequence",   "tensor_overlap", "shard_group",           "expert_tensor",
    "expert_overlap", "layer_ends", "uneven_layers",  "replicated_key_values", "uneven_ffn"};

template <class Names>
std::vector<std::string_view> listed_names(const Names& names) {
  return {names.begin(), names.end()};
}

std::vector<CapabilityKey> make_keys() {
  std::vector<std::string_view> schedules, modules;
  for (const ScheduleKind& kind : own_schedules()) schedules.push_back(kind.name);
  schedules.emplace_back("file");  // Schedule::fixed, and what code outside the tree adds
  modules = listed_names(kRecomputeModuleNames);
  modules.emplace_back("products");
  using List = CapabilityList;
  return {
      {List::sharding, "sharding", "what replicas share out", listed_names(kShardingNames)},
      {List::pipeline_sharding, "pipeline_sharding", "the same beside pipeline stages",
       listed_names(kShardingNames)},
      {List::schedules, "schedules", "pipeline schedules", schedules},
      {List::context_exchange, "context_exchange", "context parallelism",
       listed_names(kContextExchangeNames)},
      {List::expert_dispatch, "expert_dispatch", "expert parallelism",
       listed_names(kExpertDispatchNames)},
      {List::recompute, "recompute", "recomputation", listed_names(kRecomputeNames)},
      {List::recompute_modules, "recompute_modules", "modules of selective recomputation", modules},
      {List::precision, "precision", "number formats", precision_names()},
      {List::offload, "offload", "what the host can hold", listed_names(kOffloadFeatures)},
      {List::lora, "lora", "formats of frozen weights below adapters",
       listed_names(kBaseFormatNames)},
      {List::layouts, "layouts", "further kinds of layouts", listed_names(kLayoutFeatures)},
      {List::models, "models", "kinds of models", model_feature_names()},
  };
}

const CapabilityKey& key_of(CapabilityList list) {
  return capability_keys()[static_cast<std::size_t>(list)];
}

std::string_view value_name(Capability c) { return key_of(c.list).values[c.value]; }

std::string digits(int value) { return std::to_string(value); }

/// The value of the scenario that asks for a capability.
struct Asked {
  std::string pointer, found;
  std::string plain = {};  ///< what asks for nothing, where it is not one of the list's values
};

Asked asked_by_layout(const TrainingJob& job, LayoutFeature feature) {
  const Parallelism& cut = job.parallelism;
  const std::string at = "/parallelism/";
  switch (feature) {
    case LayoutFeature::tensor:
      return {at + "tensor", digits(cut.tensor), "1"};
    case LayoutFeature::sequence:
      return {at + "sequence", "true", "false"};
    case LayoutFeature::tensor_overlap:
      return {at + "tensor_overlap", "\"pieces\"", "none"};
    case LayoutFeature::shard_group:
      return {at + "shard_group", digits(cut.shard_group),
              digits(cut.replicas()) + " (all replicas)"};
    case LayoutFeature::expert_tensor:
      return {at + "expert_tensor", digits(cut.expert_tensor), digits(cut.tensor) + " (as tensor)"};
    case LayoutFeature::expert_overlap:
      return {at + "expert_overlap", "true", "false"};
    case LayoutFeature::layer_ends:
    case LayoutFeature::uneven_layers: {
      const int stages = cut.pipeline * cut.virtual_stages;
      const bool written = !cut.layers_per_stage.empty();
      const std::string key = written                                ? "layers_per_stage"
                              : cut.embedding != EndPlace::automatic ? "embedding"
                              : cut.output != EndPlace::automatic    ? "output"
                              : cut.virtual_stages > 1               ? "virtual_stages"
                                                                     : "pipeline";
      return {at + key, fmt::format("{} layers on {} stages", job.model.layers, stages),
              "as many layers on every stage"};
    }
    case LayoutFeature::replicated_key_values:
      return {at + "tensor", digits(cut.tensor),
              fmt::format("a divisor of {} (key-value heads)", job.model.kv_heads)};
    case LayoutFeature::uneven_ffn:
      return {at + "tensor", digits(cut.tensor),
              fmt::format("a divisor of {} (ffn)", job.model.ffn)};
  }
  assert(false && "an unknown layout feature");
  return {};
}

Asked asked_by(const TrainingJob& job, Capability c, const StackSpec& stack) {
  const std::string quoted = in_quotes(value_name(c));
  const bool none = !stack.capabilities->any(c.list);
  switch (c.list) {
    case CapabilityList::sharding:
      return {"/parallelism/sharding", quoted};
    case CapabilityList::pipeline_sharding:
      if (none) return {"/parallelism/pipeline", digits(job.parallelism.pipeline), "1"};
      return {"/parallelism/sharding", quoted};
    case CapabilityList::schedules:
      if (none) return {"/parallelism/pipeline", digits(job.parallelism.pipeline), "1"};
      if (!job.parallelism.order) {
        return {"/parallelism/schedule", in_quotes(name_of(job.parallelism.schedule))};
      }
      return {"/parallelism/schedule_file", quoted};
    case CapabilityList::context_exchange:
      if (none) return {"/parallelism/context", digits(job.parallelism.context), "1"};
      return {"/parallelism/context_exchange", quoted};
    case CapabilityList::expert_dispatch:
      if (none) return {"/parallelism/expert", digits(job.parallelism.expert), "1"};
      return {"/parallelism/expert_dispatch", quoted};
    case CapabilityList::recompute:
      return {"/recompute", quoted};
    case CapabilityList::recompute_modules:
      return {"/recompute", fmt::format("selective recomputation of {}", value_name(c))};
    case CapabilityList::precision:
      return {"/precision", quoted};
    case CapabilityList::offload:
      return {fmt::format("/offload/{}", value_name(c)), "data on the host", "no such key"};
    case CapabilityList::lora:
      return {none ? "/lora" : "/lora/base", none ? "adapters" : quoted, none ? "no such key" : ""};
    case CapabilityList::layouts:
      return asked_by_layout(job, static_cast<LayoutFeature>(c.value));
    case CapabilityList::models:
      return {"/model", fmt::format("a model with {}", value_name(c)), "a model without"};
  }
  assert(false && "an unknown list");
  return {};
}

/// What the stack has of a list: "none, zero1".
std::string able(const StackSpec& stack, CapabilityList list) {
  std::vector<std::string> names;
  const CapabilityKey& key = key_of(list);
  for (std::size_t value = 0; value < key.values.size(); ++value) {
    if (stack.capabilities->has(capability(list, value))) names.emplace_back(key.values[value]);
  }
  return listed(names);
}

/// Whether others than its makers can have the software: its preset says where not.
bool is_public(const std::string& stack, const PresetStore& presets) {
  return std::ranges::none_of(presets.show("stacks", stack), [](const PresetRow& row) {
    return row.path == "public" && row.value == "false";
  });
}

bool allows(const StackSpec& stack, Capability c) {
  return std::ranges::find(stack.allowed, c) != stack.allowed.end();
}

std::string words_for(CapabilityList list) {
  return list == CapabilityList::pipeline_sharding ? " beside pipeline stages" : "";
}

/// "megatron_lm_2021 cannot do it; deepspeed can; or "allow": [...]"
std::string ways_out(const TrainingJob& job, const StackSpec& stack, const PresetStore& presets) {
  const std::string other = nearest_able_stack(job, stack, presets);
  std::vector<std::string> names;
  for (const Capability c : beyond(job, stack)) {
    if (!allows(stack, c)) names.push_back(in_quotes(name_of(c)));
  }
  return fmt::format(R"(; {}; or "stack": {{"allow": [{}]}})",
                     other.empty() ? "no other stack can run all of it"
                                   : "the nearest stack that can run it is " + other,
                     fmt::join(names, ", "));
}

}  // namespace

std::span<const CapabilityKey> capability_keys() {
  static const std::vector<CapabilityKey> kKeys = make_keys();
  assert(kKeys.size() == kCapabilityLists);
  return kKeys;
}

std::string name_of(Capability c) {
  return fmt::format("{}.{}", key_of(c.list).name, value_name(c));
}

Capability read_capability(const JsonCursor& from) {
  const std::string name = from.string();
  const std::string list = name.substr(0, name.find('.'));
  std::vector<std::string> keys, names;
  for (const CapabilityKey& key : capability_keys()) {
    keys.push_back(std::string(key.name) + ".*");
    for (std::size_t value = 0; value < key.values.size(); ++value) {
      const Capability c = capability(key.list, value);
      if (name_of(c) == name) return c;
      if (key.name == list) names.push_back(name_of(c));
    }
  }
  // Of one list the names, else the lists.
  if (!names.empty()) from.fail_name(names);
  from.fail(listed(keys), nearest_name(list + ".*", keys));
}

void read_capabilities(const JsonCursor& from, Extent extent, Capabilities& out) {
  for (const CapabilityKey& key : capability_keys()) {
    const std::optional<JsonCursor> list =
        extent == Extent::whole ? std::optional(from.at(key.name)) : from.find(key.name);
    if (!list) continue;
    out.clear(key.list);
    read_choices(*list, key.values,
                 [&](std::size_t value) { out.add(capability(key.list, value)); });
  }
  from.finish();
}

std::vector<Capability> read_allowed(const JsonCursor& from) {
  constexpr std::size_t kMostAllowed = 1000;
  std::vector<Capability> out;
  for (const JsonCursor& at : from.elements(kMostAllowed)) out.push_back(read_capability(at));
  return out;
}

std::vector<Capability> beyond(const TrainingJob& job, const StackSpec& stack) {
  if (!stack.capabilities) return {};
  std::vector<Capability> out = needed_capabilities(job);
  std::erase_if(out, [&](Capability c) { return stack.capabilities->has(c); });
  return out;
}

bool can_run(const StackSpec& stack, const TrainingJob& job) {
  return std::ranges::all_of(beyond(job, stack), [&](Capability c) { return allows(stack, c); });
}

std::string nearest_able_stack(const TrainingJob& job, const StackSpec& stack,
                               const PresetStore& presets) {
  std::string best;
  double most = -1;
  for (const std::string& name : presets.names("stacks")) {
    const StackSpec& other = presets.stack(name).spec;
    // Software that runs of it tell something about comes first.
    if (name == stack.name || other.composed || !other.capabilities || !can_run(other, job)) {
      continue;
    }
    const double likeness =
        stack.capabilities ? stack.capabilities->likeness(*other.capabilities) : 0;
    if (likeness > most && is_public(name, presets)) best = name, most = likeness;
  }
  return best;
}

void check_capabilities(const ScenarioDraft& draft, const PresetStore& presets,
                        Scenario& scenario) {
  const StackSpec& stack = scenario.stack;
  for (const Capability c : beyond(scenario.job, stack)) {
    // Of software that is not named nobody knows what it cannot do.
    if (!allows(stack, c) && draft.stack_given) {
      const Asked asked = asked_by(scenario.job, c, stack);
      const std::string able_to = asked.plain.empty() ? able(stack, c.list) : asked.plain;
      refuse(draft, asked.pointer, asked.found,
             fmt::format("{}, as {} can do no more{}{}", able_to, stack.name, words_for(c.list),
                         ways_out(scenario.job, stack, presets)));
    }
    scenario.beyond_stack.push_back(name_of(c));
  }
  if (scenario.beyond_stack.empty()) return;
  scenario.assumptions.push_back(fmt::format(
      "stack: {}, which {} is not known to do: the prediction is as uncertain as one for unknown "
      "software",
      listed(scenario.beyond_stack), stack.name));
}

}  // namespace lockstep
