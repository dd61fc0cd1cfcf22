// The search for layouts: its lower bounds are lower, what it finds is what replaying everything
// finds, and what it leaves out it counts.
#include "sim/search/tune.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <tuple>
#include <vector>

#include "models/pipeline/schedule.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/bounds.hpp"
#include "sim/search/layouts.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

constexpr const char* kDense =
    R"("model": {"layers": 6, "hidden": 2048, "heads": 16, "kv_heads": 8, "head_dim": 128,
                 "ffn": 8192, "vocabulary": 32000, "gated": true})";
constexpr const char* kTunedExperts =
    R"("model": {"layers": 4, "hidden": 1024, "heads": 8, "kv_heads": 8, "head_dim": 128,
                 "ffn": 4096, "vocabulary": 32000, "gated": true,
                 "experts": {"count": 8, "per_token": 2, "ffn": 1024}})";

/// Small jobs that meet everything that bounds have to know of: exchanges of every kind, sends that
/// block, gathers, two copies of a model.
struct SmallJob {
  const char* model;
  const char* cluster;
  const char* rest;
  std::vector<Schedule> schedules{};
};
const std::vector<SmallJob>& small_jobs() {
  static const std::vector<SmallJob> jobs{
      {kDense, R"({"node": "dgx_h100", "nodes": 2})", R"("stack": "megatron_core")"},
      {kDense, R"({"node": "dgx_a100_80gb", "nodes": 2})",
       R"("precision": "fp16", "stack": "megatron_lm_2021")"},
      {kDense,
       R"({"node": "dgx_h100", "nodes": 1})",
       R"("stack": {"preset": "megatron_core", "allow": ["schedules.gpipe",
                    "schedules.breadth_first", "schedules.zb_h1", "schedules.zb_h2",
                    "schedules.zb_v", "schedules.dualpipe", "schedules.dualpipev"]},
          "stragglers": [{"gpu": 3, "slowdown": 1.2}])",
       {Schedule::gpipe, Schedule::breadth_first, Schedule::zb_h1, Schedule::zb_h2, Schedule::zb_v,
        Schedule::dualpipe, Schedule::dualpipev}},
      {kTunedExperts, R"({"node": "dgx_h100", "nodes": 2})", R"("stack": "megatron_core")"},
  };
  return jobs;
}

Scenario scenario_of(const SmallJob& job) {
  return read_scenario("small.json",
                       std::string("{") + job.model + ", \"cluster\": " + job.cluster +
                           R"(, "batch": {"sequences": 32, "micro": 1, "tokens": 4096}, )" +
                           job.rest + "}",
                       test::presets());
}

TuneOptions options_of(const SmallJob& job) {
  TuneOptions options;
  options.space.schedules = job.schedules;
  options.space.micro_sequences = {1, 2};
  options.threads = 1;
  return options;
}

/// The same layouts in the same order, to the tick.
void check_same(const std::vector<TunedLayout>& one, const std::vector<TunedLayout>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CAPTURE(i);
    CHECK(one[i].step_s == other[i].step_s);
    const TrainingJob &a = one[i].scenario.job, &b = other[i].scenario.job;
    CHECK(a.parallelism.tensor == b.parallelism.tensor);
    CHECK(a.parallelism.pipeline == b.parallelism.pipeline);
    CHECK(a.parallelism.sharding == b.parallelism.sharding);
    CHECK(a.batch.micro_sequences == b.batch.micro_sequences);
  }
}

}  // namespace

TEST_CASE(
    "lower bounds of a step: none is above the replay, and the close one is above the rough") {
  for (const SmallJob& job : small_jobs()) {
    CAPTURE(job.cluster);
    CAPTURE(job.rest);
    const Scenario base = scenario_of(job);
    ComputeBound rough(base);
    RuleCheck rules(base);
    Scenario scenario = base;
    std::size_t tried = 0, missed = 0;
    double closest = 0;
    for (const Layout& layout : all_layouts(base, options_of(job).space)) {
      apply(layout, scenario);
      if (!rules.broken(scenario).problem.empty()) continue;
      // A seventh of them, whatever their order.
      if (++tried % 7 != 0) continue;
      const double step = simulate_step(scenario).step_s;
      const double close = uncontended_step(scenario).base_units();
      const double first = rough(scenario).base_units();
      if (close > step || first > close * (1 + 1e-5)) ++missed;
      closest = std::max(closest, close / step);
    }
    CHECK(tried > 100);
    CHECK(missed == 0);
    CHECK(closest > 0.97);  // a bound of nothing would be lower too
  }
}

TEST_CASE("a search finds what replaying every layout finds, on any number of threads") {
  for (const SmallJob& job : small_jobs()) {
    CAPTURE(job.rest);
    const Scenario base = scenario_of(job);
    TuneOptions options = options_of(job);
    const TuneResult pruned = tune(base, options);
    options.threads = 2;
    const TuneResult threaded = tune(base, options);
    options.exhaustive = true;
    const TuneResult all = tune(base, options);

    CHECK(all.pruned == 0);
    CHECK(pruned.replayed < all.replayed);
    CHECK(pruned.best.size() == 10);
    check_same(pruned.best, all.best);
    check_same(pruned.best, threaded.best);
    CHECK(pruned.replayed == threaded.replayed);

    std::size_t refused = 0;
    for (const TuneCount& count : pruned.refused) refused += count.layouts;
    for (const TuneCount& count : pruned.beyond_stack) refused += count.layouts;
    CHECK(pruned.considered ==
          refused + pruned.same_as_zero1 + pruned.over_memory + pruned.pruned + pruned.replayed);
    // The rank of the scenario's own layout lies where the bounds say.
    REQUIRE(all.own);
    CHECK(all.own_rank_first == all.own_rank_last);
    CHECK(pruned.own_rank_first <= all.own_rank_first);
    CHECK(pruned.own_rank_last >= all.own_rank_first);
    options.exhaustive = false;
    options.rank_own = true;
    const TuneResult ranked = tune(base, options);
    CHECK(ranked.own_rank_first == all.own_rank_first);
    CHECK(ranked.own_rank_last == all.own_rank_first);
    // With a bound on what that may cost the best stay the same, and the rank lies between.
    options.most_events_for_rank = 0;
    const TuneResult bounded = tune(base, options);
    check_same(bounded.best, all.best);
    CHECK(bounded.replayed == pruned.replayed);
    CHECK(bounded.own_rank_first <= all.own_rank_first);
    CHECK(bounded.own_rank_last >= all.own_rank_first);
  }
}

TEST_CASE("a search counts the scenario's own layout in the order in which it lists layouts") {
  const Scenario base =
      read_scenario("near.json",
                    R"({"model": "llama2_13b", "cluster": {"node": "dgx_h100", "nodes": 4},
          "parallelism": {"sharding": "zero3"}, "stack": "neutral",
          "batch": {"sequences": 512, "micro": 2, "tokens": 4096}})",
                    test::presets());
  TuneOptions options;
  options.space.tensor = {1, 2};
  options.space.pipeline = {1};
  options.threads = 1;
  const TuneResult found = tune(base, options);
  REQUIRE(found.best.size() > 2);
  // The fastest is close to running out of memory, so that a slower layout is put first.
  REQUIRE(found.best[0].step_s > found.fastest_s);
  for (const std::size_t place : {0U, 1U, 2U}) {
    CAPTURE(place);
    const TuneResult again = tune(found.best[place].scenario, options);
    CHECK(again.own_rank_first == place + 1);
    CHECK(again.own_rank_last == place + 1);
  }
}

TEST_CASE("a search: layouts keep the space that it was given, and stop when asked") {
  const Scenario base = scenario_of(small_jobs().front());
  TuneOptions options;
  options.threads = 1;
  options.keep = 3;
  options.space = {
      .tensor = {2}, .pipeline = {2}, .micro_sequences = {1}, .sharding = {Sharding::zero1}};
  const TuneResult result = tune(base, options);
  REQUIRE(!result.best.empty());
  for (const TunedLayout& layout : result.best) {
    const TrainingJob& job = layout.scenario.job;
    CHECK(layout.scenario.gpus() == base.gpus());
    CHECK(job.parallelism.tensor == 2);
    CHECK(job.parallelism.pipeline == 2);
    CHECK(job.parallelism.sharding == Sharding::zero1);
    CHECK(layout.peak.needed() <= layout.usable);
    CHECK(layout.bound_s <= layout.step_s);
    // What it hands out runs to the same answer.
    CHECK(simulate_step(layout.scenario).step_s == layout.step_s);
  }
  options.interrupted = [] { return true; };
  const TuneResult stopped = tune(base, options);
  CHECK(stopped.interrupted);
  CHECK(stopped.best.empty());
}

TEST_CASE("a search: it stops within a round and within a replay, and counts what is left") {
  const Scenario base = scenario_of(small_jobs().front());
  std::size_t asked = 0, most = 0;
  TuneOptions options;
  options.threads = 1;
  options.interrupted = [&] { return ++asked > most; };
  most = 1'000'000'000;
  const TuneResult whole = tune(base, options);
  REQUIRE_FALSE(whole.interrupted);
  const std::size_t in_all = asked;
  REQUIRE(in_all > whole.replayed);
  std::size_t before = 0, partial = 0;
  for (most = 0; most < in_all; most += 3) {
    asked = 0;
    const TuneResult result = tune(base, options);
    // Nothing is left where it falls into the last round, and what was to come is slower.
    if (!result.interrupted) CHECK(result.fastest_s == whole.fastest_s);
    // Once it is to stop, each of the others of a round asks once more, and none of them starts.
    CHECK(asked - most <= 20);
    CHECK(result.replayed >= before);
    CHECK(result.replayed - before <= 3);
    partial += result.replayed % 16 != 0 ? 1 : 0;
    before = result.replayed;
    std::size_t counted = result.same_as_zero1 + result.over_memory + result.pruned;
    for (const TuneCount& count : result.refused) counted += count.layouts;
    for (const TuneCount& count : result.beyond_stack) counted += count.layouts;
    CHECK(counted + result.replayed == result.considered);
    CHECK((result.own.has_value() || !result.own_problem.empty()));
  }
  CHECK(partial > 0);
}

TEST_CASE("a search: what the software cannot run is left out, and counted by what it lacks") {
  const Scenario base = scenario_of(small_jobs()[1]);  // Megatron-LM of 2021
  TuneOptions options;
  options.threads = 1;
  options.keep = 10'000;
  options.exhaustive = true;
  const TuneResult result = tune(base, options);
  REQUIRE(result.best.size() > 10);
  for (const TunedLayout& layout : result.best) {
    CHECK(layout.scenario.job.parallelism.sharding == Sharding::none);
    CHECK(layout.scenario.job.recompute != Recompute::selective);
  }
  REQUIRE(!result.beyond_stack.empty());
  for (const TuneCount& count : result.beyond_stack) {
    CAPTURE(count.reason);
    const bool known = count.reason == "sharding.zero1" || count.reason == "sharding.zero2" ||
                       count.reason == "sharding.zero3" || count.reason == "recompute.selective" ||
                       count.reason.starts_with("context_exchange.") ||
                       count.reason.starts_with("layouts.");
    CHECK(known);
  }
}

TEST_CASE("a search: of the layouts within 1 % of the fastest the plainest comes first") {
  std::size_t tied = 0;
  for (const SmallJob& job : small_jobs()) {
    CAPTURE(job.rest);
    TuneOptions options = options_of(job);
    options.keep = 10'000;
    options.exhaustive = true;
    const TuneResult all = tune(scenario_of(job), options);
    const auto layout_of = [](const TunedLayout& tuned) {
      const TrainingJob& t = tuned.scenario.job;
      return Layout{t.parallelism, t.batch.micro_sequences, t.recompute};
    };
    double fastest = all.best.front().step_s;
    std::size_t ties = 0;
    for (const TunedLayout& layout : all.best) fastest = std::min(fastest, layout.step_s);
    CHECK(all.fastest_s == fastest);
    for (const TunedLayout& layout : all.best) {
      CHECK(layout.ties == (layout.step_s <= 1.01 * fastest));
      if (!layout.ties) continue;
      ++ties;
      CHECK_FALSE(plainer(layout_of(layout), layout_of(all.best.front())));
    }
    CHECK(all.ties == ties);
    CHECK(all.best.front().ties);
    if (ties > 1) ++tied;
  }
  CHECK(tied > 0);  // else the rule was not put to the test
}

TEST_CASE("a search: of layouts that tie a much surer one comes before the plainest") {
  std::size_t surer = 0;
  for (const SmallJob& job : small_jobs()) {
    CAPTURE(job.rest);
    TuneOptions options = options_of(job);
    options.keep = 10'000;
    options.exhaustive = true;
    const TuneResult all = tune(scenario_of(job), options);
    const auto layout_of = [](const Scenario& scenario) {
      const TrainingJob& t = scenario.job;
      const Parallelism& p = t.parallelism;
      return std::tuple(p.tensor, p.context, p.pipeline, p.virtual_stages, p.expert,
                        p.expert_tensor, p.sharding, p.schedule, t.batch.micro_sequences,
                        t.recompute);
    };
    const TunedLayout& plainest = all.best.front();
    const auto other = std::find_if(all.best.begin() + 1, all.best.end(), [&](const auto& each) {
      return each.ties && !each.memory.close();
    });
    if (plainest.memory.close() || other == all.best.end()) continue;
    ++surer;
    const auto first_where = [&](double of_others) {
      options.slow_end = [&, of_others](const Scenario& scenario) {
        return layout_of(scenario) == layout_of(other->scenario) ? 1.0 : of_others;
      };
      return layout_of(tune(scenario_of(job), options).best.front().scenario);
    };
    CHECK((first_where(1.5) == layout_of(other->scenario)));
    CHECK((first_where(1.05) == layout_of(plainest.scenario)));
  }
  CHECK(surer > 0);  // else the rule was not put to the test
}

TEST_CASE("a search: a layout that may run out of memory comes behind one that surely fits") {
  std::size_t moved = 0;
  for (const char* capacity : {"8 GiB", "10 GiB", "12 GiB", "20 GiB"}) {
    CAPTURE(capacity);
    const std::string card =
        std::string(R"({"node": {"preset": "dgx_h100", "gpu": {"hbm_capacity": ")") + capacity +
        R"("}}, "nodes": 2})";
    const SmallJob job{kDense, card.c_str(), R"("stack": "megatron_core")"};
    const Scenario base = scenario_of(job);
    TuneOptions options = options_of(job);
    options.keep = 10'000;
    options.exhaustive = true;
    const TuneResult all = tune(base, options);
    const TunedLayout& first = all.best.front();
    const bool safe = std::ranges::any_of(all.best, [&](const TunedLayout& layout) {
      return !layout.memory.close() && layout.step_s <= (1 + kSafer) * all.fastest_s;
    });
    CHECK(first.memory.close() == !safe);
    CHECK(first.step_s <= (1 + (safe ? kSafer : kTie)) * all.fastest_s);
    const bool fastest_is_close = std::ranges::any_of(all.best, [&](const TunedLayout& layout) {
      return layout.step_s == all.fastest_s && layout.memory.close();
    });
    if (fastest_is_close && safe) ++moved;
    // What is left out by its bound cannot come first.
    options.exhaustive = false;
    for (const std::size_t keep : {std::size_t{1}, std::size_t{10}}) {
      options.keep = keep;
      const TuneResult pruned = tune(base, options);
      CHECK(pruned.best.front().step_s == first.step_s);
      CHECK(pruned.best.front().memory.close() == first.memory.close());
    }
  }
  CHECK(moved > 0);  // else the rule was not put to the test
}

TEST_CASE("plainer: fewer kinds of parallelism, then smaller replicas, then less of the rest") {
  const auto layout = [](int tensor, int pipeline, int data, Sharding sharding,
                         Recompute recompute) {
    Layout out;
    out.cut.tensor = tensor;
    out.cut.pipeline = pipeline;
    out.cut.data = data;
    out.cut.sharding = sharding;
    out.recompute = recompute;
    return out;
  };
  const Layout replicas = layout(1, 1, 16, Sharding::none, Recompute::none);
  const Layout zero1 = layout(1, 1, 16, Sharding::zero1, Recompute::none);
  const Layout zero3 = layout(1, 1, 16, Sharding::zero3, Recompute::none);
  const Layout tensor2 = layout(2, 1, 8, Sharding::none, Recompute::none);
  const Layout tensor8 = layout(8, 1, 2, Sharding::none, Recompute::none);
  const Layout both = layout(2, 2, 4, Sharding::none, Recompute::none);
  const Layout all = layout(2, 2, 4, Sharding::zero1, Recompute::full);
  const std::vector<Layout> rising{replicas, zero1, zero3, tensor2, tensor8, both, all};
  for (std::size_t i = 0; i < rising.size(); ++i) {
    for (std::size_t j = 0; j < rising.size(); ++j) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK(plainer(rising[i], rising[j]) == (i < j));
    }
  }
}

TEST_CASE("a search: a layout that breaks a rule is no candidate, but a place to start from") {
  Scenario base = scenario_of(small_jobs().front());
  base.job.parallelism.tensor = 1;
  base.job.parallelism.data = 16;
  base.job.batch.micro_sequences = 5;
  TuneOptions options;
  options.threads = 1;
  options.space.pipeline = {1};
  const TuneResult result = tune(base, options);
  CHECK_FALSE(result.own);
  CHECK(result.own_problem.starts_with("/batch/sequences"));
  CHECK(result.best.size() == 10);
}

}  // namespace lockstep
