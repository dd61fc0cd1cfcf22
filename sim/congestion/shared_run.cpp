#include "sim/congestion/shared_run.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "models/input/input_error.hpp"
#include "models/workload/flops.hpp"
#include "sim/congestion/redraw.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/unseen_traffic.hpp"
#include "topologies/nic_rates.hpp"
#include "topologies/placement.hpp"
#include "topologies/switch_limits.hpp"

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
  return classes_of_replicas(scenario, plan, fabric, Folding::unfolded).classes;
}

/// A training job under way.
struct Job {
  Job(const SharedJob& of, std::uint32_t index)
      : spec(of),
        number(index),
        plan(plan_step(of.scenario)),
        classes(every_replica(of.scenario, plan)) {}

  const SharedJob& spec;
  std::uint32_t number;  ///< of the recorder
  StepPlan plan;
  std::vector<ReplicaClass> classes;
  std::optional<RunningStep> step;
  StepTime step_begin;
  std::vector<double> steps_s;
};

/// Checkpoint or storage traffic under way; one flow for each sender.
struct Background {
  const BackgroundTraffic& spec;
  std::uint32_t number;
  StepTime next{};         ///< when it sends again
  bool done = false;       ///< it sends only once, and has
  std::size_t moving = 0;  ///< senders that are not done
  StepTime begin;          ///< of the round under way
  std::vector<double> rounds_s;
};

/// The fabric as it is between two events, and everybody's flows over it.
struct Era {
  Era(Fabric drawn, FlowNetwork& network, std::vector<double> left)
      : fabric(std::move(drawn)), links(fabric, network, std::move(left)) {}

  struct Sender {
    FlowIndex flow;
    bool stalled;
  };
  Fabric fabric;
  FabricLinks links;
  std::vector<std::unique_ptr<Wiring>> wirings;  ///< by job
  std::vector<std::vector<Sender>> senders;      ///< by background traffic
};

/// A moment at which the fabric changes.
struct Change {
  StepTime at;
  std::size_t event;
  enum class What : std::uint8_t { breaks, rerouted, repaired } what;
};

StepTime ticks(Seconds s) { return to_step_time(s); }

/// "switch spine 1 goes down", "cable leaf 0 to spine 1 keeps 50 % of its rate".
std::string fault_words(const FabricFault& fault) {
  const auto part = [&]() -> std::string {
    switch (fault.part) {
      case FabricFault::Part::cable: {
        const std::string which = fault.index >= 0 ? fmt::format(" {}", fault.index) : "";
        return fmt::format("cable{} {} to {}", which, fault.from, fault.to);
      }
      case FabricFault::Part::box:
        return "switch " + fault.from;
      case FabricFault::Part::nic:
        return "NIC " + fault.from;
      case FabricFault::Part::some_cables:
        return fmt::format("{} cables between switches", fault.count);
    }
    return {};
  };
  const bool one = fault.part != FabricFault::Part::some_cables || fault.count == 1;
  if (fault.bandwidth > BytesPerSecond{}) {
    return fmt::format("{} {} {:.4g} GB/s", part(), one ? "keeps" : "keep",
                       fault.bandwidth.base_units() / 1e9);
  }
  if (fault.rate > 0) {
    return fmt::format("{} {} {:.4g} % of its rate", part(), one ? "keeps" : "keep",
                       100 * fault.rate);
  }
  return fmt::format("{} {} down", part(), one ? "goes" : "go");
}

class SharedRun {
 public:
  /// `jobs` and `background`: which of the scenario's take part.
  SharedRun(const SharedScenario& scenario, const std::vector<std::size_t>& jobs,
            const std::vector<std::size_t>& background, bool events)
      : scenario_(scenario) {
    jobs_.reserve(jobs.size());
    for (const std::size_t j : jobs) {
      const SharedJob& job = scenario.jobs[j];
      jobs_.emplace_back(job, recorder_.add_job(job.name, describe(job)));
    }
    for (const std::size_t b : background) {
      const BackgroundTraffic& traffic = scenario.background[b];
      background_.push_back({.spec = traffic,
                             .number = recorder_.add_job(traffic.name, describe(traffic)),
                             .next = ticks(traffic.start),
                             .begin = {},
                             .rounds_s = {}});
    }
    if (events) {
      for (std::size_t e = 0; e < scenario.events.size(); ++e) {
        const FabricEvent& event = scenario.events[e];
        changes_.push_back({ticks(event.at), e, Change::What::breaks});
        EventOutcome outcome;
        outcome.what = fault_words(event.fault);
        outcome.at_s = event.at.base_units();
        outcome.lasts_s = event.lasts.base_units();
        events_.push_back(std::move(outcome));
      }
    }
    era_ = draw({}, false);
  }

  void run() {
    while (!finished()) {
      const StepTime now = next_instant();
      advance_to(now);
      if (due_change(now)) change_fabric(now);
    }
    end_ = now_;
  }

  [[nodiscard]] CongestionReport report(const CongestionLimits& limits) const {
    CongestionReport report = recorder_.report(end_, limits);
    for (const Job& job : jobs_) report.jobs[job.number].step_s = mean(job.steps_s);
    for (const Background& b : background_) {
      if (!b.rounds_s.empty()) report.jobs[b.number].step_s = mean(b.rounds_s);
    }
    report.events = events_;
    report.notes = notes_;
    return report;
  }
  [[nodiscard]] std::vector<std::vector<double>> steps() const {
    std::vector<std::vector<double>> out;
    for (const Job& job : jobs_) out.push_back(job.steps_s);
    return out;
  }

  static double mean(const std::vector<double>& values) {
    if (values.empty()) return 0;
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }

 private:
  struct Owner {
    bool is_job;
    std::size_t index;
  };

  static std::string describe(const SharedJob& job) {
    const Parallelism& cut = job.scenario.job.parallelism;
    return fmt::format("{}, {} GPUs: TP {}, PP {}, DP {}", job.scenario.job.model.name,
                       job.scenario.gpus(), cut.tensor, cut.pipeline, cut.data);
  }
  static std::string describe(const BackgroundTraffic& traffic) {
    return fmt::format("{} nodes send {:.4g} GB each to {} nodes", traffic.from.size(),
                       traffic.size.base_units() / 1e9, traffic.to.size());
  }

  // --- time ------------------------------------------------------------------------------------

  [[nodiscard]] bool finished() const {
    const auto steps = static_cast<std::size_t>(scenario_.steps);
    const bool jobs_done =
        std::ranges::all_of(jobs_, [&](const Job& job) { return job.steps_s.size() >= steps; });
    if (!jobs_.empty()) return jobs_done;
    // Traffic by itself: once is enough.
    return std::ranges::all_of(background_,
                               [](const Background& b) { return b.done && b.moving == 0; });
  }

  StepTime next_instant() {
    std::optional<StepTime> next;
    const auto consider = [&](StepTime at) { next = next ? std::min(*next, at) : at; };
    for (Job& job : jobs_) {
      if (!job.step) {
        consider(std::max(now_, ticks(job.spec.start)));
      } else if (!job.step->waits_for_flows()) {
        consider(job.step->next_event());
      }
    }
    for (const Background& b : background_) {
      if (!b.done && b.moving == 0) consider(std::max(now_, b.next));
    }
    for (const Change& change : changes_) consider(change.at);
    if (!network_.idle()) consider(network_.next_end());
    if (next) return *next;
    throw InputError({.file = scenario_.file,
                      .pointer = "/events",
                      .found = fmt::format("nothing that moves any more after {:.6g} s",
                                           to_seconds(now_).base_units()),
                      .allowed = "failures that leave every job a way, or that are repaired",
                      .nearest = {}});
  }

  void advance_to(StepTime now) {
    now_ = now;
    end_flows();
    for (Job& job : jobs_) run_job(job);
    for (std::size_t b = 0; b < background_.size(); ++b) run_background(b);
    network_.settle(now_);
  }

  void end_flows() {
    ended_.clear();
    if (network_.idle() || network_.next_end() != now_) return;
    network_.collect_ended(now_, ended_);
    for (const FlowIndex flow : ended_) {
      const Owner owner = owners_[flow];
      if (owner.is_job) {
        jobs_[owner.index].step->flow_ended(flow, now_);
      } else {
        Background& b = background_[owner.index];
        if (--b.moving == 0) b.rounds_s.push_back(to_seconds(now_ - b.begin).base_units());
      }
    }
  }

  /// Events of this instant, and the steps that end and begin in it.
  void run_job(Job& job) {
    if (!job.step && ticks(job.spec.start) <= now_) begin_step(job);
    while (job.step) {
      job.step->handle_events(now_);
      if (!job.step->done()) return;
      job.steps_s.push_back(to_seconds(job.step->finish().end).base_units());
      begin_step(job);
    }
  }
  void begin_step(Job& job) {
    job.step.emplace(job.plan, job.classes, *era_->wirings[job.number], now_, false);
    job.step->begin();
  }

  void run_background(std::size_t index) {
    Background& b = background_[index];
    if (b.done || b.moving > 0 || b.next > now_) return;
    b.begin = now_;
    const Bytes of_a_nic = b.spec.size / static_cast<double>(era_->fabric.nics_per_node());
    for (const Era::Sender& sender : era_->senders[index]) {
      sender.stalled ? network_.start_held(sender.flow, of_a_nic, now_)
                     : network_.start(sender.flow, of_a_nic, now_);
      ++b.moving;
    }
    // By itself it is measured once.
    b.done = b.spec.every <= Seconds{} || jobs_.empty();
    b.next = std::max(b.next + ticks(b.spec.every), now_);
  }

  // --- the fabric ------------------------------------------------------------------------------

  [[nodiscard]] bool due_change(StepTime now) const {
    return std::ranges::any_of(changes_, [&](const Change& c) { return c.at <= now; });
  }

  void change_fabric(StepTime now) {
    // A flow that has just been given its rate may end in this very instant.
    while (!network_.idle() && network_.next_end() == now) advance_to(now);
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
    std::unique_ptr<Era> next = draw(broken_faults(), breaks);
    hand_over(*era_, *next);
    era_ = std::move(next);
    network_.settle(now_);
  }

  /// Books a change and what follows it. True if routes do not know of it yet.
  bool apply(const Change& change) {
    const FabricEvent& event = scenario_.events[change.event];
    switch (change.what) {
      case Change::What::breaks: {
        record(change.event);
        broken_.insert(change.event);
        if (event.lasts > Seconds{}) {
          changes_.push_back(
              {change.at + ticks(event.lasts), change.event, Change::What::repaired});
        }
        if (event.every > Seconds{}) {
          changes_.push_back({change.at + ticks(event.every), change.event, Change::What::breaks});
        }
        if (event.reroute_after <= Seconds{}) return false;
        changes_.push_back(
            {change.at + ticks(event.reroute_after), change.event, Change::What::rerouted});
        return true;
      }
      case Change::What::repaired:
        broken_.erase(change.event);
        return false;
      case Change::What::rerouted:
        return false;
    }
    return false;
  }
  /// Which links lose capacity by it, and whose transfers are on them.
  void record(std::size_t event) {
    EventOutcome& out = events_[event];
    const std::vector<double> left =
        capacity_left(era_->fabric, {&scenario_.events[event].fault, 1});
    std::set<LinkIndex> hit;
    std::uint32_t links = 0;
    for (FabricLink link = 0; link < left.size(); ++link) {
      if (left[link] >= 1) continue;
      ++links;
      const LinkIndex known = era_->links.known()[link];
      if (known != FabricLinks::kNoLink) hit.insert(known);
    }
    if (out.times++ == 0) out.links = links;
    for (FlowIndex flow = 0; flow < owners_.size(); ++flow) {
      if (!network_.active(flow)) continue;
      const auto crosses = [&](const MaxMin::Edge& edge) { return hit.contains(edge.link); };
      if (std::ranges::none_of(network_.edges(flow), crosses)) continue;
      ++out.transfers;
      const std::string& name = name_of(owners_[flow]);
      if (std::ranges::find(out.jobs, name) == out.jobs.end()) out.jobs.push_back(name);
    }
  }
  [[nodiscard]] const std::string& name_of(const Owner& owner) const {
    return owner.is_job ? jobs_[owner.index].spec.name : background_[owner.index].spec.name;
  }
  [[nodiscard]] std::vector<FabricFault> broken_faults() const {
    std::vector<FabricFault> faults;
    for (const std::size_t event : broken_) faults.push_back(scenario_.events[event].fault);
    return faults;
  }

  /// Everybody's flows over the fabric with these faults. Where routes do not know of them yet, or
  /// cannot avoid them, they are those of before, and what crosses a dead link waits.
  std::unique_ptr<Era> draw(const std::vector<FabricFault>& faults, bool unknown) {
    const bool reroutes = !unknown && (faults.empty() || can_redraw(scenario_.cluster, faults));
    if (!unknown && !reroutes) {
      note("A failure cut nodes off: what had to cross it waited, by the routes of before.");
    }
    std::vector<double> left;
    if (reroutes) {
      routed_ = broken_;
    } else {
      left = capacity_left(era_->fabric, unrouted_faults());
    }
    const bool cables = !scenario_.events.empty();
    Fabric fabric = reroutes ? draw_fabric(scenario_.cluster, cables, faults) : era_->fabric;
    auto era = std::make_unique<Era>(std::move(fabric), network_, std::move(left));
    for (Job& job : jobs_) wire(job, *era);
    for (const Background& b : background_) wire(b, *era);
    name_links(*era);
    return era;
  }
  /// Those that the routes of this era do not avoid.
  [[nodiscard]] std::vector<FabricFault> unrouted_faults() const {
    std::vector<FabricFault> faults;
    for (const std::size_t event : broken_) {
      if (!routed_.contains(event)) faults.push_back(scenario_.events[event].fault);
    }
    return faults;
  }
  void note(const std::string& text) {
    if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(text);
  }

  void wire(Job& job, Era& era) {
    const Site site{.links = &era.links, .nodes = job.spec.nodes};
    era.wirings.push_back(std::make_unique<Wiring>(job.spec.scenario, job.plan, job.classes, site));
    const auto index = static_cast<std::size_t>(&job - jobs_.data());
    owners_.resize(network_.flows(), {true, index});
    for (const WiredFlow& flow : era.wirings.back()->flows()) {
      if (flow.on_fabric)
        recorder_.add_flow(flow.flow, job.number, name_of(job, flow), unit(job, flow));
    }
  }

  static double unit(const Job& job, const WiredFlow& flow) {
    if (flow.use == WiredFlow::Use::data) {
      return Wiring::data_unit(job.plan.stages[flow.subject].channels[flow.channel].cost);
    }
    if (flow.use == WiredFlow::Use::exchange) {
      return Wiring::data_unit(job.plan.exchanges[flow.subject % job.plan.exchanges.size()].cost);
    }
    return 1;
  }

  static std::string name_of(const Job& job, const WiredFlow& flow) {
    const auto stages = static_cast<std::uint32_t>(job.plan.stages.size());
    switch (flow.use) {
      case WiredFlow::Use::message: {
        const std::uint32_t actor = flow.subject / 2;
        const std::uint32_t stage = actor % stages;
        const bool forward = flow.subject % 2 == 0;
        const std::uint32_t next = forward ? (stage + 1) % stages : (stage + stages - 1) % stages;
        return fmt::format("{} stage {} to {}, replica {}", forward ? "activations" : "gradients",
                           stage, next, actor / stages);
      }
      case WiredFlow::Use::tensor:
        return fmt::format("tensor parallel, stage {}, replica {}", flow.subject % stages,
                           flow.subject / stages);
      case WiredFlow::Use::data: {
        const DataChannel& channel = job.plan.stages[flow.subject].channels[flow.channel];
        return fmt::format("{} of {:.4g} MB, stage {}", op_name(channel.op),
                           channel.payload.base_units() / 1e6, flow.subject);
      }
      case WiredFlow::Use::exchange: {
        const std::size_t exchanges = job.plan.exchanges.size();
        return fmt::format("{}, replica {}", job.plan.exchanges[flow.subject % exchanges].what,
                           flow.subject / exchanges);
      }
    }
    return {};
  }

  /// Each sender's NICs send side by side, each to the receiver's NIC of its own number: on every
  /// link a NIC's stream is as good as one of gradients, so the flow's progress is that of one.
  void wire(const Background& b, Era& era) {
    const auto index = static_cast<std::size_t>(&b - background_.data());
    era.senders.emplace_back();
    std::vector<RouteHop> hops;
    for (std::size_t i = 0; i < b.spec.from.size(); ++i) {
      const int from = b.spec.from[i], to = b.spec.to[i % b.spec.to.size()];
      const int nics = era.fabric.nics_per_node();
      std::vector<FlowEdge> edges;
      bool stalled = false;
      for (int nic = 0; nic < nics; ++nic) {
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
      if (edges.empty()) edges.push_back({network_.add_link(era.fabric.nic_bandwidth()), 1});
      const FlowIndex flow = network_.add_flow(edges);
      era.senders.back().push_back({flow, stalled});
      recorder_.add_flow(flow, b.number, fmt::format("node {} to node {}", from, to), 1.0 / nics);
    }
    owners_.resize(network_.flows(), {false, index});
  }

  void name_links(const Era& era) {
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
      recorder_.add_link(known[link], era.fabric.link_name(link), era.fabric.capacity(link),
                         entries[link] != 0);
    }
  }

  void hand_over(const Era& from, const Era& to) {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (jobs_[j].step) jobs_[j].step->rewire(*to.wirings[j], now_);
    }
    for (std::size_t b = 0; b < background_.size(); ++b) {
      for (std::size_t s = 0; s < from.senders[b].size(); ++s) {
        const FlowIndex old = from.senders[b][s].flow;
        const Era::Sender& sender = to.senders[b][s];
        if (!network_.active(old)) continue;
        network_.hand_over(old, sender.flow, now_);
        if (!sender.stalled) network_.resume(sender.flow, now_);
      }
    }
  }

  const SharedScenario& scenario_;
  FlowNetwork network_;
  CongestionRecorder recorder_{network_};
  std::vector<Job> jobs_;
  std::vector<Background> background_;
  std::unique_ptr<Era> era_;
  std::vector<Change> changes_;
  std::set<std::size_t> broken_;
  std::set<std::size_t> routed_;
  std::vector<Owner> owners_;  ///< by flow
  std::vector<FlowIndex> ended_;
  std::vector<std::string> notes_;
  std::vector<EventOutcome> events_;
  StepTime now_, end_;
};

double mfu(const Scenario& scenario, double step_s) {
  if (step_s <= 0) return 0;
  const double peak = scenario.node.gpu.peak(scenario.job.precision).base_units();
  return step_flops(scenario.job).full.base_units() / (step_s * scenario.gpus() * peak);
}

std::vector<std::size_t> all(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

/// Each job and each traffic by itself, on a fabric where nothing breaks.
std::vector<CongestionReport> run_alone(const SharedScenario& scenario, CongestionLimits limits) {
  limits.transfers = static_cast<std::size_t>(-1);
  limits.bins = 1;
  std::vector<CongestionReport> reports;
  const auto run = [&](std::vector<std::size_t> jobs, std::vector<std::size_t> background) {
    SharedRun alone(scenario, jobs, background, false);
    alone.run();
    reports.push_back(alone.report(limits));
  };
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) run({j}, {});
  for (std::size_t b = 0; b < scenario.background.size(); ++b) run({}, {b});
  return reports;
}

/// What the answer leaves out of the jobs' traffic, each sentence with the jobs that it is about.
void note_unseen_traffic(const SharedScenario& scenario, CongestionReport& report) {
  const Cluster& cluster = scenario.cluster;
  FabricSpec fabric = cluster.fabric;
  for (const FabricEvent& event : scenario.events) fabric.faults.push_back(event.fault);
  const NicPorts ports = nic_ports(cluster.node);
  const std::string limits = switch_limits(fabric, cluster.nodes, ports.count, ports.bandwidth);
  std::vector<std::pair<std::string, std::string>> jobs_of;  // by sentence, in order
  for (const SharedJob& job : scenario.jobs) {
    for (std::string& text : unseen_traffic(job.scenario, plan_step(job.scenario), limits)) {
      const auto same = std::ranges::find(jobs_of, text, [](const auto& of) { return of.first; });
      if (same == jobs_of.end()) {
        jobs_of.emplace_back(std::move(text), job.name);
      } else {
        same->second += ", " + job.name;
      }
    }
  }
  for (const auto& [text, names] : jobs_of) report.notes.push_back(names + ": " + text);
}

}  // namespace

SharedResult simulate_shared(const SharedScenario& scenario, const SharedOptions& options) {
  SharedRun run(scenario, all(scenario.jobs.size()), all(scenario.background.size()), true);
  run.run();
  SharedResult result{.congestion = run.report(options.limits), .jobs = {}};
  CongestionReport& report = result.congestion;
  report.title = std::filesystem::path(scenario.file).filename();
  report.about = scenario.about;
  const NicPorts ports = nic_ports(scenario.cluster.node);
  report.fabric = fmt::format(
      "{}, {} nodes of {} NIC ports at {}", scenario.cluster.fabric.name, scenario.cluster.nodes,
      ports.count,
      words_of(nic_rates(scenario.cluster.fabric, scenario.cluster.nodes, ports.bandwidth)));
  note_unseen_traffic(scenario, report);
  if (options.alone) compare_with_alone(run_alone(scenario, options.limits), report);
  const std::vector<std::vector<double>> steps = run.steps();
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    result.jobs.push_back(
        {.steps_s = steps[j],
         .mfu_full = mfu(scenario.jobs[j].scenario, report.jobs[j].step_s),
         .alone_mfu_full = mfu(scenario.jobs[j].scenario, report.jobs[j].alone_s)});
  }
  return result;
}

}  // namespace lockstep
