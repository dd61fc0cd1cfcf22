#include "sim/step/sample.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/step/lanes.hpp"
#include "sim/step/layer_routes.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

/// What the pipeline messages of replicas and their exchanges, inside layers too, put on links.
class ReplicaRoutes {
 public:
  explicit ReplicaRoutes(DataRoutes& data_routes)
      : plan_(data_routes.plan()),
        data_routes_(data_routes),
        lanes_(plan_, data_routes.fabric()),
        layers_(plan_, lanes_) {}

  /// Calls `visit` with the links of each flow of the replica.
  template <class Visit>
  void for_each_flow(int replica, Visit&& visit) {
    const int stages = plan_.placement.pipeline;
    const bool wraps = plan_.shape.wraps();
    for (int s = 0; stages > 1 && s < stages; ++s) {
      for (const int step : {1, -1}) {
        const int next = s + step;
        if (!wraps && (next < 0 || next >= stages)) continue;
        uses_.clear();
        add({replica, s}, {replica, (next + stages) % stages}, plan_.connections.message);
        visit(uses_);
      }
    }
    for (int s = 0; s < stages; ++s) {
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        uses_.clear();
        layers_.add({replica, s}, static_cast<Axis>(axis), uses_);
        if (!uses_.empty()) visit(uses_);
      }
    }
    for (const StageExchange& exchange : plan_.exchanges) {
      const Place one{replica, static_cast<int>(exchange.stages[0])};
      const Place other{replica, static_cast<int>(exchange.stages[1])};
      uses_.clear();
      add(one, other, plan_.connections.ring);
      add(other, one, plan_.connections.ring);
      visit(uses_);
    }
  }

  /// What the collectives between replicas put on links, all stages together.
  void add_data(std::vector<double>& load) {
    for (const StagePlan& stage : plan_.stages) {
      for (const DataWay& way : data_ways(stage)) {
        uses_.clear();
        data_routes_.add(stage, way, kEveryGroup, uses_);
        for (const RouteHop& use : uses_) load[use.link] += use.share;
      }
    }
  }

  void add_load(int replica, std::vector<double>& load) {
    for_each_flow(replica, [&](const std::vector<RouteHop>& uses) {
      for (const RouteHop& use : uses) load[use.link] += use.share;
    });
  }

 private:
  void add(Place from, Place to, int connections) {
    if (!lanes_.over_fabric(from, to)) return;
    lanes_.add(from, to, connections, false, 1.0, uses_);
  }

  const StepPlan& plan_;
  DataRoutes& data_routes_;
  Lanes lanes_;
  LayerRoutes layers_;
  std::vector<RouteHop> uses_;
};

/// How crowded a replica's way is: of each flow the time of a byte beside all others.
struct Crowding {
  double all = 0, worst = 0;
};

std::vector<Crowding> crowding_of(const StepPlan& plan, const Fabric& fabric,
                                  const std::vector<double>& load, ReplicaRoutes& routes) {
  std::vector<Crowding> crowding(static_cast<std::size_t>(plan.placement.data));
  for (std::size_t d = 0; d < crowding.size(); ++d) {
    routes.for_each_flow(static_cast<int>(d), [&](const std::vector<RouteHop>& uses) {
      double longest = 0;
      for (const RouteHop& use : uses) {
        longest = std::max(longest, load[use.link] / fabric.capacity(use.link).base_units());
      }
      crowding[d].all += longest;
      crowding[d].worst = std::max(crowding[d].worst, longest);
    });
  }
  return crowding;
}

/// Marks the `count` replicas with the largest values.
template <class Value>
void mark_largest(std::size_t count, const std::vector<Crowding>& crowding, Value value,
                  std::vector<char>& chosen) {
  std::vector<std::size_t> order(crowding.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return value(crowding[a]) > value(crowding[b]); });
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) chosen[order[i]] = 1;
}

/// Marks replicas of every variant of the plan, and `count` that lie evenly among all.
void mark_evenly(const StepPlan& plan, std::size_t count, std::vector<char>& even) {
  const std::size_t replicas = even.size();
  for (std::size_t i = 0; i < count; ++i) even[i * replicas / count] = 1;
  std::vector<char> seen(plan.further_variants.size() + 1);
  for (std::size_t d = 0; d < replicas; ++d) {
    char& known = seen[plan.variant(static_cast<int>(d))];
    if (!known) even[d] = 1;
    known = 1;
  }
}

/// Replicas that exchange tokens with each other, side by side: one of them alone would not wait
/// for those that it waits for.
std::size_t block_size(const std::vector<ReplicaClass>& all) {
  const std::uint32_t first = all.front().block;
  if (first == kNoBlock) return 1;
  return static_cast<std::size_t>(std::ranges::count(all, first, &ReplicaClass::block));
}

/// Marks all replicas of a block that has one in either.
void complete_blocks(std::size_t block, const std::vector<char>& even, std::vector<char>& chosen) {
  for (std::size_t first = 0; block > 1 && first < chosen.size(); first += block) {
    bool any = false;
    for (std::size_t d = first; d < first + block; ++d) any = any || chosen[d] || even[d];
    for (std::size_t d = first; any && d < first + block; ++d) chosen[d] = 1;
  }
}

/// Of the replicas of one variant: ends of segments, and of messages their end and arrival. What
/// replicas share (collectives) is the same however many are simulated.
double events_of_replica(const StepPlan& plan, std::size_t variant) {
  double events = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stage_of(variant, s);
    for (const Segment& segment : stage.segments) events += 1 + segment.flows();
    for (const auto& messages : stage.message_targets) {
      events += 2 * static_cast<double>(messages.size());
    }
  }
  return events;
}

}  // namespace

double step_events(const StepPlan& plan, const std::vector<ReplicaClass>& classes) {
  std::vector<double> replicas(plan.further_variants.size() + 1);
  for (const ReplicaClass& c : classes) ++replicas[c.variant];
  double events = 0;
  for (std::size_t v = 0; v < replicas.size(); ++v) {
    if (replicas[v] > 0) events += replicas[v] * events_of_replica(plan, v);
  }
  return events;
}

std::vector<double> ReplicaSample::crowded(double share) const {
  std::vector<double> out(crowd.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = 1 + share * (crowd[i] - 1);
  return out;
}

std::size_t first_sample(double budget, double events_each) {
  return std::max(kLeastSample, static_cast<std::size_t>(budget / (kSampleReplays * events_each)));
}

ReplayedReplicas replicas_for_replay(const Scenario& scenario, DataRoutes& data_routes,
                                     double budget) {
  ReplicaClasses replicas = classes_of_replicas(scenario, data_routes, scenario.folding);
  const double events = step_events(data_routes.plan(), replicas.classes);
  const std::size_t size =
      first_sample(budget, events / static_cast<double>(replicas.classes.size()));
  if (scenario.folding != Folding::automatic || events <= budget ||
      size >= replicas.classes.size()) {
    return {std::move(replicas), {}};
  }
  ReplicaSample sample = sample_of_replicas(scenario, data_routes, size);
  ReplicaClasses chosen{sample.classes, {}};
  return {std::move(chosen), std::move(sample)};
}

ReplicaSample sample_of_replicas(const Scenario& scenario, DataRoutes& data_routes,
                                 std::size_t size) {
  const StepPlan& plan = data_routes.plan();
  const Fabric& fabric = data_routes.fabric();
  const auto replicas = static_cast<std::size_t>(plan.placement.data);
  const std::vector<ReplicaClass> all =
      classes_of_replicas(scenario, data_routes, Folding::unfolded).classes;
  ReplicaRoutes routes{data_routes};
  std::vector<double> load(fabric.link_count());
  for (std::size_t d = 0; d < replicas; ++d) routes.add_load(static_cast<int>(d), load);

  const std::size_t block = block_size(all), blocks = std::max<std::size_t>(1, size / block);
  const std::size_t worst = blocks / 2, evenly = std::max<std::size_t>(1, blocks - worst);
  std::vector<double> with_data = load;
  routes.add_data(with_data);
  const std::vector<Crowding> crowding = crowding_of(plan, fabric, with_data, routes);
  std::vector<char> chosen(replicas), even(replicas);
  mark_largest(worst - worst / 2, crowding, [](const Crowding& c) { return c.all; }, chosen);
  mark_largest(worst / 2, crowding, [](const Crowding& c) { return c.worst; }, chosen);
  mark_evenly(plan, std::min(evenly, replicas), even);
  for (std::size_t d = 0; d < replicas; ++d) {
    if (!all[d].slowdown.empty()) chosen[d] = 1;
  }
  complete_blocks(block, even, chosen);

  ReplicaSample sample;
  std::vector<double> own(load.size());
  for (std::size_t d = 0; d < replicas; ++d) {
    if (!chosen[d] && !even[d]) continue;
    routes.add_load(static_cast<int>(d), own);
    sample.classes.push_back(all[d]);
    // Of a group only some are simulated: all groups go on together, at the pace of the slowest.
    sample.classes.back().data_group = {};
    sample.stands_for.push_back(1);
  }
  // Those that lie evenly stand for the rest, each for those after it.
  std::size_t next = 0;
  int left = static_cast<int>(replicas - sample.classes.size());
  int even_left = static_cast<int>(std::ranges::count(even, 1));
  for (const ReplicaClass& c : sample.classes) {
    const std::size_t at = next++;
    if (!even[static_cast<std::size_t>(c.representative)]) continue;
    const int share = left / even_left--;
    sample.stands_for[at] += share;
    left -= share;
  }
  sample.crowd.assign(load.size(), 1.0);
  for (std::size_t i = 0; i < load.size(); ++i) {
    if (own[i] > 0) sample.crowd[i] = load[i] / own[i];
  }
  return sample;
}

}  // namespace lockstep
