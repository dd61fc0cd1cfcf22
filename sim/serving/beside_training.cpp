#include "sim/serving/beside_training.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <numeric>

#include "sim/congestion/changing_fabric.hpp"
#include "sim/congestion/participants.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/serving/kv_links.hpp"
#include "sim/serving/serving_process.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostMet = 8;   // links that the answer lists,
constexpr std::size_t kMostHeld = 4;  // and transfers of either side
constexpr std::string_view kService = "service";

/// Trainings on one fabric, and a service where it is added.
class BesideRun {
 public:
  BesideRun(const SharedScenario& shared, const std::vector<std::size_t>& jobs)
      : era_(drawn(shared.cluster), network_, shared.cluster.transport.efficiency, {}) {
    for (const std::size_t j : jobs) {
      trainings_.push_back(
          std::make_unique<TrainingParticipant>(shared, shared.jobs[j], recorder_));
      TrainingParticipant& training = *trainings_.back();
      engine_.add(training);
      training.wire(era_);
      engine_.claim(training);
      training.move_over({});
    }
  }

  void run() {
    end_ = engine_.run();
    network_.take_stock(end_);
  }

  ServeResult serve(const ServePlan& plan, ServingSpec& spec,
                    const std::function<bool(std::size_t)>& go_on) {
    const std::uint32_t number = recorder_.add_job(std::string(kService), spec.model.name);
    const auto told = [&](FlowIndex flow, double unit, const KvEnd& from, const KvEnd& to,
                          std::size_t channel) {
      std::string name = fmt::format("keys and values, {} {} to {} {}", spec.pools[0].name,
                                     from.replica, spec.pools[1].name, to.replica);
      if (spec.pools[0].attention_data > 1 || spec.pools[1].attention_data > 1) {
        name += fmt::format(", group {} to {}", from.group, to.group);
      }
      if (channel > 0) name += fmt::format(", {} more at once", channel);
      recorder_.add_flow(flow, number, name, unit);
    };
    KvNetwork kv(spec, era_.links, told);
    KvFlows flows(kv);
    ServingRun service(plan, spec.requests, &flows);
    ServingProcess process(service, flows, go_on);
    engine_.add(process);
    run();
    return service.close(process.stopped());
  }

  [[nodiscard]] CongestionReport report() {
    name_links(era_, recorder_);
    for (const auto& training : trainings_) training->name_likes(era_);
    CongestionLimits limits;
    limits.bins = 1;
    limits.links = limits.transfers = static_cast<std::size_t>(-1);
    return recorder_.report(end_, limits);
  }
  [[nodiscard]] const std::vector<double>& steps(std::size_t job) const {
    return trainings_[job]->times_s();
  }
  [[nodiscard]] FabricLinks& links() { return era_.links; }

 private:
  static Fabric drawn(const Cluster& cluster) {
    const NicPorts ports = nic_ports(cluster.node);
    return {cluster.fabric, cluster.nodes, ports.count, ports.bandwidth};
  }

  FlowNetwork network_;
  CongestionRecorder recorder_{network_};
  Engine engine_{network_};
  FabricEra era_;
  std::vector<std::unique_ptr<TrainingParticipant>> trainings_;
  StepTime end_;
};

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The fullest links that both the service and a training crossed.
std::vector<BesideLink> met_links(const CongestionReport& report) {
  std::vector<BesideLink> out;
  const std::size_t service = report.jobs.size() - 1;
  for (const LinkCongestion& link : report.links) {
    const double own = link.bytes_by_job[service];
    const double all = std::accumulate(link.bytes_by_job.begin(), link.bytes_by_job.end(), 0.0);
    if (own <= 0 || all - own <= 0) continue;
    out.push_back({.name = link.name,
                   .capacity_bytes_per_s = link.capacity_bytes_per_s,
                   .share = link.mean_utilisation,
                   .service_bytes = own,
                   .training_bytes = all - own});
  }
  const auto fuller = [](const BesideLink& a, const BesideLink& b) { return a.share > b.share; };
  std::ranges::stable_sort(out, fuller);
  if (out.size() > kMostMet) out.resize(kMostMet);
  return out;
}

/// The most slowed transfers of each side that the other one held back.
std::vector<BesideTransfer> met_transfers(const CongestionReport& report) {
  std::vector<BesideTransfer> out;
  for (const TransferCongestion& t : report.transfers) {
    if (t.cause.empty() || t.worst_link < 0) continue;
    const bool of_service = t.job == kService;
    if (of_service == t.cause.starts_with(std::string(kService) + ":")) continue;
    out.push_back({.job = t.job,
                   .name = t.name,
                   .runs = t.runs,
                   .mean_s = t.mean_s,
                   .alone_s = t.alone_s,
                   .link = report.links[static_cast<std::size_t>(t.worst_link)].name,
                   .cause = t.cause});
  }
  const auto slower = [](const BesideTransfer& a, const BesideTransfer& b) {
    return a.slowdown() > b.slowdown();
  };
  std::ranges::stable_sort(out, slower);
  std::array<std::size_t, 2> listed{};
  std::erase_if(out, [&](const BesideTransfer& t) {
    return ++listed[t.job == kService ? 0 : 1] > kMostHeld;
  });
  return out;
}

}  // namespace

BesidePlayed serve_beside(const ServePlan& plan, ServingSpec& spec,
                          const std::function<bool(std::size_t)>& go_on) {
  const SharedScenario& shared = *spec.beside;
  std::vector<std::size_t> all(shared.jobs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  BesideRun together(shared, all);
  BesidePlayed out{together.serve(plan, spec, go_on), {}, {}};
  out.links = fullest_links(together.links(), to_seconds(out.result.end));
  const CongestionReport report = together.report();
  for (std::size_t j = 0; j < shared.jobs.size(); ++j) {
    BesideRun alone(shared, {j});
    alone.run();
    const std::vector<double>& steps = together.steps(j);
    out.beside.jobs.push_back({.name = shared.jobs[j].name,
                               .about = report.jobs[j].about,
                               .steps = steps.size(),
                               .step_s = mean_of(steps),
                               .alone_s = mean_of(alone.steps(0))});
  }
  out.beside.links = met_links(report);
  out.beside.transfers = met_transfers(report);
  return out;
}

}  // namespace lockstep
