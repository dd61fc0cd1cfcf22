#include "sim/scenario/job_readers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/scenario/claim.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_schedule.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/unequal_rules.hpp"

namespace lockstep {
namespace {

constexpr int kMaxWays = kMaxGpus;  // of any parallel width
constexpr int kMostStages = kMaxLayers + 2;
constexpr int kMaxSequences = 100'000'000;  // of a step

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

/// Length of every sample of a packed sequence, or the lengths of some that stand for all.
double read_sample_tokens(const JsonCursor& from, int tokens) {
  if (!from.is_array()) return from.integer(1, tokens);
  constexpr std::size_t kMostSamples = 100'000;
  double sum = 0, squares = 0;
  for (const JsonCursor& sample : from.elements(kMostSamples)) {
    const double length = sample.integer(1, tokens);
    sum += length;
    squares += length * length;
  }
  if (sum == 0) from.fail("the lengths of samples, or no such key");
  return squares / sum;
}

void check_routing(const JsonCursor& from, const ScenarioDraft& draft) {
  const ExpertShape& experts = draft.model.experts;
  const ExpertRouting& routing = draft.routing;
  if (experts.count == 0) from.fail("no such key, as the model has no experts");
  const auto zipf = from.find("zipf");
  if (zipf && from.find("imbalance")) zipf->fail(R"(either "imbalance" or "zipf")");
  const double all = static_cast<double>(experts.count) / experts.per_token;
  if (routing.capacity > all) {
    from.at("capacity_factor")
        .fail(fmt::format("at most {} (experts over those of a token), with which an expert "
                          "takes every token",
                          plain_number(all)));
  }
  if (routing.padded && routing.capacity == 0) {
    from.at("pad_to_capacity").fail("false, where there is no capacity_factor");
  }
}

constexpr std::string_view kLeast = "least";  ///< of what fits in memory

/// One of the modes, the least that fits, or the modules that selective recomputation repeats.
void read_recompute(const JsonCursor& from, ScenarioDraft& draft) {
  draft.least_recompute = from.is_string() && from.string() == kLeast;
  draft.recompute.reset();
  if (draft.least_recompute) return;
  if (!from.is_object()) {
    constexpr std::array kChoices{kRecomputeNames[0], kRecomputeNames[1], kRecomputeNames[2],
                                  kLeast};
    draft.recompute = static_cast<Recompute>(from.choice(kChoices));
    return;
  }
  draft.recompute = Recompute::selective;
  draft.modules = {.core_attention = false};
  declare_recompute({from, Extent::whole}, draft.modules);
  from.finish();
}

using Json = nlohmann::ordered_json;

Json list_or_balanced(const std::vector<int>& list, bool balanced) {
  if (balanced) return "balanced";
  return list.empty() ? Json(nullptr) : Json(list);
}

/// Nothing of an order that a file says.
std::optional<std::string_view> written_schedule(const std::optional<Schedule>& schedule) {
  if (!schedule || *schedule == Schedule::fixed) return std::nullopt;
  return name_of(*schedule);
}

/// Nothing without samples. What several lengths come to is rounded to a whole one.
Json written_sample_tokens(double tokens) {
  if (tokens <= 0) return nullptr;
  return static_cast<std::int64_t>(std::llround(tokens));
}

Json written_recompute(ScenarioDraft& draft) {
  if (!draft.recompute) return draft.least_recompute ? Json(kLeast) : Json(nullptr);
  if (*draft.recompute != Recompute::selective) return name_of(*draft.recompute);
  Json out;
  declare_recompute(DeclaredMembers::writing(out), draft.modules);
  return out;
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
  const std::vector<std::string_view> schedules = schedule_names();
  member.optional(
      "schedule", choice_type(schedules),
      "Order of the passes; default: interleaved with virtual stages, else 1f1b",
      [&](const JsonCursor& at) { draft.schedule = schedule_at(at.choice(schedules)); },
      [&] { return written_schedule(draft.schedule); });
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
  member.optional(
      "layers_per_stage", written_type(R"({"anyOf": [{"enum": ["balanced"]}, {"type": "array",
      "items": {"type": "integer", "minimum": 0, "maximum": 10000},
      "minItems": 1, "maxItems": 10002}]})"),
      "Layers of every virtual stage, chunk by chunk (pipeline x virtual_stages "
      "numbers), or \"balanced\": so that the slowest stage is as fast as it can be "
      "within memory; default: even",
      [&](const JsonCursor& at) { read_layers_per_stage(at, draft); },
      [&] { return list_or_balanced(draft.layers_per_stage, draft.balanced_layers); });
}

void declare_adapters(const DeclaredMembers& member, Adapters& out) {
  constexpr int kMostRank = 4096;
  constexpr ValueType kModule = choice_type(kAdapterModuleNames);
  member.required("rank", out.rank, 1, kMostRank,
                  "Width of the adapters, a multiple of the tensor-parallel width");
  if (member.object() != nullptr) out.modules.fill(true);
  member.optional(
      "modules", list_type(kModule, kAdapterModuleNames.size(), 1),
      "Products that have an adapter; default: all that the model has. qkv of latent "
      "attention: those that compress",
      [&](const JsonCursor& at) {
        out.modules.fill(false);
        read_choices(at, kAdapterModuleNames,
                     [&](std::size_t module) { out.modules[module] = true; });
        if (std::ranges::none_of(out.modules, std::identity{})) {
          at.fail("the products that have an adapter, or no such key");
        }
      },
      [&] {
        nlohmann::ordered_json names = nlohmann::ordered_json::array();
        for (std::size_t i = 0; i < out.modules.size(); ++i) {
          if (out.modules[i]) names.push_back(kAdapterModuleNames[i]);
        }
        return names;
      });
}

void declare_lora(const DeclaredMembers& member, Adapters& out) {
  declare_adapters(member, out);
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

void declare_batch(const DeclaredMembers& member, ScenarioDraft& draft) {
  Batch& out = draft.batch;
  member.required("sequences", out.sequences, 1, kMaxSequences,
                  "Sequences of a step, over all replicas");
  member.optional("micro", out.micro_sequences, 1, kMaxSequences,
                  "Sequences of a micro batch, per replica; default: 1");
  member.optional(
      "micro_batches", written_type(R"({"anyOf": [
                    {"enum": ["balanced"]},
                    {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65536},
                     "minItems": 1}]})"),
      "Micro batches of each data-parallel replica, or of each replica on each pool of "
      "nodes, or \"balanced\": in proportion to their speed; with \"micro\" they make "
      "up \"sequences\"; default: equal",
      [&](const JsonCursor& at) { read_micro_batches(at, draft); },
      [&] { return list_or_balanced(draft.micro_batches, draft.balanced_batch); });
  member.required("tokens", out.tokens, 1, kMaxTokens, "Tokens of a sequence");
  member.optional(
      "sample_tokens", written_type(R"({"anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": 16777216},
                    {"type": "array", "items": {"type": "integer", "minimum": 1,
                                                "maximum": 16777216},
                     "minItems": 1, "maxItems": 100000}]})"),
      "Of packed sequences, whose samples do not attend to each other: tokens of every "
      "sample, or lengths of samples that stand for all; default: a sequence is one "
      "sample",
      [&](const JsonCursor& at) { out.sample_tokens = read_sample_tokens(at, out.tokens); },
      [&] { return written_sample_tokens(out.sample_tokens); });
  constexpr int kMostImages = 128;
  member.optional("images", out.images, 1, kMostImages,
                  "Images of a sequence, which the model's tower turns into tokens of it; default: "
                  "none, and the tower computes nothing");
  member.optional(
      "source_tokens", out.source_tokens, 1, kMaxTokens,
      "Of an encoder with a decoder behind it: tokens that the encoder reads beside each "
      "sequence; default: as many as \"tokens\"");
}

void declare_recompute(const DeclaredMembers& member, RecomputeModules& out) {
  member.optional(
      "modules", shared_type("recompute_modules"), "",
      [&](const JsonCursor& at) { out = read_recompute_modules(at); },
      [&] { return written_modules(out); });
  member.optional("products", out.products, Dimension::share, kShare,
                  "Share of the matrix products that run again (per-operation checkpointing); "
                  "default: 0");
}

void declare_expert_routing(const DeclaredMembers& member, ScenarioDraft& draft) {
  ExpertRouting& out = draft.routing;
  member.optional(
      "imbalance", out.imbalance, Interval{1, 100},
      "Tokens of the fullest expert-parallel rank, the first of its group, over the mean");
  member.optional("zipf", out.zipf, Interval{0, 10},
                  "Or: expert i gets a share in proportion to i to the power of minus this");
  member.optional("capacity_factor", out.capacity, Interval{0.01, 1000},
                  "Most copies of tokens that an expert takes, over the mean; further ones are "
                  "dropped; default: no limit");
  member.optional("pad_to_capacity", out.padded,
                  "Whether every expert computes as many rows as it takes at most; default: false");
  if (member.object() != nullptr) check_routing(*member.object(), draft);
}

void declare_straggler(const DeclaredMembers& member, Straggler& out) {
  member.required("gpu", out.gpu, 0, kMaxGpus - 1, "Global rank");
  member.required("slowdown", out.slowdown, Interval{1, 100},
                  "Time of every kernel over that of a healthy GPU");
}

void declare_job(const DeclaredMembers& member, ScenarioDraft& draft) {
  member.optional("parallelism", draft, "How the model is cut over GPUs", declare_parallelism);
  member.required("batch", draft, "What a step is fed", declare_batch);
  member.optional(
      "precision", draft.precision, precision_names(),
      "Format of the matrix products; default: bf16, or fp16 where the GPU has no bf16");
  // spec_schemas() adds the object.
  member.optional(
      "recompute",
      written_type(R"({"anyOf": [
                    {"description": "selective: the attention core; least: the first of the)"
                   R"( stack's recompute_ladder (without one: none, selective) with)"
                   R"( which the job fits in memory, else full",
                     "enum": ["none", "selective", "full", "least"]}]})"),
      "Activations computed again in the backward pass; default: none",
      [&](const JsonCursor& at) { read_recompute(at, draft); },
      [&] { return written_recompute(draft); });
  member.optional("routing", draft,
                  "How unevenly tokens fall on experts, and how many an expert takes; default: "
                  "evenly, all",
                  declare_expert_routing);
  member.optional("lora", draft.adapters, draft.adapters.any(),
                  "Low-rank adapters (LoRA, QLoRA): all other weights are frozen; default: all "
                  "weights are trained",
                  declare_lora);
  member.optional("offload", draft.offload,
                  "What lives in the nodes' memory instead of the GPUs'; default: nothing",
                  declare_offload);
  member.optional("frozen", draft.frozen, "Parts that are not trained; default: none",
                  declare_frozen);
}

void declare_stragglers(const DeclaredMembers& member, ScenarioDraft& draft) {
  constexpr std::size_t kMostStragglers = 100'000;
  member.optional("stragglers", kMostStragglers, "One GPU", "GPUs that are slower than their kind",
                  draft.stragglers, declare_straggler, [&](const JsonCursor& list) {
                    std::set<int> known;
                    for (const JsonCursor& element : list.elements(kMostStragglers)) {
                      Straggler& straggler = draft.stragglers.emplace_back();
                      declare_straggler({element, Extent::whole}, straggler);
                      if (!known.insert(straggler.gpu).second)
                        element.at("gpu").fail("each GPU once");
                      element.finish();
                    }
                  });
}

void declare_expectation(const DeclaredMembers& member, Expectation& out) {
  member.optional("step_time", out.step_time, Interval{0, 1e7, true}, "Of one step");
  member.optional("mfu", out.mfu, Dimension::share, Interval{0, 1, true},
                  "With attention counted in full");
  member.optional("within", out.within, Dimension::share, Interval{0, 10},
                  "How near a prediction has to be; default: 5 %");
  member.optional("fits", out.fits,
                  "false: the job is expected not to fit in memory; run predicts it anyway. "
                  "Default: true");
  member.optional("source", out.source, "Where it was published");
  declare_claim(member, out.claim);
}

void declare_price(const DeclaredMembers& member, std::optional<double>& usd_per_gpu_hour) {
  member.optional(
      "price", usd_per_gpu_hour, "What a GPU costs", [](const DeclaredMembers& price, double& usd) {
        price.required("usd_per_gpu_hour", usd, kPrice, "Instead of the node's list price");
      });
}

void declare_reckoning(const DeclaredMembers& member, ScenarioDraft& draft) {
  member.optional("training", draft.training_tokens,
                  "The whole run, for time to train and its price",
                  [](const DeclaredMembers& training, double& tokens) {
                    training.required("tokens", tokens, Dimension::count, Interval{1, 1e18},
                                      "Tokens to train on");
                  });
  declare_price(member, draft.usd_per_gpu_hour);
  member.optional("expect", draft.expect,
                  "What was measured, for run and the tests to compare with", declare_expectation);
}

}  // namespace lockstep
