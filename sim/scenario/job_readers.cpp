#include "sim/scenario/job_readers.hpp"

#include <algorithm>
#include <functional>

#include "sim/scenario/names.hpp"
#include "sim/scenario/read_schedule.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr int kMaxWays = kMaxGpus;  // of any parallel width
constexpr int kMostStages = kMaxLayers + 2;

void read_layers_per_stage(const JsonCursor& from, ScenarioDraft& draft) {
  if (from.is_string()) {
    if (from.string() != "balanced") from.fail("\"balanced\", or an array", "balanced");
    draft.balanced_layers = true;
    return;
  }
  for (const JsonCursor& stage : from.elements(kMostStages)) {
    draft.layers_per_stage.push_back(stage.integer(0, kMaxLayers));
  }
  if (draft.layers_per_stage.empty()) from.fail("the layers of every stage, or no such key");
}

}  // namespace

std::filesystem::path file_of_scenario(const std::string& scenario, const JsonCursor& from) {
  const std::string written = from.string();
  if (written.find('\0') != std::string::npos) from.fail("a file name");
  return std::filesystem::path(scenario).parent_path() / written;
}

void declare_parallelism(const DeclaredMembers& member, ScenarioDraft& draft) {
  member.optional("tensor", draft.tensor, 1, kMaxWays, "Tensor-parallel width; default: 1");
  member.optional("context", draft.context, 1, kMaxWays,
                  "Context-parallel width: GPUs that share each sequence; default: 1");
  member.optional(
      "expert", draft.expert, 1, kMaxWays,
      "Expert-parallel width: GPUs over which the experts of a layer are spread; default: 1");
  member.optional("expert_tensor", draft.expert_tensor, 1, kMaxWays,
                  "GPUs that share each expert; default: the stack's, the tensor width "
                  "(Megatron-Core, NeMo) or 1");
  member.optional("expert_dispatch", draft.expert_dispatch, kExpertDispatchNames,
                  "How tokens get to their experts: every copy by itself, or one copy to each "
                  "NVLink domain (DeepEP, HybridEP); default: the stack's");
  member.optional("expert_overlap", draft.expert_overlap,
                  "Dispatch and combine run beside another micro batch's compute; default: false");
  member.optional(
      "context_exchange", draft.context_exchange, kContextExchangeNames,
      "How they see each other's keys and values: passed around a ring beside attention, gathered, "
      "or heads swapped for tokens (Ulysses); default: the stack's");
  member.optional("pipeline", draft.pipeline, 1, kMostStages, "Pipeline stages; default: 1");
  member.optional("data", draft.data, 1, kMaxWays,
                  "Replicas; default: all GPUs / (tensor x context x pipeline)");
  member.optional("virtual_stages", draft.virtual_stages, 1, kMostStages,
                  "Model chunks per pipeline rank; default: the stack's, where layers and micro "
                  "batches allow it");
  member.optional("sequence", draft.sequence, "Sequence parallelism; default: the stack's");
  member.optional("tensor_overlap", draft.tensor_overlap, kTensorOverlapNames,
                  "Products of sequence-parallel ranks and their gathers and scatters: one after "
                  "the other, or in a piece for each rank, copied beside the product of another "
                  "piece (PyTorch's asynchronous tensor parallelism, Transformer Engine's user "
                  "buffers); default: the stack's communication.tensor_exposed");
  member.optional("sharding", draft.sharding, kShardingNames,
                  "What the replicas share out: optimiser (zero1), gradients too (zero2), weights "
                  "too (zero3: FSDP); default: none");
  member.optional(
      "shard_group", draft.shard_group, 1, kMaxWays,
      "With zero3: ranks that hold a copy of the weights together (HSDP); default: all replicas");
  member.optional("reshard", draft.reshard,
                  "With zero3: weights are let go after the forward pass and gathered again; "
                  "default: where there is one pipeline stage");
  member.optional("prefetch", draft.prefetch, 0, kMaxLayers,
                  "With zero3: layers whose weights are gathered ahead of their use; default: 1");
  member.optional("schedule", draft.schedule, schedule_names(),
                  "Order of the passes; default: interleaved with virtual stages, else 1f1b");
  member.optional("schedule_file", text_type(),
                  "In place of schedule: a file that says the order of every pass "
                  "(schedule.schema.json); its path starts from the scenario's folder",
                  [&](const JsonCursor& at) {
                    if (draft.schedule) at.fail(R"(either "schedule" or "schedule_file")");
                    draft.order = read_schedule_file(file_of_scenario(draft.file, at));
                    draft.schedule = Schedule::fixed;
                  });
  member.optional("embedding", draft.embedding, kEndPlaceNames,
                  "Where the embedding counts when layers are split over stages: in the place of a "
                  "layer where that makes the split even (automatic), with the first stage's "
                  "layers, in the place of one, or as a stage of its own; default: automatic");
  member.optional(
      "output", draft.output, kEndPlaceNames,
      "The same of the output projection and the loss, on the last stage; default: automatic");
  static_assert(kMaxLayers == 10'000);
  member.optional("layers_per_stage",
                  written_type(R"({"anyOf": [{"enum": ["balanced"]}, {"type": "array",
      "items": {"type": "integer", "minimum": 0, "maximum": 10000},
      "minItems": 1, "maxItems": 10002}]})"),
                  "Layers of every virtual stage, chunk by chunk (pipeline x virtual_stages "
                  "numbers), or \"balanced\": so that the slowest stage is as fast as it can be "
                  "within memory; default: even",
                  [&](const JsonCursor& at) { read_layers_per_stage(at, draft); });
}

void declare_lora(const DeclaredMembers& member, Adapters& out) {
  constexpr int kMostRank = 4096;
  constexpr ValueType kModule = choice_type(kAdapterModuleNames);
  member.required("rank", out.rank, 1, kMostRank,
                  "Width of the adapters, a multiple of the tensor-parallel width");
  out.modules.fill(true);
  member.optional("modules", list_type(kModule, kAdapterModuleNames.size(), 1),
                  "Products that have an adapter; default: all that the model has. qkv of latent "
                  "attention: those that compress",
                  [&](const JsonCursor& at) {
                    out.modules.fill(false);
                    read_choices(at, kAdapterModuleNames,
                                 [&](std::size_t module) { out.modules[module] = true; });
                    if (std::ranges::none_of(out.modules, std::identity{})) {
                      at.fail("the products that have an adapter, or no such key");
                    }
                  });
  member.optional("base", out.base, kBaseFormatNames,
                  "How the frozen weights of layers are stored; nf4 (QLoRA): 4 bits, made 16 bit "
                  "before each use; default: bf16");
  member.optional(
      "experts", out.experts, kExpertAdaptersNames,
      "Whether the experts of a rank share an adapter or each has its own; default: shared");
}

void declare_offload(const DeclaredMembers& member, HostOffload& out) {
  member.optional("optimiser", out.optimiser, Dimension::share, kShare,
                  "Share of the optimiser's states that the host keeps, and of the step that it "
                  "does; default: 0");
  member.optional("parameters", out.parameters,
                  "With sharding zero3 and all of the optimiser: sharded weights too, which come "
                  "up for every pass that gathers them; default: false");
  member.optional("activation_layers", out.activation_layers, 0, kMaxLayers,
                  "Layers of the model whose saved activations go down in the forward pass and "
                  "come up in the backward pass; default: 0");
}

void declare_frozen(const DeclaredMembers& member, FrozenParts& out) {
  member.optional("embedding", out.embedding, "Input embedding; default: false");
  member.optional("layers", out.layers, 0, kMaxLayers, "The first so many layers; default: 0");
  member.optional("output", out.output, "Output projection and final norm; default: false");
}

}  // namespace lockstep
