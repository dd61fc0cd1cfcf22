// Borrowing and lending in a cohort, by the formulas of Kueue's quotas.
#include "sim/cluster/cohort_quotas.hpp"

#include <doctest/doctest.h>
#include <utility>
#include <vector>

#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

QueueSpec with_cluster_queues(std::vector<ClusterQueue> queues) {
  QueueSpec spec = test::empty_queue(4, 8);
  for (ClusterQueue& queue : queues) queue.accounts = {*spec.accounts.number_of(queue.name)};
  spec.cluster_queues = std::move(queues);
  return spec;
}

}  // namespace

TEST_CASE("cohort quotas: alone, a queue has its nominal quota") {
  const QueueSpec spec = with_cluster_queues({{.name = "a", .nominal = 6},  //
                                              {.name = "b", .nominal = 4}});
  CohortQuotas quotas(spec);
  REQUIRE(quotas.used());
  CHECK(quotas.queue_of(*QueueSpec(spec).accounts.number_of("b")) == 1);
  CHECK_FALSE(quotas.same_cohort(0, 1));
  CHECK(quotas.available(0) == 6);
  quotas.add(0, 5);
  CHECK(quotas.available(0) == 1);
  CHECK(quotas.available(1) == 4);
  CHECK_FALSE(quotas.borrows(0, 1));
  CHECK(quotas.borrows(0, 2));
  CHECK(quotas.most(0) == 6);
  CHECK_FALSE(CohortQuotas(test::empty_queue(1, 1)).used());
}

TEST_CASE("cohort quotas: what is lent is missing, what is not lent is kept") {
  // 4 + 3 of 10 are shared: b keeps 3 of its 6 for itself. c may borrow 2.
  const QueueSpec spec =
      with_cluster_queues({{.name = "a", .cohort = "x", .nominal = 3},
                           {.name = "b", .cohort = "x", .nominal = 6, .lending_limit = 3},
                           {.name = "c", .cohort = "x", .nominal = 1, .borrowing_limit = 2}});
  CohortQuotas quotas(spec);
  CHECK(quotas.available(0) == 7);
  CHECK(quotas.available(1) == 10);
  CHECK(quotas.available(2) == 3);
  CHECK(quotas.most(1) == 10);
  CHECK(quotas.most(2) == 3);
  quotas.add(0, 6);  // borrows 3
  CHECK(quotas.available(0) == 1);
  CHECK(quotas.available(1) == 4);  // its own 3, and the last one that is shared
  CHECK(quotas.available(2) == 1);
  quotas.add(1, 3);  // of its own
  CHECK(quotas.available(0) == 1);
  CHECK(quotas.available(1) == 1);
  quotas.add(1, 1);
  CHECK(quotas.available(0) == 0);
  CHECK(quotas.available(1) == 0);
  quotas.add(0, -6);
  CHECK(quotas.available(0) == 6);
  CHECK(quotas.available(1) == 6);
  CHECK(quotas.available(2) == 3);
}

}  // namespace lockstep
