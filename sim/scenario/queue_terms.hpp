/// What jobs wait for beside GPUs, and what their owners may have: dependencies, arrays, advance
/// reservations, priorities by several factors, qualities of service, limits. As Slurm has them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// What of another job, or of all tasks of an array, a job waits for.
enum class DependencyKind : std::uint8_t {
  after,       ///< it has started, so long ago
  afterany,    ///< it has ended
  afterok,     ///< it has ended well
  afternotok,  ///< it has failed
};
constexpr std::array<std::string_view, 4> kDependencyNames{"after", "afterany", "afterok",
                                                           "afternotok"};

struct JobDependency {
  DependencyKind kind = DependencyKind::afterany;
  bool of_array = false;  ///< `on` is a number of QueueSpec::arrays; else of a job
  std::uint32_t on = 0;
  RunTime delay = 0;  ///< after: from its start on
};

/// What few jobs say beside what they ask for.
struct JobTerms {
  std::string written;  ///< dependencies as the file has them, until they are resolved
  std::string series;   ///< for singletons: what its user calls this and other jobs
  std::vector<JobDependency> dependencies;
  RunTime begin = 0;              ///< it is not looked at before
  std::int32_t array = -1;        ///< QueueSpec::arrays
  std::uint16_t reservation = 0;  ///< QueueSpec::reservations, from 1; 0: none
  bool any = false;               ///< one of the dependencies is enough
  bool held = false;              ///< it never starts
  bool fails = false;             ///< its command fails in the end
};

/// Tasks of one job.
struct JobArray {
  std::string name;
  int most_running = 0;  ///< at a time; 0: no limit
};

/// A component of a heterogeneous job.
struct JobPart {
  std::int32_t gpus = 1;
  std::uint16_t partition = 0;  ///< QueueSpec::partitions

  friend bool operator==(const JobPart&, const JobPart&) = default;
};
/// What a heterogeneous job asks for: components that start and end together.
using JobShape = std::vector<JobPart>;

/// A licence that jobs hold while they run.
struct QueueLicense {
  std::string name;
  int count = 0;
};
/// How many of a licence (QueueSpec::licenses) a job asks for.
struct LicenseNeed {
  std::uint16_t license = 0;
  int count = 0;

  friend bool operator==(const LicenseNeed&, const LicenseNeed&) = default;
};
/// What a job asks for, by rising license.
using LicenseSet = std::vector<LicenseNeed>;

/// Nodes that are set aside for a while.
struct AdvanceReservation {
  std::string name;
  RunTime start = 0, end = 0;
  std::vector<int> nodes;
  bool flex = false;      ///< its jobs may begin before it and end after it, on other nodes too
  RunTime announced = 0;  ///< from when on the scheduler knows of it
};

/// Amounts of what can be limited; below 0: no limit.
struct TresAmount {
  std::int64_t gpus = -1, nodes = -1, cpus = -1;

  [[nodiscard]] bool is_set() const { return gpus >= 0 || nodes >= 0 || cpus >= 0; }
};

/// Limits of an association (an account, or a user in it) or of a quality of service. Below 0:
/// none.
struct UsageLimits {
  TresAmount grp_tres;       ///< of all running jobs together
  int grp_jobs = -1;         ///< running together
  int grp_submit_jobs = -1;  ///< running and waiting together
  double grp_gpu_s = -1;  ///< GPU time used, decayed, and promised to running jobs by their limits
  TresAmount per_job;
  RunTime max_wall = -1;
  TresAmount per_user, per_account;  ///< of a quality of service
  int jobs_per_user = -1, jobs_per_account = -1;
  int submit_per_user = -1, submit_per_account = -1;

  [[nodiscard]] bool any() const {
    return grp_tres.is_set() || grp_jobs >= 0 || grp_submit_jobs >= 0 || grp_gpu_s >= 0 ||
           per_job.is_set() || max_wall >= 0 || per_user.is_set() || per_account.is_set() ||
           jobs_per_user >= 0 || jobs_per_account >= 0 || submit_per_user >= 0 ||
           submit_per_account >= 0;
  }
};

struct QualityOfService {
  std::string name;
  std::uint32_t priority = 0;
  std::vector<std::uint16_t> preempts;  ///< QueueSpec::qos whose jobs its own may preempt
  RunTime grace = 0;                    ///< from being told to being stopped
  RunTime exempt = -1;                  ///< nobody goes who has run less; below 0: the general time
  bool cancels = false;                 ///< its preempted jobs are cancelled, not requeued
  bool no_reserve = false;              ///< backfill plans no start for its jobs
  double usage_factor = 1;
  UsageLimits limits;
};

/// An account, or a user in one.
struct Association {
  static constexpr double kParent = -1;  ///< of `shares`: those of its parent

  std::string name;
  std::int32_t parent = -1;  ///< QueueSpec::associations; below 0: it is the root
  bool is_user = false;
  std::uint16_t number = 0;  ///< of QueueSpec::users or ::accounts
  double shares = 1;
  double usage_gpu_s = 0;  ///< when the queue begins
  std::uint32_t priority = 0;
  UsageLimits limits;  ///< per_job, max_wall, jobs_per_user, submit_per_user: also of those below
};

/// Weights of the factors of a job's priority, which lie between 0 and 1. Slurm's
/// priority/multifactor.
struct PriorityRules {
  double age = 0, fair_share = 0, job_size = 0, partition = 0, qos = 0, association = 0;
  double tres_gpu = 0, tres_cpu = 0, tres_node = 0;
  RunTime max_age = 604'800'000'000'000;    ///< 7 days
  RunTime half_life = 604'800'000'000'000;  ///< of usage; 0: it does not decay
  RunTime calc_period = 300'000'000'000;    ///< from one reckoning to the next
  bool fair_tree = true;                    ///< else 2^(-usage/shares/damping)
  double damping = 1;
  bool favor_small = false;
  bool size_relative_to_time = false;
};

}  // namespace lockstep
