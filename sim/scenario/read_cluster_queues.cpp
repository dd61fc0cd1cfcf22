#include "sim/scenario/read_cluster_queues.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
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
constexpr Interval kFairWeights{0, 1e6};
constexpr FairStrategy kFinalShare = FairStrategy::less_than_or_equal_to_final_share;

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
  member.optional("weight", out.of.weight, kFairWeights,
                  "Under \"fair_sharing\": what it borrows counts by so much less; default: 1");
}

/// A cohort as it stands in a file.
struct WrittenCohort {
  QueueCohort of;
  int nominal = 0;
  std::optional<int> borrowing, lending;
};

void declare_cohort(const DeclaredMembers& member, WrittenCohort& out) {
  member.required("name", out.of.name, R"(How "cohort" of queues and "parent" call it)");
  member.optional("parent", out.of.parent,
                  "The cohort that it is in; one that only \"parent\" or \"cohort\" names has no "
                  "quota of its own. Default: none, it is a root");
  member.optional("nominal_gpus", out.nominal, 0, kMostOfQuota,
                  "GPUs for all below it, beside those of its queues; default: 0");
  member.optional("borrowing_limit", out.borrowing, 0, kMostOfQuota,
                  "GPUs from outside that all below it hold at most; default: no limit");
  member.optional("lending_limit", out.lending, 0, kMostOfQuota,
                  "GPUs of its subtree that others hold at most; default: all");
  member.optional("weight", out.of.weight, kFairWeights,
                  "Under \"fair_sharing\": what it borrows counts by so much less; default: 1");
}

void read_cohort(const JsonCursor& at, QueueSpec& out) {
  WrittenCohort written;
  declare_cohort({at, Extent::whole}, written);
  at.finish();
  if (written.of.name.empty()) at.at("name").fail("the name of a cohort");
  const auto same = [&](const QueueCohort& of) { return of.name == written.of.name; };
  if (std::ranges::any_of(out.cohorts, same)) at.at("name").fail("a name that no other has");
  for (const std::string_view key : {"borrowing_limit", "lending_limit"}) {
    const bool alone = written.of.parent.empty() && at.find(key);
    if (alone) at.at(key).fail("no such key without a \"parent\"");
  }
  written.of.nominal = written.nominal;
  written.of.borrowing_limit = written.borrowing.value_or(-1);
  written.of.lending_limit = written.lending.value_or(-1);
  out.cohorts.push_back(std::move(written.of));
}

/// Throws InputError for a cohort that is above itself, and for one that no queue is below.
void check_cohorts(const JsonCursor& list, const QueueSpec& spec) {
  std::map<std::string, std::string> parents;
  std::set<std::string> taken;
  for (const QueueCohort& of : spec.cohorts) parents[of.name] = of.parent;
  const auto climb = [&](std::string name, const JsonCursor* at) {
    std::size_t steps = 0;
    for (; !name.empty(); name = parents.contains(name) ? parents.at(name) : std::string()) {
      if (at == nullptr) taken.insert(name);
      if (++steps <= parents.size() + 1) continue;
      if (at == nullptr) return;
      at->fail("a cohort that is not below this one");
    }
  };
  const std::vector<JsonCursor> elements = list.elements(kMostClusterQueues);
  for (std::size_t c = 0; c < spec.cohorts.size(); ++c) {
    if (spec.cohorts[c].parent.empty()) continue;
    const JsonCursor at = elements[c].at("parent");
    climb(spec.cohorts[c].name, &at);
  }
  std::vector<std::string> named;
  for (const ClusterQueue& of : spec.cluster_queues) {
    climb(of.cohort, nullptr);
    if (!of.cohort.empty()) named.push_back(of.cohort);
  }
  // A cohort may only lend; but then one that is taken has to be in its tree.
  const auto root_of = [&](std::string name) {
    while (parents.contains(name) && !parents.at(name).empty()) name = parents.at(name);
    return name;
  };
  std::set<std::string> roots;
  for (const std::string& name : taken) roots.insert(root_of(name));
  for (std::size_t c = 0; c < spec.cohorts.size(); ++c) {
    const std::string& name = spec.cohorts[c].name;
    if (taken.contains(name) || roots.contains(root_of(name))) continue;
    elements[c].at("name").fail(
        fmt::format("a cohort in whose tree a cluster queue is: {}", listed(named)),
        nearest_name(name, named));
  }
}

constexpr ValueType kFairStrategies = written_type(
    R"({"type": "array", "minItems": 1, "maxItems": 2, "items":
        {"enum": ["less_than_or_equal_to_final_share", "less_than_initial_share"]}})");

void declare_fair_sharing(const DeclaredMembers& member, std::vector<FairStrategy>& out) {
  member.optional(
      "strategies", kFairStrategies,
      "When a job goes for one of another queue, whose share is then: "
      "less_than_or_equal_to_final_share, no higher than that of the job's queue without it; "
      "less_than_initial_share, lower than it was; where the first finds too few, the second. "
      "Default: both in that order",
      [&](const JsonCursor& at) {
        out.clear();
        for (const JsonCursor& one : at.elements(2)) {
          out.push_back(static_cast<FairStrategy>(one.choice(kFairStrategyNames)));
        }
        const bool ordered = out.size() < 2 || (out[0] == kFinalShare && out[1] != kFinalShare);
        if (out.empty() || !ordered) at.fail("one, or both with less_than_initial_share last");
      });
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
  member.optional(
      "cohorts", kMostClusterQueues, "A cohort",
      "kueue: cohorts with quotas, limits and parents of their own, as Kueue's Cohorts",
      [](const DeclaredMembers& one) {
        WrittenCohort cohort;
        declare_cohort(one, cohort);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostClusterQueues)) read_cohort(at, out);
      });
  member.optional("fair_sharing", out.fair_sharing,
                  "kueue: turns and victims by shares of what is borrowed, by \"weight\"; {} is "
                  "enough. Default: none, Kueue's classic preemption",
                  [](const DeclaredMembers& of, std::vector<FairStrategy>& strategies) {
                    strategies = {kFinalShare, FairStrategy::less_than_initial_share};
                    declare_fair_sharing(of, strategies);
                  });
}

void check_cluster_queues(const JsonCursor& queue, const QueueSpec& spec) {
  const bool kueue = spec.admission == QueueAdmission::kueue;
  const bool by_kueue = spec.preemption.mode == PreemptionMode::kueue;
  if (!kueue) {
    constexpr std::string_view kOnlyThere = R"(no such key unless "admission" is "kueue")";
    if (by_kueue) queue.at("preemption").at("mode").fail(R"(none unless "admission" is "kueue")");
    for (const std::string_view key : {"cluster_queues", "cohorts", "fair_sharing"}) {
      if (queue.find(key)) queue.at(key).fail(std::string(kOnlyThere));
    }
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
  if (queue.find("cohorts")) check_cohorts(queue.at("cohorts"), spec);
  for (std::size_t q = 0; q < spec.cluster_queues.size() && spec.fair_sharing.empty(); ++q) {
    const JsonCursor at = list.elements(kMostClusterQueues)[q];
    if (at.find("weight")) at.at("weight").fail("no such key without \"fair_sharing\"");
  }
  for (std::size_t c = 0; c < spec.cohorts.size() && spec.fair_sharing.empty(); ++c) {
    const JsonCursor at = queue.at("cohorts").elements(kMostClusterQueues)[c];
    if (at.find("weight")) at.at("weight").fail("no such key without \"fair_sharing\"");
  }
  check_admitted(queue.at("jobs"), spec);
}

}  // namespace lockstep
