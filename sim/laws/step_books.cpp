#include "sim/laws/step_books.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <tuple>
#include <vector>

#include "models/pipeline/schedule.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/site.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

// --- bytes -------------------------------------------------------------------------------------

/// What every flow was given, and what it moved.
class FlowBooks : public FlowObserver {
 public:
  struct Entry {
    double given = 0, moved = 0;  ///< bytes
    int starts = 0, ends = 0;
    double fastest = 0;  ///< bytes per second
  };

  explicit FlowBooks(std::size_t flows) : entries_(flows) {}
  [[nodiscard]] const Entry& of(FlowIndex flow) const { return entries_[flow]; }

  void started(FlowIndex flow, Bytes amount, StepTime) override {
    entries_[flow].given += amount.base_units();
    ++entries_[flow].starts;
  }
  void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate, LinkIndex) override {
    Entry& entry = entries_[flow];
    entry.moved += (rate * to_seconds(to - from)).base_units();
    entry.fastest = std::max(entry.fastest, rate.base_units());
  }
  void ended(FlowIndex flow, StepTime) override { ++entries_[flow].ends; }

 private:
  std::vector<Entry> entries_;
};

/// The end of a transfer is rounded to a tick, of which its rate may have moved half.
double rounding(const FlowBooks::Entry& entry) {
  constexpr double kTick = 1e-12;
  return entry.starts * entry.fastest * kTick + 1e-9 * entry.given;
}

/// A step of which every replica is on its own.
struct ObservedStep {
  explicit ObservedStep(const Scenario& scenario)
      : plan(plan_step(scenario)),
        fabric(own_fabric(scenario, plan)),
        data_routes(plan, fabric),
        replicas(classes_of_replicas(scenario, data_routes, Folding::unfolded)),
        links(fabric, network, scenario.transport.efficiency, nic_shares(scenario, fabric)),
        wiring(scenario, plan, replicas.classes, {.links = &links, .nodes = {}}, replicas.links),
        books(network.flows()) {
    network.observe(&books);
    result = replay(plan, replicas.classes, wiring, Recording::none);
  }

  StepPlan plan;
  Fabric fabric;
  DataRoutes data_routes;
  ReplicaClasses replicas;
  FlowNetwork network;
  FabricLinks links;
  Wiring wiring;
  FlowBooks books;
  ReplayResult result;
};

/// Of flows that move a byte at least, what the plan asks of one.
double planned_bytes(const ObservedStep& step, const WiredFlow& flow) {
  const StepPlan& plan = step.plan;
  const auto at_least_one = [](double bytes) { return std::max(bytes, 1.0); };
  double sum = 0;
  switch (flow.use) {
    case WiredFlow::Use::message: {
      for (const ProgramItem& item : step.result.plan_of(plan, flow.subject / 2).items) {
        if (item.sends_message && item.direction == flow.subject % 2) {
          sum += at_least_one(plan.message.base_units());
        }
      }
      return sum;
    }
    case WiredFlow::Use::layer: {
      const std::size_t axis = flow.subject % kAxes;
      for (const Segment& segment : step.result.plan_of(plan, flow.subject / kAxes).segments) {
        if (segment.amounts[axis] > 0) sum += at_least_one(segment.amounts[axis]);
      }
      return sum;
    }
    case WiredFlow::Use::data: {
      const StagePlan& stage = plan.stages[flow.subject];
      const double unit = Wiring::data_unit(stage.channels[flow.channel].cost);
      for (const DataCollective& c : stage.collectives) {
        if (c.channel == flow.channel) sum += at_least_one(c.payload.base_units() * unit);
      }
      return sum;
    }
    case WiredFlow::Use::exchange: {
      const StageExchange& exchange = plan.exchanges[flow.subject % plan.exchanges.size()];
      return at_least_one(exchange.payload.base_units() * Wiring::data_unit(exchange.cost));
    }
  }
  return sum;
}

void hold_flows(const ObservedStep& step, LawBook& book) {
  for (const WiredFlow& flow : step.wiring.flows()) {
    const FlowBooks::Entry& entry = step.books.of(flow.flow);
    const std::string name = fmt::format("flow {}", flow.flow);
    book.same(name + ": starts and ends", entry.starts, entry.ends, 0);
    book.same(name + ": bytes given and planned", entry.given, planned_bytes(step, flow), 1e-9);
    if (entry.given == 0) continue;
    book.same_of(name + ": bytes moved and given", entry.moved, entry.given, entry.given,
                 rounding(entry) / entry.given);
  }
}

void hold_links(const ObservedStep& step, LawBook& book) {
  std::vector<double> put(step.network.links()), slack(step.network.links());
  for (const WiredFlow& flow : step.wiring.flows()) {
    const FlowBooks::Entry& entry = step.books.of(flow.flow);
    for (const MaxMin::Edge& edge : step.network.edges(flow.flow)) {
      put[edge.link] += edge.coefficient * entry.given;
      slack[edge.link] += edge.coefficient * rounding(entry);
    }
  }
  const Seconds end = to_seconds(step.result.end);
  for (LinkIndex link = 0; link < step.network.links(); ++link) {
    if (put[link] == 0) continue;
    const std::string name = fmt::format("link {}", link);
    const double carried = step.network.carried(link).base_units();
    const double within = slack[link] / put[link];
    book.same_of(name + ": bytes carried and put on it", carried, put[link], put[link], within);
    book.at_most(name + ": bytes against its capacity", carried,
                 (step.network.capacity(link) * end).base_units(), within);
  }
}

// --- work --------------------------------------------------------------------------------------

constexpr auto kUsefulBucket = static_cast<std::size_t>(Bucket::model_flops);

/// Whoever does it and however long they wait. A pass is rounded to a tick, of picoseconds in 10
/// microseconds.
void hold_useful_work(const Scenario& scenario, const StepReport& report, LawBook& book) {
  double done = scenario.gpus() * report.peak_flops_per_gpu * report.seconds[kUsefulBucket];
  if (!report.pools.empty()) {
    done = 0;
    for (const PoolReport& pool : report.pools) {
      done += pool.gpus * pool.peak_flops_per_gpu * pool.seconds[kUsefulBucket];
    }
  }
  book.same("FLOP of useful work and of the model", done, report.model_flops_causal, 1e-6);
}

void hold_passes(const Scenario& scenario, const StepReport& report, LawBook& book) {
  std::set<std::tuple<std::uint32_t, int, int>> seen;
  double forward = 0;
  for (const TimelineSlice& slice : report.timeline) {
    if (slice.stream != 0 || slice_kinds()[slice.kind].name != "forward") continue;
    ++forward;
    seen.insert({slice.actor, slice.micro_batch, slice.chunk});
  }
  double expected = 0;
  const PipelineShape shape = pipeline_shape(scenario.job.parallelism);
  for (const ActorReport& actor : report.actors) {
    const auto replica = static_cast<std::size_t>(actor.replica);
    const int own = scenario.micro_batches.empty() ? scenario.job.micro_batches()
                                                   : scenario.micro_batches[replica];
    expected += shape.micro_batches(own) * shape.chunks;
  }
  book.same("forward passes", forward, expected, 0);
  book.same("forward passes that differ", static_cast<double>(seen.size()), expected, 0);
}

}  // namespace

void hold_bytes(const Scenario& scenario, LawBook& book) {
  const ObservedStep step(scenario);
  hold_flows(step, book);
  hold_links(step, book);
}

void hold_work(const Scenario& scenario, LawBook& book) {
  const StepReport report = simulate_step(
      scenario, {.folding = Folding::unfolded, .record_timeline = true, .keep_actors = true});
  hold_useful_work(scenario, report, book);
  hold_passes(scenario, report, book);
}

}  // namespace lockstep
