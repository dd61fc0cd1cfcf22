#include "sim/congestion/shared_work.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/layer/flops.hpp"
#include "sim/congestion/participants.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/sample.hpp"
#include "topologies/fabrics/nic_rates.hpp"

namespace lockstep {
namespace {

constexpr double kTypicalMfu = 0.4;  // assumed; only rounds that repeat depend on it
/// Together, and each job alone.
constexpr double kRuns = 2;
// Of a core of 3 GHz, with 8 to 64 nodes: an event of a step and a flow of a fabric that is drawn
// again are measured and rounded up, a sender's part of a round of other traffic is assumed.
constexpr Seconds kTakesEvent{2e-7}, kTakesSending{3e-6}, kTakesFlow{1e-6};
constexpr Bytes kHeldByEvent{20}, kHeldBySending{150}, kHeldByFlow{200};

/// A part of the work, and the key that says how much of it there is.
struct WorkPart {
  std::string pointer, what;
  double events = 0, sendings = 0, flows = 0;

  [[nodiscard]] Seconds takes() const {
    return events * kTakesEvent + sendings * kTakesSending + flows * kTakesFlow;
  }
  [[nodiscard]] Bytes holds() const {
    return events * kHeldByEvent + sendings * kHeldBySending + flows * kHeldByFlow;
  }
};

struct EstimatedJob {
  Seconds step;
  double events = 0;  ///< of a step
  double flows = 0;
};

EstimatedJob estimate_of(const SharedJob& job) {
  const Scenario& scenario = job.scenario;
  const FlopsPerSecond peak = scenario.node.gpu.peak(scenario.job.precision);
  const StepPlan plan = plan_of(job);
  const auto replicas = static_cast<std::size_t>(plan.placement.data);
  const auto stages = static_cast<double>(plan.stages.size());
  return {.step = step_flops(scenario.job).full / (kTypicalMfu * scenario.gpus() * peak),
          .events = step_events(plan, std::vector<ReplicaClass>(replicas)),
          // Messages either way, a tensor-parallel group, and the gradients that replicas share.
          .flows = stages * (3.0 * static_cast<double>(replicas) + 2)};
}

/// How often something happens in that time.
double times(Seconds every, Seconds in) { return every > Seconds{} ? 1 + in / every : 1; }

WorkPart part_of(const SharedScenario& scenario, std::size_t background, Seconds in) {
  const BackgroundTraffic& of = scenario.background[background];
  // One that is late delays the next.
  const Cluster& cluster = scenario.cluster;
  const Seconds least = of.size / payload_bandwidth(cluster.node, cluster.transport);
  const double rounds = times(of.every > Seconds{} ? std::max(of.every, least) : Seconds{}, in);
  return {.pointer =
              fmt::format("/background/{}/{}", background, of.every > Seconds{} ? "every" : "from"),
          .what = fmt::format("{} rounds of {}", plain_number(rounds, 2), of.name),
          .sendings = kRuns * rounds * static_cast<double>(of.from.size())};
}

}  // namespace

SharedWork shared_work(const SharedScenario& scenario) {
  std::vector<EstimatedJob> jobs;
  Seconds lasts;
  double flows = 0;
  for (const SharedJob& job : scenario.jobs) {
    jobs.push_back(estimate_of(job));
    lasts = std::max(lasts, job.start + scenario.steps * jobs.back().step);
    flows += jobs.back().flows;
  }
  for (const BackgroundTraffic& of : scenario.background) {
    flows += static_cast<double>(of.from.size());
  }
  std::vector<WorkPart> parts{{.pointer = "/steps", .what = {}, .flows = flows}};
  for (const EstimatedJob& job : jobs) {
    // All go on until the last is done.
    parts.front().events += kRuns * job.events * std::max<double>(scenario.steps, lasts / job.step);
  }
  parts.front().what = fmt::format("{} steps of {} jobs", scenario.steps, jobs.size());
  for (std::size_t b = 0; b < scenario.background.size(); ++b) {
    parts.push_back(part_of(scenario, b, lasts));
  }
  for (std::size_t e = 0; e < scenario.events.size(); ++e) {
    constexpr double kDrawn = 3;  // broken, found by the routes, repaired
    const double failures = times(scenario.events[e].every, lasts);
    parts.push_back({.pointer = fmt::format("/events/{}/every", e),
                     .what = fmt::format("{} failures", plain_number(failures, 2)),
                     .flows = kDrawn * failures * flows});
  }
  const auto most = std::ranges::max_element(parts, {}, &WorkPart::takes);
  SharedWork out{.pointer = most->pointer, .what = most->what, .takes = {}, .holds = {}};
  for (const WorkPart& part : parts) {
    out.takes += part.takes();
    out.holds += part.holds();
  }
  return out;
}

}  // namespace lockstep
