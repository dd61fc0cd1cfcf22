// Who is preempted for whom in trees of cohorts and under fair sharing, as Kueue's own tests expect
// it; turns by shares; quotas of trees by hand.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/text_file.hpp"
#include "sim/cluster/cluster_queue_pass.hpp"
#include "sim/cluster/cohort_victims.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using FairWithin = WithinClusterQueue;
using FairReclaim = ReclaimWithinCohort;
constexpr FairStrategy kFinal = FairStrategy::less_than_or_equal_to_final_share;
constexpr FairStrategy kInitial = FairStrategy::less_than_initial_share;

struct FairJob {
  std::string name, queue;
  int gpus;
  int priority = 0;
};
struct FairCase {
  std::string what;
  std::vector<ClusterQueue> queues;
  std::vector<QueueCohort> cohorts;
  std::vector<FairJob> admitted;
  FairJob in;
  std::vector<std::string> victims;
  std::vector<FairStrategy> strategies{kFinal, kInitial};
};

/// Jobs of one GPU, "a1", "a2" ..., in the order in which they go.
std::vector<FairJob> units(const std::string& queue, int count, int gpus = 1) {
  std::vector<FairJob> out;
  for (int j = 1; j <= count; ++j) out.push_back({queue + std::to_string(j), queue, gpus});
  return out;
}
std::vector<FairJob> all_of(std::vector<std::vector<FairJob>> lists) {
  std::vector<FairJob> out;
  for (const auto& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

/// Three queues of `each` in a cohort, and one without a quota.
std::vector<ClusterQueue> three_and_none(int each) {
  std::vector<ClusterQueue> out;
  for (const char* const name : {"a", "b", "c"}) {
    out.push_back({.name = name,
                   .cohort = "all",
                   .nominal = each,
                   .within = FairWithin::lower_priority,
                   .reclaim = FairReclaim::any,
                   .borrow_within_cohort = true,
                   .max_priority_threshold = -3});
  }
  out.push_back({.name = "none", .cohort = "all"});
  return out;
}

ClusterQueue reclaiming(const char* name, const char* cohort, int nominal, double weight = 1) {
  return {.name = name,
          .cohort = cohort,
          .nominal = nominal,
          .reclaim = FairReclaim::any,
          .weight = weight};
}

std::vector<ClusterQueue> weighted(double a, double b) {
  std::vector<ClusterQueue> out = three_and_none(3);
  out.pop_back();
  for (ClusterQueue& queue : out) queue.borrow_within_cohort = false;
  out[0].weight = a;
  out[1].weight = b;
  return out;
}

/// Jobs of one GPU with priorities 1, 2, ...
std::vector<FairJob> rising(const std::string& queue, int count) {
  std::vector<FairJob> out = units(queue, count);
  for (int j = 0; j < count; ++j) out[static_cast<std::size_t>(j)].priority = j + 1;
  return out;
}

// Source: Kueue (Apache 2.0), pkg/scheduler/preemption/preemption_fair_test.go,
// TestFairPreemptions: its cases of one flavor; quantities of halves are doubled.
std::vector<FairCase> fair_cases() {
  const auto base = three_and_none(3), twice = three_and_none(6);
  const auto a_weighs_ten = [](FairReclaim reclaim) {
    ClusterQueue a = reclaiming("a", "ROOT", 5, 10);
    a.reclaim = reclaim;
    a.within = FairWithin::lower_priority;
    return std::vector<ClusterQueue>{a, {.name = "b", .cohort = "RIGHT", .weight = 0.1}};
  };
  const auto low = [](std::vector<FairJob> jobs) {
    for (FairJob& job : jobs) job.priority = -1;
    return jobs;
  };
  return {
      {"from whoever uses most",
       base,
       {},
       all_of({units("a", 3), units("b", 5), units("c", 1)}),
       {"in", "c", 1},
       {"b1"}},
      {"from a queue that uses less, where the first job of the other is not enough",
       base,
       {},
       {{"a1", "a", 3}, {"a2", "a", 1}, {"b1", "b", 2}, {"b2", "b", 3}},
       {"in", "c", 3},
       {"a1"}},
      {"what is lent, from whoever uses most",
       base,
       {},
       all_of({units("a", 3), units("b", 5), units("c", 1)}),
       {"in", "a", 1},
       {"b1"}},
      {"one from each that borrows",
       twice,
       {},
       {{"a1", "a", 1},
        {"a2", "a", 1},
        {"a3", "a", 6},
        {"b1", "b", 1},
        {"b2", "b", 1},
        {"b3", "b", 6}},
       {"in", "c", 4},
       {"a1", "b1"}},
      {"nobody borrows",
       base,
       {},
       all_of({units("a", 3), units("b", 3), units("c", 3)}),
       {"in", "c", 1},
       {}},
      {"it would turn the imbalance around",
       base,
       {},
       all_of({units("a", 3), units("b", 5)}),
       {"in", "a", 2},
       {}},
      {"lower ones of its own",
       base,
       {},
       all_of({low(units("a", 2)), {{"a3", "a", 1}, {"a4", "a", 1}}, units("b", 5)}),
       {"in", "a", 2},
       {"a1", "a2"}},
      {"of its own and of whoever uses most",
       base,
       {},
       all_of({low(units("a", 1)), {{"a2", "a", 1}, {"a3", "a", 1}}, units("b", 6)}),
       {"in", "a", 2},
       {"a1", "b1"}},
      {"a huge one, where there is no other", base, {}, {{"b1", "b", 9}}, {"in", "a", 2}, {"b1"}},
      {"not a huge one for a huge one",
       base,
       {},
       {{"a1", "a", 2}, {"b1", "b", 7}},
       {"in", "a", 5},
       {}},
      {"not smaller ones for a huge one",
       base,
       {},
       {{"b1", "b", 2}, {"b2", "b", 2}, {"b3", "b", 3}},
       {"in", "a", 6},
       {}},
      {"of its own and others, above its quota",
       base,
       {},
       {{"a1", "a", 2, -1}, {"a2", "a", 1, -1}, {"b1", "b", 3}, {"b2", "b", 3}},
       {"in", "a", 4},
       {"a1", "b1"}},
      {"one that does not leave it with the highest share",
       twice,
       {},
       {{"b1", "b", 4}, {"b2", "b", 2}, {"b3", "b", 4}, {"c1", "c", 2}},
       {"in", "a", 7},
       {"b2"}},
      {"from different queues, if the highest share is then smaller",
       twice,
       {},
       {{"b1", "b", 4}, {"b2", "b", 5}, {"c1", "c", 4}, {"c2", "c", 5}},
       {"in", "a", 7},
       {"b1", "c1"}},
      {"and not back again",
       twice,
       {},
       {{"a1", "a", 7}, {"b2", "b", 5}, {"c2", "c", 5}},
       {"in", "b", 4},
       {}},
      {"none that brings its queue below its quota",
       base,
       {},
       {{"b1", "b", 3}, {"b2", "b", 3}, {"c1", "c", 3}},
       {"in", "a", 4},
       {}},
      {"not for a low priority alone",
       base,
       {},
       all_of({units("a", 3),
               units("b", 3),
               {{"n1", "none", 1, -3}, {"n2", "none", 1, -3}, {"n3", "none", 1, -3}}}),
       {"in", "a", 2},
       {}},
      {"by the initial share: a low one, even a big one",
       base,
       {},
       {{"a1", "a", 3}, {"low", "b", 5}, {"high", "b", 1, 1}},
       {"in", "a", 1},
       {"low"},
       {kInitial}},
      {"by the final share: what moves no imbalance, even a high one",
       base,
       {},
       {{"a1", "a", 3}, {"low", "b", 5}, {"high", "b", 1, 1}},
       {"in", "a", 1},
       {"high"},
       {kFinal}},
      {"a higher weight takes more",
       weighted(2, 1),
       {},
       all_of({units("a", 3), units("b", 6)}),
       {"in", "a", 2},
       {"b1", "b2"}},
      {"anything from a queue of weight 0 that borrows",
       weighted(1, 0),
       {},
       all_of({units("a", 3), units("b", 6)}),
       {"in", "a", 3},
       {"b1", "b2", "b3"}},
      {"nothing of its quota from one of weight 0",
       {weighted(1, 0)[0], weighted(1, 0)[1]},
       {},
       all_of({units("a", 3), units("b", 3)}),
       {"in", "a", 1},
       {}},
      {"nothing of a cohort's quota, whatever its weight",
       {reclaiming("l", "root", 0), reclaiming("r", "right", 0, 0)},
       {{.name = "right", .parent = "root", .nominal = 1, .weight = 0}},
       {{"r1", "r", 1}},
       {"in", "l", 1},
       {}},
      {"of its own, without a cohort",
       {{.name = "a", .nominal = 1, .within = FairWithin::lower_priority}},
       {},
       {{"a1", "a", 1}},
       {"in", "a", 1, 1000},
       {"a1"}},
      {"in a tree",
       {reclaiming("a", "LEFT", 1, 2),
        {.name = "b", .cohort = "LEFT", .nominal = 1},
        {.name = "c", .cohort = "ROOT", .nominal = 1},
        {.name = "d", .cohort = "RIGHT", .nominal = 1},
        {.name = "e", .cohort = "RIGHT", .nominal = 1, .weight = 0.99}},
       {{.name = "ROOT", .nominal = 5},
        {.name = "LEFT", .parent = "ROOT", .nominal = 5, .weight = 2},
        {.name = "RIGHT", .parent = "ROOT", .nominal = 5}},
       all_of({rising("b", 5), rising("c", 5), rising("d", 5), rising("e", 5)}),
       {"in", "a", 5},
       {"b1", "b2", "c1", "c2", "e1"}},
      {"a queue that borrows in a cohort that does not is safe",
       a_weighs_ten(FairReclaim::any),
       {{.name = "ROOT"}, {.name = "RIGHT", .parent = "ROOT", .nominal = 1, .weight = 0.1}},
       low(all_of({units("a", 3), units("b", 1)})),
       {"in", "a", 5},
       {"a1", "a2", "a3"}},
      {"of its own, as the other is too important",
       a_weighs_ten(FairReclaim::lower_priority),
       {{.name = "ROOT"}, {.name = "RIGHT", .parent = "ROOT", .nominal = 3, .weight = 0.1}},
       all_of({low(units("a", 3)), {{"b1", "b", 4, 100}}}),
       {"in", "a", 4},
       {"a1", "a2", "a3"}},
      {"deep in a tree",
       {reclaiming("a", "AA", 0), {.name = "b", .cohort = "BB"}},
       {{.name = "A", .parent = "ROOT", .weight = 1.01},
        {.name = "AA", .parent = "A"},
        {.name = "B", .parent = "ROOT", .weight = 0.99},
        {.name = "BB", .parent = "B"},
        {.name = "C", .parent = "ROOT"},
        {.name = "CC", .parent = "C", .nominal = 1}},
       {{"b1", "b", 1}},
       {"in", "a", 1},
       {"b1"}},
      {"a queue of weight 0 takes its quota back",
       {reclaiming("a", "ROOT", 1, 0), {.name = "b", .cohort = "ROOT"}},
       {},
       {{"b1", "b", 1}},
       {"in", "a", 1},
       {"b1"}},
      {"a cohort of weight 0 takes its quota back",
       {reclaiming("a", "A", 0, 0), {.name = "b", .cohort = "ROOT"}},
       {{.name = "A", .parent = "ROOT", .nominal = 1, .weight = 0}},
       {{"b1", "b", 1}},
       {"in", "a", 1},
       {"b1"}},
  };
}

ClusterQueue in_tree(const char* name, const char* cohort, int nominal = 0) {
  return {.name = name,
          .cohort = cohort,
          .nominal = nominal,
          .within = FairWithin::lower_priority,
          .reclaim = FairReclaim::any};
}

// Source: the same, preemption_hierarchical_test.go, TestHierarchicalPreemptions: its first cases,
// and others that follow from its rules.
std::vector<FairCase> tree_cases() {
  const std::vector<QueueCohort> two{{.name = "c", .parent = "r", .nominal = 2}};
  ClusterQueue borrows = in_tree("q", "c");
  borrows.borrow_within_cohort = true;
  borrows.max_priority_threshold = 0;
  ClusterQueue cautious = in_tree("q", "c");
  cautious.reclaim = FairReclaim::lower_priority;
  return {
      {"a cohort takes its quota back",
       {in_tree("q", "c"), in_tree("other", "r")},
       two,
       {{"x", "other", 2}},
       {"in", "q", 2},
       {"x"},
       {}},
      {"not from a queue within its quota",
       {in_tree("nominal", "r", 2), in_tree("q", "c"), in_tree("other", "r")},
       two,
       {{"kept", "nominal", 2, -10}, {"x", "other", 2}},
       {"in", "q", 2},
       {"x"},
       {}},
      {"several, whatever their priorities",
       {in_tree("q", "c"), in_tree("other", "r")},
       two,
       {{"x", "other", 1, 1}, {"y", "other", 1, 2}},
       {"in", "q", 2},
       {"x", "y"},
       {}},
      {"of its cohort below the threshold, and of its own",
       {borrows, in_tree("same", "c")},
       {{.name = "c", .parent = "r", .nominal = 3}},
       {{"kept", "same", 1, 1}, {"x", "same", 1, 0}, {"own", "q", 1, -1}},
       {"in", "q", 2, 1},
       {"x", "own"},
       {}},
      {"only lower ones where its queue says so",
       {cautious, in_tree("other", "r")},
       two,
       {{"x", "other", 1, 5}, {"y", "other", 1, 5}},
       {"in", "q", 2, 5},
       {},
       {}},
      {"not from within a cohort that does not borrow",
       {in_tree("q", "c"), in_tree("p", "d"), in_tree("other", "r")},
       {{.name = "c", .parent = "r", .nominal = 2}, {.name = "d", .parent = "r", .nominal = 2}},
       {{"kept", "p", 2, -5}, {"x", "other", 2, 7}},
       {"in", "q", 2},
       {"x"},
       {}},
      {"more than its cohort has takes nothing back",
       {in_tree("q", "c"), in_tree("other", "r")},
       {{.name = "c", .parent = "r", .nominal = 2}, {.name = "r", .nominal = 2}},
       {{"x", "other", 4, -5}},
       {"in", "q", 3},
       {},
       {}},
  };
}

QueueSpec fair_spec_of(const FairCase& of, std::vector<FairJob>& jobs) {
  QueueSpec spec = test::empty_queue(60, 1);
  spec.order = QueueOrder::priority;
  spec.admission = QueueAdmission::kueue;
  spec.preemption.mode = PreemptionMode::kueue;
  spec.cluster_queues = of.queues;
  spec.cohorts = of.cohorts;
  spec.fair_sharing = of.strategies;
  for (ClusterQueue& queue : spec.cluster_queues) {
    queue.accounts = {*spec.accounts.number_of(queue.name)};
  }
  // Whoever started last goes first: they start from the last on.
  jobs.assign(of.admitted.rbegin(), of.admitted.rend());
  jobs.push_back(of.in);
  for (const FairJob& from : jobs) {
    QueueJob job;
    job.runs = job.limit = test::seconds(1000);
    job.gpus = from.gpus;
    job.priority = from.priority;
    job.account = *spec.accounts.number_of(from.queue);
    spec.jobs.push_back(job);
  }
  return spec;
}

std::vector<std::string> victims_of(const FairCase& of) {
  std::vector<FairJob> jobs;
  const QueueSpec spec = fair_spec_of(of, jobs);
  QueueState state(spec, false);
  const auto in = static_cast<std::uint32_t>(jobs.size() - 1);
  for (std::uint32_t j = 0; j <= in; ++j) state.submit(j);
  for (std::uint32_t j = 0; j < in; ++j) {
    state.advance(test::seconds(j + 1));
    state.start(j, state.placer().place(state.free(), jobs[j].gpus).value());
  }
  CohortVictims search(state, in, state.cohorts());
  std::vector<std::string> out;
  for (const std::uint32_t victim : search.find({})) out.push_back(jobs[victim].name);
  std::ranges::sort(out);
  return out;
}

QueueSpec tree_of(std::vector<ClusterQueue> queues, std::vector<QueueCohort> cohorts) {
  QueueSpec spec = test::empty_queue(60, 1);
  for (ClusterQueue& queue : queues) queue.accounts = {*spec.accounts.number_of(queue.name)};
  spec.cluster_queues = std::move(queues);
  spec.cohorts = std::move(cohorts);
  return spec;
}

}  // namespace

TEST_CASE("kueue fair sharing: victims are those that Kueue's own tests expect") {
  for (const FairCase& of : fair_cases()) {
    CAPTURE(of.what);
    std::vector<std::string> expected = of.victims;
    std::ranges::sort(expected);
    CHECK(victims_of(of) == expected);
  }
}

TEST_CASE("kueue cohort trees: victims are those that Kueue's own tests expect") {
  for (const FairCase& of : tree_cases()) {
    CAPTURE(of.what);
    std::vector<std::string> expected = of.victims;
    std::ranges::sort(expected);
    CHECK(victims_of(of) == expected);
  }
}

TEST_CASE("kueue cohort trees: quotas, limits and shares by hand") {
  // root(4): left(2, borrows 3, lends 1): a(3); right: b(1), c(2, lends 0)
  const QueueSpec spec =
      tree_of({{.name = "a", .cohort = "left", .nominal = 3},
               {.name = "b", .cohort = "right", .nominal = 1},
               {.name = "c", .cohort = "right", .nominal = 2, .lending_limit = 0}},
              {{.name = "root", .nominal = 4},
               {.name = "left",
                .parent = "root",
                .nominal = 2,
                .borrowing_limit = 3,
                .lending_limit = 1,
                .weight = 2},
               {.name = "right", .parent = "root"}});
  CohortQuotas quotas(spec);
  const std::size_t left = quotas.parent_of(0), right = quotas.parent_of(1);
  CHECK(quotas.same_cohort(0, 2));
  CHECK(quotas.root_of(1) == quotas.parent_of(left));
  // The root has 4, 1 of left's 5, and b's 1: 6. Left has 4 for itself and may take 1 + 3 more.
  CHECK(quotas.most(0) == 8);
  CHECK(quotas.available(0) == 8);
  CHECK(quotas.most(1) == 6);
  CHECK(quotas.available(2) == 8);
  CHECK(quotas.reach_of(0, 3).height == 0);
  CHECK(quotas.reach_of(0, 5).height == 1);
  CHECK(quotas.reach_of(0, 5).below_root);
  CHECK(quotas.reach_of(0, 6).height == 2);
  CHECK_FALSE(quotas.reach_of(0, 6).below_root);
  quotas.add(0, 7);  // left borrows 2 of the root's 6 to lend, at weight 2
  CHECK(quotas.available(0) == 1);
  CHECK(quotas.available(1) == 3);
  CHECK(quotas.share_of(left).ratio == doctest::Approx(1000.0 * 2 / 6 / 2));
  CHECK(quotas.share_of(0).ratio == doctest::Approx(1000.0 * 4 / 8));
  CHECK(quotas.share_of(right) == FairShare{});
  CHECK(quotas.share_of(quotas.root_of(0)) == FairShare{});
  quotas.add(1, 3);
  CHECK(quotas.available(0) == 0);
  CHECK(quotas.available(2) == 2);  // what it does not lend
  quotas.add(0, -7);
  quotas.add(1, -3);
  CHECK(quotas.available(0) == 8);
}

TEST_CASE("kueue fair sharing: the turn is whose share is least, by weight") {
  // a and b share c's 13, with jobs of one GPU; b's were submitted first. In each cycle both have a
  // turn, so that 12 go in halves; the last goes to whose share is then least, of equals to b.
  for (const double weight : {0.5, 1.0, 2.0}) {
    CAPTURE(weight);
    QueueSpec spec = tree_of({{.name = "a", .cohort = "all", .weight = weight},
                              {.name = "b", .cohort = "all"},
                              {.name = "c", .cohort = "all", .nominal = 13}},
                             {});
    spec.order = QueueOrder::priority;
    spec.admission = QueueAdmission::kueue;
    spec.fair_sharing = {kFinal, kInitial};
    for (int j = 0; j < 24; ++j) {
      QueueJob job;
      job.runs = job.limit = test::seconds(100);
      job.account = spec.cluster_queues[j < 12 ? 1 : 0].accounts[0];
      spec.jobs.push_back(job);
    }
    const auto of_a = [&] {
      const QueueResult result = simulate_queue(spec, {});
      int out = 0;
      for (std::size_t j = 12; j < 24; ++j) out += test::start_s(result, j) == 0 ? 1 : 0;
      return out;
    };
    CHECK(of_a() == (weight > 1 ? 7 : 6));
    spec.fair_sharing.clear();
    CHECK(of_a() == 6);
  }
}

TEST_CASE("kueue fair sharing: the tree that ships") {
  // Research may have 32, and of the company's 32 two thirds: 7 jobs of 8. Without shares: 4.
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/queue/kueue-org-tree.json";
  QueueSpec spec = read_queue(JsonCursor::parse(file, read_text_file(file)), test::presets());
  for (const bool fair : {true, false}) {
    CAPTURE(fair);
    if (!fair) spec.fair_sharing.clear();
    const QueueResult result = simulate_queue(spec, {});
    int at_once = 0;
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      at_once += test::start_s(result, j) == 3600 ? 1 : 0;
    }
    CHECK(at_once == (fair ? 7 : 4));
    // Without shares, search takes two of the places of the first four when they end, at 5 h, and
    // the last two of language, which research's quota has room for then, take them back.
    CHECK(result.evictions == (fair ? 7 : 6));
  }
}

}  // namespace lockstep
