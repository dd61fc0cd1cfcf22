// Who is preempted for whom, as Kueue's own tests of its classic preemption expect it.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/cluster/cluster_queue_pass.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

using Within = WithinClusterQueue;
using Reclaim = ReclaimWithinCohort;

/// The queues that those tests have, with the quotas of the resource that all of them use.
std::vector<ClusterQueue> expected_queues() {
  const auto limited = [](const char* name, const char* cohort, Within within, Reclaim reclaim,
                          std::int64_t borrowing, std::int64_t lending) {
    return ClusterQueue{.name = name,
                        .cohort = cohort,
                        .nominal = 6,
                        .borrowing_limit = borrowing,
                        .lending_limit = lending,
                        .within = within,
                        .reclaim = reclaim};
  };
  const auto standard = [](const char* name, Within within, Reclaim reclaim) {
    return ClusterQueue{.name = name,
                        .cohort = "with_shared_cq",
                        .nominal = 1,
                        .borrowing_limit = 12,
                        .within = within,
                        .reclaim = reclaim,
                        .borrow_within_cohort = true,
                        .max_priority_threshold = 0};
  };
  const auto lower = Within::lower_priority;
  return {
      limited("standalone", "", lower, Reclaim::never, -1, -1),
      limited("starved", "", Within::lower_or_newer_equal_priority, Reclaim::never, -1, -1),
      limited("c1", "cohort", lower, Reclaim::lower_priority, 12, -1),
      limited("c2", "cohort", Within::never, Reclaim::any, 12, -1),
      limited("d1", "no-limits", lower, Reclaim::lower_priority, -1, -1),
      limited("d2", "no-limits", Within::never, Reclaim::any, -1, -1),
      limited("l1", "legion", lower, Reclaim::lower_priority, 12, -1),
      standard("a_standard", Within::never, Reclaim::lower_priority),
      standard("b_standard", lower, Reclaim::any),
      standard("a_best_effort", Within::never, Reclaim::lower_priority),
      {.name = "shared", .cohort = "with_shared_cq", .nominal = 10},
      limited("lend1", "cohort-lend", lower, Reclaim::lower_priority, -1, 4),
      limited("lend2", "cohort-lend", lower, Reclaim::lower_priority, -1, 2),
      {.name = "a", .cohort = "three", .nominal = 2, .within = lower, .reclaim = Reclaim::any},
      {.name = "b", .cohort = "three", .nominal = 2},
      {.name = "c", .cohort = "three", .nominal = 2},
  };
}

struct AdmittedJob {
  std::string name, queue;
  int priority, gpus;
};
struct ExpectedVictims {
  std::string what;
  std::vector<AdmittedJob> admitted;  ///< in the order of their admission
  AdmittedJob in;
  std::vector<std::string> victims;
  bool in_is_older = false;  ///< than those of its priority
};

// Source: Kueue (Apache 2.0), pkg/scheduler/preemption/preemption_test.go, TestPreemption: those of
// its cases that are of one resource and one flavor.
const std::vector<ExpectedVictims> kExpectedVictims{
    {"lowest priority",
     {{"low", "standalone", -1, 2}, {"mid", "standalone", 0, 2}, {"high", "standalone", 1, 2}},
     {"in", "standalone", 1, 2},
     {"low"}},
    {"several",
     {{"low", "standalone", -1, 2}, {"mid", "standalone", 0, 2}, {"high", "standalone", 1, 2}},
     {"in", "standalone", 1, 3},
     {"low", "mid"}},
    {"none for a low one",
     {{"low", "standalone", -1, 3}, {"mid", "standalone", 0, 3}},
     {"in", "standalone", -1, 1},
     {}},
    {"not enough of low ones",
     {{"low", "standalone", -1, 3}, {"mid", "standalone", 0, 3}},
     {"in", "standalone", 0, 4},
     {}},
    {"some is free",
     {{"low", "standalone", -1, 1}, {"mid", "standalone", 0, 1}, {"high", "standalone", 1, 3}},
     {"in", "standalone", 1, 2},
     {"low"}},
    {"the least that suffice",
     {{"low", "standalone", -1, 1}, {"mid", "standalone", 0, 2}, {"high", "standalone", 1, 3}},
     {"in", "standalone", 1, 2},
     {"mid"}},
    {"reclaimed from a borrower",
     {{"c1-low", "c1", -1, 3}, {"c2-mid", "c2", 0, 3}, {"c2-high", "c2", 1, 6}},
     {"in", "c1", 1, 3},
     {"c2-mid"}},
    {"not enough is borrowed",
     {{"c1-high", "c1", 1, 4}, {"c2-low-1", "c2", -1, 4}, {"c2-low-2", "c2", -1, 4}},
     {"in", "c1", 1, 4},
     {}},
    {"of its own, and it borrows",
     {{"c1-med", "c1", 0, 4}, {"c1-low", "c1", -1, 4}, {"c2-low-1", "c2", -1, 4}},
     {"in", "c1", 1, 4},
     {"c1-low"}},
    {"of its own, and it borrows without a limit",
     {{"d1-med", "d1", 0, 4}, {"d1-low", "d1", -1, 4}, {"d2-low-1", "d2", -1, 4}},
     {"in", "d1", 1, 4},
     {"d1-low"}},
    {"of its own, alone in its cohort",
     {{"l1-med", "l1", 0, 4}, {"l1-low", "l1", -1, 2}},
     {"in", "l1", 1, 4},
     {"l1-med"}},
    {"the same priority is not reclaimed from",
     {{"c1", "c1", 0, 2}, {"c2-1", "c2", 0, 4}, {"c2-2", "c2", 0, 4}},
     {"in", "c1", 0, 4},
     {}},
    {"the same priority is reclaimed from by any",
     {{"c1-1", "c1", 0, 4}, {"c1-2", "c1", 1, 4}, {"c2", "c2", 0, 2}},
     {"in", "c2", 0, 4},
     {"c1-1"}},
    {"from all queues of the cohort",
     {{"c1-low", "c1", -1, 3},
      {"c1-mid", "c1", 0, 2},
      {"c2-low", "c2", -1, 3},
      {"c2-mid", "c2", 0, 4}},
     {"in", "c1", 0, 4},
     {"c1-low", "c2-low"}},
    {"the newer of equals, that was admitted last",
     {{"wl1", "starved", 2, 2}, {"wl3", "starved", 1, 2}, {"wl2", "starved", 1, 2}},
     {"in", "starved", 1, 2},
     {"wl2"},
     true},
    {"a lower one of another queue, and it borrows",
     {{"a_best_effort_low", "a_best_effort", -1, 10}, {"other", "shared", -1, 1}},
     {"in", "a_standard", 0, 10},
     {"a_best_effort_low"}},
    {"above the threshold, and it would borrow",
     {{"b_standard", "b_standard", 1, 10}},
     {"in", "a_standard", 2, 10},
     {}},
    {"above the threshold, and it need not borrow",
     {{"b_standard", "b_standard", 1, 13}},
     {"in", "a_standard", 2, 1},
     {"b_standard"}},
    {"never of its own", {{"a_standard", "a_standard", 1, 13}}, {"in", "a_standard", 2, 1}, {}},
    {"of its own alone, above nominal with none below the threshold",
     {{"a_standard_1", "a_standard", 1, 10},
      {"a_standard_2", "a_standard", 1, 1},
      {"b_standard_1", "b_standard", 1, 1},
      {"b_standard_2", "b_standard", 2, 1}},
     {"in", "b_standard", 3, 1},
     {"b_standard_1"}},
    {"of its own and of others below the threshold",
     {{"b_standard_high", "b_standard", 2, 10},
      {"b_standard_mid", "b_standard", 1, 1},
      {"a_best_effort_low", "a_best_effort", -1, 1},
      {"a_best_effort_lower", "a_best_effort", -2, 1}},
     {"in", "b_standard", 2, 2},
     {"b_standard_mid", "a_best_effort_lower"}},
    {"reclaimed under lending limits",
     {{"lend1-low", "lend1", -1, 3}, {"lend2-mid", "lend2", 0, 3}, {"lend2-high", "lend2", 1, 4}},
     {"in", "lend1", 1, 3},
     {"lend2-mid"}},
    {"from all queues of the cohort under lending limits",
     {{"lend1-low", "lend1", -1, 3},
      {"lend1-mid", "lend1", 0, 2},
      {"lend2-low", "lend2", -1, 3},
      {"lend2-mid", "lend2", 0, 4}},
     {"in", "lend1", 0, 4},
     {"lend1-low", "lend2-low"}},
    {"more than what may be asked for under lending limits",
     {{"lend2-low", "lend2", -1, 10}},
     {"in", "lend1", 0, 9},
     {}},
    {"of its own where it holds more than its quota",
     {{"a1", "a", -2, 1},
      {"a2", "a", -2, 1},
      {"a3", "a", -1, 1},
      {"b1", "b", 0, 1},
      {"b2", "b", 0, 1},
      {"b3", "b", 0, 1}},
     {"in", "a", 0, 2},
     {"a1", "a2"}},
};

/// Those that a pass preempts, by name.
std::vector<std::string> preempted_of(const ExpectedVictims& of) {
  QueueSpec spec = test::empty_queue(40, 1);
  spec.order = QueueOrder::priority;
  spec.admission = QueueAdmission::kueue;
  spec.preemption.mode = PreemptionMode::kueue;
  spec.cluster_queues = expected_queues();
  for (ClusterQueue& queue : spec.cluster_queues) {
    queue.accounts = {*spec.accounts.number_of(queue.name)};
  }
  std::vector<AdmittedJob> jobs = of.admitted;
  jobs.insert(of.in_is_older ? jobs.begin() : jobs.end(), of.in);
  for (const AdmittedJob& from : jobs) {
    QueueJob job;
    job.runs = job.limit = test::seconds(1000);
    job.gpus = from.gpus;
    job.priority = from.priority;
    job.account = *spec.accounts.number_of(from.queue);
    spec.jobs.push_back(job);
  }
  QueueState state(spec, false);
  for (std::uint32_t j = 0; j < jobs.size(); ++j) state.submit(j);
  const auto in = static_cast<std::uint32_t>(of.in_is_older ? 0 : jobs.size() - 1);
  double now = 0;
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    if (j == in) continue;
    state.advance(test::seconds(++now));
    state.start(j, state.placer().place(state.free(), jobs[j].gpus).value());
  }
  state.advance(test::seconds(++now));
  ClusterQueuePass().run(state);
  CHECK((state.state(in).phase == JobPhase::running) == !of.victims.empty());
  std::vector<std::string> out;
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    if (state.state(j).evictions > 0) out.push_back(jobs[j].name);
  }
  return out;
}

}  // namespace

TEST_CASE("cluster queues: victims are those that Kueue's own tests expect") {
  for (const ExpectedVictims& of : kExpectedVictims) {
    CAPTURE(of.what);
    std::vector<std::string> expected = of.victims, found = preempted_of(of);
    std::ranges::sort(expected);
    std::ranges::sort(found);
    CHECK(found == expected);
  }
}

}  // namespace lockstep
