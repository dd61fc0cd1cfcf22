// Searches over services: the least replicas, the greatest rate, spares, one pool and two.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/search/serving_plan.hpp"
#include "sim/search/tune_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const std::string kServingPlanSchema = LOCKSTEP_SOURCE_DIR "/scenarios/serving-plan.schema.json";
const std::string kServingPlan = LOCKSTEP_SOURCE_DIR "/scenarios/plans/serve-70b.json";

ServingSpec searched_spec() {
  return read_serving(JsonCursor::parse("s.json", R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "serving": {
      "load": {"rate": 60, "requests": 600, "input": {"mean": 2000, "sigma": 0.5, "most": 8000},
               "output": {"mean": 150, "sigma": 0.5}},
      "pools": {"both": {"replicas": 4, "tensor": 2}},
      "objectives": {"ttft_p99": "600 ms", "tpot_p99": "30 ms"}
    }
  })"),
                      test::presets());
}

std::string plan_mistake(const std::string& pointer, const Json& value) {
  Json plan = Json::parse(read_text_file(kServingPlan));
  plan[Json::json_pointer(pointer)] = value;
  try {
    (void)read_serving_plan(JsonCursor::parse("plan.json", plan.dump()), test::presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

void refuses_plan(const std::string& pointer, const Json& value, const std::string& part) {
  const std::string message = plan_mistake(pointer, value);
  CHECK_MESSAGE(message.find(part) != std::string::npos, message);
}

ServingPlanSpec shipped_plan() {
  return read_serving_plan(JsonCursor::parse(kServingPlan, read_text_file(kServingPlan)),
                           test::presets());
}

}  // namespace

TEST_CASE("serving plan: the capacity curve ends where the candidate has no more machines") {
  ServingPlanSpec plan = shipped_plan();
  plan.map = {};
  plan.two_pools = false;
  plan.candidates.resize(1);
  plan.candidates[0].base.cluster.nodes = 3;
  const ServingPlanReport report = evaluate_serving_plan(plan, {.jobs = 1});
  REQUIRE(report.choice == 0);
  CHECK(report.options[0].sized.best.gpus() > 12);  // so that twice as many are not there
  REQUIRE(report.curve.size() >= 2);
  for (const ServingTrial& trial : report.curve) CHECK(trial.gpus() <= 24);
}

TEST_CASE("serving plan: of two pools prompts take a wider replica where the narrowest fails") {
  // Alone, two GPUs prefill these hundred prompts in time; a longer load of whole requests needs
  // four, and half the rate is served by what serves all of it.
  for (const double rate : {15.0, 7.5}) {
    CAPTURE(rate);
    const std::string text = R"({"pools": "two", "scenario": {"model": "llama3_70b", "serving": {
      "load": {"rate": )" + std::to_string(rate) +
                             R"(, "requests": 100,
        "input": {"mean": 300, "sigma": 0.6, "most": 6000},
        "output": {"mean": 50, "sigma": 0.6, "most": 800}},
      "pools": {"both": {"engine": "sglang"}}, "seed": 972,
      "objectives": {"ttft_p90": "500 ms"}}},
      "candidates": [{"name": "b", "scenario": {"cluster": {"node": "dgx_h100", "nodes": 1}}}]})";
    const ServingPlanSpec plan =
        read_serving_plan(JsonCursor::parse("plan.json", text), test::presets());
    const ServingPlanReport report = evaluate_serving_plan(plan, {.jobs = 1});
    CHECK(report.options[0].sized.possible);
  }
}

TEST_CASE("least_that_keeps: what trying every number finds, few first or most first") {
  for (int most = 0; most <= 70; ++most) {
    for (int from = 1; from <= most + 1; ++from) {
      const auto keeps = [&](int n) { return n >= from; };
      const int least = from <= most ? from : 0;
      CHECK(least_that_keeps(most, false, keeps) == least);
      CHECK(least_that_keeps(most, true, keeps) == least);
    }
  }
}

TEST_CASE("greatest_that_keeps: within a hundredth, and nothing below its floor") {
  for (const double limit : {0.02, 0.3, 1.0, 17.3, 900.0}) {
    const auto keeps = [&](double x) { return x <= limit; };
    for (const double guess : {0.001, 0.5, 1.0, 40.0, 5000.0}) {
      CAPTURE(guess);
      const double found = greatest_that_keeps(0.02, guess, keeps);
      CHECK(found <= limit);
      CHECK(found >= limit / 1.011);
    }
  }
  CHECK(greatest_that_keeps(1, 1, [](double x) { return x < 0.9; }) == 0);
  CHECK(greatest_that_keeps(1, 3, [](double x) { return x < 0.9; }) == 0);
  CHECK(greatest_that_keeps(0.02, 1, [](double) { return true; }) >= 1000);
}

TEST_CASE("run_steady: what is cut short because it can keep nothing would have kept nothing") {
  const ServingSpec spec = searched_spec();
  const ServingTrials trials(spec);
  int kept = 0, not_kept = 0;
  for (const double speed : {0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0}) {
    CAPTURE(speed);
    const bool whole = trials.run(spec.pools, speed).kept;
    const bool cut = trials.run_steady(spec.pools, speed).kept;
    if (!whole) CHECK_FALSE(cut);
    ++(whole ? kept : not_kept);
  }
  CHECK(kept > 0);
  CHECK(not_kept > 1);
}

TEST_CASE("may_be_kept: exactly while too few requests have ended too late") {
  constexpr RunTime kMillisecond = to_run_time(Seconds{1e-3});
  ServingSpec spec;
  ServingObjectives& o = spec.objectives;
  o.quantiles[2] = Seconds{0.1};  // ttft_p99
  std::vector<ServedRequest>& requests = spec.requests;
  requests.resize(200);
  for (ServedRequest& r : requests) r.output = 2;
  const auto end = [&](std::size_t i, RunTime first) {
    requests[i].first = first;
    requests[i].last = first + kMillisecond;
  };
  for (std::size_t late = 0; late <= 3; ++late) {
    CAPTURE(late);
    if (late > 0) end(late - 1, 101 * kMillisecond);
    CHECK(may_be_kept(spec) == (late <= 2));
  }
  for (std::size_t i = 3; i < 200; ++i) end(i, kMillisecond);
  CHECK_FALSE(may_be_kept(spec));
  end(0, kMillisecond);
  CHECK(may_be_kept(spec));
  o.e2e = Seconds{0.05};  // two of 200 are above
  o.attained = 0.995;
  CHECK_FALSE(may_be_kept(spec));
  o.attained = 0.99;
  CHECK(may_be_kept(spec));
}

namespace {

ServingPool pool_of(int replicas, int gpus) {
  ServingPool pool;
  pool.replicas = replicas;
  pool.tensor = gpus;
  return pool;
}

}  // namespace

TEST_CASE("spare_replicas: the binomial law by hand") {
  const ServingFailures day{.gpu_mean_time = Seconds{100 * 86400.0}, .repair = Seconds{86400}};
  // Of one replica of a GPU each is down for 1 / 101 of the time: all of s + 1 for its power.
  const double down = 1.0 / 101;
  for (const int spares : {0, 1, 2, 3}) {
    ServingFailures of = day;
    of.share = 1 - std::pow(down, spares + 1) * 1.001;
    CHECK(spare_replicas({pool_of(1, 1)}, of) == std::vector{spares});
    of.share = 1 - std::pow(down, spares + 1) * 0.999;
    CHECK(spare_replicas({pool_of(1, 1)}, of) == std::vector{spares + 1});
  }
  // Replicas of more GPUs are down more often.
  CHECK(spare_replicas({pool_of(20, 8)}, day)[0] > spare_replicas({pool_of(20, 1)}, day)[0]);
}

TEST_CASE("spare_replicas: two pools are up together as long as is asked, with the least GPUs") {
  ServingFailures day{.gpu_mean_time = Seconds{100 * 86400.0}, .repair = Seconds{86400}};
  // One replica of a GPU in each: up for 1 - d of the time, with a spare for 1 - d^2.
  const double up = 100.0 / 101, spared = 1 - std::pow(1 / 101.0, 2);
  const std::vector pools{pool_of(1, 1), pool_of(1, 1)};
  const auto spares = [&](double share) {
    day.share = share;
    return spare_replicas(pools, day);
  };
  CHECK(spares(up * up * 0.9999) == std::vector{0, 0});
  CHECK(spares(up * up * 1.0001) == std::vector{0, 1});  // each by itself would still do without
  CHECK(spares(up * spared * 1.0001) == std::vector{1, 1});
  CHECK(spares(spared * spared * 0.999999) == std::vector{1, 1});
  CHECK(share_up(pools[0], 1, day) == test::near(spared));
  // The spare goes to the pool whose replicas are the smaller ones.
  day.share = 0.9;
  CHECK(spare_replicas({pool_of(1, 8), pool_of(1, 4)}, day) == std::vector{0, 1});
  CHECK(spare_replicas({pool_of(1, 4), pool_of(1, 8)}, day) == std::vector{1, 0});
  // Brute force over all that are no larger.
  for (const double share : {0.95, 0.99, 0.999, 0.99999}) {
    CAPTURE(share);
    day.share = share;
    const std::vector two{pool_of(6, 4), pool_of(9, 2)};
    int least = 1 << 20;
    for (int a = 0; a < 12; ++a) {
      for (int b = 0; b < 12; ++b) {
        const bool kept = share_up(two[0], a, day) * share_up(two[1], b, day) >= share;
        if (kept) least = std::min(least, 4 * a + 2 * b);
      }
    }
    const std::vector<int> found = spare_replicas(two, day);
    CHECK(4 * found[0] + 2 * found[1] == least);
    CHECK(share_up(two[0], found[0], day) * share_up(two[1], found[1], day) >= share);
  }
}

TEST_CASE("size_one_pool: one replica less breaks the objectives") {
  const ServingSpec spec = searched_spec();
  const ServingTrials trials(spec);
  const FoundLayouts layouts = serving_layouts(spec, spec.pools[0], {.tensor = {1, 2}});
  REQUIRE(layouts.pools.size() == 2);
  const SizedService sized = size_one_pool(trials, layouts.pools);
  REQUIRE(sized.possible);
  REQUIRE(sized.best.kept);
  // Brute force over all numbers of replicas of both layouts.
  int least = 1 << 20;
  for (const ServingPool& layout : layouts.pools) {
    for (int replicas = 1; replicas * layout.gpus() <= 16; ++replicas) {
      ServingPool pool = layout;
      pool.replicas = replicas;
      if (!trials.run({pool}).kept) continue;
      least = std::min(least, replicas * layout.gpus());
      break;
    }
  }
  CHECK(sized.best.gpus() == least);
}

TEST_CASE("size_one_pool: a load that is over before a backlog shows needs as many as a long one") {
  ServingSpec spec = searched_spec();
  const FoundLayouts layouts = serving_layouts(spec, spec.pools[0], {.tensor = {1}});
  redraw_requests(spec, 20'000);
  const SizedService by_long = size_one_pool(ServingTrials(spec), layouts.pools);
  ServingSpec few = spec;
  redraw_requests(few, 20);
  const ServingTrials trials(few);
  const SizedService by_few = size_one_pool(trials, layouts.pools);
  REQUIRE(by_long.possible);
  REQUIRE(by_few.possible);
  CHECK(by_few.best.requests > few.requests.size());
  CHECK(by_few.best.report.course.steady());
  CHECK(std::abs(by_few.best.gpus() - by_long.best.gpus()) <= 1);
  // As it is, it would take fewer.
  ServingPool fewer = layouts.pools[0];
  fewer.replicas = by_few.best.gpus() / 2;
  CHECK(trials.run({fewer}).kept);
}

TEST_CASE("size_two_pools: both pools keep the objectives, and a prompts' replica less does not") {
  const ServingSpec spec = searched_spec();
  const ServingTrials trials(spec);
  const FoundLayouts layouts = serving_layouts(spec, spec.pools[0], {.tensor = {1}});
  const SizedService sized = size_two_pools(trials, layouts.pools);
  REQUIRE(sized.possible);
  CHECK(sized.best.pools.size() == 2);
  CHECK(trials.run(sized.best.pools).kept);
  std::vector<ServingPool> fewer = sized.best.pools;
  REQUIRE(fewer[0].replicas > 1);
  --fewer[0].replicas;
  CHECK_FALSE(trials.run(fewer).kept);
  fewer = sized.best.pools;
  if (--fewer[1].replicas > 0) CHECK_FALSE(trials.run(fewer).kept);
}

TEST_CASE("objectives that nothing can keep, and a longest request that no card holds") {
  ServingSpec spec = searched_spec();
  for (auto& limit : spec.objectives.quantiles) limit.reset();
  spec.objectives.ttft = Seconds{1e-6};
  const ServingTrials trials(spec);
  const FoundLayouts layouts = serving_layouts(spec, spec.pools[0], {});
  CHECK_FALSE(size_one_pool(trials, layouts.pools).possible);
  CHECK_FALSE(size_two_pools(trials, layouts.pools).possible);
  spec.requests[0].input = 10'000'000;
  CHECK(serving_layouts(spec, spec.pools[0], {}).pools.empty());
  CHECK_FALSE(size_one_pool(trials, {}).possible);
}

TEST_CASE("tightened: what is kept with it is kept where times are that much longer") {
  const ServingSpec spec = searched_spec();
  const ServingObjectives tight = tightened(spec.objectives, 2, 1.5);
  CHECK(tight.quantiles[2]->base_units() == test::near(0.3));
  CHECK(tight.quantiles[5]->base_units() == test::near(0.02));
}

TEST_CASE("tune_serving: the best takes its rate and not two hundredths more, on any threads") {
  const ServingSpec spec = searched_spec();
  ServingTuneOptions options{
      .space = {.tensor = {1, 2}, .pass_tokens = {8192}, .most_sequences = {1024}},
      .keep = 3,
      .threads = 1};
  const ServingTune found = tune_serving(spec, options);
  REQUIRE(!found.best.empty());
  const TunedService& best = found.best.front();
  CHECK(best.trial.kept);
  CHECK(best.trial.gpus() <= found.gpus);
  CHECK(best.score == test::near(best.trial.speed * arrival_rate(spec)));
  const ServingTrials trials(spec);
  CHECK_FALSE(trials.run_steady(best.trial.pools, 1.02 * best.trial.speed).kept);
  REQUIRE(!found.by_own.empty());
  CHECK(best.score >= found.by_own.front().score);
  options.threads = 4;
  const ServingTune again = tune_serving(spec, options);
  REQUIRE(again.best.size() == found.best.size());
  for (std::size_t i = 0; i < again.best.size(); ++i) {
    CHECK(again.best[i].score == found.best[i].score);
    CHECK(serving_way_words(again.best[i].trial.pools) ==
          serving_way_words(found.best[i].trial.pools));
  }
}

namespace {

// Each request comes a second after the one before, and stays as long as `stay` says.
std::vector<ServedRequest> stayed(int count, double (*stay)(int)) {
  std::vector<ServedRequest> out(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    ServedRequest& r = out[static_cast<std::size_t>(i)];
    r.arrival = to_run_time(Seconds{static_cast<double>(i)});
    r.last = to_run_time(Seconds{i + stay(i)});
  }
  return out;
}

}  // namespace

namespace {

/// One node of each kind, prompts on the first.
ServingSpec on_two_kinds(const char* first, const char* second) {
  const Json scenario{
      {"model", "llama3_8b"},
      {"cluster",
       {{"pools", {{{"node", first}, {"nodes", 1}}, {{"node", second}, {"nodes", 1}}}},
        {"fabric", "rail_optimised"}}},
      {"serving",
       {{"load",
         {{"rate", 30},
          {"requests", 300},
          {"input", {{"mean", 2000}, {"sigma", 0.5}, {"most", 8000}}},
          {"output", {{"mean", 150}, {"sigma", 0.5}}}}},
        {"pools",
         {{"prefill", {{"replicas", 2}, {"tensor", 4}, {"cluster_pool", 0}}},
          {"decode", {{"replicas", 2}, {"tensor", 4}, {"cluster_pool", 1}}}}},
        {"objectives", {{"ttft_p99", "1 s"}, {"tpot_p99", "40 ms"}}}}}};
  return read_serving(JsonCursor::parse("s.json", scenario.dump()), test::presets(),
                      ServingLayouts::searched);
}

}  // namespace

TEST_CASE("tune_serving: on two kinds of node each pool fills one, whichever suits it") {
  const ServingSpec base = on_two_kinds("dgx_h100", "dgx_a100_80gb");
  ServingTuneOptions how;
  how.space.tensor = {2, 4};
  how.space.pass_tokens = {8192};
  how.space.most_sequences = {256};
  how.threads = 2;
  const ServingTune tune = tune_serving(base, how);
  CHECK(tune.gpus == 16);
  CHECK(tune.ways == 2 * 2 * 2);
  REQUIRE(tune.best.size() >= 2);
  REQUIRE(tune.by_own.size() == 1);
  // Either is found within a hundredth.
  CHECK(tune.best.front().score >= 0.98 * tune.by_own.front().score);
  for (const TunedService& way : tune.best) {
    REQUIRE(way.trial.pools.size() == 2);
    CHECK(way.trial.pools[0].cluster_pool != way.trial.pools[1].cluster_pool);
    for (const ServingPool& pool : way.trial.pools) CHECK(pool.replicas * pool.gpus() == 8);
  }
  const std::string words = serving_way_words(tune.best.front().trial.pools, base);
  CHECK(words.find(" on dgx_h100") != std::string::npos);
  CHECK(words.find(" on dgx_a100_80gb") != std::string::npos);

  // Two kinds that are equal: either way round takes the same.
  how.space.tensor = {4};
  const ServingTune equal = tune_serving(on_two_kinds("dgx_h100", "dgx_h100"), how);
  REQUIRE(equal.best.size() == 2);
  CHECK(equal.best[0].score == equal.best[1].score);
  CHECK(equal.best[0].trial.pools[0].cluster_pool != equal.best[1].trial.pools[0].cluster_pool);
}

TEST_CASE("load_course: lasts from 40 stays on, and grows where ever more stay") {
  const auto five = [](int) { return 5.0; };
  const LoadCourse brief = load_course(stayed(195, five), 0);
  CHECK_FALSE(brief.lasts);  // 194 s
  CHECK(brief.enough == 202);
  CHECK_FALSE(brief.grows);
  CHECK(load_course(stayed(206, five), 0).steady());
  CHECK(load_course(stayed(206, five), 0).coming_s == test::near(206));
  // Of 900 s 1/50 stays: by the middle of the last third 15 s, of the middle one 9 s.
  const LoadCourse backlog = load_course(stayed(901, [](int i) { return 0.02 * i; }), 0);
  CHECK(backlog.lasts);
  CHECK(backlog.grows);
}

TEST_CASE("load_course: a load that is over before its queue is grows all the same") {
  // One comes each second and one ends every five.
  const LoadCourse behind = load_course(stayed(100, [](int i) { return 10 + 4.0 * i; }), 0);
  CHECK_FALSE(behind.lasts);
  CHECK(behind.grows);
  // Nobody waits: all are there at once, in whichever order long and short ones come.
  CHECK_FALSE(load_course(stayed(100, [](int) { return 500.0; }), 0).grows);
  CHECK_FALSE(load_course(stayed(100, [](int i) { return 10 + 5.0 * (37 * i % 100); }), 0).grows);
  // The system fills: requests slow each other down, and end as fast as they come.
  const auto fills = [](int i) { return 20 + 20 * std::min(1.0, i / 20.0); };
  CHECK_FALSE(load_course(stayed(100, fills), 0).grows);
}

TEST_CASE("load_course: a conversation stays from its first turn to its last answer") {
  std::vector<ServedRequest> requests = stayed(303, [](int) { return 1.0; });
  CHECK(load_course(requests, 101).lasts);
  for (std::size_t i = 0; i < 202; ++i) requests[i].next = static_cast<std::int32_t>(i + 101);
  CHECK_FALSE(load_course(requests, 101).lasts);  // each ends 202 s later
}

TEST_CASE("redraw_requests: what the file would have drawn had it said that number") {
  ServingSpec spec = searched_spec();
  const std::vector<ServedRequest> before = spec.requests;
  redraw_requests(spec, 1500);
  REQUIRE(spec.requests.size() == 1500);
  CHECK(spec.requests[1499].arrival > spec.requests[599].arrival);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(spec.requests[i].arrival == before[i].arrival);
    CHECK(spec.requests[i].input == before[i].input);
    CHECK(spec.requests[i].output == before[i].output);
  }
}

TEST_CASE("tune_serving: a load that is over before a backlog shows gives no greater rate") {
  ServingSpec spec = searched_spec();
  const ServingTuneOptions options{
      .space = {.tensor = {1}, .pass_tokens = {8192}, .most_sequences = {1024}},
      .one_pool = false,
      .keep = 1};
  redraw_requests(spec, 60);  // a second of them
  const ServingTune brief = tune_serving(spec, options);
  REQUIRE(!brief.best.empty());
  CHECK(brief.best.front().trial.report.course.steady());
  CHECK(brief.best.front().trial.requests > 600);
  redraw_requests(spec, 4800);
  const ServingTune longer = tune_serving(spec, options);
  REQUIRE(!longer.best.empty());
  // Near what it can take at most one load of some thousands differs from another by some percent.
  CHECK(brief.best.front().score == doctest::Approx(longer.best.front().score).epsilon(0.1));
}

TEST_CASE("run_steady: a trace is as long as it is, and is not taken for steady") {
  ServingSpec spec = searched_spec();
  redraw_requests(spec, 20);
  spec.drawn.reset();
  const ServingTrial trial = ServingTrials(spec).run_steady(spec.pools, 1);
  CHECK(trial.kept);
  CHECK(trial.requests == 20);
  CHECK_FALSE(trial.report.course.steady());
}

TEST_CASE("tune_serving: throughput of clients in a closed loop is that of the best layout") {
  ServingSpec spec = searched_spec();
  spec.clients = 64;
  spec.objectives = {};
  const ServingTune found = tune_serving(
      spec, {.two_pools = false, .goal = ServingGoal::throughput, .keep = 100, .threads = 2});
  REQUIRE(found.best.size() > 1);
  const ServingTrials trials(spec);
  for (const TunedService& service : found.best) {
    CHECK(service.score == test::near(trials.run(service.trial.pools).report.figures.output_per_s));
    CHECK(service.score <= found.best.front().score);
  }
}

TEST_CASE("serving plan: the one that ships is answered, the same on any threads") {
  ServingPlanSpec spec = shipped_plan();
  CHECK(spec.candidates.size() == 2);
  spec.map.input = {1000, 8000};
  spec.map.output = {100};
  spec.map.requests = 200;
  const ServingPlanReport report = evaluate_serving_plan(spec, {.jobs = 1});
  REQUIRE(report.choice);
  REQUIRE(report.options.size() == 4);
  for (const ServingOption& option : report.options) {
    REQUIRE(option.sized.possible);
    CHECK(option.sized.best.kept);
    CHECK(*report.options[*report.choice].usd_per_million <= *option.usd_per_million);
    CHECK(option.spares.size() == option.sized.best.pools.size());
    // Rent of all GPUs by the tokens that are asked for, whatever the end of a simulated load
    // takes.
    const ServingSpec& base = spec.candidates[option.candidate].base;
    const ServingFigures& f = option.sized.best.report.figures;
    const double each = f.output_tokens / static_cast<double>(option.sized.best.requests);
    const double hourly = option.gpus() * *base.usd_per_gpu_hour;
    CHECK(*option.usd_per_million ==
          doctest::Approx(hourly / 3600 / (base.drawn->rate * each) * 1e6).epsilon(0.02));
    CHECK(option.sized.best.coming_share < 0.99);
  }
  REQUIRE(report.map.size() == 2);
  // Eight times the prompts take more GPUs.
  CHECK(report.map[1].one_pool > report.map[0].one_pool);
  CHECK(report.map[1].two_pools > report.map[0].two_pools);
  const ServingPlanReport again = evaluate_serving_plan(spec, {.jobs = 4});
  for (std::size_t i = 0; i < report.options.size(); ++i) {
    CHECK(again.options[i].usd_per_million == report.options[i].usd_per_million);
    CHECK(again.options[i].gpus() == report.options[i].gpus());
  }
}

namespace {

/// A small service on two candidates, each with these prices.
Json plan_with_prices(const Json& first, const Json& second) {
  Json plan = Json::parse(R"({
    "prefer": "money", "pools": "one", "search": {"tensor": [1]},
    "failures": {"gpu_mean_time": "50000 h", "repair": "2 d", "share": "99.9 %"},
    "scenario": {"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
      "serving": {"load": {"rate": 2, "requests": 400, "input": {"mean": 1000},
                           "output": {"mean": 200}},
                  "pools": {"both": {"engine": "vllm"}},
                  "objectives": {"ttft_p99": "1 s", "tpot_p99": "40 ms"}}},
    "candidates": [{"name": "a", "scenario": {}}, {"name": "b", "scenario": {}}]
  })");
  plan["candidates"][0]["scenario"] = first;
  plan["candidates"][1]["scenario"] = second;
  return plan;
}
ServingPlanReport report_of(const Json& plan) {
  return evaluate_serving_plan(
      read_serving_plan(JsonCursor::parse("plan.json", plan.dump()), test::presets()), {});
}
const Json kTariff = Json::parse(R"({"power": {}, "cost": {"usd_per_kwh": 0.08}})");

}  // namespace

TEST_CASE("serving plan: a tariff beside a rent owns nothing, and the cheaper rent is taken") {
  const Json cheap = Json::parse(R"({"price": {"usd_per_gpu_hour": 1.5}})");
  Json dear = kTariff;
  dear["price"]["usd_per_gpu_hour"] = 5;
  const ServingPlanReport report = report_of(plan_with_prices(cheap, dear));
  REQUIRE(report.options.size() == 2);
  CHECK(report.choice == 0u);
  for (const ServingOption& option : report.options) CHECK(option.billed == MoneyOf::rent);
  CHECK(*report.options[1].usd_per_million ==
        test::near(5 / 1.5 * *report.options[0].usd_per_million));
}

TEST_CASE("serving plan: the money of energy alone decides only where all have no more") {
  const ServingPlanReport report = report_of(plan_with_prices(kTariff, kTariff));
  CHECK(report.options[0].billed == MoneyOf::partial);
  const Json mixed =
      plan_with_prices(kTariff, Json::parse(R"({"price": {"usd_per_gpu_hour": 1}})"));
  try {
    (void)report_of(mixed);
    FAIL("was read");
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with("plan.json#/prefer: found \"money\""));
    CHECK(message.find("of a only a part of the money has a price (energy only)") !=
          std::string::npos);
  }
}

TEST_CASE("serving plan: a spare costs nothing more in a node that is owned whole already") {
  Json owned = kTariff;
  owned["cost"]["usd_per_gpu"] = 25'000;
  Json rented = Json::parse(R"({"price": {"usd_per_gpu_hour": 2}})");
  Json plan = plan_with_prices(owned, rented);
  plan["failures"]["repair"] = "20 d";
  Json without = plan;
  without.erase("failures");
  const ServingPlanReport spared = report_of(plan), bare = report_of(without);
  const auto usd = [](const ServingPlanReport& report, std::size_t option) {
    return *report.options[option].usd_per_million;
  };
  REQUIRE(spared.options[0].spare_gpus > 0);
  REQUIRE(spared.options[0].gpus() <= 8);  // of one node
  CHECK(spared.options[0].billed == MoneyOf::owned);
  CHECK(usd(spared, 0) == test::near(usd(bare, 0)));
  const double more = 1.0 * spared.options[1].gpus() / bare.options[1].gpus();
  CHECK(usd(spared, 1) == test::near(more * usd(bare, 1)));
}

TEST_CASE("serving plan: the machines of a candidate are of one kind") {
  const Json kinds{
      {"pools", {{{"node", "dgx_h100"}, {"nodes", 1}}, {{"node", "dgx_a100_80gb"}, {"nodes", 1}}}}};
  refuses_plan("/candidates/0/scenario/cluster", kinds, "/candidates/0/scenario/cluster/pools: ");
  refuses_plan("/candidates/0/scenario/cluster", kinds, "of one kind");
}

TEST_CASE("serving plan: mistakes are told at their place in the plan") {
  refuses_plan("/scenario/serving/load",
               {{"clients", 8}, {"input", {{"mean", 9}}}, {"output", {{"mean", 9}}}},
               "plan.json#/scenario/serving/load/clients");
  refuses_plan("/scenario/serving/objectives", {{"tpot", "1 s"}},
               "plan.json#/scenario/serving/objectives: found nothing about the time");
  refuses_plan("/scenario/serving/objectives", Json::object(), "no \"objectives\"");
  refuses_plan("/scenario/serving/pools/both/engine", "vlmm", "Did you mean \"vllm\"?");
  refuses_plan("/candidates/1/scenario/cluster/nodes", 0,
               "plan.json#/candidates/1/scenario/cluster");
  refuses_plan("/candidates/1/name", "H100", "a name that no other candidate has");
  refuses_plan("/candidates/0/scenario/serving", {{"laod", 1}, {"routr", 2}},
               "found the unknown key \"laod\", and also /candidates/0/scenario/serving/routr "
               "(\"router\"?); allowed: ");
  refuses_plan("/prefer", "mony", "Did you mean \"money\"?");
  refuses_plan("/candidates/0/scenario/price/usd_per_gpu_hour", nullptr, "usd_per_gpu_hour");
  refuses_plan("/candidates/0/scenario/price", Json::object(),
               "plan.json#/candidates/0/scenario/price: found an object without "
               "\"usd_per_gpu_hour\"");
  refuses_plan("/failures", {{"repair", "1 d"}}, "gpu_mean_time");
  refuses_plan("/map/rate", Json::array(), "at least one value");
  refuses_plan("/search", {{"tensors", {1}}}, "tensor");
}

// To write it: LOCKSTEP_WRITE_SCHEMA=1 build/tests/lockstep_tests -tc='serving-plan.schema.json*'
TEST_CASE("serving-plan.schema.json is what the reader declares") {
  const std::string text = write_json(serving_plan_schema(), 2) + "\n";
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (std::getenv("LOCKSTEP_WRITE_SCHEMA") != nullptr) std::ofstream(kServingPlanSchema) << text;
  CHECK(read_text_file(kServingPlanSchema) == text);
}

}  // namespace lockstep
