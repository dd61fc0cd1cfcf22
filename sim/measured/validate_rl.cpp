#include "sim/measured/validate_rl.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/rl/rl_step.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostRows = 10'000;
constexpr Interval kMeasured{0, 1e9, true};

struct RlIdentity {
  std::string id, software, kind, gpu, model;
  int gpus;
};

ValidationPoint point(const RlIdentity& of, double measured, double predicted) {
  return {.identity = {{"id", of.id},
                       {"software", of.software},
                       {"kind", of.kind},
                       {"gpu", of.gpu},
                       {"model", of.model},
                       {"gpus", of.gpus}},
          .measured = measured,
          .predicted = predicted,
          .error = predicted / measured - 1};
}

/// A step: a scenario, and how long it took.
ValidationPoint step_point(const JsonCursor& row, const PresetStore& presets) {
  const std::string id = row.at("id").string();
  const std::string software = row.at("software").string();
  (void)row.at("source").string();
  const double measured = row.at("step_s").number(kMeasured);
  const std::string file = row.file() + " " + id;
  const RlScenario scenario =
      read_rl_scenario(file, write_json(row.at("scenario").json()), presets);
  row.finish();
  const RlReport report = simulate_rl_step(scenario);
  return point(
      {id, software, std::string(kRlScheduleNames[static_cast<std::size_t>(scenario.rl.schedule)]),
       scenario.training.node.gpu.name, scenario.training.job.model.name, report.gpus()},
      measured, report.step.base_units());
}

/// An engine that answers `requests` at once, each with a prompt of its own.
ValidationPoint engine_point(const JsonCursor& row, const PresetStore& presets) {
  const std::string id = row.at("id").string();
  const std::string software = row.at("software").string();
  (void)row.at("source").string();
  const double per_second = row.at("tokens_per_s").number(kMeasured);
  EngineSpec engine = engine_preset(presets, row.at("engine").string());
  if (!engine.serving) row.at("engine").fail("an engine with \"serving\"");
  ServingReplicaSpec spec;
  spec.model = presets.model(row.at("model").string());
  spec.node = presets.node(row.at("node").string());
  spec.transport = presets.transport(spec.node.transport);
  spec.engine = engine.rollout();
  spec.tensor = row.at("tensor").integer(1, kMaxGpusPerNode);
  spec.weights = spec.experts =
      weight_format(static_cast<Precision>(row.at("precision").choice(precision_names())));
  spec.cache_bytes = row.at("cache_bytes").number(Interval{0.5, 4});
  const std::vector<int> responses(
      static_cast<std::size_t>(row.at("requests").integer(1, 1'000'000)),
      row.at("response_tokens").integer(1, kMaxTokens));
  const int prompt = row.at("prompt_tokens").integer(1, kMaxTokens);
  row.finish();
  ServingReplica replica(spec);
  const double cache = replica.cache_tokens();
  const int longest = prompt + responses.front();
  if (cache < longest) row.at("tensor").fail("more GPUs: nothing fits");
  const Rollout rollout =
      roll_out(replica, {.prompt_tokens = prompt,
                         .pass_tokens = engine.prefill_tokens,
                         .responses = responses,
                         .cache_tokens = cache,
                         .most_sequences = most_sequences(engine, cache, longest)});
  return point({id, software, "engine", spec.node.gpu.name, spec.model.name, spec.tensor},
               rollout.tokens / per_second, rollout.time.base_units());
}

PointTable table_of(const JsonCursor& root, const PresetStore& presets) {
  (void)root.find("about");
  PointTable table{
      .what = "reinforcement learning", .unit = "s", .points = {}, .summary = {}, .skipped = {}};
  for (const JsonCursor& row : root.at("steps").elements(kMostRows)) {
    table.points.push_back(step_point(row, presets));
  }
  for (const JsonCursor& row : root.at("generation").elements(kMostRows)) {
    table.points.push_back(engine_point(row, presets));
  }
  root.finish();
  table.summary = summarise_by(table.points, "software");
  return table;
}

}  // namespace

PointTable validate_rl(const std::string& file, const PresetStore& presets) {
  const JsonCursor root = JsonCursor::parse(file, read_text_file(file));
  return root.read_whole([&] { return table_of(root, presets); });
}

}  // namespace lockstep
