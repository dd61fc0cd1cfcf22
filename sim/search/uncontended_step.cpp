#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <vector>

#include "sim/search/bounds.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// The replay rounds every transfer to ticks of its clock.
constexpr double kTickRounding = 1e-6;

double in_seconds(StepTime time) { return to_seconds(time).base_units(); }

/// How long a message takes, and how long its link is busy with it.
struct MessageTime {
  double transfer = 0, latency = 0;
};
MessageTime time_of(const CollectiveCost& cost, Bytes payload) {
  return {(payload / cost.payload_rate).base_units(), cost.latency.base_units()};
}

/// Runs the programs of all ranks of one replica: each goes on until it waits for a message that
/// its neighbour has not sent yet.
class FreeRun {
 public:
  explicit FreeRun(const StepPlan& plan) : plan_(plan), ranks_(plan.stages.size()) {
    const Placement placement{plan.placement};
    const auto chunks = static_cast<std::size_t>(plan.shape.chunks);
    const int stages = static_cast<int>(ranks_.size());
    for (int r = 0; r < stages; ++r) {
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      const auto place = [&](int stage) {
        return placement.rank({.tensor = 0, .data = 0, .pipeline = (stage + stages) % stages});
      };
      for (const int direction : {0, 1}) {
        const bool local =
            placement.reach(place(r), place(r + (direction == 0 ? 1 : -1))) != Reach::fabric;
        rank.message[static_cast<std::size_t>(direction)] =
            time_of(local ? plan.local_message_cost : plan.message_cost, plan.message);
      }
      rank.arrived.resize(2 * chunks);
      const StagePlan& stage = plan.stages[static_cast<std::size_t>(r)];
      rank.done.reserve(stage.collectives.size());
      post(static_cast<std::size_t>(r), stage.gathers_first);
    }
  }

  /// The end of the step, in seconds.
  double end() {
    std::vector<std::size_t> ready(ranks_.size());
    for (std::size_t r = 0; r < ready.size(); ++r) ready[r] = ranks_.size() - 1 - r;
    while (!ready.empty()) {
      const std::size_t r = ready.back();
      ready.pop_back();
      run(r, ready);
    }
    return finish();
  }

 private:
  struct Rank {
    double now = 0;
    std::size_t item = 0;
    std::array<MessageTime, 2> message;        ///< by direction
    std::array<double, 2> link_free{};         ///< by direction
    std::array<std::size_t, 2> sent{};         ///< by direction
    std::vector<std::vector<double>> arrived;  ///< by 2 x chunk + direction of the pass
    std::vector<double> done;                  ///< collectives between replicas
  };

  /// Collectives of a stage run one after another. They all have a time once they are posted.
  void post(std::size_t r, std::uint32_t count) {
    Rank& rank = ranks_[r];
    const StagePlan& stage = plan_.stages[r];
    while (rank.done.size() < count) {
      const DataCollective& c = stage.collectives[rank.done.size()];
      const double start = std::max(rank.now, rank.done.empty() ? 0 : rank.done.back());
      const double transfer =
          (c.payload / stage.channels[c.channel].cost.payload_rate).base_units();
      rank.done.push_back(start + in_seconds(c.latency) + transfer);
    }
  }
  void wait_for(std::size_t r, std::uint32_t collectives) {
    Rank& rank = ranks_[r];
    assert(collectives <= rank.done.size());
    if (collectives > 0) rank.now = std::max(rank.now, rank.done[collectives - 1]);
  }

  /// When the message that an item needs is there; infinity: not sent yet.
  [[nodiscard]] double input(const Rank& rank, const ProgramItem& item) const {
    if (!item.needs_message) return 0;
    const auto& times = rank.arrived[slot(item.work.chunk, is_forward(item.work.pass))];
    const std::size_t number = item.work.micro_batch;
    return number < times.size() ? times[number] : std::numeric_limits<double>::infinity();
  }
  static std::size_t slot(std::size_t chunk, bool forward) { return 2 * chunk + (forward ? 0 : 1); }

  void run(std::size_t r, std::vector<std::size_t>& ready) {
    Rank& rank = ranks_[r];
    const StagePlan& stage = plan_.stages[r];
    while (rank.item < stage.items.size()) {
      const ProgramItem& item = stage.items[rank.item];
      double start = input(rank, item);
      if (item.work.pairs) start = std::max(start, input(rank, (&item)[1]));
      if (start == std::numeric_limits<double>::infinity()) return;
      rank.now = std::max(rank.now, start);
      for (std::uint32_t i = 0; i < item.segments; ++i) {
        const Segment& segment = stage.segments[item.first_segment + i];
        wait_for(r, segment.needs);
        rank.now += in_seconds(segment.compute + segment.tensor);
        rank.now += plan_.costs(stage.pool).flow_time(segment);
        post(r, segment.posts);
      }
      ++rank.item;
      if (!item.work.pairs) send_outputs(r, item, ready);
    }
  }

  void send_outputs(std::size_t r, const ProgramItem& item, std::vector<std::size_t>& ready) {
    Rank& rank = ranks_[r];
    const ProgramItem* before = rank.item > 1 ? &item - 1 : nullptr;
    double landed = rank.now;
    if (before != nullptr && before->work.pairs && before->sends_message) {
      landed = std::max(landed, send(r, before->direction, ready));
    }
    if (item.sends_message) landed = std::max(landed, send(r, item.direction, ready));
    if (plan_.blocking_sends) rank.now = landed;
  }
  /// When the message arrives.
  double send(std::size_t r, std::uint8_t direction, std::vector<std::size_t>& ready) {
    Rank& rank = ranks_[r];
    const MessageTime& time = rank.message[direction];
    double& link = rank.link_free[direction];
    link = std::max(link, rank.now) + time.transfer;
    const std::size_t next =
        direction == 0 ? (r + 1) % ranks_.size() : (r + ranks_.size() - 1) % ranks_.size();
    const MessageTarget target = plan_.stages[r].message_targets[direction][rank.sent[direction]++];
    ranks_[next].arrived[slot(target.chunk, target.forward)].push_back(link + time.latency);
    ready.push_back(next);
    return link + time.latency;
  }

  /// Gradients are reduced, all meet, optimise, and gather what is sharded.
  double finish() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      assert(ranks_[r].item == plan_.stages[r].items.size());
      post(r, plan_.stages[r].reduces_end);
      wait_for(r, plan_.stages[r].reduces_end);
    }
    for (const StageExchange& exchange : plan_.exchanges) {
      Rank& one = ranks_[exchange.stages[0]];
      Rank& other = ranks_[exchange.stages[1]];
      const MessageTime time = time_of(exchange.cost, exchange.payload);
      one.now = other.now = std::max(one.now, other.now) + time.transfer + time.latency;
    }
    double barrier = 0;
    for (const Rank& rank : ranks_) barrier = std::max(barrier, rank.now);
    double last = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      const StagePlan& stage = plan_.stages[r];
      rank.now = barrier + in_seconds(plan_.synchronisation + plan_.overhead + stage.optimiser);
      post(r, static_cast<std::uint32_t>(stage.collectives.size()));
      wait_for(r, static_cast<std::uint32_t>(stage.collectives.size()));
      last = std::max(last, rank.now);
    }
    return last;
  }

  const StepPlan& plan_;
  std::vector<Rank> ranks_;
};

}  // namespace

Seconds uncontended_step(const Scenario& scenario) {
  const StepPlan plan = plan_step(scenario);
  return Seconds{(1 - kTickRounding) * FreeRun(plan).end()};
}

}  // namespace lockstep
