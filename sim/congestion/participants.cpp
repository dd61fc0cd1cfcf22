#include "sim/congestion/participants.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/fabric/summed_streams.hpp"
#include "sim/scenario/traffic_process_extension.hpp"
#include "sim/step/like_links.hpp"

namespace lockstep {
namespace {

std::string_view op_name(CollectiveOp op) {
  for (const CollectiveKind& kind : collective_kinds()) {
    if (kind.op == op) return kind.name;
  }
  return "collective";
}

std::vector<ReplicaClass> every_replica(const Scenario& scenario, const StepPlan& plan) {
  FabricSpec any;
  any.kind = FabricKind::ideal;
  const Fabric fabric(any, Placement{plan.placement}.nodes(), plan.placement.nic_ports,
                      gigabytes_per_second(1));
  DataRoutes data_routes{plan, fabric};
  return classes_of_replicas(scenario, data_routes, Folding::unfolded).classes;
}

std::string describe(const SharedJob& job) {
  const Parallelism& cut = job.scenario.job.parallelism;
  return fmt::format("{}, {} GPUs: TP {}, PP {}, DP {}", job.scenario.job.model.name,
                     job.scenario.gpus(), cut.tensor, cut.pipeline, cut.data);
}
std::string describe(const BackgroundTraffic& traffic) {
  const std::string words =
      fmt::format("{} nodes send {} GB each to {} nodes", traffic.from.size(),
                  plain_number(traffic.size.base_units() / 1e9, 4), traffic.to.size());
  return traffic.process == nullptr ? words
                                    : fmt::format("{}, as {} says", words, traffic.process->name);
}

}  // namespace

StepPlan plan_of(const SharedJob& job) {
  Scenario of_job = job.scenario;
  of_job.fabric.faults.clear();
  return plan_step(of_job);
}

void Participant::fail_stuck(StepTime now) const {
  throw InputError({.file = scenario_.file,
                    .pointer = "/events",
                    .found = fmt::format("nothing that moves any more after {:.6g} s",
                                         to_seconds(now).base_units()),
                    .allowed = "failures that leave every job a way, or that are repaired",
                    .nearest = {}});
}

// --- training ----------------------------------------------------------------------------------

TrainingParticipant::TrainingParticipant(const SharedScenario& scenario, const SharedJob& job,
                                         CongestionRecorder& recorder)
    : Participant(scenario, job.name, describe(job), recorder),
      job_(job),
      plan_(plan_of(job)),
      classes_(every_replica(job.scenario, plan_)) {}

void TrainingParticipant::wire(FabricEra& era) {
  const Site site{.links = &era.links, .nodes = job_.nodes, .data_routes = nullptr};
  next_wiring_ = std::make_unique<Wiring>(job_.scenario, plan_, classes_, site);
  for (const WiredFlow& flow : next_wiring_->flows()) {
    if (flow.on_fabric) {
      recorder().add_flow(flow.flow, number(), words_of_flow(flow), unit(flow));
    }
  }
}

void TrainingParticipant::name_likes(const FabricEra& era) {
  const std::vector<FabricLink> simulated = simulated_links(Lanes(plan_, era.fabric, job_.nodes));
  const std::vector<LinkIndex>& known = era.links.known();
  for (FabricLink link = 0; link < known.size(); ++link) {
    const LinkIndex of = known[simulated[link]];
    if (simulated[link] == link || of == FabricLinks::kNoLink) continue;
    recorder().add_like(number(), of, era.fabric.link_name(link), era.links.capacity(link));
  }
}

bool TrainingParticipant::has_trees(const Fabric& fabric) const {
  std::vector<FabricMember> members;
  for (const int node : job_.nodes) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      members.push_back({.place = {node, nic}, .node = node, .nic = nic});
    }
  }
  return has_sum_trees(fabric, members);
}

void TrainingParticipant::tell(DcqcnStart& start) const { wiring_->tell(start); }

void TrainingParticipant::move_over(StepTime now) {
  if (step_) step_->rewire(*next_wiring_, now);
  wiring_ = std::move(next_wiring_);
}

double TrainingParticipant::unit(const WiredFlow& flow) const {
  if (flow.use == WiredFlow::Use::data) {
    return Wiring::data_unit(plan_.stages[flow.subject].channels[flow.channel].cost);
  }
  if (flow.use == WiredFlow::Use::exchange) {
    return Wiring::data_unit(plan_.exchanges[flow.subject % plan_.exchanges.size()].cost);
  }
  return 1;
}

std::string TrainingParticipant::words_of_flow(const WiredFlow& flow) const {
  const auto stages = static_cast<std::uint32_t>(plan_.stages.size());
  switch (flow.use) {
    case WiredFlow::Use::message: {
      const std::uint32_t actor = flow.subject / 2;
      const std::uint32_t stage = actor % stages;
      const bool forward = flow.subject % 2 == 0;
      const std::uint32_t next = forward ? (stage + 1) % stages : (stage + stages - 1) % stages;
      return fmt::format("{} stage {} to {}, replica {}", forward ? "activations" : "gradients",
                         stage, next, actor / stages);
    }
    case WiredFlow::Use::layer: {
      constexpr std::array<std::string_view, kAxes> kNames{"tensor", "context", "expert", "expert"};
      const std::size_t actor = flow.subject / kAxes;
      return fmt::format("{} parallel, stage {}, replica {}", kNames[flow.subject % kAxes],
                         actor % stages, actor / stages);
    }
    case WiredFlow::Use::data: {
      const DataChannel& channel = plan_.stages[flow.subject].channels[flow.channel];
      const std::string words =
          fmt::format("{} of {} MB, stage {}", op_name(channel.op),
                      plain_number(channel.payload.base_units() / 1e6, 4), flow.subject);
      const DataGroup& of_kind =
          plan_.stages[flow.subject].groups[static_cast<std::size_t>(channel.group)];
      const bool alone = of_kind.replicas == plan_.placement.data;
      return alone ? words : fmt::format("{}, group {} of replicas", words, flow.group);
    }
    case WiredFlow::Use::exchange: {
      const std::size_t exchanges = plan_.exchanges.size();
      return fmt::format("{}, replica {}", plan_.exchanges[flow.subject % exchanges].what,
                         flow.subject / exchanges);
    }
  }
  return {};
}

StepTime TrainingParticipant::next_event() const {
  return step_ ? step_->next_event() : to_step_time(job_.start);
}

void TrainingParticipant::flows_ended(std::span<const FlowIndex> flows, StepTime now) {
  step_->flows_ended(flows, now);
}

void TrainingParticipant::handle_events(StepTime now) {
  if (!step_ && to_step_time(job_.start) <= now) begin_step(now);
  while (step_) {
    step_->handle_events(now);
    if (!step_->done()) return;
    add_time(step_->finish().end);
    begin_step(now);
  }
}

void TrainingParticipant::begin_step(StepTime now) {
  step_.emplace(plan_, classes_, *wiring_, Recording::none);
  step_->begin(now);
}

StepTime TrainingParticipant::starts_at() const { return to_step_time(job_.start); }

bool TrainingParticipant::done() const {
  return times_s().size() >= static_cast<std::size_t>(scenario().steps);
}

// --- other traffic -----------------------------------------------------------------------------

TrafficParticipant::TrafficParticipant(const SharedScenario& scenario,
                                       const BackgroundTraffic& traffic, bool beside_jobs,
                                       FlowNetwork& network, CongestionRecorder& recorder)
    : Participant(scenario, traffic.name, describe(traffic), recorder),
      traffic_(traffic),
      beside_jobs_(beside_jobs),
      network_(network),
      next_(to_step_time(traffic.start)),
      sizes_(traffic.from.size(), traffic.size) {
  if (traffic_.process != nullptr) plan_round(next_, {});
}

void TrafficParticipant::plan_round(StepTime now, Seconds took) {
  const auto number = static_cast<std::size_t>(&traffic_ - scenario().background.data());
  std::optional<TrafficRound> round = next_round(scenario(), number,
                                                 {.round = rounds_++,
                                                  .now = to_seconds(now),
                                                  .took = took,
                                                  .senders = traffic_.from.size(),
                                                  .size = traffic_.size});
  sent_all_ = !round;
  if (!round) return;
  next_ = std::max(to_step_time(round->at), now);
  sizes_ = std::move(round->sizes);
}

void TrafficParticipant::wire(FabricEra& era) {
  nics_ = era.fabric.nics_per_node();
  next_senders_.clear();
  for (std::size_t i = 0; i < traffic_.from.size(); ++i) {
    const int from = traffic_.from[i], to = traffic_.to[i % traffic_.to.size()];
    next_senders_.push_back(wire_sender(era, from, to));
    recorder().add_flow(next_senders_.back().flow, number(),
                        fmt::format("node {} to node {}", from, to), 1.0 / nics_);
  }
}

/// Each sender's NICs send side by side, each to the receiver's NIC of its own number: on every
/// link a NIC's stream is as good as one of gradients, so the flow's progress is that of one.
TrafficParticipant::Sender TrafficParticipant::wire_sender(FabricEra& era, int from, int to) {
  std::vector<FlowEdge> edges;
  std::vector<RouteHop> hops;
  bool stalled = false;
  for (int nic = 0; nic < nics_; ++nic) {
    hops.clear();
    era.fabric.route(from, nic, to, nic, static_cast<std::uint64_t>(nic), hops);
    for (const RouteHop& hop : hops) {
      if (era.links.dead(hop.link)) {
        stalled = true;
      } else {
        edges.push_back({era.links[hop.link], hop.share});
      }
    }
  }
  if (edges.empty()) {
    const BytesPerSecond nic = era.fabric.nic_bandwidth();
    edges.push_back({network_.add_link(payload_bandwidth(nic, era.links.efficiency())), 1});
  }
  return {network_.add_flow(edges), stalled};
}

void TrafficParticipant::tell(DcqcnStart& start) const {
  for (const Sender& sender : senders_) start.add_flow(sender.flow, 1);
}

void TrafficParticipant::move_over(StepTime now) {
  for (std::size_t s = 0; s < senders_.size(); ++s) {
    const FlowIndex from = senders_[s].flow;
    const Sender& to = next_senders_[s];
    if (!network_.active(from)) continue;
    network_.hand_over(from, to.flow, now);
    if (!to.stalled) network_.resume(to.flow, now);
  }
  senders_ = std::move(next_senders_);
}

StepTime TrafficParticipant::next_event() const {
  return sent_all_ || moving_ > 0 ? kNever : next_;
}

void TrafficParticipant::flows_ended(std::span<const FlowIndex> flows, StepTime now) {
  moving_ -= flows.size();
  if (moving_ > 0) return;
  add_time(now - round_begin_);
  if (traffic_.process != nullptr && !sent_all_) {
    plan_round(now, to_seconds(now - round_begin_));
  }
}

void TrafficParticipant::handle_events(StepTime now) {
  if (sent_all_ || moving_ > 0 || next_ > now) return;
  round_begin_ = now;
  for (std::size_t s = 0; s < senders_.size(); ++s) {
    const Sender& sender = senders_[s];
    const Bytes of_a_nic = sizes_[s] / static_cast<double>(nics_);
    if (of_a_nic <= Bytes{}) continue;
    sender.stalled ? network_.start_held(sender.flow, of_a_nic, now)
                   : network_.start(sender.flow, of_a_nic, now);
    ++moving_;
  }
  const bool goes_on = traffic_.process != nullptr || traffic_.every > Seconds{};
  sent_all_ = !goes_on || !beside_jobs_;
  next_ = std::max(next_ + to_step_time(traffic_.every), now);
}

StepTime TrafficParticipant::starts_at() const { return to_step_time(traffic_.start); }

bool TrafficParticipant::done() const { return beside_jobs_ || (sent_all_ && moving_ == 0); }

}  // namespace lockstep
