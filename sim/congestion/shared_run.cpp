#include "sim/congestion/shared_run.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "models/base/number_text.hpp"
#include "models/layer/flops.hpp"
#include "sim/congestion/changing_fabric.hpp"
#include "sim/congestion/participants.hpp"
#include "sim/congestion/redraw.hpp"
#include "sim/core/engine.hpp"
#include "sim/fabric/faulty_fabric.hpp"
#include "sim/step/unseen_traffic.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/switch_limits.hpp"

namespace lockstep {
namespace {

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Traffic whose first round goes on when the last step of the jobs has ended.
void note_unfinished(CongestionReport& report) {
  for (const JobCongestion& job : report.jobs) {
    if (job.done_share >= 1) continue;
    if (job.step_s <= 0) {
      report.notes.push_back(job.name + " has not begun when the jobs' steps are finished");
      continue;
    }
    report.notes.push_back(fmt::format(
        "{} is not finished when the jobs' steps are: {} of its bytes are over, and its slowdown "
        "is of those; more \"steps\" show the rest",
        job.name, percent_text(job.done_share)));
  }
}

/// Jobs and other traffic on one network, from the start to the end of the last step.
class SharedRun {
 public:
  /// `jobs` and `background`: which of the scenario's take part.
  SharedRun(const SharedScenario& scenario, const std::vector<std::size_t>& jobs,
            const std::vector<std::size_t>& background, bool events)
      : jobs_(jobs.size()) {
    for (const std::size_t j : jobs) {
      participants_.push_back(
          std::make_unique<TrainingParticipant>(scenario, scenario.jobs[j], recorder_));
    }
    for (const std::size_t b : background) {
      participants_.push_back(std::make_unique<TrafficParticipant>(
          scenario, scenario.background[b], !jobs.empty(), network_, recorder_));
    }
    std::vector<Participant*> all;
    for (const auto& participant : participants_) {
      engine_.add(*participant);
      all.push_back(participant.get());
    }
    fabric_ = std::make_unique<ChangingFabric>(scenario, events, std::move(all), network_,
                                               recorder_, engine_);
    engine_.add_change(*fabric_);
    const TransportSpec& transport = scenario.cluster.transport;
    if (transport.congestion_control == CongestionControl::none) return;
    start_ = std::make_unique<DcqcnStart>(fabric_->fabric(), network_, transport.efficiency);
    fabric_->tell(*start_);
    engine_.add_change(*start_);
  }

  void run() {
    end_ = engine_.run();
    network_.take_stock(end_);
  }

  /// `alone`: reports of each job and traffic by itself, against which they are slowed.
  [[nodiscard]] CongestionReport report(const CongestionLimits& limits,
                                        std::span<const CongestionReport> alone = {}) const {
    CongestionReport report = recorder_.report(end_, limits, alone);
    for (const auto& participant : participants_) {
      const std::vector<double>& times_s = participant->times_s();
      JobCongestion& job = report.jobs[participant->number()];
      if (times_s.empty()) {
        job.step_s =
            std::max(0.0, report.end_s - to_seconds(participant->starts_at()).base_units());
      } else {
        job.step_s = mean(times_s);
        job.done_share = 1;
      }
    }
    report.events = fabric_->outcomes();
    report.notes = fabric_->notes();
    note_unfinished(report);
    return report;
  }
  /// Of each job, in the order of the scenario.
  [[nodiscard]] std::vector<std::vector<double>> steps() const {
    std::vector<std::vector<double>> out;
    out.reserve(jobs_);
    for (std::size_t j = 0; j < jobs_; ++j) out.push_back(participants_[j]->times_s());
    return out;
  }

 private:
  FlowNetwork network_;
  CongestionRecorder recorder_{network_};
  Engine engine_{network_};
  std::size_t jobs_;  ///< how many of the participants are trainings: the first
  std::vector<std::unique_ptr<Participant>> participants_;
  std::unique_ptr<ChangingFabric> fabric_;
  std::unique_ptr<DcqcnStart> start_;  ///< where the transport has it
  StepTime end_;
};

double mfu(const Scenario& scenario, double step_s) {
  if (step_s <= 0) return 0;
  const double peak = scenario.node.gpu.peak(scenario.job.precision).base_units();
  return step_flops(scenario.job).full.base_units() / (step_s * scenario.gpus() * peak);
}

std::vector<std::size_t> numbers_below(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

/// Each job and each traffic by itself, on a fabric where nothing breaks.
std::vector<CongestionReport> run_alone(const SharedScenario& scenario, CongestionLimits limits) {
  limits.transfers = static_cast<std::size_t>(-1);
  limits.bins = 1;
  std::vector<CongestionReport> reports;
  const auto run = [&](const std::vector<std::size_t>& jobs,
                       const std::vector<std::size_t>& background) {
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
    for (std::string& text : unseen_traffic(job.scenario, plan_of(job), limits)) {
      const auto same = std::ranges::find(jobs_of, text, [](const auto& of) { return of.first; });
      if (same == jobs_of.end()) {
        jobs_of.emplace_back(std::move(text), job.name);
      } else {
        same->second += ", " + job.name;
      }
    }
  }
  for (const auto& [text, names] : jobs_of) {
    report.notes.push_back(fmt::format("{}: {}", names, text));
  }
}

/// The fabric as a drawing: what it has lost from the start, and what events take from it.
FabricUse use_of(const SharedScenario& scenario, const CongestionReport& report) {
  const Fabric whole = without_faults(draw_fabric(scenario.cluster, !scenario.events.empty()));
  const std::vector<FabricFault>& faults = scenario.cluster.fabric.faults;
  LinkHealth health;
  if (!faults.empty()) health.left = capacity_left(whole, faults);
  for (const FabricEvent& event : scenario.events) {
    std::vector<FabricFault> both = faults;
    both.push_back(event.fault);
    const std::vector<double> left = capacity_left(whole, both);
    health.lowest.resize(left.size(), 1.0);
    for (std::size_t l = 0; l < left.size(); ++l) {
      health.lowest[l] = std::min(health.lowest[l], left[l]);
    }
  }
  return use_of_fabric(whole, report.carried, Seconds{report.end_s}, health);
}

}  // namespace

SharedResult simulate_shared(const SharedScenario& scenario, const SharedOptions& options) {
  SharedRun run(scenario, numbers_below(scenario.jobs.size()),
                numbers_below(scenario.background.size()), true);
  run.run();
  std::vector<CongestionReport> alone;
  if (options.alone) alone = run_alone(scenario, options.limits);
  SharedResult result{.congestion = run.report(options.limits, alone), .jobs = {}};
  CongestionReport& report = result.congestion;
  report.title = std::filesystem::path(scenario.file).filename();
  report.file = scenario.file;
  report.about = scenario.about;
  const NicPorts ports = nic_ports(scenario.cluster.node);
  report.fabric = fmt::format(
      "{}, {} nodes of {} NIC ports at {}", scenario.cluster.fabric.name, scenario.cluster.nodes,
      ports.count,
      words_of(nic_rates(scenario.cluster.fabric, scenario.cluster.nodes, ports.bandwidth)));
  note_unseen_traffic(scenario, report);
  if (options.draw) report.use = use_of(scenario, report);
  if (options.alone) compare_with_alone(alone, report);
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
