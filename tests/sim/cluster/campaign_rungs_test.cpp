// Trials that go on or stop: closed forms, the published algorithm job by job, and the rules of a
// queue around them.
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;
using test::start_s;

/// Trials of a whole node and 9 min, of which the first rung takes 1 min.
Json campaign_of(const std::string& stopping, int trials) {
  return {{"name", "search"},
          {"trials", trials},
          {"stopping", {{"kind", stopping}, {"eta", 3}, {"least", "1 min"}}},
          {"job", {{"runs", "9 min"}, {"gpus", 8}}}};
}

Json queue_with(int nodes, const Json& campaigns) {
  return {{"cluster", {{"node", "dgx_h100"}, {"nodes", nodes}}},
          {"queue", {{"order", "fifo"}, {"admission", "strict"}, {"campaigns", campaigns}}}};
}

struct RanCampaign {
  QueueSpec spec;
  QueueResult result;
  QueueSummary summary;

  [[nodiscard]] const CampaignSummary& campaign() const { return summary.campaigns.front(); }
  /// Its place among all jobs; -1: it was never submitted.
  [[nodiscard]] int job(const std::string& name) const {
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      if (spec.job_name(j) == name) return static_cast<int>(j);
    }
    return -1;
  }
  [[nodiscard]] double start(const std::string& name) const {
    return start_s(result, static_cast<std::size_t>(job(name)));
  }
};

RanCampaign run(const Json& scenario) {
  RanCampaign out;
  out.spec = read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  out.result = simulate_queue(out.spec);
  settle_campaigns(out.spec, out.result);
  out.summary = summary_of(out.spec, out.result);
  return out;
}

/// The draw by which trials of the first campaign are ranked: the lowest is the best.
double draw_of(std::uint64_t seed, int trial) {
  return RandomStream({.seed = seed,
                       .trajectory = 0,
                       .component = static_cast<std::uint32_t>(trial),
                       .purpose = 32})
      .uniform();
}

std::vector<std::size_t> trials_by_rung(const CampaignSummary& campaign) {
  std::vector<std::size_t> out;
  for (const RungSummary& rung : campaign.rungs) out.push_back(rung.trials);
  return out;
}

/// Jobs as one worker of Li et al. 2020, algorithm 2, takes them: the furthest rung first of which
/// somebody is among the best 1 / eta that have ended and did not go on yet, else a new trial.
std::vector<std::string> order_of_one_worker(std::uint64_t seed, int trials, int eta, int rungs) {
  std::vector<std::vector<std::pair<double, int>>> ended(static_cast<std::size_t>(rungs));
  std::vector<std::set<int>> went_on(static_cast<std::size_t>(rungs));
  std::vector<std::string> out;
  const auto promotable = [&](std::size_t rung) {
    auto ranked = ended[rung];
    std::ranges::sort(ranked);
    ranked.resize(ranked.size() / static_cast<std::size_t>(eta));
    for (const auto& [draw, trial] : ranked) {
      if (!went_on[rung].contains(trial)) return trial;
    }
    return -1;
  };
  int begun = 0;
  for (;;) {
    std::size_t rung = 0;
    int trial = -1;
    for (auto below = static_cast<std::size_t>(rungs) - 1; below-- > 0 && trial < 0;) {
      trial = promotable(below);
      rung = below + 1;
    }
    if (trial >= 0) {
      went_on[rung - 1].insert(trial);
      out.push_back(fmt::format("search_{}_r{}", trial, rung));
    } else {
      if (begun == trials) return out;
      rung = 0;
      trial = begun++;
      out.push_back(fmt::format("search_{}", trial));
    }
    ended[rung].emplace_back(draw_of(seed, trial), trial);
  }
}

}  // namespace

TEST_CASE("successive halving: each rung costs the same, where it begins anew") {
  Json campaign = campaign_of("successive_halving", 9);
  campaign["stopping"]["resume"] = false;
  for (const int nodes : {1, 4, 9}) {
    CAPTURE(nodes);
    const RanCampaign ran = run(queue_with(nodes, Json::array({campaign})));
    CHECK(trials_by_rung(ran.campaign()) == std::vector<std::size_t>{9, 3, 1});
    // 9 of 1 min, 3 of 3 min, 1 of 9 min, of 8 GPUs each.
    for (const RungSummary& rung : ran.campaign().rungs) {
      CHECK(rung.gpu_hours == doctest::Approx(9.0 * 8 / 60));
    }
    CHECK(ran.campaign().finished == 1);
    CHECK(ran.campaign().unstopped_gpu_hours == doctest::Approx(81.0 * 8 / 60));
    CHECK(*ran.campaign().saved_gpu_hours == doctest::Approx(54.0 * 8 / 60));
  }
}

TEST_CASE("successive halving: rungs one after another with nodes enough, all work with one node") {
  Json campaign = campaign_of("successive_halving", 9);
  // Resumed: 9 of 1 min, 3 of 2 min, 1 of 6 min.
  const RanCampaign wide = run(queue_with(9, Json::array({campaign})));
  CHECK(*wide.campaign().makespan_s == (1 + 2 + 6) * 60);
  CHECK(*wide.campaign().ideal_s == *wide.campaign().makespan_s);
  const RanCampaign narrow = run(queue_with(1, Json::array({campaign})));
  CHECK(*narrow.campaign().makespan_s == (9 + 6 + 6) * 60);
  CHECK(*narrow.campaign().ideal_s == *narrow.campaign().makespan_s);
  CHECK(narrow.campaign().gpu_hours == doctest::Approx(21.0 * 8 / 60));
  campaign["stopping"]["resume"] = false;
  CHECK(*run(queue_with(9, Json::array({campaign}))).campaign().makespan_s == (1 + 3 + 9) * 60);
  CHECK(*run(queue_with(1, Json::array({campaign}))).campaign().makespan_s == 3 * 9 * 60);
}

TEST_CASE("successive halving: the best of each rung go on, when the last of it has ended") {
  Json scenario = queue_with(2, Json::array({campaign_of("successive_halving", 9)}));
  for (const int seed : {1, 2, 3, 4, 5}) {
    scenario["queue"]["seed"] = seed;
    const RanCampaign ran = run(scenario);
    std::vector<std::pair<double, int>> ranked;
    for (int t = 0; t < 9; ++t) {
      ranked.emplace_back(draw_of(static_cast<std::uint64_t>(seed), t), t);
    }
    std::ranges::sort(ranked);
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      CAPTURE(i);
      CHECK((ran.job(fmt::format("search_{}_r1", ranked[i].second)) >= 0) == (i < 3));
      CHECK((ran.job(fmt::format("search_{}_r2", ranked[i].second)) >= 0) == (i < 1));
    }
    // 9 of 1 min on 2 nodes: the last one ends at 5 min.
    CHECK(ran.start(fmt::format("search_{}_r1", ranked[0].second)) >= 300);
    for (std::size_t j = 9; j < 12; ++j) CHECK(ran.spec.jobs[j].submit == test::seconds(300));
  }
}

TEST_CASE("asha: one worker takes the jobs of the published algorithm, in its order") {
  Json campaign = campaign_of("asha", 60);
  campaign["most_at_once"] = 1;
  campaign["stopping"]["least"] = 1.0 / 27;
  Json scenario = queue_with(4, Json::array({campaign}));
  for (const int seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(seed);
    scenario["queue"]["seed"] = seed;
    const RanCampaign ran = run(scenario);
    std::vector<std::pair<RunTime, std::string>> started;
    for (std::size_t j = 0; j < ran.spec.jobs.size(); ++j) {
      started.emplace_back(ran.result.jobs[j].start, ran.spec.job_name(j));
    }
    std::ranges::sort(started);
    std::vector<std::string> names;
    for (const auto& [at, name] : started) names.push_back(name);
    CHECK(names == order_of_one_worker(static_cast<std::uint64_t>(seed), 60, 3, 4));
    // One works all the time: nobody waits for a rung to be complete.
    double work_s = 0;
    for (const QueueJob& job : ran.spec.jobs) work_s += to_seconds(job.runs).base_units();
    CHECK(*ran.campaign().makespan_s == doctest::Approx(work_s).epsilon(1e-9));
  }
}

TEST_CASE("asha: who is among the best third goes on at once, and a third of each rung at least") {
  Json campaign = campaign_of("asha", 9);
  campaign["most_at_once"] = 1;
  const RanCampaign ran = run(queue_with(1, Json::array({campaign})));
  // The first third is of three, which have ended after 3 min.
  RunTime first = kNotSubmitted;
  for (std::size_t j = 0; j < ran.spec.jobs.size(); ++j) {
    if (ran.spec.place_of(j)->rung == 1) first = std::min(first, ran.result.jobs[j].start);
  }
  CHECK(first == test::seconds(180));
  const std::vector<RungSummary>& rungs = ran.campaign().rungs;
  for (std::size_t r = 0; r + 1 < rungs.size(); ++r) {
    CHECK(rungs[r].went_on >= rungs[r].trials / 3);
    CHECK(rungs[r].went_on == rungs[r + 1].trials);
  }
}

TEST_CASE("hyperband: the trials of its brackets, and each of them by halving") {
  CHECK(hyperband_most(1.0 / 81, 3) == 4);
  CHECK(hyperband_most(0.0123456790123, 3) == 4);
  CHECK(hyperband_most(0.0124, 3) == 3);
  // Li et al. 2018, algorithm 1, R = 81: ceil(5 / (s + 1) 3^s).
  CHECK(hyperband_trials(143, 3, 4) == std::vector<std::uint32_t>{81, 34, 15, 8, 5});
  CHECK(hyperband_trials(5, 3, 4) == std::vector<std::uint32_t>{1, 1, 1, 1, 1});
  const std::vector<std::uint32_t> many = hyperband_trials(1'000'000, 3, 4);
  CHECK(std::accumulate(many.begin(), many.end(), 0U) == 1'000'000);
  Json campaign = campaign_of("hyperband", 143);
  campaign["stopping"]["least"] = 1.0 / 81;
  const RanCampaign ran = run(queue_with(143, Json::array({campaign})));
  CHECK(trials_by_rung(ran.campaign()) == std::vector<std::size_t>{81, 27, 9, 3, 1,  //
                                                                   34, 11, 3, 1,     //
                                                                   15, 5, 1,         //
                                                                   8, 2,             //
                                                                   5});
  CHECK(ran.campaign().finished == 10);
  CHECK(*ran.campaign().makespan_s == doctest::Approx(540));
}

TEST_CASE("no stopping: an array of the same jobs, start by start") {
  const Json others = Json::parse(R"([
    {"job": {"name": "wide", "runs": "2 min", "gpus": 16, "submit": "4 min"}},
    {"job": {"name": "short", "runs": "1 min", "gpus": 8, "submit": "5 min"}}])");
  for (const char* order : {"fifo", "sjf", "srtf", "srsf", "priority"}) {
    for (const char* admission : {"strict", "best_effort", "easy", "conservative", "slurm"}) {
      for (const int at_once : {0, 2}) {
        CAPTURE(order);
        CAPTURE(admission);
        CAPTURE(at_once);
        Json campaign = campaign_of("none", 7);
        Json array{{"name", "search"}, {"tasks", 7}};
        array.update(campaign["job"]);
        if (at_once > 0) {
          campaign["most_at_once"] = at_once;
          array["at_once"] = at_once;
        }
        Json trials = queue_with(3, Json::array({campaign}));
        trials["queue"]["order"] = order;
        trials["queue"]["admission"] = admission;
        Json tasks = trials;
        tasks["queue"].erase("campaigns");
        trials["queue"]["jobs"] = others;
        tasks["queue"]["jobs"] = Json::array({{{"job", array}}});
        for (const Json& other : others) tasks["queue"]["jobs"].push_back(other);
        const RanCampaign of_trials = run(trials), of_tasks = run(tasks);
        REQUIRE(of_trials.spec.jobs.size() == of_tasks.spec.jobs.size());
        for (std::size_t j = 0; j < of_tasks.spec.jobs.size(); ++j) {
          CHECK(of_trials.spec.job_name(j) == of_tasks.spec.job_name(j));
          CHECK(of_trials.result.jobs[j].start == of_tasks.result.jobs[j].start);
          CHECK(of_trials.result.jobs[j].end == of_tasks.result.jobs[j].end);
        }
        CHECK(*of_trials.campaign().saved_gpu_hours == doctest::Approx(0).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("campaign: a trial that goes on is behind who was submitted before that") {
  Json campaign = campaign_of("successive_halving", 3);
  campaign["job"]["runs"] = "3 min";
  Json scenario = queue_with(1, Json::array({campaign}));
  scenario["queue"]["jobs"] = Json::parse(R"([
    {"job": {"name": "early", "runs": "5 min", "gpus": 8, "submit": "30 s"}},
    {"job": {"name": "late", "runs": "1 min", "gpus": 8, "submit": "4 min"}}])");
  const RanCampaign ran = run(scenario);
  // Three of 1 min; one goes on at 3 min, when `early` starts.
  CHECK(ran.start("early") == 180);
  CHECK(ran.result.jobs.size() == 6);
  CHECK(ran.start("late") == 480 + 120);
  CHECK(*ran.campaign().done_s == 600);
  CHECK(ran.campaign().wait_s->most == 300);
}

TEST_CASE("campaign: what depends on it begins when it is done") {
  for (const char* stopping : {"none", "successive_halving", "asha", "hyperband"}) {
    CAPTURE(stopping);
    Json scenario = queue_with(4, Json::array({campaign_of(stopping, 12)}));
    scenario["queue"]["jobs"] = Json::parse(R"([
      {"job": {"name": "final", "runs": "1 h", "gpus": 32, "dependency": "afterok:search"}}])");
    const RanCampaign ran = run(scenario);
    CHECK(ran.start("final") == *ran.campaign().done_s);
  }
}

TEST_CASE("campaign: trials that fail do not go on, and one that is not done has no makespan") {
  for (const char* stopping : {"successive_halving", "asha", "hyperband"}) {
    CAPTURE(stopping);
    Json campaign = campaign_of(stopping, 12);
    campaign["job"]["fails"] = true;
    const RanCampaign failed = run(queue_with(4, Json::array({campaign})));
    CHECK(failed.campaign().jobs == 12);
    CHECK(failed.summary.never_started == 0);
    CHECK(failed.campaign().done_s.has_value());
    Json scenario = queue_with(1, Json::array({campaign_of(stopping, 12)}));
    scenario["queue"]["until"] = "150 s";
    const RanCampaign cut = run(scenario);
    CHECK_FALSE(cut.campaign().done_s.has_value());
    CHECK_FALSE(cut.campaign().saved_gpu_hours.has_value());
    CHECK(cut.campaign().gpu_hours == doctest::Approx(150.0 * 8 / 3600));
  }
}

TEST_CASE(
    "campaign: all its trials end under every rule of a queue, and all time is accounted for") {
  struct Rules {
    const char *order, *admission, *mode;
  };
  for (const Rules& rules :
       {Rules{"fifo", "strict", "none"}, Rules{"sjf", "best_effort", "none"},
        Rules{"fifo", "easy", "none"}, Rules{"fifo", "conservative", "none"},
        Rules{"fifo", "slurm", "none"}, Rules{"srtf", "strict", "evict"},
        Rules{"srsf", "best_effort", "evict"}, Rules{"priority", "strict", "evict"},
        Rules{"srtf", "strict", "replan"}, Rules{"fifo", "strict", "replan"}}) {
    for (const char* stopping : {"successive_halving", "asha"}) {
      CAPTURE(rules.order);
      CAPTURE(rules.admission);
      CAPTURE(rules.mode);
      CAPTURE(stopping);
      Json scenario = queue_with(2, Json::array({campaign_of(stopping, 27)}));
      scenario["queue"]["order"] = rules.order;
      scenario["queue"]["admission"] = rules.admission;
      scenario["queue"]["preemption"] = {{"mode", rules.mode}};
      scenario["queue"]["jobs"] = Json::parse(R"([
        {"job": {"name": "other", "runs": "7 min", "gpus": 16, "submit": "3 min"}}])");
      const RanCampaign ran = run(scenario);
      CHECK(ran.summary.all.ended == ran.spec.jobs.size());
      GpuTime sum;
      for (const GpuTime& bucket : ran.result.books) sum += bucket;
      CHECK(sum == GpuTime(ran.spec.cluster.gpus(), ran.result.end));
      GpuTime work;
      for (const QueueJob& job : ran.spec.jobs) work += GpuTime(job.gpus, job.runs);
      CHECK(ran.result.books[0] == work);
    }
  }
}

TEST_CASE("campaign: jobs are numbered by their submission when it is settled") {
  const RanCampaign ran = run(queue_with(2, Json::array({campaign_of("asha", 27)})));
  CHECK(std::ranges::is_sorted(ran.spec.jobs, {}, &QueueJob::submit));
  CHECK(ran.spec.places.size() == ran.spec.jobs.size());
  CHECK(ran.campaign().jobs == ran.spec.jobs.size());
  std::map<std::uint32_t, RunTime> ended;  // of each trial: it is one job after another
  for (std::size_t j = 0; j < ran.spec.jobs.size(); ++j) {
    const TrialPlace& place = *ran.spec.place_of(j);
    if (place.rung > 0) CHECK(ran.spec.jobs[j].submit >= ended[place.trial]);
    ended[place.trial] = ran.result.jobs[j].end;
  }
}

TEST_CASE("campaign: one without a name is one line, at its place") {
  Json campaign = campaign_of("asha", 9);
  campaign["name"] = "";
  std::string told = "none";
  try {
    (void)run(queue_with(1, Json::array({campaign})));
  } catch (const InputError& error) {
    told = error.what();
  }
  CHECK(told == "t.json#/queue/campaigns/0/name: found \"\"; allowed: a name");
}

}  // namespace lockstep
