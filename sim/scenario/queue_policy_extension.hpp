/// Rules of a queue's scheduler that code outside the tree gives: whom it starts, and who goes
/// where jobs are evicted. Added, an admission is named in "queue.admission" like one of
/// kAdmissionNames, and a victim rule in "queue.preemption.victims".
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/extension.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A job as it stands when a rule is asked.
struct JobNow {
  std::size_t number = 0;  ///< by submission, from 0
  int gpus = 1;
  int priority = 0;
  Seconds submit{};     ///< since the queue began, like limit_end
  Seconds limit{};      ///< what its user allowed it
  Seconds so_far{};     ///< for how long it has waited, or run, without a break
  Seconds limit_end{};  ///< of one that runs: when its limit ends it; else 0
  Seconds unsaved{};    ///< of one that runs: work that an eviction would throw away; else 0
  std::string_view user, account, model;  ///< empty: not said
};

/// A pass of the scheduler: at each submission and end, and whatever else changes who can start.
struct AdmissionCall {
  Seconds now{};
  int free_gpus = 0;
  std::vector<JobNow>
      waiting;  ///< in the queue's order; those that a quota holds back are left out
  std::vector<JobNow> running;  ///< by limit_end
};

struct AdmissionExtension {
  std::string name;
  std::string summary{};
  /// Numbers of waiting jobs, in the order in which they are to start. Whoever finds no place then,
  /// or has come to a quota, waits on. A pure function, from any thread.
  std::function<std::vector<std::size_t>(const AdmissionCall& call)> starts{};
};

/// Throws ExtensionError as check_extension() does, or for an admission that starts nobody.
QueueAdmission add_queue_admission(AdmissionExtension admission,
                                   int interface = kExtensionInterface);

/// Whether code outside the tree added it.
bool is_extension(QueueAdmission admission);
/// kAdmissionNames, and those that were added behind them.
std::vector<std::string_view> queue_admission_names();
std::string_view name_of(QueueAdmission admission);

/// Whom the queue's admission starts. Throws InputError at /queue/admission for a number that is
/// none of a waiting job, for one given twice, and for what the extension throws. Requires an
/// admission that is an extension.
std::vector<std::size_t> added_starts(const QueueSpec& spec, const AdmissionCall& call);

struct VictimCall {
  Seconds now{};
  JobNow waiting;  ///< the job that finds no place
  JobNow running;  ///< one that comes after it in the queue's order, and is not exempt
};

struct VictimRule {
  std::string name;
  std::string summary{};
  /// The job with the greatest key goes first, of equals the last in the queue's order, until the
  /// waiting one finds a place; whoever need not go for that stays. A pure function, from any
  /// thread, whose answer is finite.
  std::function<double(const VictimCall& call)> key{};
};

/// Throws ExtensionError as check_extension() does, or for a rule without a key.
void add_victim_rule(VictimRule rule, int interface = kExtensionInterface);

/// "last", the last in the queue's order, and those that were added behind it:
/// QueuePreemption::victims is a place here.
std::vector<std::string_view> victim_rule_names();

/// The key of a running job. Throws InputError at /queue/preemption/victims for one that is not
/// finite, and for what the extension throws. Requires a rule that was added.
double victim_key(const QueueSpec& spec, const VictimCall& call);

}  // namespace lockstep
