// What holds for all mixers, over their table: a new one is tested by being there.
#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/operations.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/capabilities.hpp"
#include "sim/measured/model_operators.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/mixer_examples.hpp"

namespace lockstep {
namespace {

using RowJson = nlohmann::ordered_json;

/// Three layers of the mixer before one of full attention; where the mixer takes what an earlier
/// layer gave, one of Mamba in place of the first.
Scenario mixer_scenario(const MixerKind& kind, const std::vector<std::string>& set = {}) {
  RowJson model{{"layers", 4},        {"hidden", 256},  {"heads", 8},
                {"kv_heads", 8},      {"head_dim", 32}, {"ffn", 512},
                {"vocabulary", 4096}, {"gated", true},  {"rotary", true}};
  test::add_mixer_numbers(model);
  model["kinds"] = RowJson::array({RowJson{{"letter", "x"}, {"mixer", kind.name}, {"ffn", 512}},
                                   RowJson{{"letter", "f"}, {"ffn", 512}}});
  const bool takes = !kind.one_stage.empty();
  if (takes) model["kinds"].push_back(RowJson{{"letter", "m"}, {"mixer", "mamba"}, {"ffn", 512}});
  model["pattern"] = takes ? "mxxf" : "xxxf";
  RowJson scenario{{"model", model}};
  scenario["cluster"] = RowJson{{"node", "dgx_h100"}, {"nodes", 1}};
  scenario["parallelism"] = RowJson{{"tensor", 1}, {"pipeline", 1}, {"data", 8}};
  scenario["batch"] = RowJson{{"sequences", 8}, {"tokens", 512}};
  scenario["recompute"] = "none";
  RowJson allowed = RowJson::array({"models.mamba"});
  if (!kind.capability.empty()) allowed.push_back("models." + std::string(kind.capability));
  scenario["stack"] = RowJson{{"preset", "megatron_core"}, {"allow", allowed}};
  static const PresetStore presets;
  return read_scenario("mixers.json", scenario.dump(), presets, {set});
}

/// What convolves is all of its layer, of widths that a kind declares.
std::vector<const MixerKind*> plain_mixers() {
  std::vector<const MixerKind*> out;
  for (const MixerKind* kind : mixer_kinds()) {
    if (!kind->convolves) out.push_back(kind);
  }
  return out;
}

std::string mixer_complaint(const MixerKind& kind, const std::vector<std::string>& set) {
  try {
    (void)mixer_scenario(kind, set);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("mixers: each stands in its place, under a name and families of its own") {
  std::set<std::string_view> names, families;
  std::size_t place = 0;
  for (const MixerKind* kind : mixer_kinds()) {
    CAPTURE(kind->name);
    CHECK(static_cast<std::size_t>(kind->mixer) == place++);
    CHECK(names.insert(kind->name).second);
    CHECK((kind->add != nullptr || kind->mixer == Mixer::none));
    CHECK((kind->known == nullptr) == kind->members.empty());
    CHECK((kind->sentence.empty()) == kind->members.empty());
    CHECK((kind->read_layers == nullptr) == (kind->families.empty() && kind->family_keys.empty()));
    CHECK((kind->read_model == nullptr) == kind->model_families.empty());
    for (const std::string_view all : {kind->families, kind->model_families}) {
      for (const std::string_view one : each_of(all)) CHECK(families.insert(one).second);
    }
  }
}

TEST_CASE("mixers: a step of each folded is the step unfolded, and its operators have names") {
  for (const MixerKind* kind : plain_mixers()) {
    CAPTURE(kind->name);
    const Scenario s = mixer_scenario(*kind);
    const double folded = simulate_step(s).step_s;
    CHECK(folded > 0);
    CHECK(simulate_step(s, {.folding = Folding::unfolded}).step_s ==
          doctest::Approx(folded).epsilon(1e-9));
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 1};
    for (const Operation& each : layer_operations(c, s.job.model.kind(1))) {
      if (each.kind == OperationKind::collective) continue;
      CAPTURE(each.name);
      CHECK(operator_of(each.name) != ModelOperator::other);
    }
  }
}

TEST_CASE("mixers: useful FLOP of all operations of each are the model FLOP of the step") {
  for (const MixerKind* kind : plain_mixers()) {
    CAPTURE(kind->name);
    const Scenario s = mixer_scenario(*kind);
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 1};
    Flops gpu;
    const auto add = [&](const std::vector<Operation>& operations) {
      for (const Operation& o : operations) gpu += o.useful;
    };
    add(embedding_operations(c));
    add(head_operations(c));
    for (int i = 0; i < s.job.model.layers; ++i) add(layer_operations(c, s.job.model.kind(i)));
    CHECK(8.0 * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("mixers: a row that says why ranks cannot share a sequence or stages is what is told") {
  for (const MixerKind* kind : plain_mixers()) {
    CAPTURE(kind->name);
    if (!kind->one_stage.empty()) {
      CHECK(mixer_complaint(*kind, {"parallelism.pipeline=2", "parallelism.data=4"})
                .find(kind->one_stage) != std::string::npos);
    }
    if (!kind->whole_sequence.empty()) {
      CHECK(mixer_complaint(*kind, {"parallelism.context=2", "parallelism.data=4"})
                .find(kind->whole_sequence) != std::string::npos);
    }
  }
}

TEST_CASE("mixers: one without a capability runs on every stack, one with it where that is said") {
  TrainingJob job;
  job.model.layers = 1;
  job.model.heads = job.model.kv_heads = 1;
  job.model.ffn = 1;
  job.model.pattern = "x";
  for (const MixerKind* kind : mixer_kinds()) {
    CAPTURE(kind->name);
    job.model.kinds = {{.letter = "x", .mixer = kind->mixer}};
    const std::vector<Capability> needs = needed_capabilities(job);
    const auto of_models = std::ranges::count(needs, CapabilityList::models, &Capability::list);
    CHECK(of_models == (kind->capability.empty() ? 0 : 1));
  }
}

}  // namespace lockstep
