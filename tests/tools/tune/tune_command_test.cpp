// What the search finds for published jobs; what `lockstep tune` prints is in
// tests/golden/tune.test.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "models/base/text_file.hpp"
#include "models/layer/flops.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/row_validation.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/tune.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/slow_build.hpp"

namespace lockstep {
namespace {

/// Narayanan et al. 2021, arXiv:2104.04473, table 1: the layouts that its authors chose, all with
/// full recomputation and without sharding.
struct PublishedLayout {
  int heads, hidden, layers, tensor, pipeline, gpus, sequences;
};
constexpr std::array kMegatron2021{
    PublishedLayout{24, 2304, 24, 1, 1, 32, 512},         // 1.7 billion weights
    PublishedLayout{32, 3072, 30, 2, 1, 64, 512},         // 3.6
    PublishedLayout{32, 4096, 36, 4, 1, 128, 512},        // 7.5
    PublishedLayout{48, 6144, 40, 8, 1, 256, 1024},       // 18.4
    PublishedLayout{64, 8192, 48, 8, 2, 512, 1536},       // 39.1
    PublishedLayout{80, 10240, 60, 8, 4, 1024, 1792},     // 76.1
    PublishedLayout{96, 12288, 80, 8, 8, 1536, 2304},     // 145.6
    PublishedLayout{128, 16384, 96, 8, 16, 1920, 2160},   // 310.1
    PublishedLayout{128, 20480, 105, 8, 35, 2520, 2520},  // 529.6
    PublishedLayout{160, 25600, 128, 8, 64, 3072, 3072},  // 1008
};

Scenario scenario_of(const PublishedLayout& row) {
  const std::string text = fmt::format(
      R"({{"model": {{"layers": {}, "hidden": {}, "heads": {}, "kv_heads": {}, "head_dim": {},
                      "ffn": {}, "vocabulary": 51200, "tied": true, "learned_positions": true,
                      "max_positions": 2048, "biases": true}},
           "cluster": {{"node": "dgx_a100_80gb", "nodes": {}, "fabric": "selene"}},
           "parallelism": {{"tensor": {}, "pipeline": {}}},
           "batch": {{"sequences": {}, "micro": 1, "tokens": 2048}},
           "precision": "fp16", "recompute": "full", "stack": "megatron_lm_2021"}})",
      row.layers, row.hidden, row.heads, row.heads, row.hidden / row.heads, 4 * row.hidden,
      row.gpus / 8, row.tensor, row.pipeline, row.sequences);
  return read_scenario("megatron.json", text, test::presets());
}

}  // namespace

TEST_CASE("tune: at least as fast as the layouts of Megatron's 2021 models, and says their rank") {
  for (const PublishedLayout& row : kMegatron2021) {
    // The largest take seconds of replays: where those are slow, the first ones say as much.
    if (test::kSlowBuild && row.gpus > 256) continue;
    CAPTURE(row.hidden);
    Scenario scenario = scenario_of(row);
    TuneOptions options;
    // What that software had: the paper recomputes everything and shards nothing.
    options.space.sharding = {Sharding::none};
    options.space.recompute = {Recompute::full};
    // Micro batches and virtual stages are not published: the model's best are.
    TuneOptions published = options;
    published.space.tensor = {row.tensor};
    published.space.pipeline = {row.pipeline};
    published.keep = 1;
    const TuneResult theirs = tune(scenario, published);
    REQUIRE(theirs.best.size() == 1);

    options.rank_own = true;
    const TuneResult all = tune(theirs.best.front().scenario, options);
    REQUIRE(!all.best.empty());
    CHECK(all.fastest_s <= theirs.fastest_s);
    CHECK(all.best.front().step_s <= (1 + kSafer) * all.fastest_s);
    CHECK(all.own_rank_first == all.own_rank_last);
    CHECK(all.own_rank_first <= all.pruned + all.replayed);
  }
}

TEST_CASE(
    "tune: of the layouts that were tried for BLOOM the model's best is among the best five") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/training.json";
  std::vector<ReferenceRow> rows = load_rows(file, test::presets());
  std::erase_if(rows, [](const ReferenceRow& row) { return !row.id.starts_with("bloom-tune-"); });
  REQUIRE(rows.size() > 80);
  const std::vector<RowPrediction> predictions = predict_rows(rows, test::presets(), 0, [] {});

  // Useful FLOP/s of a GPU, measured and predicted: of each job, and of all of them.
  struct Speeds {
    double measured, predicted;
  };
  std::map<std::tuple<int, int, int, int, int>, std::vector<Speeds>> jobs;
  for (const RowPrediction& prediction : predictions) {
    const ReferenceRow& row = *prediction.row;
    if (!prediction.predicted_step_s || !row.measured_step_s) continue;
    TrainingJob job;
    job.model = row.model;
    job.batch = row.batch;
    const double work = step_flops(job).full.base_units() / row.gpus;
    const Speeds speeds{work / *row.measured_step_s, work / *prediction.predicted_step_s};
    jobs[{row.model.layers, row.model.hidden, row.model.heads, row.gpus, row.batch.sequences}]
        .push_back(speeds);
    jobs[{}].push_back(speeds);
  }
  std::size_t judged = 0;
  for (const auto& [job, layouts] : jobs) {
    if (layouts.size() <= 5) continue;  // cannot fail
    ++judged;
    const Speeds best = *std::ranges::max_element(layouts, {}, &Speeds::predicted);
    CAPTURE(layouts.size());
    CHECK(std::ranges::count_if(
              layouts, [&](const Speeds& other) { return other.measured > best.measured; }) < 5);
  }
  CHECK(judged >= 3);
}

}  // namespace lockstep
