/// What keeps a submitted job from being looked at, beside a lack of GPUs: dependencies, a begin
/// time, a full array, a hold, a limit that it exceeds by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

enum class GateReason : std::uint8_t { open, held, limit, dependency, begin, array };

/// One gate for each job. A job goes through its gate when all that it waits for has happened, and
/// comes back when it is requeued. A place among the running tasks of an array is taken with the
/// gate and given back with the end.
class JobGates {
 public:
  /// `spec` outlives it.
  explicit JobGates(const QueueSpec& spec);

  /// Whether any job can be kept: else nothing here needs to be called.
  [[nodiscard]] bool used() const { return !gates_.empty(); }
  /// When a begin time comes; INT64_MAX: none does.
  [[nodiscard]] RunTime next_at() const;

  /// `limited`: it exceeds a limit by itself, and never starts.
  void submitted(std::uint32_t j, RunTime now, bool limited);
  /// It waits again, and is not looked at before `until`.
  void requeued(std::uint32_t j, RunTime until);
  void started(std::uint32_t j, RunTime now);
  void ended(std::uint32_t j, bool well, RunTime now);

  /// Jobs whose gates have opened, by number.
  std::vector<std::uint32_t> take_open(RunTime now);
  /// Jobs that are to be cancelled, for their dependencies cannot be met; by number.
  std::vector<std::uint32_t> take_hopeless();
  /// Why a submitted job is kept.
  [[nodiscard]] GateReason reason_of(std::uint32_t j, RunTime now) const;

 private:
  enum class Met : std::uint8_t { not_yet, yes, never };
  enum class Fate : std::uint8_t { none, well, failed };
  struct Gate {
    RunTime begin = 0;
    RunTime started = -1;
    std::uint32_t met = 0, never = 0;  ///< of its dependencies
    Fate fate = Fate::none;
    bool submitted = false, open = false, limited = false, in_array = false;
  };
  /// The rung of a campaign's trial, the furthest first, and the job's number.
  using Turn = std::pair<std::int64_t, std::uint32_t>;
  struct Group {
    std::uint32_t left = 0, not_started = 0, failed = 0, running = 0;
    RunTime last_start = -1;
    std::set<Turn> ready;  ///< tasks that wait for a place
  };
  /// A dependency of a job, by its place in the job's list.
  struct Dependent {
    std::uint32_t job, dependency;
  };
  using Time = std::pair<RunTime, std::uint32_t>;

  [[nodiscard]] const JobTerms* terms(std::uint32_t j) const { return spec_->terms_of(j); }
  [[nodiscard]] Turn turn_of(std::uint32_t j) const;
  [[nodiscard]] Met state_of(const JobDependency& dependency) const;
  [[nodiscard]] bool dependencies_met(std::uint32_t j) const;
  [[nodiscard]] bool is_hopeless(std::uint32_t j) const;
  void evaluate(std::uint32_t j, std::uint32_t dependency);
  void tell(bool of_array, std::uint32_t on, RunTime now);
  void consider(std::uint32_t j, RunTime now);

  const QueueSpec* spec_;
  std::vector<Gate> gates_;
  std::vector<Group> groups_;
  std::vector<std::vector<Met>> met_;                                     ///< by job and dependency
  std::unordered_map<std::uint64_t, std::vector<Dependent>> dependents_;  ///< of a job or an array
  std::priority_queue<Time, std::vector<Time>, std::greater<>> begins_;
  std::vector<std::uint32_t> opened_, hopeless_;
};

}  // namespace lockstep
