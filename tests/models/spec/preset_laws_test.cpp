// Laws that hold for every architecture that there is a preset of: what is declared once is counted
// alike by weights, FLOP and memory, and every kind of parallelism works on it or says why not.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "models/layer/operations.hpp"
#include "models/spec/layer.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

const PresetStore& law_presets() {
  static const PresetStore store;
  return store;
}

/// On 32 GPUs; or the one line that says why not.
struct LawRead {
  std::optional<Scenario> scenario;
  std::string complaint;
};
LawRead read_for_law(const std::string& model, const std::vector<std::string>& sets, int tokens) {
  const std::string text = fmt::format(
      R"({{"model": "{}", "cluster": {{"node": "dgx_h100", "nodes": 4}},
          "parallelism": {{"tensor": 1, "pipeline": 1, "data": 32}},
          "batch": {{"sequences": 32, "tokens": {}}}, "recompute": "none", "stack": "neutral"}})",
      model, tokens);
  try {
    return {.scenario = read_scenario("laws.json", text, law_presets(), {.set = sets}),
            .complaint = {}};
  } catch (const InputError& error) {
    return {.scenario = std::nullopt, .complaint = error.what()};
  }
}

/// Calls `check` for each preset with a length that is drawn.
void for_each_law_preset(const std::function<void(const std::string&, int)>& check) {
  RandomStream random{{.seed = test::test_seed()}};
  for (const std::string& name : law_presets().names("models")) {
    CAPTURE(name);
    const int tokens = 256 * static_cast<int>(1 + random.below(16));
    CAPTURE(tokens);
    check(name, tokens);
  }
}

struct LawWay {
  const char* name;
  std::vector<std::string> sets;
};
std::vector<LawWay> law_ways() {
  return {
      {"tensor", {"parallelism.tensor=2", "parallelism.data=16"}},
      {"pipeline", {"parallelism.pipeline=2", "parallelism.data=16"}},
      {"context", {"parallelism.context=2", "parallelism.data=16"}},
      {"expert", {"parallelism.expert=2"}},
      {"recompute", {"recompute=full"}},
      {"lora", {R"(lora={"rank": 8})"}},
      {"offload", {R"(offload={"optimiser": 1})"}},
  };
}

}  // namespace

TEST_CASE("presets: useful FLOP of all ranks are the model FLOP of the step, whatever the model") {
  for_each_law_preset([](const std::string& name, int tokens) {
    for (const int tensor : {1, 2}) {
      CAPTURE(tensor);
      const LawRead got = read_for_law(name,
                                       {fmt::format("parallelism.tensor={}", tensor),
                                        fmt::format("parallelism.data={}", 32 / tensor)},
                                       tokens);
      if (tensor > 1 && !got.scenario) {
        CHECK(got.complaint.find("/parallelism/tensor") != std::string::npos);
        continue;
      }
      REQUIRE_MESSAGE(got.scenario, got.complaint);
      const Scenario& s = *got.scenario;
      const WorkloadContext c{s.job, s.node, s.stack, s.transport, tensor, 1, 1};
      const TransformerShape& m = s.job.model;
      const auto useful = [](const std::vector<Operation>& operations) {
        Flops sum;
        for (const Operation& o : operations) sum += o.useful;
        return sum;
      };
      PerKind<Flops> known;
      Flops gpu = (1.0 + m.predicted_tokens) * useful(head_operations(c));
      for (int i = 0; i < m.layers + m.predicted_tokens; ++i) {
        gpu += known.at(m.kind(std::min(i, m.layers - 1)),
                        [&](LayerKind kind) { return useful(layer_operations(c, kind)); });
      }
      if (m.predicted_tokens > 0) gpu += m.predicted_tokens * useful(prediction_operations(c));
      CHECK(32.0 * tensor * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-9));
    }
  });
}

TEST_CASE("presets: FLOP are 6 for each active weight of a product, and attention's at least") {
  for_each_law_preset([](const std::string& name, int tokens) {
    const LawRead got = read_for_law(name, {}, tokens);
    REQUIRE_MESSAGE(got.scenario, got.complaint);
    const TrainingJob& job = got.scenario->job;
    const TransformerShape& m = job.model;
    double work = 6.0 * tokens *
                  ((1.0 + m.predicted_tokens) * m.vocabulary * m.hidden +
                   2.0 * m.predicted_tokens * m.hidden * m.hidden);
    for (int i = 0; i < m.layers + m.predicted_tokens; ++i) {
      const LayerKind kind = m.kind(std::min(i, m.layers - 1));
      const KindShape shape = shape_of(m, kind);
      // Of an image whose sides are halved so often, a quarter each time; of words, their own.
      const double rows = shape.tokens > 0 ? shape.tokens : tokens / std::pow(4.0, shape.halvings);
      const double words = shape.source_tokens > 0 ? shape.source_tokens : tokens;
      for (const Row& row : declare_layer(m, kind).rows) {
        if (const auto* product = std::get_if<Product>(&row)) {
          const double met = (product->of_experts() ? m.experts.per_token : 1) * product->weights();
          work += 6 * met * (product->rows == Rows::source ? words : rows);
        } else if (const auto* core = std::get_if<Core>(&row)) {
          for (const Keys& keys : core->keys) {
            work += 3 * rows * core->flops_per_key() * keys.mean(keys.of_source ? words : rows);
          }
        } else if (const auto* index = std::get_if<IndexScores>(&row)) {
          work += 3 * rows * index->flops_per_key() * index->keys.mean(rows);
        } else if (const auto* scan = std::get_if<Scan>(&row)) {
          work += 3 * rows * scan->flops;
        }
      }
    }
    CHECK(step_flops(job).causal.base_units() == doctest::Approx(32.0 * work).epsilon(1e-12));
  });
}

TEST_CASE(
    "presets: stages of a pipeline hold all weights of the model, or say why there are none") {
  for_each_law_preset([](const std::string& name, int tokens) {
    const LawRead got = read_for_law(
        name, {"parallelism.pipeline=2", "parallelism.data=16", "parallelism.sharding=none"},
        tokens);
    if (!got.scenario) {
      CHECK(got.complaint.find("/parallelism/pipeline") != std::string::npos);
      return;
    }
    const Scenario& s = *got.scenario;
    const TransformerShape& m = s.job.model;
    Bytes weights;
    for (const int stage : {0, 1}) weights += peak_memory(s.job, s.stack, stage).weights;
    // A tied embedding is on both ends, and the norm behind the last layer is not counted.
    const double words = m.tied ? static_cast<double>(m.vocabulary) * m.hidden : 0;
    const double norm = (m.biases ? 2.0 : 1.0) * m.hidden;
    CHECK(weights.base_units() ==
          doctest::Approx(2 * (total_parameters(m) + words - norm)).epsilon(1e-9));
  });
}

TEST_CASE("presets: every way to cut a model works, or one line says why not") {
  for_each_law_preset([](const std::string& name, int tokens) {
    for (const LawWay& way : law_ways()) {
      CAPTURE(way.name);
      const LawRead got = read_for_law(name, way.sets, tokens);
      if (!got.scenario) {
        CHECK(got.complaint.find('\n') == std::string::npos);
        CHECK(got.complaint.find("allowed: ") != std::string::npos);
        continue;
      }
      const Scenario& s = *got.scenario;
      CHECK(peak_memory(s.job, s.stack, 0).needed() > Bytes{});
      CHECK(step_flops(s.job).hardware >= step_flops(s.job).full);
    }
  });
}

}  // namespace lockstep
