#include "models/spec/capabilities.hpp"

#include <algorithm>

#include "models/spec/blocks.hpp"
#include "models/spec/partition.hpp"

namespace lockstep {
namespace {

/// Collects what a job asks for.
class Needs {
 public:
  template <class Enum>
  void add(bool needed, CapabilityList list, Enum value) {
    if (needed) out_.push_back(capability(list, value));
  }
  void add(bool needed, LayoutFeature feature) { add(needed, CapabilityList::layouts, feature); }
  std::vector<Capability> take() { return std::move(out_); }

 private:
  std::vector<Capability> out_;
};

void need_exchanges(const TrainingJob& job, Needs& needs) {
  const Parallelism& cut = job.parallelism;
  const bool shared = cut.replicas() > 1;
  needs.add(shared, CapabilityList::sharding, cut.sharding);
  needs.add(shared && cut.pipeline > 1, CapabilityList::pipeline_sharding, cut.sharding);
  // Software that runs an order from a file can be given any.
  needs.add(cut.pipeline > 1, CapabilityList::schedules, std::min(cut.schedule, Schedule::fixed));
  needs.add(cut.context > 1, CapabilityList::context_exchange, cut.context_exchange);
  needs.add(cut.expert > 1, CapabilityList::expert_dispatch, cut.expert_dispatch);
}

void need_recompute(const TrainingJob& job, Needs& needs) {
  needs.add(true, CapabilityList::recompute, job.recompute);
  if (job.recompute != Recompute::selective) return;
  const RecomputeModules& m = job.modules;
  // In the order of kRecomputeModuleNames, and "products" after them.
  const std::array repeated{m.core_attention, m.layer_norm, m.activation,      m.latent_up,   m.mlp,
                            m.mlp_up,         m.projection, m.fused_attention, m.products > 0};
  for (std::size_t i = 0; i < repeated.size(); ++i) {
    needs.add(repeated[i], CapabilityList::recompute_modules, i);
  }
}

void need_states(const TrainingJob& job, Needs& needs) {
  needs.add(true, CapabilityList::precision, job.precision);
  const HostOffload& host = job.offload;
  needs.add(host.optimiser > 0, CapabilityList::offload, OffloadFeature::optimiser);
  needs.add(host.parameters, CapabilityList::offload, OffloadFeature::parameters);
  needs.add(host.activation_layers > 0, CapabilityList::offload, OffloadFeature::activation_layers);
  needs.add(job.adapters.any(), CapabilityList::lora, job.adapters.base);
}

/// How layers are spread over stages, of which the job has more than one.
void need_split(const TrainingJob& job, Needs& needs) {
  const Parallelism& cut = job.parallelism;
  const std::vector<int> layers = layers_per_virtual_stage(job.model, cut);
  const bool even = std::ranges::all_of(layers, [&](int n) { return n == layers.front(); });
  if (even) {
    const auto moved = [](EndPlace place) {
      return place == EndPlace::layer || place == EndPlace::stage;
    };
    needs.add(moved(cut.embedding) || moved(cut.output), LayoutFeature::layer_ends);
    return;
  }
  // One less on the first stage, on the last, or on both: embedding and output in their place.
  const int most = *std::ranges::max_element(layers);
  const bool at_ends =
      layers.front() >= most - 1 && layers.back() >= most - 1 &&
      std::all_of(layers.begin() + 1, layers.end() - 1, [&](int n) { return n == most; });
  needs.add(at_ends, LayoutFeature::layer_ends);
  needs.add(!at_ends, LayoutFeature::uneven_layers);
}

void need_layout(const TrainingJob& job, Needs& needs) {
  const Parallelism& cut = job.parallelism;
  const TransformerShape& model = job.model;
  const bool sharded = cut.sharding == Sharding::zero3 && cut.replicas() > 1;
  const bool experts = model.experts.count > 0;
  needs.add(cut.tensor > 1, LayoutFeature::tensor);
  needs.add(cut.tensor > 1 && cut.sequence, LayoutFeature::sequence);
  needs.add(cut.tensor_pieces() > 1, LayoutFeature::tensor_overlap);
  needs.add(sharded && cut.shards() < cut.replicas(), LayoutFeature::shard_group);
  needs.add(experts && cut.expert_tensor != cut.tensor, LayoutFeature::expert_tensor);
  needs.add(cut.expert_overlap, LayoutFeature::expert_overlap);
  if (cut.pipeline > 1) need_split(job, needs);
  needs.add(model.kv_heads % cut.tensor != 0, LayoutFeature::replicated_key_values);
  needs.add(model.ffn % cut.tensor != 0, LayoutFeature::uneven_ffn);
}

bool has_mixer(const TransformerShape& model, Mixer mixer) {
  // Without a pattern all layers mix alike.
  if (model.kinds.empty() && model.pattern.empty()) return model.kind(0).mixer == mixer;
  for (int layer = 0; layer < model.layers; ++layer) {
    if (model.kind(layer).mixer == mixer) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> model_feature_names() {
  std::vector<std::string_view> names{"experts", "latent_attention"};
  for (const MixerKind* kind : mixer_kinds()) {
    if (kind->capability.empty()) continue;
    if (std::ranges::find(names, kind->capability) == names.end()) {
      names.push_back(kind->capability);
    }
  }
  return names;
}

std::vector<Capability> needed_capabilities(const TrainingJob& job) {
  Needs needs;
  need_exchanges(job, needs);
  need_recompute(job, needs);
  need_states(job, needs);
  need_layout(job, needs);
  const TransformerShape& model = job.model;
  const auto model_needs = [&](bool needed, ModelFeature feature) {
    needs.add(needed, CapabilityList::models, feature);
  };
  model_needs(model.experts.count > 0, ModelFeature::experts);
  model_needs(model.latent.key_value_rank > 0, ModelFeature::latent_attention);
  const std::vector<std::string_view> features = model_feature_names();
  for (const MixerKind* kind : mixer_kinds()) {
    if (kind->capability.empty()) continue;
    const auto at = std::ranges::find(features, kind->capability) - features.begin();
    model_needs(has_mixer(model, kind->mixer), static_cast<ModelFeature>(at));
  }
  return needs.take();
}

}  // namespace lockstep
