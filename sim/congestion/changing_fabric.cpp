#include "sim/congestion/changing_fabric.hpp"

#include <algorithm>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/congestion/redraw.hpp"
#include "sim/fabric/faulty_fabric.hpp"

namespace lockstep {
ChangingFabric::ChangingFabric(const SharedScenario& scenario, bool events,
                               std::vector<Participant*> participants, FlowNetwork& network,
                               CongestionRecorder& recorder, Engine& engine)
    : scenario_(scenario),
      participants_(std::move(participants)),
      network_(network),
      recorder_(recorder),
      engine_(engine) {
  for (std::size_t e = 0; events && e < scenario.events.size(); ++e) {
    const FabricEvent& event = scenario.events[e];
    changes_.push_back({to_step_time(event.at), e, Change::What::breaks});
    EventOutcome outcome;
    outcome.what = words_of_fault(event.fault);
    outcome.at_s = event.at.base_units();
    outcome.lasts_s = event.lasts.base_units();
    outcomes_.push_back(std::move(outcome));
  }
  move_to(draw({}, false), {});
}

StepTime ChangingFabric::next_event() const {
  StepTime next = kNever;
  for (const Change& change : changes_) next = std::min(next, change.at);
  return next;
}

void ChangingFabric::handle_events(StepTime now) {
  if (next_event() > now) return;
  bool breaks = false;
  for (std::size_t c = 0; c < changes_.size();) {
    if (changes_[c].at > now) {
      ++c;
      continue;
    }
    const Change change = changes_[c];
    changes_.erase(changes_.begin() + static_cast<std::ptrdiff_t>(c));
    breaks = apply(change) || breaks;
  }
  move_to(draw(broken_faults(), breaks), now);
}

void ChangingFabric::move_to(std::unique_ptr<FabricEra> next, StepTime now) {
  for (Participant* participant : participants_) participant->move_over(now);
  era_ = std::move(next);
  if (start_ != nullptr) tell(*start_);
}

void ChangingFabric::tell(DcqcnStart& start) {
  start_ = &start;
  start.begin_anew(era_->fabric);
  const std::vector<LinkIndex>& known = era_->links.known();
  for (FabricLink link = 0; link < known.size(); ++link) {
    if (known[link] != FabricLinks::kNoLink) start.add_link(known[link], link);
  }
  for (const Participant* participant : participants_) participant->tell(start);
}

/// Books a change and what follows it. True if routes do not know of it yet.
bool ChangingFabric::apply(const Change& change) {
  const FabricEvent& event = scenario_.events[change.event];
  const auto later = [&](Seconds delay, Change::What what) {
    if (delay > Seconds{})
      changes_.push_back({change.at + to_step_time(delay), change.event, what});
    return delay > Seconds{};
  };
  switch (change.what) {
    case Change::What::breaks:
      record(change.event);
      broken_.insert(change.event);
      later(event.lasts, Change::What::repaired);
      later(event.every, Change::What::breaks);
      return later(event.reroute_after, Change::What::rerouted);
    case Change::What::repaired:
      broken_.erase(change.event);
      return false;
    case Change::What::rerouted:
      return false;
  }
  return false;
}

/// Which links lose capacity by it, and whose transfers are on them.
void ChangingFabric::record(std::size_t event) {
  EventOutcome& out = outcomes_[event];
  const std::vector<double> left = capacity_left(era_->fabric, {&scenario_.events[event].fault, 1});
  std::set<LinkIndex> hit;
  std::uint32_t links = 0;
  for (FabricLink link = 0; link < left.size(); ++link) {
    if (left[link] >= 1) continue;
    ++links;
    const LinkIndex known = era_->links.known()[link];
    if (known != FabricLinks::kNoLink) hit.insert(known);
  }
  if (out.times++ == 0) out.links = links;
  const auto crosses = [&](const MaxMin::Edge& edge) { return hit.contains(edge.link); };
  for (FlowIndex flow = 0; flow < network_.flows(); ++flow) {
    if (!network_.active(flow) || std::ranges::none_of(network_.edges(flow), crosses)) continue;
    ++out.transfers;
    const Process& owner = engine_.owner(flow);
    const auto whose = std::ranges::find(
        participants_, &owner, [](const Participant* p) { return static_cast<const Process*>(p); });
    const std::string& name = (*whose)->name();
    if (std::ranges::find(out.jobs, name) == out.jobs.end()) out.jobs.push_back(name);
  }
}

std::vector<FabricFault> ChangingFabric::broken_faults() const {
  std::vector<FabricFault> faults;
  faults.reserve(broken_.size());
  for (const std::size_t event : broken_) faults.push_back(scenario_.events[event].fault);
  return faults;
}

/// Those that the routes of this era do not avoid.
std::vector<FabricFault> ChangingFabric::unrouted_faults() const {
  std::vector<FabricFault> faults;
  for (const std::size_t event : broken_) {
    if (!routed_.contains(event)) faults.push_back(scenario_.events[event].fault);
  }
  return faults;
}

/// Everybody's flows over the fabric with these faults. Where routes do not know of them yet, or
/// cannot avoid them, they are those of before, and what crosses a dead link waits.
std::unique_ptr<FabricEra> ChangingFabric::draw(const std::vector<FabricFault>& faults,
                                                bool unknown) {
  bool reroutes = !unknown && (faults.empty() || can_redraw(scenario_.cluster, faults));
  if (!unknown && !reroutes) {
    note("A failure cut nodes off: what had to cross it waited, by the routes of before.");
  }
  const bool cables = !scenario_.events.empty();
  std::optional<Fabric> redrawn;
  if (reroutes) redrawn = draw_fabric(scenario_.cluster, cables, faults);
  if (reroutes && !keeps_trees(*redrawn, faults)) reroutes = false;
  std::vector<double> left;
  if (reroutes) {
    routed_ = broken_;
  } else {
    left = capacity_left(era_->fabric, unrouted_faults());
  }
  Fabric fabric = reroutes ? std::move(*redrawn) : era_->fabric;
  auto era = std::make_unique<FabricEra>(std::move(fabric), network_,
                                         scenario_.cluster.transport.efficiency, std::move(left));
  for (Participant* participant : participants_) {
    participant->wire(*era);
    engine_.claim(*participant);
  }
  name_links(*era, recorder_);
  for (Participant* participant : participants_) participant->name_likes(*era);
  return era;
}

/// Whether switches that sum for jobs can go on. Throws InputError where they never could. Source
/// of what SHARP does: NVIDIA SHARP Rev 3.2.0, Bug Fixes in this Version, 3236363: a link that
/// fails stops the jobs that use it, and no others.
bool ChangingFabric::keeps_trees(const Fabric& fabric, std::span<const FabricFault> faults) {
  if (std::ranges::none_of(participants_, &Participant::switches_sum)) return true;
  const auto none = std::ranges::find_if(participants_, [&fabric](const Participant* p) {
    return p->switches_sum() && !p->has_trees(fabric);
  });
  if (none == participants_.end()) {
    const bool dies = std::ranges::any_of(faults, [](const FabricFault& fault) {
      return fault.rate <= 0 && fault.bandwidth <= BytesPerSecond{};
    });
    if (dies) {
      note(
          "Switches sum on: a rail's tree went to another root where a failure hit it. SHARP "
          "ends a job whose tree loses a link; what its start anew takes is left out.");
    }
    return true;
  }
  if (!era_) {
    throw InputError({.file = scenario_.file,
                      .pointer = "/jobs",
                      .found = (*none)->name() + ", whose switches sum (communication.sharp), on a "
                                                 "fabric with a rail that no switch is above",
                      .allowed = "a fabric where every rail has one, or sums in GPUs",
                      .nearest = {}});
  }
  note(
      "A failure left a rail no switch above all of its leaves: what switches had to sum waited, "
      "by the trees of before.");
  return false;
}

void ChangingFabric::note(const std::string& text) {
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(text);
}

void name_links(const FabricEra& era, CongestionRecorder& recorder) {
  const std::vector<LinkIndex>& known = era.links.known();
  std::vector<std::uint8_t> entries(known.size());
  std::vector<RouteHop> ups;
  for (int node = 0; node < era.fabric.nodes(); ++node) {
    for (int nic = 0; nic < era.fabric.nics_per_node(); ++nic) {
      ups.clear();
      era.fabric.nic_ups(node, nic, ups);
      for (const RouteHop& hop : ups) entries[hop.link] = 1;
    }
  }
  for (FabricLink link = 0; link < known.size(); ++link) {
    if (known[link] == FabricLinks::kNoLink) continue;
    recorder.add_link(known[link], era.fabric.link_name(link), era.links.capacity(link),
                      entries[link] != 0);
  }
}

}  // namespace lockstep
