/// What a scenario says about a queue of jobs: who asks for what and when, and the rules by which a
/// scheduler gives it to them. read_queue.hpp makes it from JSON, sim/cluster simulates it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/scenario/burst_spec.hpp"
#include "sim/scenario/claim.hpp"
#include "sim/scenario/cluster_queue.hpp"
#include "sim/scenario/elastic_spec.hpp"
#include "sim/scenario/failure_mode.hpp"
#include "sim/scenario/health_spec.hpp"
#include "sim/scenario/power_spec.hpp"
#include "sim/scenario/queue_terms.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/trial_campaign.hpp"

namespace lockstep {

/// Which of the waiting jobs comes first. Equals: the one that was submitted first.
enum class QueueOrder : std::uint8_t {
  fifo,         ///< first in, first out
  sjf,          ///< shortest job first
  srtf,         ///< shortest remaining time first
  srsf,         ///< shortest remaining service first: time x GPUs
  las,          ///< least attained service, in levels (Tiresias: Gu et al. 2019, NSDI, section 3.2)
  priority,     ///< the highest priority of the trace
  multifactor,  ///< the highest priority by Slurm's factors: age, fair share, size and others
  gittins,      ///< the highest Gittins index by attained service, in levels (Tiresias)
  qssf,         ///< least predicted service: time x GPUs (Helios: Hu et al. 2021, SC)
  drf,          ///< the account with the least dominant share (Ghodsi et al. 2011, NSDI)
  themis,       ///< the worst finish-time fairness (Mahajan et al. 2020, NSDI)
};
constexpr std::array<std::string_view, 11> kQueueOrderNames{
    "fifo",        "sjf",     "srtf", "srsf", "las",   "priority",
    "multifactor", "gittins", "qssf", "drf",  "themis"};

/// What happens behind a job that cannot start.
enum class QueueAdmission : std::uint8_t {
  strict,        ///< all wait
  best_effort,   ///< whoever fits starts
  easy,          ///< whoever does not delay the first one starts (Lifka 1995, JSSPP)
  conservative,  ///< whoever delays nobody starts
  slurm,         ///< as Slurm's main and backfill schedulers do it, in their cycles
  kueue,         ///< as Kueue admits from ClusterQueues, each of which says it for itself
};
constexpr std::array<std::string_view, 6> kAdmissionNames{"strict",       "best_effort", "easy",
                                                          "conservative", "slurm",       "kueue"};

enum class PreemptionMode : std::uint8_t {
  none,       ///< who runs goes on to the end
  evict,      ///< a job takes the GPUs of those that come after it in the order
  replan,     ///< at every submission and end all jobs are placed anew, in the order
  qos,        ///< by the lists of qualities of service, as Slurm's preempt/qos
  partition,  ///< by the tiers of partitions, as Slurm's preempt/partition_prio
  kueue,      ///< by the rules of ClusterQueues
};
constexpr std::array<std::string_view, 6> kPreemptionNames{"none", "evict",     "replan",
                                                           "qos",  "partition", "kueue"};

/// On which node a job of less than one goes.
enum class WithinNode : std::uint8_t {
  first_fit,
  best_fit,
  worst_fit,
  fgd,  ///< whose free GPUs become least useless to the jobs of the scenario
};
constexpr std::array<std::string_view, 4> kWithinNodeNames{"first_fit", "best_fit", "worst_fit",
                                                           "fgd"};
/// On which whole nodes a larger job goes.
enum class AcrossNodes : std::uint8_t {
  first_fit,  ///< the idle ones of lowest number
  packed,     ///< as Slurm's topology/tree: the leaf with the fewest idle nodes that suffice
  spread,     ///< a node of each leaf in turn, the leaf with most idle nodes first
  block,      ///< as Slurm's topology/block: within the smallest block of blocks that has room
  least_contended,  ///< where running trainings send least; of equals as packed
};
constexpr std::array<std::string_view, 5> kAcrossNodesNames{"first_fit", "packed", "spread",
                                                            "block", "least_contended"};

/// How fast trainings are taken to run beside each other.
enum class QueueSpeed : std::uint8_t {
  simulated,  ///< together where they meet on links that could fill, replicas that are alike once
  exact,      ///< all that can share a link together, every replica on its own
};
constexpr std::array<std::string_view, 2> kQueueSpeedNames{"simulated", "exact"};

/// Names of users, accounts or models, by number. Number 0 is "": not said.
class NameTable {
 public:
  static constexpr std::size_t kMost = 65'536;

  [[nodiscard]] std::size_t size() const { return names_.size(); }
  [[nodiscard]] const std::string& operator[](std::size_t number) const { return names_[number]; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// The name's number; it is added where it is new. Nothing where there are kMost already.
  std::optional<std::uint16_t> number_of(const std::string& name);

 private:
  std::vector<std::string> names_{""};
  std::unordered_map<std::string, std::uint16_t> numbers_{{"", 0}};
};

/// One job.
struct QueueJob {
  RunTime submit = 0;
  RunTime runs = 0;             ///< on its GPUs, undisturbed
  RunTime limit = 0;            ///< what its user allowed it; `runs` is no longer
  std::int32_t gpus = 1;        ///< up to a node's on one node, more on whole nodes
  std::int32_t priority = 0;    ///< higher comes first
  std::uint16_t user = 0;       ///< QueueSpec::users
  std::uint16_t account = 0;    ///< QueueSpec::accounts
  std::uint16_t model = 0;      ///< QueueSpec::models
  std::uint16_t partition = 0;  ///< QueueSpec::partitions
  std::int32_t training = -1;   ///< QueueSpec::trainings; none: its duration is given
  bool cut = false;             ///< its limit ends it
  std::uint16_t qos = 0;        ///< QueueSpec::qos
  std::uint16_t licenses = 0;   ///< QueueSpec::license_sets
  std::uint16_t shape = 0;      ///< QueueSpec::shapes, whose GPUs are `gpus` together
  std::uint16_t widths = 0;     ///< QueueSpec::width_tables; 0: it has no other width
};

/// What a real scheduler made of a job.
struct RecordedStart {
  RunTime start = -1;      ///< below 0: not recorded
  std::vector<int> nodes;  ///< empty: not recorded
};

/// Nodes that some jobs are bound to.
struct QueuePartition {
  std::string name;
  std::vector<int> nodes{};  ///< empty: all
  int tier = 1;              ///< jobs of a higher one come first
  int priority = 1;          ///< for the factor "partition"
  std::uint16_t qos = 0;     ///< whose limits come before those of a job's own; 0: none
  RunTime grace = 0;         ///< preemption by partition: from being told to being stopped
};

/// The most GPUs that the running jobs of a user or an account hold together.
struct QueueQuota {
  std::uint16_t of = 0;  ///< QueueSpec::users or ::accounts
  int gpus = 0;
};

/// A job whose speed follows from a simulated step: from its placement, and from its neighbours.
struct QueueTraining {
  std::string name;
  std::string pointer;  ///< of its object in the scenario
  Scenario scenario;    ///< on nodes 0, 1, ... of its own
  double steps = 0;
  Seconds reference_step{};  ///< alone on the cluster's first nodes; 0: not simulated yet
  Watts gpu_draw{};          ///< mean of a GPU in that step, where QueueSpec::power is
  /// On rented nodes of a kind of their own; empty where they are as the cluster's, or too few.
  std::optional<Scenario> rented{};
  Seconds rented_step{};  ///< alone there; 0: not simulated
  /// QueueSpec::trainings: this is that one on other nodes than it asks for. Below 0: it is not.
  std::int32_t variant_of = -1;
};

/// What a job loses each time all is placed anew, by its model and width.
struct ReplanOverhead {
  std::uint16_t model = 0;
  std::vector<int> gpus;      ///< rising
  std::vector<RunTime> cost;  ///< of each of `gpus`, and of widths up to it
};

struct QueuePreemption {
  PreemptionMode mode = PreemptionMode::none;
  std::uint8_t victims = 0;  ///< evict: a place in victim_rule_names()
  RunTime exempt = 0;        ///< evict: nobody goes who has run less than this
  RunTime restart = 0;       ///< evict, failures: GPUs are held so long before work goes on
  /// Work is kept in multiples of this; 0: all of it. Not said: an eviction keeps all of it, and a
  /// failure nothing of what was worked since the job last started, as Slurm requeues its script.
  std::optional<RunTime> checkpoint{};
  RunTime overhead = 0;  ///< replan: of what ReplanOverhead does not name
  std::vector<ReplanOverhead> overheads;
  bool cancels = false;         ///< qos, partition: whoever is preempted is cancelled
  bool youngest_first = false;  ///< qos, partition: else the smallest of the lowest priority
  bool strict_order = false;    ///< qos, partition: candidates are not sorted by overlap
  bool suspends = false;        ///< qos, partition: whoever is preempted is suspended
  int reorder_count = 1;        ///< qos, partition: how often candidates are sorted anew

  /// Whether jobs are preempted by Slurm's rules.
  [[nodiscard]] bool by_slurm() const {
    return mode == PreemptionMode::qos || mode == PreemptionMode::partition;
  }
};

struct QueuePlacement {
  WithinNode within_node = WithinNode::best_fit;
  AcrossNodes across = AcrossNodes::first_fit;
  int leaf_nodes = 0;  ///< nodes of a leaf switch; 0: all are below one
  int block_nodes =
      0;  ///< block: nodes of the smallest, as of an NVLink domain; 0: those of a leaf
};

/// Slurm's names: SchedulerParameters.
struct SlurmCycles {
  RunTime opens = 0;                          ///< when the partition is up
  RunTime sched_interval = 60'000'000'000;    ///< main scheduler, all jobs
  RunTime batch_sched_delay = 3'000'000'000;  ///< from an event to the main scheduler's pass
  int default_queue_depth = 100;              ///< that a pass for an event tries
  RunTime bf_interval = 30'000'000'000;       ///< from pass to pass of backfill
  std::optional<RunTime> bf_first{};        ///< when backfill passes first; else after bf_interval
  RunTime bf_resolution = 60'000'000'000;   ///< of reservations
  RunTime bf_window = 86'400'000'000'000;   ///< how far ahead is planned
  int bf_max_job_test = 500;                ///< jobs that a pass tries
  int bf_max_job_array_resv = 20;           ///< tasks of an array that a pass plans
  RunTime requeue_delay = 121'000'000'000;  ///< until a requeued job is looked at again
  RunTime epoch = 0;                        ///< the clock's time of day when the trace begins
};

/// How often nodes break, and what of them a job loses.
struct NodeFailures {
  std::string name;     ///< of the preset; empty: nothing fails
  Seconds mean_time{};  ///< of one node, between failures that stop its jobs
  double replaced = 1;  ///< how likely the node has to be repaired; else it is back at once
  RunTime repair = 0;   ///< mean; exponential
  std::vector<std::string> assumptions;
};

/// A node that breaks at a known time, and is back after the repair.
struct PlannedBreak {
  int node = 0;
  RunTime at = 0, repair = 0;
};

struct QueueSpec {
  std::string file;
  std::string about;
  Cluster cluster;
  QueueOrder order = QueueOrder::fifo;
  QueueAdmission admission = QueueAdmission::strict;
  QueueSpeed speed = QueueSpeed::simulated;  ///< of trainings
  QueuePreemption preemption;
  QueuePlacement placement;
  SlurmCycles slurm;
  double estimate_sigma = 0;    ///< qssf: of the logarithm of a prediction over the duration
  std::vector<RunTime> levels;  ///< las, gittins: GPU time at which a job falls a level, rising
  RunTime auction = 1'200'000'000'000;  ///< themis: from auction to auction
  QueueElastic elastic;
  NodeFailures failures;
  std::vector<PlannedBreak> breaks;
  QueueHealth health;
  std::optional<QueueBurst> burst;
  RunTime until = 0;     ///< 0: when the last job has ended
  RunTime snapshot = 0;  ///< when the record ends, from which a forecast goes on; 0: not said
  std::uint64_t seed = 1;

  std::vector<QueueJob> jobs;           ///< by submission, equals as the scenario has them
  std::vector<std::string> names;       ///< of jobs; empty: their numbers
  std::vector<RecordedStart> recorded;  ///< of jobs; empty: nothing was recorded
  NameTable users, accounts, models;
  std::vector<QueuePartition> partitions{QueuePartition{}};  ///< the first: all nodes
  std::vector<QueueQuota> user_quotas, account_quotas;
  std::vector<QueueTraining> trainings;
  std::optional<BoundsExpectation> expect{};
  std::vector<std::string> assumptions;

  std::vector<TrialCampaign> campaigns;
  std::vector<TrialBracket> brackets;
  std::vector<TrialPlace> places;  ///< of jobs; empty: no campaigns

  std::vector<JobTerms> terms;  ///< of jobs; empty: none has any
  std::vector<JobArray> arrays;
  std::unordered_map<std::string, std::int32_t> array_numbers;  ///< by name
  std::vector<AdvanceReservation> reservations;
  std::vector<QualityOfService> qos{QualityOfService{}};  ///< the first: that of jobs without one
  std::vector<Association> associations;                  ///< parents first; empty: none declared
  std::vector<QueueLicense> licenses;
  std::vector<LicenseSet> license_sets{LicenseSet{}};  ///< the first: no licences
  std::vector<JobShape> shapes{JobShape{}};  ///< the first: of jobs that are all of one kind
  std::vector<WidthTable> width_tables{WidthTable{}};  ///< the first: of jobs of one width
  PriorityRules priorities;
  double node_cpus = 0;                    ///< 0: one for each GPU
  double cpus_per_gpu = 0;                 ///< 0: node_cpus over GPUs of a node
  std::optional<PowerSpec> power;          ///< what the machines draw is reported
  std::optional<Watts> power_cap;          ///< of the site: jobs start only while it holds
  std::optional<Watts> gpu_draw;           ///< of a GPU that a job of given duration holds
  std::optional<double> usd_per_gpu_hour;  ///< what a cloud asks for a GPU
  bool cancel_unsatisfiable = false;       ///< jobs whose dependency cannot be met; else they wait
  std::vector<ClusterQueue> cluster_queues;  ///< QueueAdmission::kueue
  std::vector<QueueCohort> cohorts;          ///< of those, with settings of their own
  std::vector<FairStrategy> fair_sharing;    ///< one or two; empty: no fair sharing

  [[nodiscard]] std::string job_name(std::size_t job) const {
    const bool named = job < names.size() && !names[job].empty();
    return named ? names[job] : std::to_string(job);
  }
  [[nodiscard]] const JobTerms* terms_of(std::size_t job) const {
    return job < terms.size() ? &terms[job] : nullptr;
  }
  /// Null of a job that is no trial.
  [[nodiscard]] const TrialPlace* place_of(std::size_t job) const {
    return job < places.size() && places[job].bracket >= 0 ? &places[job] : nullptr;
  }
  /// How long a job runs whose trial takes `whole`; that of a job that is no trial.
  [[nodiscard]] RunTime length_of(std::size_t job, RunTime whole) const {
    const TrialPlace* const of = place_of(job);
    if (of == nullptr) return whole;
    const TrialBracket& bracket = brackets[static_cast<std::size_t>(of->bracket)];
    return rung_length(bracket, of->rung, campaigns[bracket.campaign].resume, whole);
  }
  [[nodiscard]] double cpus_of_node() const {
    return node_cpus > 0 ? node_cpus : cluster.node.gpus;
  }
  [[nodiscard]] double cpus_of_gpu() const {
    return cpus_per_gpu > 0 ? cpus_per_gpu : cpus_of_node() / cluster.node.gpus;
  }
  /// Nodes that a job takes part of.
  [[nodiscard]] int nodes_of(const QueueJob& job) const { return nodes_of(job.gpus, job.shape); }
  [[nodiscard]] int nodes_of(std::int32_t gpus, std::uint16_t shape) const {
    if (shape == 0) return (gpus + cluster.node.gpus - 1) / cluster.node.gpus;
    int nodes = 0;
    for (const JobPart& part : shapes[shape]) nodes += nodes_of(part.gpus, 0);
    return nodes;
  }
  /// Of QueueSpec::trainings, that of a job on so many GPUs, which are one of its widths; below 0
  /// of a job of given duration.
  [[nodiscard]] std::int32_t training_at(const QueueJob& job, int gpus) const;
  /// Alone on the cluster's first nodes, as wide as its jobs ask for.
  [[nodiscard]] Seconds reference_step(const QueueTraining& of) const {
    return of.variant_of < 0 ? of.reference_step
                             : trainings[static_cast<std::size_t>(of.variant_of)].reference_step;
  }
  /// What a job loses each time that all are placed anew.
  [[nodiscard]] RunTime overhead_of(const QueueJob& job) const;
};

}  // namespace lockstep
