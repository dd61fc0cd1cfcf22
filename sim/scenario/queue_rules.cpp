#include "sim/scenario/queue_rules.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostQualities = 1000, kMostAccounts = 60'000;
constexpr int kMostLimited = 1'000'000'000;
constexpr Interval kFactorWeight{0, 4294967295.0}, kUsage{0, 1e15}, kFactor{0, 1e6};
constexpr Interval kPositiveFactor{0, 1e6, true};
constexpr std::string_view kTresNames =
    "amounts such as \"gres/gpu=16,node=2,cpu=64\"; other resources are not modelled";

/// A member that holds amounts.
void declare_tres(const DeclaredMembers& member, std::string_view key, TresAmount& out,
                  std::string_view sentence) {
  std::string text;
  member.optional(key, text, sentence);
  if (member.object() == nullptr || text.empty()) return;
  const std::optional<TresAmount> amount = tres_amount(text);
  if (!amount) member.object()->at(key).fail(std::string(kTresNames));
  out = *amount;
}

void declare_count(const DeclaredMembers& member, std::string_view key, int& out,
                   std::string_view sentence) {
  std::optional<int> count;
  member.optional(key, count, 0, kMostLimited, sentence);
  if (count) out = *count;
}

void declare_time_limit(const DeclaredMembers& member, std::string_view key, RunTime& out,
                        std::string_view sentence) {
  std::optional<Seconds> time;
  member.optional(key, time, kQueueSpan, sentence);
  if (time) out = to_run_time(*time);
}

void declare_limits(const DeclaredMembers& member, UsageLimits& out) {
  declare_tres(member, "grp_tres", out.grp_tres, "Of all its running jobs: GrpTRES");
  declare_count(member, "grp_jobs", out.grp_jobs, "Running at a time: GrpJobs");
  declare_count(member, "grp_submit_jobs", out.grp_submit_jobs,
                "Running and waiting; more are refused: GrpSubmitJobs");
  TresAmount minutes;
  declare_tres(member, "grp_tres_mins", minutes,
               "\"gres/gpu=60000\": minutes of GPUs used, decaying, and promised: GrpTRESMins");
  if (minutes.nodes >= 0 || minutes.cpus >= 0) {
    member.object()->at("grp_tres_mins").fail("minutes of gres/gpu alone");
  }
  if (minutes.gpus >= 0) out.grp_gpu_s = static_cast<double>(minutes.gpus) * 60;
  declare_tres(member, "max_tres_per_job", out.per_job, "Of one job: MaxTRESPerJob");
  declare_time_limit(member, "max_wall", out.max_wall, "The longest time limit: MaxWall");
}

void declare_qos_limits(const DeclaredMembers& member, UsageLimits& out) {
  declare_limits(member, out);
  declare_tres(member, "max_tres_per_user", out.per_user, "Running, of a user: MaxTRESPU");
  declare_count(member, "max_jobs_per_user", out.jobs_per_user, "Running, of a user: MaxJobsPU");
  declare_count(member, "max_submit_jobs_per_user", out.submit_per_user,
                "Running and waiting, of a user: MaxSubmitPU");
  declare_tres(member, "max_tres_per_account", out.per_account,
               "Running, of an account: MaxTRESPA");
  declare_count(member, "max_jobs_per_account", out.jobs_per_account,
                "Running, of an account: MaxJobsPA");
  declare_count(member, "max_submit_jobs_per_account", out.submit_per_account,
                "Running and waiting, of an account: MaxSubmitPA");
}

void declare_association_limits(const DeclaredMembers& member, UsageLimits& out) {
  declare_limits(member, out);
  declare_count(member, "max_jobs", out.jobs_per_user,
                "Running, of each user; users of an account inherit it: MaxJobs");
  declare_count(member, "max_submit_jobs", out.submit_per_user,
                "Running and waiting, of each user: MaxSubmitJobs");
}

struct WrittenQos {
  QualityOfService of;
  std::vector<JsonCursor> preempts;
};

constexpr ValueType kQosNames = written_type(R"({"type": "array", "items": {"type": "string"}})");

void declare_one_qos(const DeclaredMembers& member, WrittenQos& out) {
  int priority = static_cast<int>(out.of.priority);
  member.required("name", out.of.name, "As jobs name it");
  member.optional("priority", priority, 0, 2'000'000'000,
                  "For the factor \"qos\", and for who is preempted first; default: 0");
  out.of.priority = static_cast<std::uint32_t>(priority);
  member.optional("preempts", kQosNames, "Qualities of service whose jobs its own may preempt",
                  [&](const JsonCursor& at) { out.preempts = at.elements(kMostQualities); });
  declare_run_time(member, "grace", out.of.grace, kQueueSpan,
                   "Its jobs go so long after they were preempted: GraceTime; default: 0 s");
  declare_time_limit(member, "exempt", out.of.exempt,
                     "Its jobs that ran less are not preempted; default: preemption.exempt");
  member.optional("cancels", out.of.cancels, "Its preempted jobs are cancelled, not requeued");
  member.optional("no_reserve", out.of.no_reserve,
                  "Backfill plans no start for its jobs: NoReserve; default: false");
  member.optional("usage_factor", out.of.usage_factor, kFactor,
                  "GPU time of its jobs counts so many times; default: 1");
  member.optional("limits", out.of.limits, "What its jobs may have", declare_qos_limits);
}

/// Whether a chain of preemption comes back to where it began: two would preempt each other for
/// ever.
bool comes_back(const QueueSpec& spec, std::uint16_t from) {
  std::vector<std::uint16_t> reached = spec.qos[from].preempts;
  for (std::size_t r = 0; r < reached.size(); ++r) {
    if (reached[r] == from) return true;
    for (const std::uint16_t next : spec.qos[reached[r]].preempts) {
      if (std::ranges::count(reached, next) == 0) reached.push_back(next);
    }
  }
  return false;
}

void read_qos(const JsonCursor& list, QueueSpec& out) {
  std::vector<std::pair<std::uint16_t, std::vector<JsonCursor>>> preempts;
  for (const JsonCursor& at : list.elements(kMostQualities)) {
    WrittenQos written;
    declare_one_qos({at, Extent::whole}, written);
    at.finish();
    const auto same = [&](const QualityOfService& of) { return of.name == written.of.name; };
    if (std::ranges::any_of(out.qos, same)) at.at("name").fail("a name that no other has");
    preempts.emplace_back(static_cast<std::uint16_t>(out.qos.size()), written.preempts);
    out.qos.push_back(std::move(written.of));
  }
  for (const auto& [number, names] : preempts) {
    for (const JsonCursor& name : names) {
      const std::uint16_t below = qos_number(name, name.string(), out);
      out.qos[number].preempts.push_back(below);
      if (comes_back(out, number)) name.fail("a quality that does not preempt this one in turn");
    }
  }
}

struct WrittenAccount {
  Association of;
  std::string parent;
};

constexpr ValueType kShares = written_type(
    R"({"anyOf": [{"const": "parent"}, {"type": "number", "minimum": 0, "maximum": 1e9}]})");

void declare_association(const DeclaredMembers& member, Association& out) {
  constexpr Interval kSharesGiven{0, 1e9};
  member.required("name", out.name, "As jobs name it");
  member.optional("shares", kShares,
                  "Beside those of its siblings; \"parent\": those of its parent; default: 1",
                  [&](const JsonCursor& at) {
                    if (at.is_string()) {
                      if (at.string() != "parent") at.fail("a number, or \"parent\"");
                      out.shares = Association::kParent;
                    } else {
                      out.shares = at.number(kSharesGiven);
                    }
                  });
  int priority = static_cast<int>(out.priority);
  member.optional("priority", priority, 0, 2'000'000'000, "For the factor \"association\"");
  out.priority = static_cast<std::uint32_t>(priority);
  member.optional("limits", out.limits, "What its jobs may have", declare_association_limits);
}

void declare_user(const DeclaredMembers& member, Association& out) {
  declare_association(member, out);
  member.optional("usage_gpu_s", out.usage_gpu_s, kUsage,
                  "GPU seconds used when the queue begins, decayed; default: 0");
}

void add_user(const JsonCursor& at, std::int32_t account, QueueSpec& out) {
  Association user;
  declare_user({at, Extent::whole}, user);
  at.finish();
  user.is_user = true;
  user.parent = account;
  user.number = label_of(user.name, out.users, out.file);
  const auto same = [&](const Association& of) {
    return of.is_user && of.parent == account && of.number == user.number;
  };
  if (std::ranges::any_of(out.associations, same)) at.at("name").fail("each user of it once");
  out.associations.push_back(std::move(user));
}

void declare_account(const DeclaredMembers& member, WrittenAccount& out) {
  declare_association(member, out.of);
  member.optional("parent", out.parent, "An account that stands before it; default: none");
}

/// Users of an account: described where there is no list.
void declare_users(const DeclaredMembers& member,
                   const std::function<void(const JsonCursor&)>& use) {
  member.optional(
      "users", kMostAccounts, "A user in an account", "Users; others have one share each",
      [](const DeclaredMembers& one) {
        Association user;
        declare_user(one, user);
      },
      use);
}

void read_account(const JsonCursor& at, QueueSpec& out) {
  const DeclaredMembers member(at, Extent::whole);
  WrittenAccount written;
  declare_account(member, written);
  std::vector<std::string> accounts;
  for (const Association& of : out.associations) {
    if (of.is_user) continue;
    accounts.push_back(of.name);
  }
  if (std::ranges::count(accounts, written.of.name) > 0) at.at("name").fail("each account once");
  if (!written.parent.empty()) {
    const auto is_it = [&](const Association& of) {
      return !of.is_user && of.name == written.parent;
    };
    const auto parent = std::ranges::find_if(out.associations, is_it);
    if (parent == out.associations.end()) at.at("parent").fail_name(accounts);
    written.of.parent = static_cast<std::int32_t>(parent - out.associations.begin());
  }
  written.of.number = label_of(written.of.name, out.accounts, out.file);
  const auto number = static_cast<std::int32_t>(out.associations.size());
  out.associations.push_back(std::move(written.of));
  declare_users(member, [&](const JsonCursor& list) {
    for (const JsonCursor& user : list.elements(kMostAccounts)) add_user(user, number, out);
  });
  at.finish();
}

}  // namespace

std::optional<TresAmount> tres_amount(std::string_view text) {
  TresAmount out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = part.substr(0, equals), digits = part.substr(equals + 1);
    std::int64_t amount = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), amount);
    if (error != std::errc() || end != digits.data() + digits.size() || amount < 0) {
      return std::nullopt;
    }
    if (name == "gres/gpu" || name == "gpu") {
      out.gpus = amount;
    } else if (name == "node") {
      out.nodes = amount;
    } else if (name == "cpu") {
      out.cpus = amount;
    } else {
      return std::nullopt;
    }
  }
  return out.is_set() ? std::optional(out) : std::nullopt;
}

std::uint16_t qos_number(const JsonCursor& at, const std::string& name, const QueueSpec& spec) {
  std::vector<std::string> names;
  for (const QualityOfService& of : spec.qos) names.push_back(of.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end() || name.empty()) at.fail_name(std::span(names).subspan(1));
  return static_cast<std::uint16_t>(found - names.begin());
}

void declare_qos(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "qos", kMostQualities, "A quality of service", "Qualities of service, by Slurm's rules",
      [](const DeclaredMembers& one) {
        WrittenQos qos;
        declare_one_qos(one, qos);
      },
      [&](const JsonCursor& list) { read_qos(list, out); });
}

void declare_accounts(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "accounts", kMostAccounts, "An account",
      "Shares, usage and limits; accounts that jobs name and that are not here have one share",
      [](const DeclaredMembers& one) {
        WrittenAccount account;
        declare_account(one, account);
        declare_users(one, [](const JsonCursor&) {});
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostAccounts)) read_account(at, out);
      });
}

void declare_priority_rules(const DeclaredMembers& member, PriorityRules& out) {
  member.optional("age", out.age, kFactorWeight,
                  "Weight of the time that a job has waited; default: 0");
  declare_run_time(member, "max_age", out.max_age, kQueueSpan,
                   "After which that is 1: PriorityMaxAge; default: 7 d");
  member.optional("fair_share", out.fair_share, kFactorWeight, "Weight of fair share; default: 0");
  member.optional("fair_tree", out.fair_tree,
                  "Fair share by Fair Tree (the default), else 2^(-usage/shares/damping)");
  member.optional("damping", out.damping, kPositiveFactor, "FairShareDampeningFactor; default: 1");
  declare_run_time(member, "half_life", out.half_life, kQueueSpan,
                   "Of usage: PriorityDecayHalfLife; 0 s: it does not decay; default: 7 d");
  declare_run_time(member, "calc_period", out.calc_period, kPositiveQueueSpan,
                   "From one reckoning to the next: PriorityCalcPeriod; default: 5 min");
  member.optional("job_size", out.job_size, kFactorWeight, "Weight of nodes and CPUs; default: 0");
  member.optional("favor_small", out.favor_small, "Smaller jobs have the larger factor");
  member.optional("size_relative_to_time", out.size_relative_to_time,
                  "The size is divided by the minutes of the time limit: SMALL_RELATIVE_TO_TIME");
  member.optional("partition", out.partition, kFactorWeight, "Weight of the partition's priority");
  member.optional("qos", out.qos, kFactorWeight, "Weight of the quality of service's priority");
  member.optional("association", out.association, kFactorWeight,
                  "Weight of the association's priority");
  member.optional("gpu", out.tres_gpu, kFactorWeight,
                  "Weight of the partition's share of GPUs asked for");
  member.optional("cpu", out.tres_cpu, kFactorWeight, "The same of CPUs");
  member.optional("node", out.tres_node, kFactorWeight, "The same of nodes");
}

}  // namespace lockstep
