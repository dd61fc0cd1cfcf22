#include "sim/cluster/job_speeds.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <tuple>
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
                                   const std::vector<PlacedTraining>& placed) {
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

/// The step of a training alone on the first of rented nodes.
Seconds rented_step(const QueueSpec& spec, const QueueTraining& training) {
  SharedScenario scenario;
  scenario.file = spec.file;
  scenario.cluster = spec.burst->rented;
  std::vector<int> first(static_cast<std::size_t>(training.rented->nodes));
  std::iota(first.begin(), first.end(), 0);
  scenario.jobs.push_back({.name = training.name,
                           .scenario = *training.rented,
                           .nodes = std::move(first),
                           .start = {}});
  const SharedResult result =
      simulate_shared(scenario, {.alone = false, .draw = false, .limits = {}});
  return Seconds{result.congestion.jobs.front().step_s};
}

/// Mean draw of a GPU in a step of the job alone.
Watts mean_draw(Scenario scenario, const PowerSpec& power) {
  scenario.power = power;
  const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
  return step_power(scenario, step).levels.training.gpu;
}

/// `job`: the training on the cluster's nodes, or on rented ones.
void require_training_memory(const QueueSpec& spec, const QueueTraining& training,
                             const Scenario& job) {
  const MemoryVerdict memory = check_memory(job.job, job.stack, job.node.gpu);
  if (memory.fits) return;
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  throw InputError(
      {.file = spec.file,
       .pointer = training.pointer,
       .found = fmt::format("a job that needs {} on a GPU{}", gib(memory.peak.needed()),
                            &job == &training.scenario ? "" : " of a rented node"),
       .allowed = fmt::format("at most {} (--allow-oom predicts anyway)", gib(memory.usable)),
       .nearest = {}});
}

/// least_contended places jobs by what others put on links alone, which is not known where flows
/// are not told apart.
void require_known_loads(const QueueSpec& spec) {
  if (spec.placement.across != AcrossNodes::least_contended || FoldedSteps::can_fold(spec)) return;
  throw InputError({.file = spec.file,
                    .pointer = "/queue/placement/across",
                    .found = "least_contended",
                    .allowed = "another rule, such as packed, where the transport has DCQCN or "
                               "switches sum: what a training puts on a link is not known there",
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
  require_known_loads(spec);
  for (std::size_t t = 0; t < spec.trainings.size(); ++t) {
    QueueTraining& training = spec.trainings[t];
    if (!allow_oom) require_training_memory(spec, training, training.scenario);
    std::vector<int> first(static_cast<std::size_t>(training.scenario.nodes));
    std::iota(first.begin(), first.end(), 0);
    training.reference_step =
        Seconds{steps_together(spec, {{static_cast<std::int32_t>(t), first}}).front()};
    if (training.rented) {
      if (!allow_oom) require_training_memory(spec, training, *training.rented);
      training.rented_step = rented_step(spec, training);
    }
    if (spec.power) training.gpu_draw = mean_draw(training.scenario, *spec.power);
  }
  for (WidthTable& table : spec.width_tables) {
    for (std::size_t w = 0; w < table.trainings.size(); ++w) {
      const QueueTraining& of = spec.trainings[static_cast<std::size_t>(table.trainings[w])];
      table.speeds[w] = spec.reference_step(of) / of.reference_step;
    }
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
  if (spec.speed == QueueSpeed::simulated && FoldedSteps::can_fold(spec)) {
    folded_ = std::make_unique<FoldedSteps>(spec);
    areas_ = std::make_unique<FabricAreas>(folded_->fabric());
    return;
  }
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
    const std::int32_t training = spec_->training_at(state.job(j), state.state(j).width);
    if (training < 0) continue;
    std::vector<int> nodes;
    for (const HeldGpus& held : state.state(j).held) nodes.push_back(held.node);
    std::ranges::sort(nodes);
    out.push_back({j, {training, std::move(nodes)}});
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
      const std::set<int> parts = parts_of(placed[i].at.nodes, part_nodes);
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
    out.push_back(of.at.training);
    for (const int node : of.at.nodes) {
      if (!alike_) {
        out.push_back(node);
        continue;
      }
      const int unit =
          units.try_emplace(node / unit_nodes_, static_cast<int>(units.size())).first->second;
      out.push_back(unit * unit_nodes_ + used[unit]++);
    }
  }
  return out;
}

const std::vector<double>& JobSpeeds::speeds_of(const std::vector<Placed>& group) {
  const Key key = key_of(group);
  const auto [at, is_new] = known_.try_emplace(key);
  if (!is_new) return at->second;
  std::vector<PlacedTraining> placed;
  auto part = key.begin();
  for (const Placed& of : group) {
    const auto end = part + 1 + static_cast<std::ptrdiff_t>(of.at.nodes.size());
    placed.push_back({*part, std::vector<int>(part + 1, end)});
    part = end;
  }
  const std::vector<double> steps_s = steps_together(*spec_, placed);
  for (std::size_t i = 0; i < group.size(); ++i) {
    at->second.push_back(speed_of(group[i], Seconds{steps_s[i]}));
  }
  return at->second;
}

/// What a job does alone where it is. It is simulated where no training like it lay like that.
const JobSpeeds::Met& JobSpeeds::meet(const Placed& of) {
  Met& met = met_[of.job];
  if (!met.nodes.empty() && met.nodes == of.at.nodes) return met;
  met.nodes = of.at.nodes;
  met.key = {of.at.training};
  met.uses.clear();
  AreasMet areas;
  areas_->describe(of.at.nodes, areas, met.key);
  const auto [at, is_new] = lone_.try_emplace(met.key);
  LonePlace& lone = at->second;
  if (is_new) {
    const LoneStep found = folded_->alone(of.at);
    lone.step = found.step;
    for (const LinkUse& use : found.uses) {
      lone.uses.push_back({areas_->place_of(use.link, areas), use.peak, use.bytes});
    }
  }
  met.step = lone.step;
  for (const LonePlace::Use& use : lone.uses) {
    met.uses.push_back({areas_->link_at(use.at, areas), use.peak, use.bytes});
  }
  return met;
}

const LinkLoads& JobSpeeds::link_loads(const QueueState& state) {
  if (loaded_at_ == state.moves() + 1) return loads_;
  if (!places_) places_ = std::make_unique<LinkPlaces>(folded_->fabric());
  std::vector<double> shares(folded_->fabric().link_count());
  for (const Placed& of : running(state)) {
    const Met& met = meet(of);
    for (const LinkUse& use : met.uses) {
      shares[use.link] += use.bytes / met.step / folded_->capacity(use.link);
    }
  }
  loads_ = places_->loads(shares);
  loaded_at_ = state.moves() + 1;
  return loads_;
}

/// The links on which several meet and that could fill.
std::vector<JobSpeeds::Meeting> JobSpeeds::meetings(const std::vector<Placed>& placed) {
  constexpr double kFull = 1 + 1e-9;
  struct Use {
    FabricLink link;
    Meeting::User user;
  };
  std::vector<Use> uses;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    for (const LinkUse& use : meet(placed[i]).uses) {
      uses.push_back({use.link, {i, use.peak, use.bytes}});
    }
  }
  std::ranges::sort(uses, [](const Use& a, const Use& b) {
    return a.link != b.link ? a.link < b.link : a.user.who < b.user.who;
  });
  std::vector<Meeting> out;
  for (auto first = uses.begin(); first != uses.end();) {
    BytesPerSecond all;
    auto last = first;
    for (; last != uses.end() && last->link == first->link; ++last) all += last->user.peak;
    if (last - first > 1 && all > kFull * folded_->capacity(first->link)) {
      Meeting& meeting = out.emplace_back();
      meeting.link = first->link;
      for (auto use = first; use != last; ++use) meeting.users.push_back(use->user);
    }
    first = last;
  }
  return out;
}

/// Whether nobody is slowed by much on the link, by itself; then all of them wait so much longer.
/// Users of two links that are of the same trainings and put the same on them are taken to slow
/// each other alike.
bool JobSpeeds::slows_little(const Meeting& meeting, std::vector<Placed>& placed) {
  constexpr double kLittle = 1e-3;
  std::vector<Meeting::User> users = meeting.users;
  const auto what = [&placed](const Meeting::User& user) {
    return std::tuple(placed[user.who].at.training, user.peak, user.bytes);
  };
  std::ranges::stable_sort(users, {}, what);
  std::vector<double> key;
  for (const Meeting::User& user : users) {
    key.insert(key.end(), {static_cast<double>(placed[user.who].at.training),
                           user.peak.base_units(), user.bytes.base_units()});
  }
  const auto [at, is_new] = tried_.try_emplace(std::move(key));
  std::vector<double>& longer = at->second;
  if (is_new) {
    std::vector<PlacedTraining> trainings;
    for (const Meeting::User& user : users) trainings.push_back(placed[user.who].at);
    const std::vector<Seconds> steps = folded_->together(trainings, {&meeting.link, 1});
    for (std::size_t i = 0; i < users.size(); ++i) {
      longer.push_back(steps[i] / met_.at(placed[users[i].who].job).step - 1);
    }
  }
  if (std::ranges::any_of(longer, [](double part) { return part > kLittle; })) return false;
  for (std::size_t i = 0; i < users.size(); ++i) placed[users[i].who].waits += longer[i];
  return true;
}

/// Groups of those who meet on links that could fill; whoever meets nobody there is alone. A few
/// are simulated together at once; of many, those links are left out that slow nobody by much.
std::vector<JobSpeeds::Contended> JobSpeeds::contended(std::vector<Placed>& placed) {
  constexpr std::ptrdiff_t kFew = 6;
  const std::vector<Meeting> all = meetings(placed);
  const auto join = [](Unions& unions, const Meeting& meeting) {
    for (const Meeting::User& user : meeting.users) {
      unions.join(meeting.users.front().who, user.who);
    }
  };
  Unions could(placed.size()), do_slow(placed.size());
  for (const Meeting& meeting : all) join(could, meeting);
  std::vector<std::ptrdiff_t> size(placed.size());
  for (std::size_t i = 0; i < placed.size(); ++i) ++size[could.find(i)];
  std::vector<const Meeting*> slow;
  for (const Meeting& meeting : all) {
    const bool are_few = size[could.find(meeting.users.front().who)] <= kFew;
    if (!are_few && slows_little(meeting, placed)) continue;
    join(do_slow, meeting);
    slow.push_back(&meeting);
  }
  std::map<std::size_t, Contended> groups;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    groups[do_slow.find(i)].jobs.push_back(&placed[i]);
  }
  for (const Meeting* meeting : slow) {
    groups[do_slow.find(meeting->users.front().who)].links.push_back(meeting->link);
  }
  std::vector<Contended> out;
  out.reserve(groups.size());
  for (auto& [first, group] : groups) out.push_back(std::move(group));
  return out;
}

void JobSpeeds::set_speeds(QueueState& state, Contended group) {
  if (group.jobs.size() == 1) {
    const Placed& of = *group.jobs.front();
    state.set_speed(of.job, speed_of(of, met_.at(of.job).step) / (1 + of.waits));
    return;
  }
  // Groups that differ in which of like jobs came first are one.
  std::ranges::stable_sort(group.jobs, {},
                           [this](const Placed* of) -> const Key& { return met_.at(of->job).key; });
  Key key;
  AreasMet areas;
  for (const Placed* of : group.jobs) {
    key.push_back(of->at.training);
    areas_->describe(of->at.nodes, areas, key);
  }
  for (const FabricLink link : group.links) {
    const FabricAreas::Place place = areas_->place_of(link, areas);
    key.insert(key.end(), {static_cast<int>(place.area), static_cast<int>(place.number)});
  }
  const auto [at, is_new] = known_.try_emplace(std::move(key));
  if (is_new) {
    std::vector<PlacedTraining> placed;
    for (const Placed* of : group.jobs) placed.push_back(of->at);
    const std::vector<Seconds> steps = folded_->together(placed, group.links);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      at->second.push_back(speed_of(*group.jobs[i], steps[i]));
    }
  }
  for (std::size_t i = 0; i < group.jobs.size(); ++i) {
    state.set_speed(group.jobs[i]->job, at->second[i] / (1 + group.jobs[i]->waits));
  }
}

void JobSpeeds::update(QueueState& state) {
  if (spec_->trainings.empty()) return;
  std::vector<Placed> placed = running(state);
  std::vector<std::vector<int>> now;
  for (const Placed& of : placed) {
    now.push_back({static_cast<int>(of.job)});
    now.back().insert(now.back().end(), of.at.nodes.begin(), of.at.nodes.end());
  }
  if (now == last_) return;
  last_ = std::move(now);
  if (folded_) {
    for (Contended& group : contended(placed)) set_speeds(state, std::move(group));
    return;
  }
  for (const std::vector<Placed>& group : neighbours(std::move(placed))) {
    const std::vector<double>& speeds = speeds_of(group);
    for (std::size_t i = 0; i < group.size(); ++i) state.set_speed(group[i].job, speeds[i]);
  }
}

}  // namespace lockstep
