#include "sim/scenario/scenario_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "models/base/json_override.hpp"
#include "models/base/quantity.hpp"
#include "models/kernels/attention.hpp"
#include "models/layer/memory.hpp"
#include "models/pipeline/schedule.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "models/spec/blocks.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/unequal_rules.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// "heads of gpt3_175b"; models given inline may have no name.
std::string of_model(const char* what, const TransformerShape& model) {
  return std::string(what) + (model.name.empty() ? " of the model" : " of " + model.name);
}

void check_heads(const ScenarioDraft& draft, int tensor) {
  const TransformerShape& model = draft.model;
  if (model.heads % tensor != 0) {
    refuse(draft, "/parallelism/tensor", std::to_string(tensor),
           "a divisor of " + std::to_string(model.heads) + " (" +
               of_model("attention heads", model) + ")");
  }
  if (model.kv_heads % tensor != 0 && tensor % model.kv_heads != 0) {
    refuse(draft, "/parallelism/tensor", std::to_string(tensor),
           "a divisor or a multiple of " + std::to_string(model.kv_heads) + " (" +
               of_model("key-value heads", model) + ")");
  }
}

/// Embedding and output projection may take a layer's place each, so two stages may have no layer.
std::int64_t slots(const ScenarioDraft& draft) { return std::int64_t{draft.model.layers} + 2; }
std::string slots_rule(const ScenarioDraft& draft) {
  return " (" + of_model("layers", draft.model) + ", plus embedding and output)";
}

/// Every tensor-parallel rank has some of the MLP and of the vocabulary.
void check_share(const ScenarioDraft& draft, int whole, const char* what) {
  if (draft.tensor <= whole) return;
  refuse(draft, "/parallelism/tensor", std::to_string(draft.tensor),
         "at most " + std::to_string(whole) + " (" + of_model(what, draft.model) + ")");
}

void check_layers_per_stage(const ScenarioDraft& draft, const Parallelism& cut) {
  const std::vector<int>& layers = cut.layers_per_stage;
  const std::int64_t stages = std::int64_t{cut.pipeline} * cut.virtual_stages;
  if (static_cast<std::int64_t>(layers.size()) != stages) {
    refuse(draft, "/parallelism/layers_per_stage",
           "an array of " + std::to_string(static_cast<std::int64_t>(layers.size())) + " elements",
           std::to_string(stages) + " elements (pipeline " + std::to_string(cut.pipeline) +
               " x virtual_stages " + std::to_string(cut.virtual_stages) + ")");
  }
  const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != draft.model.layers) {
    refuse(draft, "/parallelism/layers_per_stage", std::to_string(sum) + " layers",
           std::to_string(draft.model.layers) + " (" + of_model("layers", draft.model) + ")");
  }
}

/// What quantised formats leave in 16 bit runs in bf16.
bool supports(const GpuSpec& gpu, Precision precision) {
  return gpu.peak(precision) > FlopsPerSecond{} &&
         (!is_quantised(precision) || gpu.peak(Precision::bf16) > FlopsPerSecond{});
}

/// Formats that the GPU has, as messages list them.
std::string supported_precisions(const GpuSpec& gpu) {
  std::vector<std::string> names;
  for (const PrecisionInfo& row : training_precisions()) {
    if (supports(gpu, row.precision)) names.emplace_back(row.name);
  }
  return listed(names) + " (" + gpu.name + " has no other)";
}

/// Embedding and output projection where the scenario puts them.
void check_ends(const ScenarioDraft& draft, const Parallelism& cut) {
  const auto given = [](EndPlace place) { return place != EndPlace::automatic; };
  if (!given(cut.embedding) && !given(cut.output)) return;
  const bool of_embedding = given(cut.embedding);
  const std::string pointer = of_embedding ? "/parallelism/embedding" : "/parallelism/output";
  const EndPlace place = of_embedding ? cut.embedding : cut.output;
  const std::string found = in_quotes(kEndPlaceNames[static_cast<std::size_t>(place)]);
  if (!cut.layers_per_stage.empty()) {
    refuse(draft, pointer, found, "no such key, where layers_per_stage is written out");
  }
  const auto count = [&](EndPlace what) {
    return (cut.embedding == what ? 1 : 0) + (cut.output == what ? 1 : 0);
  };
  const std::int64_t stages = std::int64_t{cut.pipeline} * cut.virtual_stages;
  const std::int64_t left = stages - count(EndPlace::stage);
  const std::int64_t places = std::int64_t{draft.model.layers} + count(EndPlace::layer);
  if (left >= 1 && left <= places) return;
  refuse(draft, pointer, found,
         "places that leave each of " + std::to_string(stages) +
             " stages a layer, or embedding or output in the place of one");
}

void check_sharp(const ScenarioDraft& draft, const Scenario& scenario) {
  if (!scenario.stack.communication.sharp) return;
  const auto not_here = [&](std::string why) {
    refuse(draft, "/stack/communication/sharp", "true", "false: " + std::move(why));
  };
  if (scenario.fabric.sharp.empty()) {
    not_here("the switches of this fabric do not sum (cluster.fabric.sharp: " +
             listed(sharp_names()) + ")");
  }
  if (scenario.transport.name != "infiniband") {
    not_here("SHARP sums in InfiniBand switches; the transport is " + scenario.transport.name);
  }
  FabricSpec whole = scenario.fabric;
  whole.faults.clear();
  if (is_drawn(whole)) {
    not_here("what switches sum is not routed over this fabric, which is no tree");
  }
}

void check_fabric(const ScenarioDraft& draft, const Scenario& scenario) {
  const NicPorts ports = nic_ports(scenario.node);
  if (scenario.fabric.pxn && scenario.node.nvlink_domain < scenario.node.gpus) {
    refuse(draft, "/cluster/fabric/pxn", "true",
           "false: GPUs of a node that share no NVLink domain cannot pass messages to each other's "
           "NICs");
  }
  if (lacks_network(scenario.node, scenario.nodes, scenario.transport)) {
    refuse(draft, "/cluster/fabric", in_quotes(scenario.fabric.name),
           network_wanted(scenario.nodes), "ideal");
  }
  const std::optional<FabricProblem> problem =
      check(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth);
  if (!problem) return;
  std::string pointer = "/cluster/fabric/" + problem->field;
  if (problem->field == "nodes") pointer = "/cluster/nodes";
  if (problem->field == "nic_bandwidth") pointer = "/cluster/node/nic_bandwidth";
  refuse(draft, pointer, problem->found, problem->allowed, problem->nearest);
}

}  // namespace

void refuse(const ScenarioDraft& draft, std::string_view pointer, std::string found,
            std::string allowed, std::string nearest) {
  const bool of_job = !pointer.starts_with("/cluster");
  const std::string whole = (of_job ? draft.place : std::string{}) + std::string(pointer);
  const JsonOverride* change = last_override(draft.overrides, whole);
  if (change != nullptr) found += " (" + change->option + ")";
  throw InputError({draft.file, whole, std::move(found), std::move(allowed), std::move(nearest)});
}

void check_widths(const ScenarioDraft& draft) {
  for (const KindShape& kind : draft.model.kinds) {
    const std::string_view why = info(kind.mixer).whole_layer;
    if (draft.tensor == 1 || why.empty()) continue;
    refuse(draft, "/parallelism/tensor", std::to_string(draft.tensor), "1, as " + std::string(why));
  }
  check_heads(draft, draft.tensor);
  check_share(draft, draft.model.ffn, "ffn");
  check_share(draft, draft.model.vocabulary, "vocabulary");
  if (draft.pipeline <= slots(draft)) return;
  refuse(draft, "/parallelism/pipeline", std::to_string(draft.pipeline),
         "at most " + std::to_string(slots(draft)) + slots_rule(draft));
}

void check_virtual_stages(const ScenarioDraft& draft, const Parallelism& cut) {
  if (std::int64_t{cut.pipeline} * cut.virtual_stages > slots(draft)) {
    refuse(draft, "/parallelism/virtual_stages", std::to_string(cut.virtual_stages),
           "at most " + std::to_string(slots(draft) / cut.pipeline) + ", so that pipeline " +
               std::to_string(cut.pipeline) + " x virtual_stages is at most " +
               std::to_string(slots(draft)) + slots_rule(draft));
  }
  if (!cut.layers_per_stage.empty()) check_layers_per_stage(draft, cut);
  check_ends(draft, cut);
}

void check_schedule(const ScenarioDraft& draft, const Parallelism& cut) {
  const ScheduleKind& wanted = info(cut.schedule);
  if (cut.virtual_stages < wanted.virtual_min || cut.virtual_stages > wanted.virtual_max) {
    std::vector<std::string_view> names;
    for (const ScheduleKind& kind : schedules()) {
      const bool takes =
          cut.virtual_stages >= kind.virtual_min && cut.virtual_stages <= kind.virtual_max;
      if (takes) names.push_back(kind.name);
    }
    refuse(draft, "/parallelism/schedule", in_quotes(wanted.name),
           listed(names) + ", where virtual_stages is " + std::to_string(cut.virtual_stages));
  }
  if (wanted.even_ranks && cut.pipeline % 2 != 0) {
    refuse(draft, "/parallelism/pipeline", std::to_string(cut.pipeline),
           "an even number, which the " + std::string(wanted.name) + " schedule needs");
  }
}

namespace {

/// Whether what code outside the tree gives for the job comes to its end.
void check_added_schedule(const ScenarioDraft& draft, const TrainingJob& job) {
  const Parallelism& cut = job.parallelism;
  if (!is_extension(cut.schedule) || cut.pipeline == 1) return;
  const auto problem =
      problem_of(cut.schedule, cut.pipeline, pipeline_shape(cut).chunks, job.micro_batches());
  if (!problem) return;
  refuse(draft, "/parallelism/schedule",
         extension_text("schedule", info(cut.schedule).name) + ", " + problem->found,
         problem->allowed);
}

/// Whether the schedule takes that many micro batches.
void check_micro_batches(const ScenarioDraft& draft, const TrainingJob& job) {
  const Parallelism& cut = job.parallelism;
  const std::int64_t together = std::int64_t{job.batch.micro_sequences} * cut.data;
  // Texts are made where they are printed: searches ask of thousands of layouts.
  const auto parts = [&] {
    return " (micro " + std::to_string(job.batch.micro_sequences) + " x data " +
           std::to_string(cut.data);
  };
  const auto sequences = [&](int micro_batches) {
    return std::to_string(together * micro_batches);
  };
  const auto refuse_batch = [&](std::string allowed) {
    refuse(draft, "/batch/sequences", std::to_string(job.batch.sequences), std::move(allowed));
  };
  if (cut.order) {
    const int wanted = cut.order->micro_batches;
    if (job.micro_batches() == wanted) return;
    return refuse_batch(sequences(wanted) + parts() + " x " + std::to_string(wanted) +
                        " micro batches of " + cut.order->file + ")");
  }
  const ScheduleKind& kind = info(cut.schedule);
  const auto needs = [&] { return "), which the " + std::string(kind.name) + " schedule needs"; };
  const auto [multiple, least] = kind.micro_batches(cut.pipeline);
  const auto times = [&](int factor) {
    const bool of_ranks = factor % cut.pipeline == 0;
    const int rest = of_ranks ? factor / cut.pipeline : factor;
    return (rest > 1 ? " x " + std::to_string(rest) : "") +
           (of_ranks ? " x pipeline " + std::to_string(cut.pipeline) : "");
  };
  if (job.micro_batches() % multiple != 0) {
    refuse_batch("a multiple of " + sequences(multiple) + parts() + times(multiple) + needs());
  }
  if (job.micro_batches() < least) {
    refuse_batch("at least " + sequences(least) + parts() + times(least) + needs());
  }
  check_added_schedule(draft, job);
}

/// Whether sequences have the lengths that layers ask for.
void check_layer_lengths(const ScenarioDraft& draft, const Batch& batch) {
  const TransformerShape& model = draft.model;
  int halvings = 0;
  bool sources = false, own = false;
  for (const KindShape& kind : model.kinds) {
    halvings = std::max(halvings, kind.halvings);
    sources = sources || kind.of_source;
    own = own || kind.tokens > 0 || kind.halvings > 0;
  }
  if (batch.source_tokens > 0 && !sources) {
    refuse(draft, "/batch/source_tokens", std::to_string(batch.source_tokens),
           "no such key, unless layers of the model are \"of_source\", as those of an encoder with "
           "a decoder behind it are");
  }
  if (batch.sample_tokens > 0 && (own || batch.source_tokens > 0)) {
    refuse(draft, "/batch/sample_tokens", "packed samples",
           "no such key, where layers have other tokens than the batch's sequences");
  }
  const int quarters = 1 << (2 * halvings);
  if (batch.tokens % quarters != 0) {
    refuse(draft, "/batch/tokens", std::to_string(batch.tokens),
           "a multiple of " + std::to_string(quarters) + ", as the sides of an image are halved " +
               (halvings == 1 ? std::string("once") : std::to_string(halvings) + " times"));
  }
}

}  // namespace

void check_batch(const ScenarioDraft& draft, const TrainingJob& job) {
  const Batch& batch = job.batch;
  check_layer_lengths(draft, batch);
  const Parallelism& cut = job.parallelism;
  const std::int64_t together = std::int64_t{batch.micro_sequences} * cut.data;
  const bool split = !draft.micro_batches.empty() || draft.balanced_batch;
  if (split && batch.sequences % batch.micro_sequences != 0) {
    refuse(draft, "/batch/sequences", std::to_string(batch.sequences),
           "a multiple of " + std::to_string(batch.micro_sequences) + " (micro)");
  }
  if (!split && batch.sequences % together != 0) {
    refuse(draft, "/batch/sequences", std::to_string(batch.sequences),
           "a multiple of " + std::to_string(together) + " (micro " +
               std::to_string(batch.micro_sequences) + " x data " + std::to_string(cut.data) + ")");
  }
  if (!split) check_micro_batches(draft, job);
  const int tokens = cut.context * (cut.sequence ? cut.tensor : 1);
  if (batch.tokens % tokens != 0) {
    const std::string tensor = cut.sequence ? "tensor" : "";
    const std::string context = cut.context > 1 ? "context" : "";
    refuse(draft, "/batch/tokens", std::to_string(batch.tokens),
           "a multiple of " + std::to_string(tokens) + " (" + tensor +
               (cut.sequence && cut.context > 1 ? " x " : "") + context + "), which " +
               (cut.context > 1 ? "context" : "sequence") + " parallelism needs");
  }
}

void check_context(const ScenarioDraft& draft, const Parallelism& cut) {
  if (cut.context == 1) {
    if (draft.context_exchange) {
      refuse(draft, "/parallelism/context_exchange", in_quotes(name_of(*draft.context_exchange)),
             "no such key, where context is 1");
    }
    return;
  }
  const int heads = draft.model.heads / cut.tensor;
  if (cut.context_exchange == ContextExchange::all_to_all && heads % cut.context != 0) {
    refuse(draft, "/parallelism/context", std::to_string(cut.context),
           "a divisor of " + std::to_string(heads) +
               " (heads of a tensor-parallel rank), which an all_to_all shares out");
  }
}

void check_tensor_overlap(const ScenarioDraft& draft, const Parallelism& cut) {
  if (!draft.tensor_overlap || cut.sequence) return;
  refuse(
      draft, "/parallelism/tensor_overlap", in_quotes(name_of(*draft.tensor_overlap)),
      cut.tensor == 1 ? "no such key, where tensor is 1" : "no such key, unless sequence is true");
}

void check_experts(const ScenarioDraft& draft, const Parallelism& cut) {
  const ExpertShape& experts = draft.model.experts;
  const auto number = [](int value) { return std::to_string(value); };
  if (experts.count == 0) {
    const std::string none = "1, as the model has no experts";
    if (cut.expert > 1) refuse(draft, "/parallelism/expert", number(cut.expert), none);
    if (cut.expert_tensor > 1) {
      refuse(draft, "/parallelism/expert_tensor", number(cut.expert_tensor), none);
    }
    return;
  }
  if (experts.count % cut.expert != 0) {
    refuse(draft, "/parallelism/expert", number(cut.expert),
           "a divisor of " + number(experts.count) + " (" + of_model("experts", draft.model) + ")");
  }
  if (cut.expert_tensor > experts.ffn) {
    refuse(draft, "/parallelism/expert_tensor", number(cut.expert_tensor),
           "at most " + number(experts.ffn) + " (width of an expert)");
  }
  if (draft.routing.padded && cut.expert_dispatch == ExpertDispatch::two_level && cut.expert > 1) {
    refuse(
        draft, "/routing/pad_to_capacity", "true",
        "false, where expert_dispatch is two_level, which sends a token once to several experts");
  }
  const std::int64_t lanes = std::int64_t{cut.tensor} * cut.context, ranks = lanes * cut.data;
  const std::int64_t together = std::int64_t{cut.expert} * cut.expert_tensor;
  if (ranks % together != 0 || (lanes % together != 0 && together % lanes != 0)) {
    refuse(draft, "/parallelism/expert",
           number(cut.expert) + (cut.expert_tensor > 1
                                     ? " x expert_tensor " + number(cut.expert_tensor) +
                                           (draft.expert_tensor ? "" : ", the stack's default")
                                     : std::string()),
           "a product that divides " + std::to_string(ranks) +
               " (tensor x context x data), and divides tensor x context (" +
               std::to_string(lanes) + ") or is a multiple of it");
  }
}

void check_sharding(const ScenarioDraft& draft, const Parallelism& cut) {
  if (cut.sharding != Sharding::zero3) {
    const auto only = [&](bool given, const char* key, const std::string& found) {
      if (given)
        refuse(draft, std::string("/parallelism/") + key, found,
               "no such key, unless sharding is zero3");
    };
    only(draft.shard_group > 0, "shard_group", std::to_string(draft.shard_group));
    only(draft.reshard.has_value(), "reshard", cut.reshard ? "true" : "false");
    only(draft.prefetch.has_value(), "prefetch", std::to_string(cut.prefetch));
    return;
  }
  const int group = cut.shard_group;
  if (group > 0 && (cut.replicas() % group != 0 || group % cut.context != 0)) {
    refuse(draft, "/parallelism/shard_group", std::to_string(group),
           "a divisor of " + std::to_string(cut.replicas()) + " (data" +
               (cut.context > 1
                    ? " x context) and a multiple of " + std::to_string(cut.context) + " (context)"
                    : ")"));
  }
}

void check_machine(const ScenarioDraft& draft, const Scenario& scenario) {
  if (draft.batch.sample_tokens > 0 && scenario.stack.attention == AttentionKernel::unfused) {
    refuse(draft, "/batch/sample_tokens", "packed samples",
           "no such key, where attention is unfused and computes whole squares");
  }
  for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
    const GpuSpec& gpu = scenario.node_of(pool).gpu;
    if (!supports(gpu, scenario.job.precision)) {
      refuse(draft, "/precision", in_quotes(name_of(scenario.job.precision)),
             supported_precisions(gpu));
    }
    if (scenario.stack.attention != AttentionKernel::unfused &&
        attention_constants(scenario.stack.attention, gpu) == nullptr) {
      refuse(draft, "/stack/attention", in_quotes(name_of(scenario.stack.attention)),
             "unfused (" + gpu.name + " has no constants for fused kernels)");
    }
  }
  const int gpus = scenario.node.gpus;
  const int domain = scenario.node.nvlink_domain;
  if (gpus % domain != 0 && domain % gpus != 0) {
    refuse(draft, "/cluster/node/nvlink_domain", std::to_string(domain),
           "a divisor or a multiple of " + std::to_string(gpus) + " (GPUs of a node)");
  }
  for (std::size_t i = 0; i < scenario.stragglers.size(); ++i) {
    if (scenario.stragglers[i].gpu < scenario.gpus()) continue;
    refuse(draft, "/stragglers/" + std::to_string(i) + "/gpu",
           std::to_string(scenario.stragglers[i].gpu),
           "a GPU of the job, 0 to " + std::to_string(scenario.gpus() - 1));
  }
  check_fabric(draft, scenario);
  check_sharp(draft, scenario);
}

namespace {

/// Why attention of a kind does not share a sequence out; empty: it does.
std::string why_whole_sequence(const KindShape& kind) {
  if (const MixerKind& mixer = info(kind.mixer); !mixer.whole_sequence.empty()) {
    return std::string(mixer.whole_sequence);
  }
  if (kind.index.keys > 0) return "an index chooses among all keys of a sequence";
  if (kind.compression > 0 || kind.summaries > 0) return "keys are made of neighbouring tokens";
  if (kind.distances > 0) return "scores of distances are those of a whole sequence";
  if (kind.tokens > 0) return "layers with tokens of their own are not shared out";
  return {};
}

/// Heads of a declared kind, or of a mixer, that tensor-parallel ranks share out.
void check_kind_widths(const ScenarioDraft& draft, const Parallelism& cut, const KindShape& kind) {
  const MixerKind& mixer = info(kind.mixer);
  if (mixer.shared == nullptr) return;
  for (const SharedParts& each : mixer.shared(draft.model, kind)) {
    if (each.parts % cut.tensor == 0 || (each.copied && cut.tensor % each.parts == 0)) continue;
    refuse(draft, "/parallelism/tensor", std::to_string(cut.tensor),
           (each.copied ? "a divisor or a multiple of " : "a divisor of ") +
               std::to_string(each.parts) + " (" +
               of_model(std::string(each.what).c_str(), draft.model) + ")");
  }
}

/// Stages that a layer does not let the model be cut into.
void check_one_stage(const ScenarioDraft& draft, const Parallelism& cut, const KindShape& kind) {
  if (cut.pipeline == 1) return;
  if (const std::string_view why = why_one_stage(kind); !why.empty()) {
    refuse(draft, "/parallelism/pipeline", std::to_string(cut.pipeline),
           "1, as " + std::string(why));
  }
  if (kind.tokens > 0 || kind.hidden != draft.model.hidden || kind.halvings > 0) {
    refuse(draft, "/parallelism/pipeline", std::to_string(cut.pipeline),
           "1, as the model has layers with tokens or a width of their own, which no stage passes "
           "on");
  }
}

}  // namespace

void check_pattern(const ScenarioDraft& draft, const Parallelism& cut) {
  const TransformerShape& model = draft.model;
  if (model.pattern.empty()) return;
  const bool crosses = std::ranges::any_of(model.kinds, &KindShape::cross);
  const bool convolves = std::ranges::any_of(
      model.kinds, [](const KindShape& kind) { return kind.convolution.kernel > 0; });
  if (crosses && !convolves && cut.pipeline > 1) {
    refuse(draft, "/parallelism/pipeline", std::to_string(cut.pipeline),
           "1, as layers with \"cross\" on every stage would need the encoder's result");
  }
  if (model.predicted_tokens > 0 && model.kinds.empty()) {
    refuse(draft, "/model/predicted_tokens", std::to_string(model.predicted_tokens),
           "0, where the model has a pattern");
  }
  PerKind<bool> known;
  for (int layer = 0; layer < model.layers; ++layer) {
    known.at(model.kind(layer), [&](LayerKind kind) {
      const KindShape shape = shape_of(model, kind);
      const std::string why = why_whole_sequence(shape);
      if (cut.context > 1 && !why.empty()) {
        refuse(draft, "/parallelism/context", std::to_string(cut.context), "1, as " + why);
      }
      check_one_stage(draft, cut, shape);
      check_kind_widths(draft, cut, shape);
      return true;
    });
  }
}

namespace {

/// Products of any layer that can have an adapter.
std::vector<std::string> products_of(const TrainingJob& job) {
  std::vector<std::string> names;
  for (std::size_t module = 0; module < kAdapterModules; ++module) {
    for (int i = 0; i < job.model.layers; ++i) {
      if (!has_product(job.model, job.kind(i), static_cast<AdapterModule>(module))) continue;
      names.emplace_back(kAdapterModuleNames[module]);
      break;
    }
  }
  return names;
}

}  // namespace

void check_adapters(const ScenarioDraft& draft, const TrainingJob& job) {
  if (!job.adapters.any()) return;
  const std::string rank = std::to_string(job.adapters.rank);
  if (job.model.predicted_tokens > 0) {
    refuse(draft, "/model/predicted_tokens", std::to_string(job.model.predicted_tokens),
           "0, where there are adapters (--set model.predicted_tokens=0 leaves the modules out)");
  }
  for (const auto& [ways, name] : {std::pair{job.parallelism.tensor, "tensor"},
                                   std::pair{job.parallelism.expert_tensor, "expert_tensor"}}) {
    if (job.adapters.rank % ways == 0) continue;
    refuse(draft, "/lora/rank", rank, "a multiple of " + std::to_string(ways) + " (" + name + ")");
  }
  if (adapter_parameters(job) == 0) {
    refuse(draft, "/lora/modules", "products that the model does not have",
           listed(products_of(job)) + " (" + of_model("products", job.model) + ")");
  }
  if (job.adapters.base == BaseFormat::nf4 && is_quantised(job.precision)) {
    refuse(draft, "/lora/base", "\"nf4\"",
           "bf16, where precision is " + std::string(name_of(job.precision)));
  }
}

void check_frozen(const ScenarioDraft& draft, const TrainingJob& job) {
  const FrozenParts& frozen = job.frozen;
  if (!frozen.any()) return;
  if (job.adapters.any()) {
    refuse(draft, "/frozen", "parts of the model", "no such key beside lora, which freezes all");
  }
  const TransformerShape& model = job.model;
  if (frozen.layers > model.layers) {
    refuse(draft, "/frozen/layers", std::to_string(frozen.layers),
           "at most " + std::to_string(model.layers) + " (" + of_model("layers", model) + ")");
  }
  if (frozen.embedding && frozen.output && frozen.layers == model.layers) {
    refuse(draft, "/frozen", "the whole model", "a part of it: something has to be trained");
  }
  if (model.tied && frozen.embedding != frozen.output) {
    refuse(draft, frozen.embedding ? "/frozen/embedding" : "/frozen/output", "true",
           "both embedding and output or neither, as they share their weights");
  }
  if (model.predicted_tokens > 0) {
    refuse(draft, "/model/predicted_tokens", std::to_string(model.predicted_tokens),
           "0, where parts are frozen");
  }
}

namespace {

/// Whether the host of a node holds what its GPUs leave there.
void check_host(const ScenarioDraft& draft, const Scenario& scenario, const NodeSpec& node) {
  if (!node.host) {
    refuse(draft, "/offload", "a host without memory data",
           "a node preset with \"host\", or cluster.node.host");
  }
  Bytes most;
  for (int stage = 0; stage < scenario.job.parallelism.pipeline; ++stage) {
    most = std::max(most, peak_memory(scenario.job, scenario.stack, stage).host);
  }
  const Bytes together = static_cast<double>(std::min(node.gpus, scenario.gpus())) * most;
  if (together <= node.host->memory) return;
  const auto text = [](Bytes b) { return format_quantity(b.base_units(), Dimension::data); };
  refuse(draft, "/offload", text(together) + " on the host of a node",
         "at most " + text(node.host->memory) + " (memory of " + node.name + ")");
}

}  // namespace

void check_offload(const ScenarioDraft& draft, const Scenario& scenario) {
  const TrainingJob& job = scenario.job;
  const HostOffload& offload = job.offload;
  if (offload.parameters && job.parallelism.sharding != Sharding::zero3) {
    refuse(draft, "/offload/parameters", "true", "false, unless sharding is zero3");
  }
  if (offload.parameters && offload.optimiser < 1) {
    refuse(draft, "/offload/parameters", "true", "false, unless optimiser is 1");
  }
  if (offload.activation_layers > job.model.layers) {
    refuse(
        draft, "/offload/activation_layers", std::to_string(offload.activation_layers),
        "at most " + std::to_string(job.model.layers) + " (" + of_model("layers", job.model) + ")");
  }
  if (!offload.any()) return;
  for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
    check_host(draft, scenario, scenario.node_of(pool));
  }
}

void check_without_layout(const ScenarioDraft& draft, const Scenario& scenario) {
  check_frozen(draft, scenario.job);
  check_machine(draft, scenario);
}

void check_rules(const ScenarioDraft& draft, const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  check_widths(draft);
  if (!cut.order) check_schedule(draft, cut);
  check_virtual_stages(draft, cut);
  check_batch(draft, scenario.job);
  check_tensor_overlap(draft, cut);
  check_context(draft, cut);
  check_experts(draft, cut);
  check_pattern(draft, cut);
  check_sharding(draft, cut);
  check_adapters(draft, scenario.job);
  check_frozen(draft, scenario.job);
  check_machine(draft, scenario);
  check_offload(draft, scenario);
  if (scenario.unequal() || draft.balanced_layers || draft.balanced_batch) {
    check_unequal(draft, scenario);
  }
  check_extent(draft, scenario);
}

}  // namespace lockstep
