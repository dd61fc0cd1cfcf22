#include "sim/cluster/job_speeds.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/layer/memory.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/fabric/hash_band.hpp"
#include "sim/power/step_power.hpp"
#include "sim/step/step.hpp"
#include "topologies/fabrics/fabric_counts.hpp"

namespace lockstep {
namespace {

/// Mean step time in seconds of each of several trainings that run at once on some nodes.
std::vector<double> steps_together(const QueueSpec& spec,
                                   const std::vector<std::pair<int, std::vector<int>>>& placed) {
  SharedScenario scenario;
  scenario.file = spec.file;
  scenario.cluster = spec.cluster;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto& [training, nodes] = placed[i];
    const QueueTraining& of = spec.trainings[static_cast<std::size_t>(training)];
    scenario.jobs.push_back({.name = fmt::format("{} {}", of.name, i),
                             .scenario = of.scenario,
                             .nodes = nodes,
                             .start = {}});
  }
  const SharedResult result =
      simulate_shared(scenario, {.alone = false, .draw = false, .limits = {}});
  std::vector<double> out;
  out.reserve(placed.size());
  for (std::size_t i = 0; i < placed.size(); ++i) out.push_back(result.congestion.jobs[i].step_s);
  return out;
}

/// Mean draw of a GPU in a step of the job alone.
Watts mean_draw(Scenario scenario, const PowerSpec& power) {
  scenario.power = power;
  const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
  return step_power(scenario, step).levels.training.gpu;
}

void require_training_memory(const QueueSpec& spec, const QueueTraining& training) {
  const Scenario& job = training.scenario;
  const MemoryVerdict memory = check_memory(job.job, job.stack, job.node.gpu);
  if (memory.fits) return;
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  throw InputError(
      {.file = spec.file,
       .pointer = training.pointer,
       .found = fmt::format("a job that needs {} on a GPU", gib(memory.peak.needed())),
       .allowed = fmt::format("at most {} (--allow-oom predicts anyway)", gib(memory.usable)),
       .nearest = {}});
}

/// Disjoint sets of jobs that share something.
class Unions {
 public:
  explicit Unions(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t of) {
    while (parent_[of] != of) of = parent_[of] = parent_[parent_[of]];
    return of;
  }
  void join(std::size_t a, std::size_t b) {
    const std::size_t first = find(a), second = find(b);
    parent_[std::max(first, second)] = std::min(first, second);
  }

 private:
  std::vector<std::size_t> parent_;
};

std::set<int> parts_of(const std::vector<int>& nodes, int nodes_of_part) {
  std::set<int> out;
  for (const int node : nodes) out.insert(node / nodes_of_part);
  return out;
}

}  // namespace

void time_trainings(QueueSpec& spec, bool allow_oom) {
  for (std::size_t t = 0; t < spec.trainings.size(); ++t) {
    QueueTraining& training = spec.trainings[t];
    if (!allow_oom) require_training_memory(spec, training);
    std::vector<int> first(static_cast<std::size_t>(training.scenario.nodes));
    std::iota(first.begin(), first.end(), 0);
    training.reference_step = Seconds{steps_together(spec, {{static_cast<int>(t), first}}).front()};
    if (spec.power) training.gpu_draw = mean_draw(training.scenario, *spec.power);
  }
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    QueueJob& job = spec.jobs[j];
    if (job.training < 0) continue;
    const QueueTraining& training = spec.trainings[static_cast<std::size_t>(job.training)];
    const RunTime most = to_run_time(Seconds{4e9});
    const double takes = training.steps * training.reference_step.base_units();
    const RunTime whole = takes < 4e9 ? to_run_time(Seconds{takes}) : most;
    job.runs = spec.length_of(j, whole);
    if (const TrialPlace* const of = spec.place_of(j)) {
      spec.campaigns[spec.brackets[static_cast<std::size_t>(of->bracket)].campaign].whole = whole;
    }
    job.limit = std::max(job.limit, job.runs);
  }
}

JobSpeeds::JobSpeeds(const QueueSpec& spec) : spec_(&spec) {
  if (spec.trainings.empty()) return;
  const Cluster& cluster = spec.cluster;
  const NicPorts ports = nic_ports(cluster.node);
  unit_nodes_ = pod_nodes_ = cluster.nodes;
  if (cluster.fabric.kind == FabricKind::ideal || ports.count == 0) {
    alike_ = true;
    return;
  }
  const FabricCounts counts =
      fabric_counts(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth);
  const int leaves_of_unit = cluster.fabric.kind == FabricKind::rail_optimised ? ports.count : 1;
  unit_nodes_ = counts.unit_nodes;
  if (counts.pods > 1) pod_nodes_ = counts.pod_leaves / leaves_of_unit * counts.unit_nodes;
  alike_ = counts.pods == 1 && cluster.fabric.faults.empty() &&
           !is_hashed(cluster.fabric, cluster.nodes, ports);
}

std::vector<JobSpeeds::Placed> JobSpeeds::running(const QueueState& state) const {
  std::vector<Placed> out;
  for (const auto& [end, j] : state.by_limit()) {
    const std::int32_t training = state.job(j).training;
    if (training < 0) continue;
    out.push_back({j, training, {}});
    for (const HeldGpus& held : state.state(j).held) out.back().nodes.push_back(held.node);
    std::ranges::sort(out.back().nodes);
  }
  std::ranges::sort(out, {}, &Placed::job);
  return out;
}

/// Jobs that can share a link: each reaches beyond its leaf, and they have a leaf in common; or
/// each reaches beyond its pod, and they have a pod in common.
std::vector<std::vector<JobSpeeds::Placed>> JobSpeeds::neighbours(
    std::vector<Placed> placed) const {
  Unions unions(placed.size());
  for (const int part_nodes : {unit_nodes_, pod_nodes_}) {
    std::map<int, std::size_t> first_on;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const std::set<int> parts = parts_of(placed[i].nodes, part_nodes);
      if (parts.size() < 2) continue;
      for (const int part : parts) {
        const auto [at, is_new] = first_on.try_emplace(part, i);
        if (!is_new) unions.join(at->second, i);
      }
    }
  }
  std::map<std::size_t, std::vector<Placed>> groups;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    groups[unions.find(i)].push_back(std::move(placed[i]));
  }
  std::vector<std::vector<Placed>> out;
  out.reserve(groups.size());
  for (auto& [first, group] : groups) out.push_back(std::move(group));
  return out;
}

/// If units are alike, they and their nodes are numbered in the order in which the group uses them.
JobSpeeds::Key JobSpeeds::key_of(const std::vector<Placed>& group) const {
  Key out;
  std::map<int, int> units;
  std::map<int, int> used;  // nodes of each unit so far
  for (const Placed& of : group) {
    std::vector<int> key{of.training};
    for (const int node : of.nodes) {
      if (!alike_) {
        key.push_back(node);
        continue;
      }
      const int unit =
          units.try_emplace(node / unit_nodes_, static_cast<int>(units.size())).first->second;
      key.push_back(unit * unit_nodes_ + used[unit]++);
    }
    out.push_back(std::move(key));
  }
  return out;
}

const std::vector<double>& JobSpeeds::speeds_of(const std::vector<Placed>& group) {
  const Key key = key_of(group);
  const auto [at, is_new] = known_.try_emplace(key);
  if (!is_new) return at->second;
  std::vector<std::pair<int, std::vector<int>>> placed;
  for (const std::vector<int>& of : key) {
    placed.emplace_back(of.front(), std::vector<int>(of.begin() + 1, of.end()));
  }
  const std::vector<double> steps_s = steps_together(*spec_, placed);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const QueueTraining& training = spec_->trainings[static_cast<std::size_t>(group[i].training)];
    at->second.push_back(training.reference_step.base_units() / steps_s[i]);
  }
  return at->second;
}

void JobSpeeds::update(QueueState& state) {
  if (spec_->trainings.empty()) return;
  std::vector<Placed> placed = running(state);
  std::vector<std::vector<int>> now;
  for (const Placed& of : placed) {
    now.push_back({static_cast<int>(of.job)});
    now.back().insert(now.back().end(), of.nodes.begin(), of.nodes.end());
  }
  if (now == last_) return;
  last_ = std::move(now);
  for (const std::vector<Placed>& group : neighbours(std::move(placed))) {
    const std::vector<double>& speeds = speeds_of(group);
    for (std::size_t i = 0; i < group.size(); ++i) state.set_speed(group[i].job, speeds[i]);
  }
}

}  // namespace lockstep
