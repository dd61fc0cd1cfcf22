#include "sim/scenario/read_cluster_queues.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostClusterQueues = 10'000, kMostAdmitted = 60'000;
constexpr int kMostOfQuota = 1'000'000'000;

/// A ClusterQueue as it stands in a file.
struct WrittenClusterQueue {
  ClusterQueue of;
  int nominal = 0;
  std::optional<int> borrowing, lending;
  std::vector<JsonCursor> accounts;
};

constexpr ValueType kAccountNames =
    written_type(R"({"type": "array", "minItems": 1, "items": {"type": "string"}})");

void declare_cluster_queue(const DeclaredMembers& member, WrittenClusterQueue& out) {
  member.required("name", out.of.name, "How messages call it");
  member.optional("accounts", kAccountNames,
                  "Accounts whose jobs it admits, as LocalQueues do; default: that of its name",
                  [&](const JsonCursor& at) { out.accounts = at.elements(kMostAdmitted); });
  member.required("nominal_gpus", out.nominal, 0, kMostOfQuota,
                  "GPUs that are its own: nominalQuota");
  member.optional("cohort", out.of.cohort,
                  "Queues of one lend each other what they do not use; default: none");
  member.optional("borrowing_limit", out.borrowing, 0, kMostOfQuota,
                  "GPUs of others that it holds at most: borrowingLimit; default: no limit");
  member.optional("lending_limit", out.lending, 0, kMostOfQuota,
                  "GPUs of its own that others hold at most: lendingLimit; default: all");
  member.optional("strategy", out.of.strategy, kQueueingStrategyNames,
                  "Behind a job of it that is not admitted: best_effort, whoever fits is; strict, "
                  "all of its jobs wait; default: best_effort");
  member.optional("within_cluster_queue", out.of.within, kWithinClusterQueueNames,
                  "Which of its own jobs go for one that waits; default: never");
  member.optional("reclaim_within_cohort", out.of.reclaim, kReclaimWithinCohortNames,
                  "Which jobs of queues that borrow go for one that its nominal quota has room "
                  "for; default: never");
  member.optional("borrow_within_cohort", out.of.borrow_within_cohort,
                  "Jobs that have to borrow preempt others' of lower priority, too: policy "
                  "LowerPriority; default: false");
  member.optional("max_priority_threshold", out.of.max_priority_threshold, -kMostOfQuota,
                  kMostOfQuota, "The highest priority of those others; default: any below its own");
}

/// Throws InputError for a queue's limits that mean nothing.
void check_limits(const JsonCursor& at, const WrittenClusterQueue& written) {
  for (const std::string_view key : {"borrowing_limit", "lending_limit", "reclaim_within_cohort"}) {
    const bool alone = written.of.cohort.empty() && at.find(key);
    if (alone) at.at(key).fail("no such key without a \"cohort\"");
  }
  if (written.of.borrow_within_cohort && written.of.reclaim == ReclaimWithinCohort::never) {
    at.at("borrow_within_cohort").fail("no such key without \"reclaim_within_cohort\"");
  }
  if (written.of.max_priority_threshold && !written.of.borrow_within_cohort) {
    at.at("max_priority_threshold").fail("no such key without \"borrow_within_cohort\"");
  }
  if (written.lending.value_or(0) > written.nominal) {
    at.at("lending_limit").fail(fmt::format("at most {}, its \"nominal_gpus\"", written.nominal));
  }
}

void admit_account(const JsonCursor& at, const std::string& name, ClusterQueue& queue,
                   QueueSpec& out) {
  if (name.empty()) at.fail("the name of an account");
  const std::uint16_t account = label_of(name, out.accounts, out.file);
  const auto has = [account](const ClusterQueue& of) {
    return std::ranges::count(of.accounts, account) > 0;
  };
  if (has(queue)) at.fail("each account once");
  const auto other = std::ranges::find_if(out.cluster_queues, has);
  if (other != out.cluster_queues.end()) {
    at.fail(fmt::format("an account that no other queue admits; {} does", in_quotes(other->name)));
  }
  queue.accounts.push_back(account);
}

void read_cluster_queue(const JsonCursor& at, QueueSpec& out) {
  WrittenClusterQueue written;
  declare_cluster_queue({at, Extent::whole}, written);
  at.finish();
  const auto same = [&](const ClusterQueue& of) { return of.name == written.of.name; };
  if (std::ranges::any_of(out.cluster_queues, same)) at.at("name").fail("a name that no other has");
  check_limits(at, written);
  written.of.nominal = written.nominal;
  written.of.borrowing_limit = written.borrowing.value_or(-1);
  written.of.lending_limit = written.lending.value_or(-1);
  for (const JsonCursor& name : written.accounts) {
    admit_account(name, name.string(), written.of, out);
  }
  if (!at.find("accounts")) admit_account(at.at("name"), written.of.name, written.of, out);
  if (written.of.accounts.empty()) at.at("accounts").fail("at least one account");
  out.cluster_queues.push_back(std::move(written.of));
}

/// Throws InputError for a job of an account that no queue admits.
void check_admitted(const JsonCursor& jobs, const QueueSpec& spec) {
  std::vector<std::string> admitted;
  std::vector<bool> is_admitted(spec.accounts.size());
  for (const ClusterQueue& queue : spec.cluster_queues) {
    for (const std::uint16_t account : queue.accounts) {
      is_admitted[account] = true;
      admitted.push_back(spec.accounts[account]);
    }
  }
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const std::uint16_t account = spec.jobs[j].account;
    if (is_admitted[account]) continue;
    const std::string& name = spec.accounts[account];
    throw InputError(
        {.file = jobs.file(),
         .pointer = jobs.pointer(),
         .found = fmt::format("job {} of {}", spec.job_name(j),
                              name.empty() ? "no account" : "account " + in_quotes(name)),
         .allowed = fmt::format("accounts that a cluster queue admits: {}", listed(admitted)),
         .nearest = nearest_name(name, admitted)});
  }
}

}  // namespace

void declare_cluster_queues(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "cluster_queues", kMostClusterQueues, "A ClusterQueue",
      "kueue: quotas of accounts, and cohorts in which they lend to each other, by Kueue's rules",
      [](const DeclaredMembers& one) {
        WrittenClusterQueue queue;
        declare_cluster_queue(one, queue);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostClusterQueues)) read_cluster_queue(at, out);
        if (out.cluster_queues.empty()) list.fail("at least one queue");
      });
}

void check_cluster_queues(const JsonCursor& queue, const QueueSpec& spec) {
  const bool kueue = spec.admission == QueueAdmission::kueue;
  const bool by_kueue = spec.preemption.mode == PreemptionMode::kueue;
  if (!kueue) {
    constexpr std::string_view kOnlyThere = R"(no such key unless "admission" is "kueue")";
    if (by_kueue) queue.at("preemption").at("mode").fail(R"(none unless "admission" is "kueue")");
    if (!spec.cluster_queues.empty()) queue.at("cluster_queues").fail(std::string(kOnlyThere));
    return;
  }
  const JsonCursor list = queue.at("cluster_queues");  // required here
  if (spec.order != QueueOrder::priority) {
    queue.at("order").fail(R"("priority" with "admission": "kueue": by priority, then submission)");
  }
  if (spec.preemption.mode != PreemptionMode::none && !by_kueue) {
    queue.at("preemption").at("mode").fail("none or kueue, whose rules are those of the queues");
  }
  const bool any = std::ranges::any_of(spec.cluster_queues, &ClusterQueue::preempts);
  if (by_kueue && !any) {
    queue.at("preemption")
        .at("mode")
        .fail("kueue with a queue that says within_cluster_queue or reclaim_within_cohort");
  }
  if (!by_kueue && any) {
    const auto first = std::ranges::find_if(spec.cluster_queues, &ClusterQueue::preempts);
    const auto number = static_cast<std::size_t>(first - spec.cluster_queues.begin());
    const std::string_view key = first->within != WithinClusterQueue::never
                                     ? "within_cluster_queue"
                                     : "reclaim_within_cohort";
    list.elements(kMostClusterQueues)[number].at(key).fail(
        R"(never unless "preemption" has "mode": "kueue")");
  }
  check_admitted(queue.at("jobs"), spec);
}

}  // namespace lockstep
