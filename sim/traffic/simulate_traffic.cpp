#include "sim/traffic/simulate_traffic.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "sim/traffic/flow_drain.hpp"
#include "topologies/fabrics/nic_rates.hpp"

namespace lockstep {
namespace {

enum EventKind : std::uint32_t { kStart, kArrival };

/// Where messages or those that share a link are fewer, flows are as soon settled one by one.
constexpr std::size_t kFlowsALink = 8;
constexpr std::size_t kWorthDraining = 4096;

/// The value that a share `q` of the sorted values does not exceed (nearest rank).
double quantile(const std::vector<double>& sorted, double q) {
  const double rank = std::ceil(q * static_cast<double>(sorted.size()) - 1e-9);
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

void add_note(const TrafficEntry& entry, std::vector<std::string>& notes) {
  switch (entry.grain) {
    case Grain::flows:
      if (!info(entry.kind).is_ring) return;
      notes.push_back(
          fmt::format("{}: every edge of a ring is one flow; steps do not wait for "
                      "each other, which is coarser than messages",
                      entry.name));
      return;
    case Grain::sources:
      notes.push_back(
          fmt::format("{}: all that one member sends is one variable, at equal rates "
                      "to all: coarser than a flow for each pair",
                      entry.name));
      return;
    case Grain::coupled:
      notes.push_back(
          fmt::format("{}: each group is one variable, as fast as its slowest pair: "
                      "a coarser model than messages",
                      entry.name));
      return;
    case Grain::messages:
    case Grain::nccl:
      return;
  }
}

}  // namespace

TrafficSimulation::TrafficSimulation(const TrafficScenario& scenario, TrafficNetwork network)
    : scenario_(scenario),
      network_(std::move(network)),
      plan_(scenario, network_),
      progress_(plan_.demands().size()),
      demand_of_(network_.flows().flows()),
      unfinished_(plan_.groups().size()),
      round_start_(plan_.groups().size()),
      totals_(scenario.entries.size()) {
  for (std::uint32_t d = 0; d < progress_.size(); ++d) demand_of_[plan_.demands()[d].flow] = d;
}

void TrafficSimulation::run() {
  assert(completions_.empty() && "run twice");
  if (only_drains() && run_drained()) return;
  Engine engine(network_.flows());
  engine.add(*this);
  if (scenario_.cluster.transport.congestion_control != CongestionControl::none) {
    start_ =
        std::make_unique<DcqcnStart>(network_.fabric(), network_.flows(), scenario_.efficiency);
    for (const Demand& demand : plan_.demands()) tell_start(demand);
    engine.add_change(*start_);
  }
  engine.run();
}

/// Whether many messages start together and nothing after them, and nobody watches their flows.
bool TrafficSimulation::only_drains() const {
  return plan_.demands().size() >= kWorthDraining && !flow_added_ &&
         plan_.demands().size() >= kFlowsALink * network_.flows().links() &&
         scenario_.cluster.transport.congestion_control == CongestionControl::none &&
         std::ranges::all_of(scenario_.entries,
                             [this](const TrafficEntry& entry) {
                               return entry.repeat == 1 &&
                                      entry.start == scenario_.entries.front().start;
                             }) &&
         std::ranges::all_of(plan_.demands(),
                             [](const Demand& demand) { return demand.next == Demand::kNone; });
}

/// Runs messages that all start together, with their ends from drain_flows(). False, and nothing
/// done, where these are not to be had.
bool TrafficSimulation::run_drained() {
  const StepTime start = to_step_time(scenario_.entries.front().start);
  std::vector<DrainedFlow> messages;
  messages.reserve(plan_.demands().size());
  for (const Demand& demand : plan_.demands()) {
    messages.push_back({demand.flow, Bytes{demand.bytes}});
  }
  const auto ends = drain_flows(network_.flows(), messages, start);
  if (!ends) return false;
  for (Progress& progress : progress_) progress = {.start = start, .begun = 1};
  moving_ = messages.size();
  drained_.resize(network_.flows().links());
  std::vector<FlowIndex> now_ended;
  for (std::size_t i = 0; i < ends->size() || !events_.empty();) {
    StepTime now = i < ends->size() ? (*ends)[i].at : kNever;
    now = std::min(now, next_event());
    now_ended.clear();
    for (; i < ends->size() && (*ends)[i].at == now; ++i) now_ended.push_back((*ends)[i].flow);
    for (const FlowIndex flow : now_ended) {
      const double bytes = plan_.demands()[demand_of_[flow]].bytes;
      for (const MaxMin::Edge& edge : network_.flows().edges(flow)) drained_[edge.link] += bytes;
    }
    flows_ended(now_ended, now);
    handle_events(now);
  }
  return true;
}

void TrafficSimulation::tell_start(const Demand& demand) {
  for (; told_links_ < network_.flows().links(); ++told_links_) {
    if (const auto link = network_.fabric_link(told_links_)) start_->add_link(told_links_, *link);
  }
  start_->add_flow(demand.flow, demand.messages);
}

void TrafficSimulation::begin(StepTime now) {
  for (std::uint32_t g = 0; g < plan_.groups().size(); ++g) {
    const TrafficGroup& group = plan_.groups()[g];
    start_round(g, now + to_step_time(scenario_.entries[group.entry].start));
  }
}

StepTime TrafficSimulation::next_event() const {
  return events_.empty() ? kNever : events_.next_time();
}

void TrafficSimulation::flows_ended(std::span<const FlowIndex> flows, StepTime now) {
  moving_ -= flows.size();
  for (const FlowIndex flow : flows) {
    const std::uint32_t demand = demand_of_[flow];
    const StepTime arrival = now + plan_.demands()[demand].latency;
    arrival == now ? finish(demand, now) : events_.push(arrival, kArrival, demand);
  }
}

void TrafficSimulation::handle_events(StepTime now) {
  while (!events_.empty() && events_.next_time() == now) {
    const Event event = events_.pop();
    event.kind == kStart ? send(event.subject, now) : finish(event.subject, now);
  }
}

bool TrafficSimulation::done() const { return moving_ == 0 && events_.empty(); }

void TrafficSimulation::start_round(std::uint32_t group, StepTime at) {
  const TrafficGroup& g = plan_.groups()[group];
  unfinished_[group] = g.count * static_cast<std::uint32_t>(g.steps);
  round_start_[group] = at;
  for (std::uint32_t d = g.first; d < g.first + g.count; ++d) events_.push(at, kStart, d);
}

void TrafficSimulation::send(std::uint32_t index, StepTime now) {
  Progress& progress = progress_[index];
  plan_.prepare(index, progress.round);
  const Demand& demand = plan_.demands()[index];
  if (demand.flow >= demand_of_.size()) {
    demand_of_.resize(demand.flow + std::size_t{1});
    if (flow_added_) flow_added_(demand);
    if (start_) tell_start(demand);
  }
  demand_of_[demand.flow] = index;
  progress.start = now;
  ++progress.begun;
  ++moving_;
  network_.flows().start(demand.flow, Bytes{demand.bytes}, now);
}

void TrafficSimulation::finish(std::uint32_t index, StepTime now) {
  const Demand& demand = plan_.demands()[index];
  if (demand.next != Demand::kNone) {
    finish_step(index, now);
    return;
  }
  Progress& progress = progress_[index];
  record(index, demand.bytes, progress.start, now);
  const TrafficEntry& entry = plan_.entry_of(demand);
  if (++progress.round == entry.repeat) return;
  const StepTime next = now + to_step_time(entry.gap);
  next == now ? send(index, now) : events_.push(next, kStart, index);
}

/// A message of a ring has arrived: its sender and its receiver may have been waiting for it.
void TrafficSimulation::finish_step(std::uint32_t index, StepTime now) {
  const Demand& demand = plan_.demands()[index];
  const std::uint32_t group = demand.group;
  ++progress_[index].sent;
  ++progress_[demand.next].received;
  if (--unfinished_[group] == 0) {
    finish_collective(group, now);
    return;
  }
  step_if_ready(index, now);
  if (demand.next != index) step_if_ready(demand.next, now);
}

void TrafficSimulation::step_if_ready(std::uint32_t index, StepTime now) {
  const Demand& demand = plan_.demands()[index];
  const Progress& progress = progress_[index];
  const bool waits = progress.begun > progress.sent || progress.received < progress.sent;
  if (!waits && progress.begun < plan_.groups()[demand.group].steps) send(index, now);
}

void TrafficSimulation::finish_collective(std::uint32_t group, StepTime now) {
  const TrafficGroup& g = plan_.groups()[group];
  const TrafficEntry& entry = scenario_.entries[g.entry];
  record(g.first, plan_.demands()[g.first].bytes * g.steps, round_start_[group], now);
  const int round = progress_[g.first].round + 1;
  for (std::uint32_t d = g.first; d < g.first + g.count; ++d) {
    progress_[d] = {};
    progress_[d].round = round;
  }
  if (round == entry.repeat) return;
  start_round(group, now + to_step_time(entry.gap));
}

void TrafficSimulation::record(std::uint32_t index, double bytes, StepTime start, StepTime end) {
  const Demand& demand = plan_.demands()[index];
  completions_.push_back({.demand = index,
                          .round = static_cast<std::uint32_t>(progress_[index].round),
                          .flow = demand.flow,
                          .to = demand.to,
                          .bytes = bytes,
                          .start = start,
                          .end = end});
  const TrafficGroup& group = plan_.groups()[demand.group];
  Totals& totals = totals_[group.entry];
  if (demand.next == Demand::kNone) {
    ++totals.messages;
    totals.bytes += bytes * demand.pairs;
    totals.into_fabric += bytes * demand.into_fabric;
    return;
  }
  totals.messages += std::uint64_t{group.count} * static_cast<std::uint64_t>(group.steps);
  for (std::uint32_t d = group.first; d < group.first + group.count; ++d) {
    totals.bytes += bytes;
    totals.into_fabric += bytes * plan_.demands()[d].into_fabric;
  }
}

EntryReport TrafficSimulation::entry_report(std::size_t entry,
                                            const std::vector<Completion>& own) const {
  EntryReport out;
  out.name = scenario_.entries[entry].name;
  const Totals& totals = totals_[entry];
  out.messages = totals.messages;
  out.bytes = totals.bytes;
  out.nic_bytes = totals.into_fabric;
  for (const Demand& demand : plan_.demands()) {
    if (plan_.groups()[demand.group].entry == entry) out.pairs += demand.pairs;
  }
  StepTime first = own.front().start, last;
  std::vector<double> times;
  times.reserve(own.size());
  for (const Completion& c : own) {
    first = std::min(first, c.start);
    last = std::max(last, c.end);
    times.push_back(to_seconds(c.end - c.start).base_units());
  }
  std::ranges::sort(times);
  out.start_s = to_seconds(first).base_units();
  out.end_s = to_seconds(last).base_units();
  out.mean_s = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  out.median_s = quantile(times, 0.5);
  out.p99_s = quantile(times, 0.99);
  out.max_s = times.back();
  if (plan_.senders(entry) > 0 && out.time_s() > 0) {
    out.nic_bytes_per_s = totals.into_fabric / plan_.senders(entry) / out.time_s();
    const Cluster& cluster = scenario_.cluster;
    // A drawn fabric's cables may run at another rate than the node's NICs could.
    const NicRates rates =
        nic_rates(cluster.fabric, cluster.nodes, network_.fabric().nic_bandwidth());
    out.line_rate_share = out.nic_bytes_per_s / rates.most.base_units();
  }
  return out;
}

void TrafficSimulation::add_links(std::size_t most, TrafficReport& out) const {
  const FlowNetwork& flows = network_.flows();
  const auto carried = [this, &flows](LinkIndex link) {
    return drained_.empty() ? flows.carried(link) : Bytes{drained_[link]};
  };
  std::vector<std::pair<double, LinkIndex>> fullest;
  fullest.reserve(flows.links());
  for (LinkIndex link = 0; link < flows.links(); ++link) {
    if (!network_.uses(link)) continue;
    fullest.emplace_back(-(carried(link) / flows.capacity(link)).base_units(), link);
  }
  const std::size_t shown = std::min(most, fullest.size());
  const auto end = fullest.begin() + static_cast<std::ptrdiff_t>(shown);
  std::ranges::partial_sort(fullest, end);
  for (auto it = fullest.begin(); it != end; ++it) {
    const auto [busy, link] = *it;
    out.links.push_back({.name = network_.link_name(link),
                         .capacity_bytes_per_s = flows.capacity(link).base_units(),
                         .bytes = carried(link).base_units(),
                         .utilisation = -busy / out.end_s});
  }
}

TrafficReport TrafficSimulation::report(std::size_t links) const {
  TrafficReport out;
  std::vector<std::vector<Completion>> own(scenario_.entries.size());
  for (const Completion& c : completions_) {
    own[plan_.groups()[plan_.demands()[c.demand].group].entry].push_back(c);
  }
  for (std::size_t e = 0; e < own.size(); ++e) {
    out.entries.push_back(entry_report(e, own[e]));
    out.end_s = std::max(out.end_s, out.entries.back().end_s);
    add_note(scenario_.entries[e], out.notes);
  }
  out.flows = network_.flows().flows();
  out.links_used = network_.flows().links();
  add_links(links, out);
  return out;
}

TrafficReport simulate_traffic(const TrafficScenario& scenario, std::size_t links) {
  TrafficSimulation simulation(scenario);
  simulation.run();
  TrafficReport report = simulation.report(links);
  add_alone(scenario, report);
  return report;
}

void add_alone(const TrafficScenario& scenario, TrafficReport& report) {
  if (scenario.entries.size() < 2) return;
  for (std::size_t e = 0; e < scenario.entries.size(); ++e) {
    TrafficScenario alone = scenario;
    alone.entries = {scenario.entries[e]};
    TrafficSimulation simulation(alone);
    simulation.run();
    report.entries[e].alone_s = simulation.report(0).entries.front().time_s();
  }
}

}  // namespace lockstep
