// Slurm's priorities, limits and preemption: numbers by hand, and what a real Slurm did.
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/cluster/association_tree.hpp"
#include "sim/cluster/job_priorities.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;
using test::seconds;
using test::start_s;

QueueSpec spec_from(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

/// A multifactor queue of listed jobs.
Json multifactor_queue(int nodes, const std::string& admission, const char* rules,
                       const char* jobs) {
  Json out{{"cluster", {{"node", "dgx_h100"}, {"nodes", nodes}}},
           {"queue", {{"order", "multifactor"}, {"admission", admission}}}};
  out["queue"].update(Json::parse(rules));
  out["queue"]["jobs"] = Json::array();
  for (const Json& job : Json::parse(jobs)) out["queue"]["jobs"].push_back({{"job", job}});
  return out;
}

/// A user with that many shares, who has used that much.
struct User {
  const char* account;
  const char* name;
  double shares, usage;
};

/// Factors of users of accounts below the root.
std::map<std::string, double> factors_of(
    const std::vector<std::pair<const char*, double>>& accounts, const std::vector<User>& users) {
  QueueSpec spec = test::empty_queue(1, 8);
  spec.order = QueueOrder::multifactor;
  for (const auto& [name, shares] : accounts) {
    Association of;
    of.name = name;
    of.shares = shares;
    of.number = *spec.accounts.number_of(name);
    spec.associations.push_back(of);
    const auto number = static_cast<std::int32_t>(spec.associations.size()) - 1;
    for (const User& user : users) {
      if (std::string(user.account) != name) continue;
      Association own;
      own.name = user.name;
      own.shares = user.shares;
      own.is_user = true;
      own.parent = number;
      own.number = *spec.users.number_of(user.name);
      spec.associations.push_back(own);
    }
  }
  const AssociationTree tree(spec);
  std::vector<double> usage(tree.nodes().size());
  for (std::size_t n = tree.nodes().size(); n-- > 1;) {
    for (const User& user : users) {
      if (tree.nodes()[n].is_user && tree.nodes()[n].name == user.name) usage[n] = user.usage;
    }
    usage[static_cast<std::size_t>(tree.nodes()[n].parent)] += usage[n];
  }
  const std::vector<double> factors = fair_tree_factors(tree, usage);
  std::map<std::string, double> out;
  for (std::size_t n = 0; n < factors.size(); ++n) {
    if (tree.nodes()[n].is_user) out[tree.nodes()[n].name] = factors[n];
  }
  return out;
}

}  // namespace

// Account a: 2 of 3 shares, 1/4 of the usage: LF 8/3. Account b: 1/3 over 3/4: 4/9. In a: u has 1/2
// over all, v 1/2 over nothing: infinity. In b: w 3/4 over 1/3, x 1/4 over 2/3. The administrator,
// who has used nothing, is before all.
TEST_CASE("fair tree: all of the account that is owed more come first, each by its own share") {
  const auto factors =
      factors_of({{"b", 1}, {"a", 2}},
                 {{"a", "u", 1, 10}, {"a", "v", 1, 0}, {"b", "w", 3, 10}, {"b", "x", 1, 20}});
  CHECK(factors.at("root") == 1);
  CHECK(factors.at("v") == 0.8);
  CHECK(factors.at("u") == 0.6);
  CHECK(factors.at("w") == 0.4);
  CHECK(factors.at("x") == 0.2);
}

TEST_CASE("fair tree: equals share a place, no shares come last, tied accounts are not merged") {
  const auto equal = factors_of({{"a", 1}}, {{"a", "u", 1, 5}, {"a", "v", 1, 5}, {"a", "w", 0, 0}});
  CHECK(equal.at("u") == 0.75);
  CHECK(equal.at("v") == 0.75);
  CHECK(equal.at("w") == 0.25);
  // Both accounts have used nothing: the first user of the second inherits the tie, the next not.
  const auto tied =
      factors_of({{"a", 1}, {"b", 1}}, {{"a", "u", 1, 0}, {"b", "v", 2, 0}, {"b", "w", 0, 0}});
  CHECK(tied.at("u") == 1);
  CHECK(tied.at("v") == 1);
  CHECK(tied.at("w") == 0.25);
}

TEST_CASE("classic fair share: 2^(-U/S), drawn towards the account's usage") {
  QueueSpec spec = test::empty_queue(1, 8);
  spec.order = QueueOrder::multifactor;
  for (const char* const user : {"u", "v"}) {
    QueueJob job;
    job.account = *spec.accounts.number_of("a");
    job.user = *spec.users.number_of(user);
    spec.jobs.push_back(job);
  }
  const AssociationTree tree(spec);
  const std::vector<double> usage{8, 0, 8, 6, 2};  // root, its user, a, u, v
  const std::vector<double> factors = classic_fair_share_factors(tree, usage, 1);
  // U = 3/4 + (1 - 3/4) / 2 over S = 1/2 of 1/2, for the administrator has a share.
  CHECK(factors[3] == doctest::Approx(std::exp2(-(0.75 + 0.125) / 0.25)));
  CHECK(factors[4] == doctest::Approx(std::exp2(-(0.25 + 0.375) / 0.25)));
}

TEST_CASE("multifactor: every factor by its weight, cut to a whole number") {
  const QueueSpec spec = spec_from(
      multifactor_queue(4, "strict", R"({
    "priority": {"age": 1000, "max_age": "100 s", "job_size": 400, "partition": 30, "qos": 70,
                 "gpu": 160, "node": 8},
    "qos": [{"name": "low", "priority": 5}, {"name": "high", "priority": 20}],
    "partitions": [{"name": "p", "nodes": 2, "priority": 3},
                   {"name": "q", "nodes": 2, "priority": 4}]
  })",
                        R"([{"name": "j", "runs": "9 s", "gpus": 12, "qos": "low", "partition": "p",
           "priority": -7}])"));
  const AssociationTree tree(spec);
  JobPriorities priorities(spec, tree);
  priorities.set_eligible(0, seconds(10));
  // Age 25/100; size (2/4 + 12/32) / 2; partition 3/4; qos 5/20; 12 of 16 GPUs; 2 of 2 nodes; -7.
  const double sum = 250 + 400 * 0.4375 + 30 * 0.75 + 70 * 0.25 + 160 * 0.75 + 8 - 7;
  CHECK(priorities.priority_of(0, seconds(35)) == std::floor(sum));
  CHECK(priorities.priority_of(0, seconds(1e6)) == std::floor(sum + 750));
}

TEST_CASE("multifactor: usage halves in a half-life, and a user who has used less comes first") {
  const QueueSpec spec = spec_from(multifactor_queue(1, "strict", R"({
    "priority": {"fair_share": 1000, "half_life": "1000 s", "calc_period": "10 s"}})",
                                                     R"([
    {"name": "a", "user": "u", "account": "x", "runs": "100 s", "gpus": 8},
    {"name": "b", "user": "u", "account": "x", "runs": "10 s", "gpus": 8, "submit": "1 s"},
    {"name": "c", "user": "v", "account": "x", "runs": "10 s", "gpus": 8, "submit": "2 s"}])"));
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 2) == 100);
  CHECK(start_s(result, 1) == 110);

  const AssociationTree tree(spec);
  JobPriorities priorities(spec, tree);
  priorities.count(0, 0, seconds(10));
  priorities.reckon(seconds(10));
  const double decay = 1 - 0.693 / 1000;
  const double used = 8 * 10 * std::pow(decay, 10);
  CHECK(priorities.usage(0) == doctest::Approx(used));
  priorities.reckon(seconds(1010));
  CHECK(priorities.usage(0) == doctest::Approx(used / 2).epsilon(0.001));
}

TEST_CASE("limits: a job over one waits and stops nobody, and what never fits never starts") {
  const QueueSpec spec = spec_from(multifactor_queue(2, "strict", R"({
    "qos": [{"name": "wide", "limits": {"grp_tres": "gres/gpu=8"}},
            {"name": "few", "limits": {"max_jobs_per_user": 1, "max_wall": "20 s"}}],
    "accounts": [{"name": "a", "limits": {"grp_jobs": 1, "max_submit_jobs": 2}}]})",
                                                     R"([
    {"name": "w1", "runs": "10 s", "gpus": 6, "qos": "wide"},
    {"name": "w2", "runs": "10 s", "gpus": 4, "qos": "wide"},
    {"name": "f1", "runs": "5 s", "user": "u", "qos": "few"},
    {"name": "f2", "runs": "5 s", "user": "u", "qos": "few"},
    {"name": "f3", "runs": "5 s", "user": "v", "qos": "few"},
    {"name": "long", "runs": "30 s", "user": "w", "qos": "few"},
    {"name": "a1", "runs": "7 s", "account": "a", "user": "x"},
    {"name": "a2", "runs": "7 s", "account": "a", "user": "x"},
    {"name": "a3", "runs": "7 s", "account": "a", "user": "x"}])"));
  const QueueResult result = simulate_queue(spec);
  const std::vector<double> expected{0, 10, 0, 5, 0, -1, 0, 7, -1};
  for (std::size_t j = 0; j < expected.size(); ++j) {
    CAPTURE(j);
    CHECK((result.jobs[j].start < 0 ? -1 : start_s(result, j)) == expected[j]);
  }
  CHECK(result.jobs[8].cancelled == 0);  // refused: two of its user's are there
  CHECK(result.jobs[5].cancelled < 0);   // it waits for ever
  const auto waits = simulate_queue(spec, {.watch = 1}).waits;
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].reason == WaitReason::limit);
}

TEST_CASE("limits: GPU time that was used decays until a job may have its own") {
  const QueueSpec spec = spec_from(multifactor_queue(1, "best_effort", R"({
    "priority": {"half_life": "1000 s", "calc_period": "10 s"},
    "accounts": [{"name": "a", "limits": {"grp_tres_mins": "gres/gpu=20"}}]})",
                                                     R"([
    {"name": "first", "runs": "100 s", "gpus": 8, "account": "a"},
    {"name": "second", "runs": "75 s", "gpus": 8, "account": "a"},
    {"name": "too_much", "runs": "200 s", "gpus": 8, "account": "a"}])"));
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 0) == 0);
  // 800 GPU s used, 1200 allowed, 600 asked for: 600 left after half_life x log2(4/3) or so.
  CHECK(start_s(result, 1) > 450);
  CHECK(start_s(result, 1) < 520);
  CHECK(result.jobs[2].start < 0);
}

TEST_CASE("preemption: the lowest quality and then the fewest nodes go, requeued or cancelled") {
  const char* const jobs = R"([
    {"name": "l16", "runs": "100 s", "gpus": 16, "qos": "low"},
    {"name": "l8", "runs": "100 s", "gpus": 8, "qos": "low"},
    {"name": "m8", "runs": "100 s", "gpus": 8, "qos": "mid"},
    {"name": "h8", "runs": "10 s", "gpus": 8, "qos": "high", "submit": "20 s"},
    {"name": "h16", "runs": "10 s", "gpus": 16, "qos": "high", "submit": "50 s"}])";
  const char* const rules = R"({"preemption": {"mode": "qos"}, "priority": {"qos": 1000},
    "qos": [{"name": "low", "priority": 1}, {"name": "mid", "priority": 10},
            {"name": "high", "priority": 100, "preempts": ["low", "mid"]}]})";
  const QueueResult requeued =
      simulate_queue(spec_from(multifactor_queue(4, "best_effort", rules, jobs)));
  CHECK(start_s(requeued, 3) == 20);
  CHECK(requeued.jobs[1].evictions == 1);  // l8, which is smaller than l16
  CHECK(requeued.jobs[0].evictions == 1);  // for h16, though l8 runs again
  CHECK(requeued.jobs[2].evictions == 0);

  Json scenario = multifactor_queue(4, "best_effort", rules, jobs);
  scenario["queue"]["preemption"]["cancels"] = true;
  const QueueResult cancelled = simulate_queue(spec_from(scenario));
  CHECK(cancelled.jobs[1].cancelled == seconds(20));
  CHECK(cancelled.jobs[1].end < 0);

  scenario["queue"]["preemption"] = {{"mode", "qos"}, {"exempt", "60 s"}};
  const QueueResult exempt = simulate_queue(spec_from(scenario));
  CHECK(exempt.jobs[1].evictions == 0);
  CHECK(start_s(exempt, 3) == 100);

  scenario["queue"]["preemption"] = {{"mode", "qos"}};
  scenario["queue"]["qos"][0]["grace"] = "7 s";
  CHECK(start_s(simulate_queue(spec_from(scenario)), 3) == 27);
}

TEST_CASE("preemption: by the tiers of partitions that share nodes") {
  const QueueSpec spec = spec_from(
      multifactor_queue(2, "best_effort", R"({
    "preemption": {"mode": "partition"},
    "partitions": [{"name": "spare", "hosts": "n[1-2]"},
                   {"name": "prime", "hosts": "n2", "tier": 5}]
  })",
                        R"([{"name": "a", "runs": "100 s", "gpus": 8, "partition": "spare"},
           {"name": "b", "runs": "100 s", "gpus": 8, "partition": "spare"},
           {"name": "c", "runs": "10 s", "gpus": 8, "partition": "prime", "submit": "5 s"}])"));
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 2) == 5);
  CHECK(result.jobs[0].evictions == 0);
  CHECK(result.jobs[1].evictions == 1);  // it is the one on the second node
}

namespace {

/// A queue in which everything happens at once; `draw` says how, and is used up.
QueueSpec crowded_queue(RandomStream& draw, QueueAdmission admission) {
  const auto up_to = [&](int most) { return static_cast<int>(draw.uniform() * (most + 1)); };
  QueueSpec spec = test::empty_queue(6, 8);
  spec.order = QueueOrder::multifactor;
  spec.admission = admission;
  spec.priorities = {.age = 100, .fair_share = 1000, .job_size = 50, .qos = 500};
  spec.priorities.half_life = seconds(500);
  spec.priorities.calc_period = seconds(20);
  const bool preempts =
      admission == QueueAdmission::slurm || admission == QueueAdmission::best_effort;
  if (preempts) spec.preemption.mode = PreemptionMode::qos;
  spec.preemption.checkpoint = seconds(30);
  spec.slurm.requeue_delay = seconds(up_to(50));
  spec.placement = {.across = AcrossNodes::packed, .leaf_nodes = 3};
  spec.qos.resize(3);
  spec.qos[1].limits.grp_tres.gpus = 24;
  spec.qos[1].limits.jobs_per_user = 2;
  spec.qos[2].preempts = {1};
  spec.qos[1].grace = seconds(up_to(1) * 15);
  spec.qos[1].cancels = up_to(3) == 0;
  spec.reservations = {{.name = "r", .start = seconds(100), .end = seconds(300), .nodes = {0, 1}},
                       {.name = "s", .start = seconds(250), .end = seconds(400), .nodes = {3}}};
  spec.breaks = {{.node = 2, .at = seconds(150), .repair = seconds(100)}};
  spec.arrays = {{.name = "a", .most_running = 3}};
  spec.terms.resize(60);
  RunTime submit = 0;
  for (std::uint32_t j = 0; j < 60; ++j) {
    QueueJob job;
    job.submit = submit += seconds(up_to(12));
    job.runs = seconds(1 + up_to(90));
    job.limit = job.runs + seconds(up_to(60));
    job.gpus = up_to(3) == 0 ? 8 * (1 + up_to(1)) : 1 + up_to(7);
    job.user = *spec.users.number_of(std::string("u") + std::to_string(up_to(2)));
    job.account = *spec.accounts.number_of(std::string("a") + std::to_string(up_to(1)));
    job.qos = static_cast<std::uint16_t>(up_to(2));
    JobTerms& terms = spec.terms[j];
    if (up_to(3) == 0) terms.array = 0;
    if (j > 0 && up_to(4) == 0) {
      terms.dependencies = {{.kind = static_cast<DependencyKind>(up_to(3)),
                             .on = static_cast<std::uint32_t>(up_to(static_cast<int>(j) - 1))}};
    }
    if (up_to(9) == 0) terms.reservation = 1;
    if (up_to(9) == 0) terms.begin = job.submit + seconds(40);
    terms.fails = up_to(5) == 0;
    spec.jobs.push_back(job);
  }
  return spec;
}

}  // namespace

TEST_CASE("rules together: GPU time adds up, and so do the reasons of each wait") {
  for (std::uint32_t number = 0; number < 40; ++number) {
    RandomStream draw({.seed = 7, .trajectory = number, .component = 0, .purpose = 99});
    const auto admission = static_cast<QueueAdmission>(number % 5);
    CAPTURE(number);
    const QueueSpec spec = crowded_queue(draw, admission);
    const QueueResult result = simulate_queue(spec, {.keep_spans = true});
    GpuTime sum, held;
    for (const GpuTime& of : result.books) sum += of;
    CHECK(sum == GpuTime(48, result.end));
    for (const JobSpan& span : result.spans) {
      int gpus = 0;
      for (const HeldGpus& of : span.held) gpus += of.gpus;
      CHECK(gpus == spec.jobs[span.job].gpus);
      held += GpuTime(gpus, span.end - span.begin);
    }
    CHECK(held == result.held);
    for (const std::uint32_t j : {number, 59 - number}) {
      CAPTURE(j);
      const QueueResult watched = simulate_queue(spec, {.watch = j});
      RunTime waited = 0;
      for (const WaitSpan& span : watched.waits) waited += span.end - span.begin;
      CHECK(waited == watched.jobs[j].waited);
      CHECK(watched.jobs[j].end == result.jobs[j].end);
      if (result.jobs[j].end >= 0) CHECK(result.jobs[j].start >= spec.jobs[j].submit);
    }
  }
}

}  // namespace lockstep
