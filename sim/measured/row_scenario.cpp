#include "sim/measured/row_scenario.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/scenario/change_job.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/stack_choice.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kUnlimitedNic = gigabits_per_second(1e5);

/// Payload behind a row's measured collective rates; assumed: no row states it, and the ranking of
/// layouts is the same from a quarter of it to eight times as much.
constexpr Bytes kRatePayload{1e9};

/// "Megatron-LM-2021" -> "megatron_lm_2021".
std::string preset_name(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c == '-' || c == ' ') c = '_';
  }
  return text;
}

/// Whether all words of `part` (between '_') begin `whole`.
bool begins_words(const std::string& whole, const std::string& part) {
  return whole.starts_with(part) && (whole.size() == part.size() || whole[part.size()] == '_');
}

double gbps_of(const NodeSpec& node) { return node.nics * node.nic_bandwidth.base_units() * 8e-9; }

bool about_equal(double a, double b) { return std::abs(a - b) <= 0.01 * std::max(a, b); }

/// How much of what the row says a node preset has already.
int likeness(const NodeSpec& node, const ReferenceRow& row, const PresetStore& presets) {
  int points = 0;
  if (node.gpus == row.gpus_per_node) points += 16;
  if (row.nvlink_domain && node.nvlink_domain == *row.nvlink_domain) points += 8;
  if (row.gbps_per_node && about_equal(gbps_of(node), *row.gbps_per_node)) points += 8;
  if (node.transport == presets.meant("transports", row.transport)) points += 4;
  // NVIDIA's own systems stand for "a server with these GPUs" when the row says no more.
  if (node.name.starts_with("dgx") || node.name.find("nvl72") != std::string::npos) points += 2;
  return points;
}

/// The node preset most like the row's machine, or one made up from the GPU alone.
NodeSpec base_node(const ReferenceRow& row, const std::string& gpu, const PresetStore& presets) {
  const NodeSpec* best = nullptr;
  for (const std::string& name : presets.names("nodes")) {
    const NodeSpec& node = presets.node(name);
    if (node.gpu.name != gpu) continue;
    if (best == nullptr || likeness(node, row, presets) > likeness(*best, row, presets))
      best = &node;
  }
  if (best != nullptr) return *best;
  NodeSpec node;
  node.name = fmt::format("{} x {}", row.gpus_per_node, gpu);
  node.gpu = presets.gpu(gpu);
  node.gpus = node.nvlink_domain = row.gpus_per_node;
  node.nics = std::min(8, row.gpus_per_node);
  node.nic_bandwidth = gigabits_per_second(400);
  node.transport = "infiniband";
  return node;
}

/// NICs of a node that share `gbps` Gb/s: the preset's count, unless that makes no rate that is
/// sold.
int nic_count(int preset_count, double gbps) {
  constexpr std::array kRates{100.0, 200.0, 400.0, 800.0};
  const auto sold = [&](int nics) {
    return std::ranges::any_of(kRates, [&](double rate) { return about_equal(gbps, nics * rate); });
  };
  if (sold(preset_count)) return preset_count;
  for (const int nics : {4, 8, 2, 1}) {
    if (sold(nics)) return nics;
  }
  return preset_count;
}

/// The name as the row has it: complete_scenario() says what stands in for it, if anything does.
std::string transport_preset_of(const ReferenceRow& row, const PresetStore& presets) {
  if (presets.has("transports", row.transport)) return row.transport;
  const std::vector<std::string> names = presets.names("transports");
  throw InputError({.file = row.id,
                    .pointer = "/network/fabric",
                    .found = in_quotes(row.transport),
                    .allowed = listed(names),
                    .nearest = nearest_name(row.transport, names)});
}

void set_network(NodeSpec& node, const ReferenceRow& row, const PresetStore& presets,
                 std::vector<std::string>& assumptions) {
  if (!row.transport.empty()) node.transport = transport_preset_of(row, presets);
  if (row.gbps_per_node && !about_equal(gbps_of(node), *row.gbps_per_node)) {
    node.nics = nic_count(node.nics, *row.gbps_per_node);
    node.nic_bandwidth = gigabits_per_second(*row.gbps_per_node / node.nics);
  }
  if (!row.gbps_per_node && row.gpus > node.nvlink_domain) {
    assumptions.push_back(
        fmt::format("network: {} Gb/s per node ({})", plain_number(gbps_of(node)), node.name));
  }
  if (row.ran_out_of_memory) {
    // It never came to a transfer: whether the job fits must not hang on what the network can do.
    node.nic_bandwidth = kUnlimitedNic;
  }
}

NodeSpec row_node(const ReferenceRow& row, const std::string& gpu, const PresetStore& presets,
                  std::vector<std::string>& assumptions) {
  NodeSpec node = base_node(row, gpu, presets);
  if (node.gpus != row.gpus_per_node) {
    // Same servers, seen as larger or smaller ones: NICs keep their number per GPU.
    node.nics = std::max(1, node.nics * row.gpus_per_node / node.gpus);
    if (node.nvlink_domain == node.gpus) node.nvlink_domain = row.gpus_per_node;
    node.gpus = row.gpus_per_node;
  }
  if (row.nvlink_domain) node.nvlink_domain = *row.nvlink_domain;
  set_network(node, row, presets, assumptions);
  return node;
}

/// The preset of the row's software, which may say more than its name. Megatron-DeepSpeed hands the
/// pipeline to DeepSpeed's engine only where ZeRO is on; without it Megatron's own schedule runs
/// (github:microsoft/Megatron-DeepSpeed, megatron/training.py).
std::string stack_preset_of(const ReferenceRow& row, const PresetStore& presets,
                            std::vector<std::string>& assumptions) {
  std::string name = row.unnamed ? std::string() : presets.meant("stacks", row.stack);
  // Narayanan et al. 2021 set DeepSpeed's ZeRO-3 beside their own layouts.
  if (name == "megatron_lm_2021" && row.sharding == Sharding::zero3) return "deepspeed_zero3_2021";
  if (name == "torchtitan" && row.compiled == false) return "torchtitan_eager";
  if (name != "megatron_deepspeed" || row.sharding_framework == "deepspeed") return name;
  assumptions.emplace_back("Megatron's own pipeline engine, since DeepSpeed shards nothing");
  return "megatron_lm_2021";
}

void set_stack(const ReferenceRow& row, const PresetStore& presets, RowDraft& out) {
  ScenarioDraft& draft = out.draft;
  const std::string name = stack_preset_of(row, presets, draft.assumptions);
  if (name.empty()) {
    choose_default_stack(row.unnamed ? std::string() : row.stack, row.release, presets, draft);
    take_attention_of_cards(draft);
  } else if (row.composed) {
    choose_framework(name, presets, draft);
  } else {
    choose_stack(name, row.release, presets, draft);
  }
  out.stack_preset = name;
  out.stack = draft.stack;
  StackSpec& stack = draft.stack;
  if (row.overlaps_tensor_parallel == false) stack.communication.tensor_exposed = 1;
  if (row.cuda_graph == true) stack.launch_interval = Seconds{};
  if (row.cuda_graph == true) {
    stack.expert_host_layer = stack.expert_host_expert = Seconds{};
    if (draft.model.biases && draft.model.experts.count > 0) {
      stack.elementwise.expert_bias_bytes = 0;
    }
  }
  if (row.partial_graph) leave_partial_graphs(stack);
  if (row.gradient_bytes) stack.communication.gradient_bytes = *row.gradient_bytes;
  stack.reduction_said = row.gradient_bytes.has_value();
}

/// What the row says in the words of a scenario. Mistakes are told at their place in the row.
void change_by_scenario(const ReferenceRow& row, const PresetStore& presets, ScenarioDraft& draft) {
  if (row.changes.empty()) return;
  try {
    change_job(JsonCursor::parse(row.id, row.changes), presets, draft);
  } catch (const InputError& error) {
    throw retold(error, [](InputProblem& problem) { problem.pointer.insert(0, "/scenario"); });
  }
}

/// The batch of a row. One that ran out of memory did so within its first micro batches: as many as
/// fill the pipeline stand for those that never came, which may be more than can be simulated.
Batch row_batch(const ReferenceRow& row) {
  Batch batch = row.batch;
  if (!row.ran_out_of_memory) return batch;
  constexpr std::int64_t kFillings = 4;
  const std::int64_t round = std::int64_t{batch.micro_sequences} * row.data;
  const std::int64_t enough = round * row.pipeline * kFillings;
  if (batch.sequences % round == 0 && batch.sequences > enough) {
    batch.sequences = static_cast<int>(enough);
  }
  return batch;
}

/// Latency per node of what keeps measured collectives below their rate in one node. Where rates
/// fall as 1 / nodes and a gather takes as long as a reduction of twice the traffic, no link is
/// slow: every node adds its share to each call.
void add_measured_latency(const ReferenceRow& row, Scenario& scenario) {
  if (!row.all_gather_gb_per_s || !row.all_gather_in_node_gb_per_s || scenario.nodes < 2) return;
  const Seconds across = kRatePayload / gigabytes_per_second(*row.all_gather_gb_per_s);
  const Seconds inside = kRatePayload / gigabytes_per_second(*row.all_gather_in_node_gb_per_s);
  if (across <= inside) return;
  const Seconds per_node = (across - inside) / scenario.nodes;
  scenario.transport.hop_latency += per_node;
  scenario.transport.ring_hop_latency += per_node;
}

}  // namespace

std::string gpu_preset_of(const std::string& kind, const std::string& file,
                          const PresetStore& presets) {
  const std::string wanted = preset_name(kind);
  const std::vector<std::string> names = presets.names("gpus");
  const std::string* best = nullptr;
  for (const std::string& name : names) {
    const bool alike = begins_words(wanted, name) || begins_words(name, wanted);
    if (alike && (best == nullptr || name.size() > best->size())) best = &name;
    if (name == wanted) return name;
  }
  if (best != nullptr) return *best;
  throw InputError({.file = file,
                    .pointer = "/gpu/kind",
                    .found = in_quotes(kind),
                    .allowed = listed(names),
                    .nearest = nearest_name(wanted, names)});
}

RowDraft row_draft(const ReferenceRow& row, const PresetStore& presets) {
  RowDraft out;
  ScenarioDraft& draft = out.draft;
  draft.file = row.id;
  draft.model = row.model;
  if (const std::string name = preset_name(row.model.name); presets.has("models", name)) {
    // What no row states of a model: how its activation is written, and whether experts have
    // biases.
    const TransformerShape& known = presets.model(name);
    draft.model.activation_traffic = known.activation_traffic;
    if (known.experts.count > 0) draft.model.biases = known.biases;
  }
  out.gpu = gpu_preset_of(row.gpu, row.id, presets);
  draft.node = row_node(row, out.gpu, presets, draft.assumptions);
  draft.tensor = row.tensor;
  draft.context = row.context;
  draft.expert = row.expert;
  if (row.model.experts.count > 0) draft.expert_tensor = row.expert_tensor;
  if (row.two_level_dispatch) draft.expert_dispatch = ExpertDispatch::two_level;
  draft.expert_overlap = row.expert_overlap;
  draft.layers_per_stage = row.layers_per_stage;
  draft.pipeline = row.pipeline;
  draft.data = row.data;
  draft.virtual_stages = row.virtual_stages;
  draft.sequence = row.sequence;
  draft.tensor_overlap = row.tensor_overlap;
  draft.sharding = row.sharding;
  draft.shard_group = row.shard_group;
  draft.reshard = row.reshard;
  draft.batch = row_batch(row);
  draft.precision = row.precision;
  set_stack(row, presets, out);
  draft.recompute = row.recompute;
  draft.modules = row.modules;
  draft.adapters = row.adapters;
  draft.offload = row.offload;
  change_by_scenario(row, presets, draft);
  draft.least_recompute = !draft.recompute;
  return out;
}

Scenario row_scenario(const ReferenceRow& row, const PresetStore& presets) {
  if (!row.scenario.empty()) return own_row_scenario(row, presets);
  Scenario scenario = complete_scenario(row_draft(row, presets).draft, presets);
  add_measured_latency(row, scenario);
  return scenario;
}

}  // namespace lockstep
