#include "sim/trace/trace_of_step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/fabric/fabric_member.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/layer_groups.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/site.hpp"
#include "sim/step/step_report.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {
namespace {

constexpr std::uint16_t kGpuStream = 0, kCpuStream = 1;
constexpr std::uint32_t kRingTag = 1U << 20U;  // above those of chunks
constexpr Bytes kGradientNorm{8};              // as plan_step()

/// What a segment's exchanges along one axis are in a trace: calls one after another, and time
/// beside them.
struct LayerCall {
  CollectiveOp op = CollectiveOp::all_reduce;  ///< send_receive: to the next of a ring
  Bytes payload;
  int times = 1;
  ExchangeSkew skew{};
};
struct LayerCalls {
  std::vector<LayerCall> calls;
  StepTime before;  ///< what the layers' exchanges take beyond these calls
  StepTime covered,
      idle;         ///< compute beside the calls, and what is waited for after it in any case
  StepTime beyond;  ///< of one call that cannot be as short as what it stands for: how much longer
};

/// Collectives that put as much on wires as those of a segment along an axis, and take as long.
class LayerExchanges {
 public:
  LayerExchanges(const Scenario& scenario, const StepPlan& plan)
      : scenario_(scenario), plan_(plan), nic_(nic_share(scenario.node)) {
    LayerGroups groups = layer_groups(scenario.job.parallelism, Placement(plan.placement));
    const LayerWidths& widths = plan.widths;
    const Parallelism& cut = scenario.job.parallelism;
    const CollectiveOp expert =
        widths.expert > 1 ? CollectiveOp::all_to_all : CollectiveOp::all_gather;
    axes_ = {
        Groups{op_of(Axis::tensor, CollectiveOp::all_reduce), cut.tensor, groups.tensor, {}},
        Groups{op_of(Axis::context, CollectiveOp::all_gather), cut.context, groups.context, {}},
        Groups{expert,
               widths.expert > 1 ? widths.expert : widths.expert_tensor,
               widths.expert > 1 ? groups.expert : groups.expert_shard,
               {}},
        Groups{CollectiveOp::all_to_all, widths.expert, groups.expert, {}}};
    find_parts();
    switches_ = switches_of_rings();
  }

  /// Whether the calls are written one by one, beside the compute that covers them.
  [[nodiscard]] bool runs_beside(const Segment& segment, std::size_t axis) const {
    return segment.amounts[axis] > 0 && plan_.layers[axis].network_share > 0;
  }
  /// `free` is compute of the segment that nothing goes on beside yet.
  [[nodiscard]] LayerCalls operator()(const Segment& segment, std::size_t axis,
                                      StepTime free) const {
    if (runs_beside(segment, axis)) return parts_of(segment, axis, free);
    return one_call(segment, axis, segment.amounts[axis] > 0);
  }

 private:
  /// What calls of one operation and size move of an axis's bytes, of all layers.
  struct Part {
    CollectiveOp op;
    Bytes payload;
    ExchangeSkew skew;
    double share;
    double crossing;  ///< of a ring: the part of its hops that leave an NVLink domain
  };
  struct Groups {
    CollectiveOp op;  ///< of one call that stands for all
    int ranks;
    DomainSpreads spreads;
    std::vector<Part> parts;  ///< where they cross the network
  };

  /// What moves most of the axis's bytes between nodes, where it is a collective.
  [[nodiscard]] CollectiveOp op_of(Axis axis, CollectiveOp otherwise) const {
    const std::vector<LayerPattern>& patterns = plan_.layer(axis).patterns;
    const auto most = std::ranges::max_element(patterns, {}, &LayerPattern::share);
    const bool collective = most != patterns.end() && most->op != CollectiveOp::send_receive;
    return collective ? most->op : otherwise;
  }

  void find_parts() {
    const TransformerShape& model = scenario_.job.model;
    const WorkloadContext context = workload_context(scenario_, Placement(plan_.placement), 0);
    for (int i = 0; i < model.layers; ++i) {
      for (const Operation& o : layer_operations(context, scenario_.job.kind(i))) {
        const double bytes = (o.network + o.hidden.network).base_units();
        if (o.kind != OperationKind::collective || bytes <= 0) continue;
        Groups& of = axes_[static_cast<std::size_t>(o.axis)];
        const bool ring = o.op == CollectiveOp::send_receive;
        const double inside = (o.nvlink + o.hidden.nvlink).base_units();
        const double crossing = ring ? bytes / (bytes + inside) : 1;
        const auto same = std::ranges::find_if(of.parts, [&](const Part& p) {
          return p.op == o.op && p.payload == o.payload && p.skew == o.skew;
        });
        if (same == of.parts.end()) {
          of.parts.push_back({o.op, o.payload, o.skew, bytes, crossing});
        } else {
          same->share += bytes;
        }
      }
    }
    for (Groups& of : axes_) {
      double all = 0;
      for (const Part& part : of.parts) all += part.share;
      for (Part& part : of.parts) part.share /= all;
    }
  }

  [[nodiscard]] CollectiveCost cost_of(const Groups& of, CollectiveOp op, Bytes payload,
                                       const ExchangeSkew& skew = {}) const {
    const bool ring = op == CollectiveOp::send_receive;
    CollectiveCost cost = slowest_cost(
        {.op = op, .payload = payload, .ranks = ring ? 2 : of.ranks, .skew = skew},
        ring ? DomainSpreads{1} : of.spreads, scenario_.node.gpu, scenario_.transport, nic_);
    if (ring) cost.latency += switches_;
    return cost;
  }

  /// What switches add to a message of a ring, of those on the longest way: the step's laws of
  /// what layers exchange know none, a replayed message does.
  [[nodiscard]] Seconds switches_of_rings() const {
    const Seconds each = scenario_.fabric.switch_latency;
    const Parallelism& cut = scenario_.job.parallelism;
    const auto rings = [](const Part& part) { return part.op == CollectiveOp::send_receive; };
    const auto context = static_cast<std::size_t>(Axis::context);
    if (each <= Seconds{} || std::ranges::none_of(axes_[context].parts, rings)) return {};
    const Fabric fabric = own_fabric(scenario_, plan_);
    const Placement placement(plan_.placement);
    int most = 0;
    for (int rank = 0; rank < placement.ranks(); ++rank) {
      RankCoordinates at = placement.coordinates(rank);
      at.tensor = (at.tensor + cut.tensor) % plan_.placement.tensor;
      const int next = placement.rank(at);
      if (placement.reach(rank, next) != Reach::fabric) continue;
      const FabricMember a = fabric_member(placement, {}, rank);
      const FabricMember b = fabric_member(placement, {}, next);
      most = std::max(most, fabric.switches_crossed(a.node, a.nic, b.node, b.nic));
    }
    return most * each;
  }

  /// The calls of the layers one by one, a ring's round by round, so that they have their own pace
  /// and latency where the network is full, too. The latency that compute hides in the step it
  /// hides here (LayerCalls::beyond); of calls that have more than there is compute for, fewer and
  /// larger ones.
  [[nodiscard]] LayerCalls parts_of(const Segment& segment, std::size_t axis, StepTime free) const {
    const Groups& of = axes_[axis];
    const LayerTransfer& transfer = plan_.layers[axis];
    const Seconds closed = to_seconds(segment.closed[axis]);
    const Seconds takes = closed + Seconds{segment.amounts[axis] / transfer.rate};
    const double bytes = segment.amounts[axis] * transfer.network_share;  // over a NIC
    LayerCalls out;
    Seconds latency;
    for (const Part& part : of.parts) {
      const CollectiveCost cost = cost_of(of, part.op, part.payload, part.skew);
      const Bytes all{part.share * bytes / (part.crossing * cost.network_coefficient)};
      const int times = std::max(1, static_cast<int>(std::lround(all / part.payload)));
      out.calls.push_back({part.op, all, times, part.skew});
      latency += times * cost.latency;
    }
    const double kept = std::min(1.0, double{(closed + to_seconds(free)) / latency});
    Seconds calls;
    for (LayerCall& call : out.calls) {
      call.times = std::max(1, static_cast<int>(std::lround(kept * call.times)));
      call.payload = Bytes{std::round(std::max(1.0, call.payload.base_units() / call.times))};
      const CollectiveCost cost = cost_of(of, call.op, call.payload, call.skew);
      calls += call.times * (cost.latency + call.payload / cost.payload_rate);
    }
    out.before = to_step_time(std::max(Seconds{}, takes - calls));
    out.beyond = to_step_time(std::max(Seconds{}, calls - takes));
    out.covered = segment.covered[axis];
    // The latency that compute waits for comes before what the least time is of.
    const StepTime before = std::min(out.before, segment.closed[axis]);
    out.idle =
        std::max(segment.least[axis], out.covered) - out.covered + (segment.closed[axis] - before);
    return out;
  }

  /// One call that takes as long as all.
  [[nodiscard]] LayerCalls one_call(const Segment& segment, std::size_t axis, bool flows) const {
    const Groups& of = axes_[axis];
    const Seconds closed = to_seconds(segment.closed[axis]);
    const Seconds flow{plan_.flow_time(segment, axis)};
    Bytes payload{1};
    Seconds latency, takes;
    for (int pass = 0; pass < 4; ++pass) {  // the algorithm depends on the size, which it changes
      const CollectiveCost cost = cost_of(of, of.op, payload);
      latency = cost.latency;
      const Seconds transfer = flows ? flow : std::max(Seconds{}, closed - latency);
      payload = std::max(Bytes{1}, transfer * cost.payload_rate);
      takes = latency + payload / cost.payload_rate;
    }
    const Seconds beyond =
        latency > closed ? takes - closed - (flows ? flow : Seconds{}) : Seconds{};
    return {.calls = {{of.op, Bytes{std::round(payload.base_units())}, 1}},
            .before = flows ? to_step_time(std::max(Seconds{}, closed - latency)) : StepTime{},
            .covered = {},
            .idle = {},
            .beyond = to_step_time(std::max(Seconds{}, beyond))};
  }

  const Scenario& scenario_;
  const StepPlan& plan_;
  NicShare nic_;
  std::array<Groups, kAxes> axes_;
  Seconds switches_;
};

class StepRank {
 public:
  StepRank(const Parallelism& cut, const StepPlan& plan, const LayerExchanges& exchanges, int rank,
           const std::vector<ReplicaClass>& replicas)
      : cut_(cut),
        plan_(plan),
        exchanges_(exchanges),
        placement_(plan.placement),
        at_(placement_.coordinates(rank)),
        stage_(plan.stages[static_cast<std::size_t>(at_.pipeline)]) {
    out_.rank = rank;
    out_.file = fmt::format("rank {} of the step", rank);
    for (const ReplicaClass& replica : replicas) {
      if (replica.representative != at_.data || replica.slowdown.empty()) continue;
      slowdown_ = replica.slowdown[static_cast<std::size_t>(at_.pipeline)];
    }
  }

  RankTrace build() {
    for (std::uint32_t i = 0; i < stage_.gathers_first; ++i) post(i);
    for (std::size_t i = 0; i < stage_.items.size(); ++i) add_item(i);
    while (posted_.size() < stage_.reduces_end) post(posted_.size());
    wait_for_collectives(stage_.reduces_end);
    for (const StageExchange& exchange : plan_.exchanges) {
      const auto& [one, other] = exchange.stages;
      const auto own = static_cast<std::uint32_t>(at_.pipeline);
      if (own != one && own != other) continue;
      collective(exchange.what, CollectiveOp::all_reduce, exchange.payload,
                 pair_group(static_cast<int>(one), static_cast<int>(other)));
    }
    if (placement_.ranks() > 1) {
      collective("gradient norm", CollectiveOp::all_reduce, kGradientNorm, {"0", {}, true});
    }
    RankTrace::Node& host = add("host", TraceNodeKind::host);
    host.duration = plan_.overhead;
    host.stream = kCpuStream;
    RankTrace::Node& optimiser = add("optimiser", TraceNodeKind::compute);
    optimiser.duration = stage_.optimiser;
    optimiser.stream = kGpuStream;
    for (auto i = posted_.size(); i < stage_.collectives.size(); ++i) post(i);
    return std::move(out_);
  }

 private:
  /// A node that waits for `last_`, and is the last one then.
  RankTrace::Node& add(std::string_view name, TraceNodeKind kind) {
    const std::uint64_t id = out_.nodes.size();
    RankTrace::Node& node = out_.add(id, name);
    node.kind = kind;
    for (const std::uint64_t before : last_) out_.depends_on(before);
    last_ = {id};
    return node;
  }
  void collective(std::string_view name, CollectiveOp op, Bytes payload, RankTrace::Group group,
                  const ExchangeSkew& skew = {}) {
    RankTrace::Node& node = add(name, TraceNodeKind::collective);
    node.op = op;
    node.size = payload;
    node.group = out_.group(std::move(group));
    node.skew = out_.skew(skew);
  }

  /// This rank's group along an axis inside layers: lanes count tensor and then context; groups of
  /// experts fill them and then replicas, the ranks that split an expert side by side.
  [[nodiscard]] RankTrace::Group layer_group(Axis axis) const {
    const int lanes = plan_.placement.tensor;
    const auto [first, count, stride] = members_of(axis, at_.data * lanes + at_.tensor);
    RankTrace::Group group;
    for (int m = 0; m < count; ++m) {
      const int member = first + m * stride;
      RankCoordinates at = at_;
      at.tensor = member % lanes;
      at.data = member / lanes;
      group.ranks.push_back(placement_.rank(at));
    }
    std::ranges::sort(group.ranks);
    group.name = group_name(static_cast<int>(axis), group.ranks.front());
    return group;
  }
  /// Of this rank's group, by number in the stage: data, context, tensor.
  [[nodiscard]] RankGroup members_of(Axis axis, int own) const {
    const LayerWidths& w = plan_.widths;
    switch (axis) {
      case Axis::tensor:
        return {own - own % cut_.tensor, cut_.tensor, 1};
      case Axis::context: {
        const int lanes = plan_.placement.tensor;
        return {own - own % lanes + own % cut_.tensor, cut_.context, cut_.tensor};
      }
      case Axis::expert:
      case Axis::expert_return:
        break;
    }
    if (w.expert == 1) return {own - own % w.expert_tensor, w.expert_tensor, 1};
    const int block = w.expert * w.expert_tensor;
    return {own - own % block + own % w.expert_tensor, w.expert, w.expert_tensor};
  }
  /// Members of this rank's group: replicas of it, and of each the lanes beside its own that belong
  /// to it (data_groups.hpp).
  [[nodiscard]] RankTrace::Group data_group(DataGroupKind kind) const {
    const auto number = static_cast<std::size_t>(kind);
    const DataGroup& g = stage_.groups[number];
    const int apart =
        kind == DataGroupKind::experts ? cut_.expert * cut_.expert_tensor : cut_.tensor;
    const int lanes = g.ranks / g.replicas;
    const int index = at_.data / g.stride % g.replicas;
    RankTrace::Group group;
    for (int replica = 0; replica < g.replicas; ++replica) {
      for (int lane = 0; lane < lanes; ++lane) {
        RankCoordinates member = at_;
        member.data += (replica - index) * g.stride;
        if (lanes > 1) member.tensor = at_.tensor % apart + lane * apart;
        group.ranks.push_back(placement_.rank(member));
      }
    }
    std::ranges::sort(group.ranks);
    group.name = group_name(kPairs + 1 + static_cast<int>(number), group.ranks.front());
    return group;
  }
  [[nodiscard]] RankTrace::Group pair_group(int first, int last) const {
    RankCoordinates a = at_, b = at_;
    a.pipeline = first;
    b.pipeline = last;
    RankTrace::Group group{{}, {placement_.rank(a), placement_.rank(b)}, false};
    std::ranges::sort(group.ranks);
    group.name = group_name(kPairs, group.ranks.front());
    return group;
  }
  static constexpr int kPairs = 3;  // after those of tensor, context and experts
  /// Numbers of groups, apart for each kind: 0 is that of all ranks.
  [[nodiscard]] static std::string group_name(int kind, int first_rank) {
    constexpr int kKinds = kPairs + 1 + static_cast<int>(kDataGroups);
    return std::to_string(1 + kKinds * first_rank + kind);
  }

  /// Starts a collective between replicas after `last_`, beside what follows.
  void post(std::size_t index) {
    const DataCollective& c = stage_.collectives[index];
    const std::vector<std::uint64_t> program = last_;
    if (!posted_.empty()) last_.push_back(posted_.back());
    const bool gathers = c.op == CollectiveOp::all_gather;
    collective(gathers ? "parameters" : "gradients", c.op, c.payload,
               data_group(stage_.channels[c.channel].group));
    posted_.push_back(last_.front());
    last_ = program;
  }
  void wait_for_collectives(std::size_t count) {
    if (count > 0) last_.push_back(posted_[count - 1]);
  }

  void add_item(std::size_t number) {
    const ProgramItem& item = stage_.items[number];
    // The items of a pair run as one: it begins with both messages and ends with both.
    const ProgramItem* first = number > 0 ? &stage_.items[number - 1] : nullptr;
    if (first != nullptr && !first->work.pairs) first = nullptr;
    if (first == nullptr) receive(item);
    if (item.work.pairs) receive(stage_.items[number + 1]);
    const auto pass = static_cast<std::size_t>(item.work.pass);
    const std::string name = fmt::format("{} of micro batch {}, chunk {}", slice_kinds()[pass].name,
                                         item.work.micro_batch, item.work.chunk);
    for (std::uint32_t i = 0; i < item.segments; ++i) {
      add_segment(name, stage_.segments[item.first_segment + i]);
    }
    if (item.work.pairs) return;
    if (first != nullptr) send(*first);
    send(item);
  }

  void receive(const ProgramItem& item) {
    if (!item.needs_message) return;
    const bool forward = is_forward(item.work.pass);
    const ChunkPlace here{at_.pipeline, item.work.chunk};
    const ChunkPlace from = (forward ? plan_.shape.before(here) : plan_.shape.after(here)).value();
    RankTrace::Node& node = add("receive", TraceNodeKind::receive);
    node.peer = rank_of(from.rank);
    node.tag = tag_of({item.work.chunk, forward});
    node.size = plan_.message;
  }

  void add_segment(const std::string& name, const Segment& segment) {
    wait_for_collectives(segment.needs);
    StepTime compute = segment.compute;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (exchanges_.runs_beside(segment, axis)) compute = compute - segment.covered[axis];
    }
    std::array<std::optional<LayerCalls>, kAxes> exchanges;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (segment.closed[axis] <= StepTime{} && segment.amounts[axis] <= 0) continue;
      LayerCalls& calls = exchanges[axis].emplace(exchanges_(segment, axis, compute));
      // What compute hides in the step it hides here: it goes on while the call begins.
      const StepTime hides = std::min(calls.beyond, compute);
      calls.covered += hides;
      compute = compute - hides;
    }
    add_compute(name, at_pace(compute));
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (exchanges[axis]) add_exchange(*exchanges[axis], axis);
    }
    while (posted_.size() < segment.posts) post(posted_.size());
  }

  void add_exchange(const LayerCalls& all, std::size_t axis) {
    constexpr std::array<std::string_view, kAxes> kNames{
        "inside layers, tensor", "inside layers, context", "inside layers, experts",
        "inside layers, back from experts"};
    if (all.before > StepTime{}) add_compute("latency inside layers", all.before);
    const std::vector<std::uint64_t> program = last_;
    // Both ways of tokens run in one group.
    const Axis axis_of_group =
        is_of_experts(static_cast<Axis>(axis)) ? Axis::expert : static_cast<Axis>(axis);
    const RankTrace::Group group = layer_group(axis_of_group);
    for (const LayerCall& call : all.calls) {
      for (int i = 0; i < call.times; ++i) {
        if (call.op == CollectiveOp::send_receive) {
          pass_round(kNames[axis], call.payload, group);
        } else {
          collective(kNames[axis], call.op, call.payload, group, call.skew);
        }
      }
    }
    if (all.covered <= StepTime{}) return;
    const std::vector<std::uint64_t> calls = std::exchange(last_, program);
    add_compute("beside what layers exchange", at_pace(all.covered) + all.idle);
    last_.insert(last_.end(), calls.begin(), calls.end());
  }
  void add_compute(std::string_view name, StepTime duration) {
    RankTrace::Node& compute = add(name, TraceNodeKind::compute);
    compute.stream = kGpuStream;
    compute.duration = duration;
  }
  /// Of this rank, which may be slow.
  [[nodiscard]] StepTime at_pace(StepTime compute) const {
    return {static_cast<std::uint64_t>(std::llround(static_cast<double>(compute.ps) * slowdown_))};
  }

  /// To the next of the group, and from the one before. What comes next waits for both.
  void pass_round(std::string_view name, Bytes size, const RankTrace::Group& group) {
    const auto n = group.ranks.size();
    const auto own =
        static_cast<std::size_t>(std::ranges::find(group.ranks, out_.rank) - group.ranks.begin());
    const std::vector<std::uint64_t> program = last_;
    RankTrace::Node& to = add(name, TraceNodeKind::send);
    to.peer = group.ranks[(own + 1) % n];
    to.tag = kRingTag;
    to.size = size;
    const std::vector<std::uint64_t> sent = std::exchange(last_, program);
    RankTrace::Node& from = add(name, TraceNodeKind::receive);
    from.peer = group.ranks[(own + n - 1) % n];
    from.tag = kRingTag;
    from.size = size;
    last_.insert(last_.end(), sent.begin(), sent.end());
  }

  void send(const ProgramItem& item) {
    if (!item.sends_message) return;
    const std::vector<std::uint64_t> program = last_;
    const int stages = plan_.placement.pipeline;
    const int step = item.direction == 0 ? 1 : stages - 1;
    RankTrace::Node& node = add("send", TraceNodeKind::send);
    node.peer = rank_of((at_.pipeline + step) % stages);
    node.tag = tag_of(stage_.message_targets[item.direction][sent_[item.direction]++]);
    node.size = plan_.message;
    if (!plan_.blocking_sends) last_ = program;
  }
  static std::uint32_t tag_of(const MessageTarget& target) {
    return 2U * target.chunk + (target.forward ? 0U : 1U);
  }
  [[nodiscard]] int rank_of(int stage) const {
    RankCoordinates other = at_;
    other.pipeline = stage;
    return placement_.rank(other);
  }

  const Parallelism& cut_;
  const StepPlan& plan_;
  const LayerExchanges& exchanges_;
  Placement placement_;
  RankCoordinates at_;
  const StagePlan& stage_;
  double slowdown_ = 1;
  RankTrace out_;
  std::vector<std::uint64_t> last_;    ///< what the program's next node waits for
  std::vector<std::uint64_t> posted_;  ///< nodes of the stage's collectives
  std::array<std::size_t, 2> sent_{};
};

}  // namespace

Trace trace_of_step(const Scenario& scenario) {
  require_equal(scenario, "traces of a step (--chakra, --goal)");
  const StepPlan plan = plan_step(scenario);
  std::vector<ReplicaClass> replicas;
  if (!scenario.stragglers.empty()) {
    const Fabric fabric = own_fabric(scenario, plan);
    DataRoutes data_routes{plan, fabric};
    replicas = classes_of_replicas(scenario, data_routes, Folding::unfolded).classes;
  }
  const LayerExchanges exchanges(scenario, plan);
  std::vector<RankTrace> ranks;
  for (int rank = 0; rank < Placement(plan.placement).ranks(); ++rank) {
    ranks.push_back(StepRank(scenario.job.parallelism, plan, exchanges, rank, replicas).build());
  }
  return join(std::move(ranks));
}

}  // namespace lockstep
