// What goes into a step comes out of it: work, bytes, memory, of random jobs.
#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <tuple>
#include <vector>

#include "models/pipeline/schedule.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/site.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep {
namespace {

constexpr test::RandomScenarioOptions kAnyFabric{
    .fabrics = test::RandomFabrics::every, .straggler = true, .most_nodes = 12};
constexpr test::RandomScenarioOptions kUnlikeNodes{.pools = true, .most_nodes = 12};

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
    result = replay(plan, replicas.classes, wiring, false);
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

void check_bytes(const Scenario& scenario, const std::string&) {
  const ObservedStep step(scenario);
  std::vector<double> put(step.network.links()), slack(step.network.links());
  for (const WiredFlow& flow : step.wiring.flows()) {
    const FlowBooks::Entry& entry = step.books.of(flow.flow);
    CHECK(entry.starts == entry.ends);
    CHECK(entry.given == doctest::Approx(planned_bytes(step, flow)).epsilon(1e-9));
    CHECK(std::abs(entry.moved - entry.given) <= rounding(entry));
    for (const MaxMin::Edge& edge : step.network.edges(flow.flow)) {
      put[edge.link] += edge.coefficient * entry.given;
      slack[edge.link] += edge.coefficient * rounding(entry);
    }
  }
  const Seconds end = to_seconds(step.result.end);
  for (LinkIndex link = 0; link < step.network.links(); ++link) {
    const double carried = step.network.carried(link).base_units();
    CHECK(std::abs(carried - put[link]) <= slack[link]);
    CHECK(carried <= (step.network.capacity(link) * end).base_units() + slack[link]);
  }
}

// --- work --------------------------------------------------------------------------------------

constexpr auto kUseful = static_cast<std::size_t>(Bucket::model_flops);

/// The bucket of useful work at the peak of the GPUs that do it is the model's FLOP, whoever does
/// it and however long they wait. A pass is rounded to a tick, of picoseconds in 10 microseconds.
void check_useful_work(const Scenario& scenario, const StepReport& report) {
  double done = scenario.gpus() * report.peak_flops_per_gpu * report.seconds[kUseful];
  if (!report.pools.empty()) {
    done = 0;
    for (const PoolReport& pool : report.pools) {
      done += pool.gpus * pool.peak_flops_per_gpu * pool.seconds[kUseful];
    }
  }
  CHECK(done == doctest::Approx(report.model_flops_causal).epsilon(1e-6));
}

/// Every chunk of every stage sees each micro batch forward once.
void check_passes(const Scenario& scenario, const StepReport& report) {
  std::set<std::tuple<std::uint32_t, int, int>> seen;
  std::size_t forward = 0;
  for (const TimelineSlice& slice : report.timeline) {
    if (slice.stream != 0 || slice_kinds()[slice.kind].name != "forward") continue;
    ++forward;
    seen.insert({slice.actor, slice.micro_batch, slice.chunk});
  }
  std::size_t expected = 0;
  const int even = scenario.job.micro_batches();
  for (const ActorReport& actor : report.actors) {
    const auto replica = static_cast<std::size_t>(actor.replica);
    const int own = scenario.micro_batches.empty() ? even : scenario.micro_batches[replica];
    const PipelineShape shape = pipeline_shape(scenario.job.parallelism);
    expected += static_cast<std::size_t>(shape.micro_batches(own) * shape.chunks);
  }
  CHECK(forward == expected);
  CHECK(seen.size() == expected);
}

void check_work(const Scenario& scenario, const std::string&) {
  const StepReport report = simulate_step(
      scenario, {.folding = Folding::unfolded, .record_timeline = true, .keep_actors = true});
  check_useful_work(scenario, report);
  check_passes(scenario, report);
}

// --- memory ------------------------------------------------------------------------------------

void check_memory_of(const Scenario& scenario, const std::string&) {
  const StepReport report = simulate_step(scenario);
  Bytes most;
  for (const StageReport& stage : report.stages) {
    const MemoryBreakdown& m = stage.memory;
    for (const Bytes part : {m.weights, m.gradients, m.optimiser, m.activations, m.logits,
                             m.communication, m.framework, m.cached, m.host}) {
      CHECK(part >= Bytes{});
    }
    CHECK(m.total() == m.weights + m.gradients + m.optimiser + m.activations + m.logits +
                           m.communication + m.framework + m.cached);
    CHECK(m.needed() <= m.total());
    most = std::max(most, m.total());
  }
  CHECK(report.peak_memory.total() == most);
  // The pool that decides is the one with least to spare.
  const MemoryVerdict verdict = check_memory(scenario);
  bool all_fit = true;
  for (const PoolMemory& pool : pool_memory(scenario)) all_fit = all_fit && pool.fits();
  CHECK(verdict.fits == all_fit);
  CHECK(verdict.fits == (verdict.peak.needed() <= verdict.usable));
}

}  // namespace

TEST_CASE("every step: the bytes that its plan sends are those that its links carry") {
  test::hold("bytes", test::test_seed() + 21, 50, kAnyFabric, check_bytes);
  test::hold("bytes", test::test_seed() + 22, 30, kUnlikeNodes, check_bytes);
}

TEST_CASE("every step: all of the model's work is done, once") {
  test::hold("work", test::test_seed() + 23, 50, kAnyFabric, check_work);
  test::hold("work", test::test_seed() + 24, 30, kUnlikeNodes, check_work);
}

TEST_CASE("every step: memory is the sum of its parts, and the fullest GPU decides") {
  test::hold("memory", test::test_seed() + 25, 30, kAnyFabric, check_memory_of);
  test::hold("memory", test::test_seed() + 26, 30, kUnlikeNodes, check_memory_of);
}

}  // namespace lockstep
