#include "sim/scenario/spec_schemas.hpp"

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_power.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of what one function declares, in an object of its own.
template <class Spec>
Json described(void (*declare)(const DeclaredMembers&, Spec&), Extent extent,
               QuantityBounds bounds) {
  Json schema = Json::object();
  Spec spec;
  declare(DeclaredMembers(schema, extent, bounds), spec);
  return schema;
}

/// A member that is a preset of `kind`, or an object with what `declare` says of a `Spec`.
template <class Spec, class Declare>
void describe_choice(const DeclaredMembers& member, std::string_view key, std::string_view kind,
                     std::string_view sentence, std::string_view object_sentence,
                     const Declare& declare) {
  member.required(
      key, kind, sentence, object_sentence,
      [&](const DeclaredMembers& object) {
        Spec spec;
        declare(object, spec);
      },
      [](const JsonCursor&) {});
}

/// All of a scenario that is a job.
Json scenario_itself(const PresetStore& presets, QuantityBounds bounds) {
  Json schema = Json::object();
  const DeclaredMembers member(schema, Extent::whole, bounds);
  ScenarioDraft draft;
  PowerSpec power;
  CostSpec cost;
  RlSpec rl;
  RunSpec run;
  std::string text;
  member.optional("$schema", text, "Path to this schema, for editors");
  member.optional("about", text, "What the run is, in a sentence");
  describe_choice<TransformerShape>(member, "model", "models", "The language model",
                                    "A preset with changes, a Hugging Face config.json, or a shape",
                                    declare_model);
  describe_choice<ClusterDraft>(member, "cluster", "clusters", "The machine",
                                "A preset with changes, or a cluster of one's own",
                                [&](const DeclaredMembers& object, ClusterDraft& out) {
                                  declare_cluster(object, presets, out);
                                });
  declare_job(member, draft);
  Json modules = described(declare_recompute, Extent::changes, bounds);
  modules["description"] = "Selective: what is repeated";
  schema["properties"]["recompute"]["anyOf"][1] = std::move(modules);
  member.optional(
      "stack", "stacks", "The training software; default: neutral, software that nobody named",
      "A preset, its release, and changes to it",
      [](const DeclaredMembers& object) {
        StackSpec spec;
        StackSwitches switches;
        std::string framework;
        object.optional("framework", framework,
                        "In place of a preset: the stack is composed from what this one does, "
                        "without what was fitted to runs of it: lockstep list stacks");
        declare_switches(object, switches);
        declare_stack(object, spec);
        declare_learnt(object, spec.learnt);
      },
      [](const JsonCursor&) {});
  declare_stragglers(member, draft);
  declare_reckoning(member, draft);
  member.optional("power", power, "Asks for the power of a step: GPUs, nodes, site", declare_power);
  member.optional(
      "cost", cost,
      "Prices, with \"power\"; what is left out costs nothing. Without any of them the "
      "answer has no money in it",
      [](const DeclaredMembers& object, CostSpec& out) { declare_cost(object, {}, out); });
  member.optional("rl", rl,
                  "A step of reinforcement learning: rollout, scores, training, new weights to the "
                  "engine. The batch is that of one update, in responses",
                  declare_rl);
  member.optional("run", run, "Days to months instead of one step: failures, checkpoints, restarts",
                  declare_run);
  return schema;
}

}  // namespace

Json spec_schemas(const PresetStore& presets, QuantityBounds bounds) {
  return {
      {"", scenario_itself(presets, bounds)},
      {"/$defs/attention_kernel", described(declare_attention_kernel, Extent::changes, bounds)},
      {"/$defs/transport/anyOf/1", described(declare_transport, Extent::changes, bounds)},
      {"/$defs/storage/anyOf/1", described(declare_storage, Extent::changes, bounds)},
      {"/$defs/checkpoint", described(declare_checkpoint, Extent::whole, bounds)},
      {"/$defs/reliability", described(declare_reliability, Extent::whole, bounds)},
  };
}

void refer_to_job_schema(nlohmann::ordered_json& schema) {
  if (schema.is_object() && schema.contains("$ref")) {
    schema["$ref"] = "scenario.schema.json" + schema["$ref"].get<std::string>();
  }
  if (!schema.is_structured()) return;
  for (nlohmann::ordered_json& inner : schema) refer_to_job_schema(inner);
}

}  // namespace lockstep
