#include "sim/step/plan.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "models/base/input_error.hpp"
#include "models/collectives/algorithms.hpp"
#include "models/kernels/memory_bound.hpp"
#include "models/layer/offload.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "models/spec/partition.hpp"
#include "sim/fabric/summed_streams.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/layer_groups.hpp"
#include "sim/step/pieces.hpp"

namespace lockstep {
namespace {

/// What a collective among GPUs of all these pools costs: it goes at the pace of the slowest, and
/// at that of the group that lies worst.
CollectiveCost cost_among(const Scenario& s, const std::vector<std::uint32_t>& pools,
                          const CollectiveCall& call, const DomainSpreads& spreads,
                          const CollectiveOptions& options = {}) {
  std::vector<MemberCard> cards;
  for (const std::uint32_t pool : pools) {
    const NodeSpec& node = s.node_of(pool);
    cards.push_back({node.gpu, nic_share(node)});
  }
  return slowest_cost(call, spreads, cards, s.transport, options);
}

/// Of collectives between replicas.
CollectiveOptions data_options(const Scenario& s, bool switches_sum) {
  CollectiveOptions options;
  if (switches_sum) {
    options.sharp = SharpFabric{.generation = sharp_generation(s.fabric.sharp)};
  }
  return options;
}

/// Builds the plan of one stage.
class StageBuilder {
 public:
  /// `layers`: of each virtual stage of the pipeline; `pools`: of the replicas of the stage.
  /// `pieces` are those of the pool of `out`.
  StageBuilder(const Scenario& scenario, const StepPlan& plan, const Pieces& pieces,
               const std::vector<int>& layers, const std::vector<std::uint32_t>& pools,
               StagePlan& out)
      : scenario_(scenario),
        plan_(plan),
        pieces_(pieces),
        pools_(pools),
        out_(out),
        gpu_(scenario.node_of(out.pool).gpu),
        policy_(scenario.stack.communication),
        par_(scenario.job.parallelism),
        options_(data_options(scenario, plan.switches_sum)) {
    variation_ = kernel_variation(scenario.job, gpu_);
    level_ = scenario.stack.level;
    passes_.resize(static_cast<std::size_t>(plan_.shape.chunks));
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      const int number = plan_.shape.stage_of(place(chunk));
      out_.layers.push_back(layers[static_cast<std::size_t>(number)]);
      first_layers_.push_back(std::accumulate(layers.begin(), layers.begin() + number, 0));
    }
    if (!scenario.job.stops_early()) return;
    const int frozen = scenario.job.frozen.layers;
    for (int end = layers.front();
         end <= frozen && last_backward_stage_ + 1 < std::ssize(layers);) {
      end += layers[static_cast<std::size_t>(++last_backward_stage_)];
    }
  }

  void build() {
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      for (const Piece* piece : chunk_pieces(chunk)) trained_ += piece->trained;
    }
    out_.parameters = trained_.sum();
    const std::vector<WorkItem> order = rank_order(par_, out_.micro_batches, out_.stage);
    find_windows(order);
    if (gathers_weights()) {
      plan_uses(order);
      const int ahead = policy_.overlap_parameters ? par_.prefetch : 0;
      for (int i = 0; i <= ahead; ++i) post_gather();
    } else if (sharded() && policy_.overlap_parameters) {
      plan_gathers();
    }
    out_.gathers_first = count();
    for (std::size_t i = 0; i < order.size(); ++i) add_item(order[i], i);
    if (par_.replicas() > 1 && !par_.reduces_each_micro_batch() && !gathers_weights() &&
        !policy_.overlap_gradients) {
      reduce(trained_);
    }
    out_.reduces_end = count();
    if (sharded() && !policy_.overlap_parameters) gather(trained_);
    plan_optimiser();
  }

 private:
  /// Optimiser states are split over replicas, and gathered weights follow them.
  [[nodiscard]] bool sharded() const {
    return par_.replicas() > 1 &&
           (par_.sharding == Sharding::zero1 || par_.sharding == Sharding::zero2);
  }
  /// Weights are split, and gathered where they are used.
  [[nodiscard]] bool gathers_weights() const {
    return par_.sharding == Sharding::zero3 && par_.shards() > 1;
  }
  [[nodiscard]] CollectiveOp reduce_op() const {
    return sharded() ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  }
  [[nodiscard]] Bytes gradient_bytes(double p) const { return Bytes{policy_.gradient_bytes * p}; }
  [[nodiscard]] Bytes parameter_bytes(double p) const {
    return Bytes{scenario_.stack.parameter_bytes * p};
  }
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(out_.collectives.size());
  }
  [[nodiscard]] ChunkPlace place(int chunk) const { return {out_.stage, chunk}; }

  /// The first forward pass of each chunk, which gathers its weights, and the last pass that makes
  /// their gradients.
  void find_windows(const std::vector<WorkItem>& order) {
    const auto chunks = static_cast<std::size_t>(plan_.shape.chunks);
    first_forward_.assign(chunks, order.size());
    last_backward_.assign(chunks, order.size());
    for (std::size_t i = order.size(); i-- > 0;) {
      if (is_forward(order[i].pass)) first_forward_[order[i].chunk] = i;
      std::size_t& last = last_backward_[order[i].chunk];
      if (ends_micro_batch(order[i].pass) && last == order.size()) last = i;
    }
  }

  /// Pieces of a chunk in forward order.
  [[nodiscard]] std::vector<const Piece*> chunk_pieces(int chunk) const {
    std::vector<const Piece*> pieces;
    if (plan_.shape.is_first(place(chunk))) pieces.push_back(&pieces_.embedding);
    const TransformerShape& model = scenario_.job.model;
    const int first = first_layers_[static_cast<std::size_t>(chunk)];
    for (int i = first; i < first + out_.layers[static_cast<std::size_t>(chunk)]; ++i) {
      pieces.push_back(&pieces_.layers[Pieces::piece_of(scenario_.job.kind(i))]);
    }
    if (plan_.shape.is_last(place(chunk))) {
      pieces.push_back(&pieces_.head);
      for (int i = 0; i < model.predicted_tokens; ++i) pieces.push_back(&pieces_.prediction);
    }
    return pieces;
  }

  /// A chunk's pieces in the order of a pass, and what they cost together: the same for every
  /// micro batch.
  struct ChunkPass {
    std::vector<const Piece*> pieces;
    PhaseCost cost;
    StepTime copies{};  ///< to and from the host
  };
  const ChunkPass& chunk_pass(const WorkItem& work) {
    const auto pass = static_cast<std::size_t>(work.pass);
    ChunkPass& out = passes_[static_cast<std::size_t>(work.chunk)][pass];
    if (!out.pieces.empty()) return out;
    out.pieces = chunk_pieces(work.chunk);
    if (!is_forward(work.pass)) std::ranges::reverse(out.pieces);
    for (const Piece* piece : out.pieces) {
      out.cost += piece->cost(work.pass);
      out.copies += to_step_time(piece->copies[pass]);
    }
    return out;
  }

  /// Cuts pieces, in the given order, into gradient buckets of at least the stack's size.
  [[nodiscard]] std::vector<std::size_t> bucket_ends(
      const std::vector<const Piece*>& pieces) const {
    std::vector<std::size_t> ends;
    double parameters = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      parameters += pieces[i]->trained.sum();
      if (policy_.bucket_parameters > 0 && parameters >= policy_.bucket_parameters) {
        ends.push_back(i + 1);
        parameters = 0;
      }
    }
    if (ends.empty() || ends.back() != pieces.size()) ends.push_back(pieces.size());
    return ends;
  }

  static Weights trained_of(const std::vector<const Piece*>& pieces, std::size_t first,
                            std::size_t end) {
    Weights sum;
    for (std::size_t i = first; i < end; ++i) sum += pieces[i]->trained;
    return sum;
  }

  /// Replicas of the experts are fewer than those of the rest, and a group of their own.
  [[nodiscard]] bool exchanges_experts(const Weights& w) const {
    return w.experts > 0 && par_.expert_replicas() > 1;
  }
  /// Embedding and output projection beside adapters, and frozen parts.
  [[nodiscard]] bool frozen(const Weights& w) const {
    return (scenario_.job.adapters.any() || scenario_.job.frozen.any()) && w.sum() == 0;
  }
  void gather(const Weights& w) {
    if (frozen(w)) return;
    post(CollectiveOp::all_gather, parameter_bytes(w.all));
    if (exchanges_experts(w)) {
      post(CollectiveOp::all_gather, parameter_bytes(w.experts), DataGroupKind::experts);
    }
  }
  void reduce(const Weights& w) {
    if (frozen(w)) return;
    post(reduce_op(), gradient_bytes(w.all));
    if (exchanges_experts(w)) post(reduce_op(), gradient_bytes(w.experts), DataGroupKind::experts);
  }
  /// The two of them, alone on their links.
  Seconds time_alone(CollectiveOp op, double bytes_per_weight, const Weights& w) {
    Seconds time = time_alone(op, Bytes{bytes_per_weight * w.all}, DataGroupKind::replicas);
    if (exchanges_experts(w)) {
      time += time_alone(op, Bytes{bytes_per_weight * w.experts}, DataGroupKind::experts);
    }
    return time;
  }

  void plan_gathers() {
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      const auto pieces = chunk_pieces(chunk);
      std::size_t first = 0;
      for (const std::size_t end : bucket_ends(pieces)) {
        gather(trained_of(pieces, first, end));
        gathered_.push_back(count());
        first = end;
      }
    }
  }

  /// The flow of such collectives.
  std::uint32_t channel_of(CollectiveOp op, Bytes payload, DataGroupKind kind) {
    payload = std::max(payload, Bytes{1});
    const auto same = [&](const DataChannel& c) {
      return c.group == kind && c.op == op && c.payload == payload;
    };
    auto it = std::ranges::find_if(out_.channels, same);
    if (it == out_.channels.end()) {
      const DataGroup& group = out_.groups[static_cast<std::size_t>(kind)];
      CollectiveCost cost =
          cost_among(scenario_, pools_, {op, payload, group.ranks}, group.spreads, options_);
      cost.latency *= policy_.data_slowdown;
      cost.payload_rate *= 1 / policy_.data_slowdown;
      out_.channels.push_back({kind, op, payload, cost});
      it = out_.channels.end() - 1;
    }
    return static_cast<std::uint32_t>(it - out_.channels.begin());
  }
  /// Its time when alone on its links.
  Seconds time_alone(CollectiveOp op, Bytes payload, DataGroupKind kind) {
    const DataChannel& channel = out_.channels[channel_of(op, payload, kind)];
    return channel.cost.latency + channel.payload / channel.cost.payload_rate;
  }
  void post(CollectiveOp op, Bytes payload, DataGroupKind kind = DataGroupKind::replicas) {
    const std::uint32_t number = channel_of(op, payload, kind);
    const DataChannel& channel = out_.channels[number];
    out_.collectives.push_back({op, channel.payload, to_step_time(channel.cost.latency), number});
  }

  // --- weights that are gathered layer by layer -------------------------------------------------

  /// A pass over a piece whose weights are split.
  struct Use {
    Weights weights;  ///< by the bytes of 16-bit ones
    Weights trained;
    bool gathered;            ///< for this pass; else they are there from an earlier one
    std::uint32_t needs = 0;  ///< collectives of the stage, its gather the last of them
  };

  /// The weights that a pass gathers, piece by piece in the order of use. Embedding and output
  /// projection stay gathered through a micro batch (FSDP's root module).
  void plan_uses(const std::vector<WorkItem>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const WorkItem& work = order[i];
      const bool forward = is_forward(work.pass);
      const bool again = forward ? par_.pipeline == 1 || first_forward_[work.chunk] == i : false;
      // Gradients of weights come from activations and gradients alone.
      const bool needs = work.pass != Pass::backward_weight && (par_.reshard || again);
      for (const Piece* piece : chunk_pass(work).pieces) {
        const Weights& w = piece->weights;
        uses_.push_back({{piece->stored * w.all, piece->stored * w.experts},
                         piece->trained,
                         needs && (forward || (!piece->root && piece->goes_back))});
      }
    }
  }
  /// Collectives of both kinds of weights: those of experts are split over their own replicas.
  template <class Function>
  void for_each_split(const Weights& w, Function&& function) {
    function(w.all, DataGroupKind::shard);
    if (exchanges_experts(w)) function(w.experts, DataGroupKind::experts);
  }
  /// Posts the gather of the next use that has one.
  void post_gather() {
    if (posted_uses_ == uses_.size()) return;
    Use& use = uses_[posted_uses_++];
    if (!use.gathered) return;
    for_each_split(use.weights, [&](double parameters, DataGroupKind kind) {
      post(CollectiveOp::all_gather, parameter_bytes(parameters), kind);
    });
    use.needs = count();
  }
  /// What goes on between replicas beside a pass over weights like these.
  Seconds beside_sharded(const Use& use, bool reduces) {
    Seconds beside;
    const auto add = [&](CollectiveOp op, Bytes payload, DataGroupKind kind) {
      beside += time_alone(op, payload, kind);
    };
    for_each_split(use.weights, [&](double parameters, DataGroupKind kind) {
      if (use.gathered) add(CollectiveOp::all_gather, parameter_bytes(parameters), kind);
    });
    for_each_split(use.trained, [&](double parameters, DataGroupKind kind) {
      if (reduces && !frozen(use.trained))
        add(CollectiveOp::reduce_scatter, gradient_bytes(parameters), kind);
    });
    return beside;
  }
  /// One segment per piece: waits for its weights, gathers those of a later one, and scatters its
  /// gradients. Without overlap a piece gathers when the one before is done, and waits for the
  /// scatter of that.
  void add_sharded(const std::vector<const Piece*>& pieces, const WorkItem& work,
                   std::size_t number) {
    const bool reduces = reduces_after(work, number);
    for (const Piece* piece : pieces) {
      const Use& use = uses_[use_++];
      add_segment(piece->cost(work.pass), true, beside_sharded(use, reduces));
      Segment& segment = out_.segments.back();
      segment.needs = std::max(use.needs, reduced_);
      if (reduces) {
        reduce_sharded(piece->trained);
        if (!policy_.overlap_gradients) reduced_ = count();
      }
      post_gather();
      segment.posts = count();
    }
  }
  void reduce_sharded(const Weights& w) {
    if (frozen(w)) return;
    for_each_split(w, [&](double parameters, DataGroupKind kind) {
      post(CollectiveOp::reduce_scatter, gradient_bytes(parameters), kind);
    });
    if (par_.shards() == par_.replicas()) return;
    post(CollectiveOp::all_reduce, gradient_bytes(w.all / par_.shards()), DataGroupKind::copies);
  }

  /// Whether replicas reduce gradients beside or after a pass, the `number`th of its rank.
  [[nodiscard]] bool reduces_after(const WorkItem& work, std::size_t number) const {
    return ends_micro_batch(work.pass) && par_.replicas() > 1 &&
           (par_.reduces_each_micro_batch() || last_backward_[work.chunk] == number);
  }

  /// `number`: of the item in its rank's order.
  void add_item(const WorkItem& work, std::size_t number) {
    const bool forward = is_forward(work.pass);
    ProgramItem item{.work = work,
                     .first_segment = static_cast<std::uint32_t>(out_.segments.size())};
    connect(plan_.shape, out_, item, last_backward_stage_);
    const ChunkPass& pass_over = chunk_pass(work);
    item.copies = pass_over.copies;
    const bool gathering = first_forward_[work.chunk] == number && out_.gathers_first > 0;
    const bool reduces = reduces_after(work, number);
    const std::uint32_t reduced = reduced_;
    if (gathers_weights()) {
      add_sharded(pass_over.pieces, work, number);
    } else if (gathering || (reduces && policy_.overlap_gradients)) {
      add_window(pass_over.pieces, work, forward);
    } else {
      add_segment(pass_over.cost, false, {});
    }
    // A stage may have no layer, embedding or head: its passes take no time, and are passed on.
    if (pass_over.pieces.empty() && out_.segments.size() == item.first_segment) {
      add_segment(pass_over.cost, false, {});
    }
    Segment& first = out_.segments[item.first_segment];
    first.needs = std::max(first.needs, reduced);
    if (reduces && !gathers_weights()) reduce_in_turn();
    item.segments = static_cast<std::uint32_t>(out_.segments.size()) - item.first_segment;
    assert(item.segments > 0 && "a pass that nobody runs");
    if (work.micro_batch == 0) {
      StepTime& pass = forward ? out_.forward : out_.backward;
      for (std::uint32_t i = 0; i < item.segments; ++i) {
        const Segment& s = out_.segments[item.first_segment + i];
        pass += s.compute + s.tensor + to_step_time(Seconds{plan_.costs(out_.pool).flow_time(s)});
      }
    }
    out_.items.push_back(item);
  }

  /// Without overlap, the next pass waits for the gradients of a micro batch.
  void reduce_in_turn() {
    if (policy_.overlap_gradients || !par_.reduces_each_micro_batch()) return;
    reduce(trained_);
    out_.segments.back().posts = reduced_ = count();
  }

  /// A pass beside which replicas exchange: one segment per piece, so that buckets come and go
  /// between them.
  void add_window(const std::vector<const Piece*>& pieces, const WorkItem& work, bool forward) {
    const auto ends = bucket_ends(pieces);
    std::size_t bucket = 0;
    std::size_t first = 0;
    const std::size_t gathered = forward ? gathers_before(work.chunk) : 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Weights trained = trained_of(pieces, first, ends[bucket]);
      const Seconds bucket_time =
          forward ? time_alone(CollectiveOp::all_gather, scenario_.stack.parameter_bytes, trained)
                  : time_alone(reduce_op(), policy_.gradient_bytes, trained);
      add_segment(pieces[i]->cost(work.pass), true,
                  pieces[i]->trained.sum() / std::max(1.0, trained.sum()) * bucket_time);
      Segment& segment = out_.segments.back();
      if (forward) segment.needs = gathered_[gathered + bucket];
      if (i + 1 != ends[bucket]) continue;
      if (!forward) {
        reduce(trained);
        segment.posts = count();
      }
      first = i + 1;
      ++bucket;
    }
  }
  /// Buckets that are gathered for the chunks before.
  [[nodiscard]] std::size_t gathers_before(int chunk) const {
    std::size_t sum = 0;
    for (int c = 0; c < chunk; ++c) sum += bucket_ends(chunk_pieces(c)).size();
    return sum;
  }

  /// `window`: collectives between replicas run beside it, for the time `beside` when alone, and
  /// take their share of the SMs while they do.
  void add_segment(const PhaseCost& cost, bool window, Seconds beside) {
    const Seconds counted = cost.compute() - cost.launch;
    const Seconds kernels = level_ * counted;
    const Seconds yielded = policy_.sm_share / (1 - policy_.sm_share) * std::min(kernels, beside);
    const Seconds compute = (1 + variation_) * kernels + yielded + cost.launch + cost.copies;
    Segment segment;
    segment.compute = to_step_time(compute);
    // Slow GPUs round each part of it by itself.
    constexpr StepTime kRounding{4};
    StepTime free = segment.compute - std::min(segment.compute, kRounding);
    Seconds closed;
    for (std::size_t a = 0; a < kAxes; ++a) {
      const ExchangeCost& exchange = cost.exchanges[a];
      const Seconds waits =
          add_flow(a, exchange, window, segment, free) ? exchange.latency : exchange.total();
      closed += waits;
      segment.closed[a] = to_step_time(waits);
      out_.exchange[a] += waits.base_units();
    }
    segment.tensor = to_step_time(closed);
    out_.segments.push_back(segment);
    const auto book = [&](Bucket bucket, Seconds time) {
      out_.compute[static_cast<std::size_t>(bucket)] += time.base_units();
    };
    book(Bucket::model_flops, cost.useful);
    book(Bucket::kernel_inefficiency, cost.inefficiency + (kernels - counted) + yielded);
    book(Bucket::memory_bound, cost.memory);
    book(Bucket::recompute, cost.recompute);
    book(Bucket::launch, cost.launch);
    book(Bucket::expert_imbalance, cost.imbalance);
    book(Bucket::host_exposed, cost.copies);
    book(Bucket::variation, variation_ * kernels);
  }

  /// Makes transfers of one axis a flow of the segment where others can slow them; false: they are
  /// not. `free` is compute that nothing goes on beside yet.
  bool add_flow(std::size_t axis, const ExchangeCost& exchange, bool window, Segment& segment,
                StepTime& free) {
    const HiddenTransfer& hidden = exchange.hidden;
    const bool leaves = exchange.network > Bytes{} || hidden.network > Bytes{};
    const bool shares = window && plan_.data_over_nvlink && exchange.transfer > Seconds{};
    if (!leaves && !shares) return false;
    // Progress runs at the pace of the transfer alone; its links see their share of it.
    const double rate = plan_.costs(out_.pool).layers[axis].rate;
    Seconds moves = exchange.transfer;
    if (leaves && hidden.transfer + hidden.spare > Seconds{}) {
      const StepTime covered = std::min(free, to_step_time(hidden.transfer + hidden.spare));
      free = free - covered;
      const Seconds least = to_seconds(covered) + exchange.transfer;
      segment.covered[axis] = covered;
      segment.least[axis] = to_step_time(least);
      // What compute of other passes covers does not make this one wait.
      moves = std::min(exchange.transfer + hidden.transfer, least);
    }
    segment.amounts[axis] = moves.base_units() * rate;
    return segment.amounts[axis] > 0;
  }

  void plan_optimiser() {
    const double expert_shards =
        par_.sharding == Sharding::none ? 1 : std::max(1, par_.expert_replicas());
    const double local = trained_.all / par_.shards() + trained_.experts / expert_shards;
    const Bytes traffic{scenario_.stack.optimiser_bytes * local +
                        scenario_.stack.optimiser_unsharded_bytes * out_.parameters};
    const NodeSpec& node = scenario_.node_of(out_.pool);
    out_.optimiser = to_step_time(offloaded_step(scenario_.job, scenario_.stack.offload, node,
                                                 local, memory_bound_time(traffic, node.gpu)));
  }

  const Scenario& scenario_;
  const StepPlan& plan_;
  const Pieces& pieces_;
  const std::vector<std::uint32_t>& pools_;
  StagePlan& out_;
  const GpuSpec& gpu_;
  const CommunicationPolicy& policy_;
  const Parallelism& par_;
  CollectiveOptions options_;
  double variation_ = 0;
  double level_ = 1;
  std::vector<std::size_t> first_forward_, last_backward_;  ///< by chunk: place in the order
  std::vector<int> first_layers_;                           ///< of each chunk, in the model
  std::vector<std::array<ChunkPass, 4>> passes_;            ///< by chunk, then Pass
  int last_backward_stage_ = 0;                             ///< where the backward pass ends
  Weights trained_;                                         ///< of all chunks
  std::vector<std::uint32_t> gathered_;  ///< by bucket: collectives, its gathers the last of them
  std::uint32_t reduced_ = 0;            ///< collectives that the next pass waits for

  std::vector<Use> uses_;        ///< in program order
  std::size_t use_ = 0;          ///< next to be planned
  std::size_t posted_uses_ = 0;  ///< whose gathers are posted, or not needed
};

/// The ways in which the axis' bytes leave NICs, or NVLink ports, by operation and algorithm.
std::vector<LayerPattern> layer_patterns(const WorkloadContext& context, Axis axis, bool nics) {
  std::vector<LayerPattern> patterns;
  std::set<std::size_t> seen;
  double all = 0;
  for (int i = 0; i < context.job.model.layers; ++i) {
    const LayerKind kind = context.job.kind(i);
    if (!seen.insert(Pieces::piece_of(kind)).second) continue;
    for (const Operation& o : layer_operations(context, kind)) {
      const double bytes =
          (nics ? o.network + o.hidden.network : o.nvlink + o.hidden.nvlink).base_units();
      if (o.kind != OperationKind::collective || o.axis != axis || bytes <= 0) continue;
      all += bytes;
      const auto same = std::ranges::find_if(patterns, [&o](const LayerPattern& p) {
        return p.op == o.op && p.algorithm == o.algorithm && p.skew == o.skew &&
               p.channels == o.channels;
      });
      if (same == patterns.end()) {
        patterns.push_back({o.op, o.algorithm, bytes, o.skew, o.channels});
      } else {
        same->share += bytes;
      }
    }
  }
  for (LayerPattern& pattern : patterns) pattern.share /= all;
  return patterns;
}

/// Connections that a rank opens to another one of its group on a different node.
int peer_channels_of(CollectiveOp op, int ranks, const DomainSpread& spread, const NodeSpec& node,
                     const TransportSpec& transport) {
  const CollectiveOptions options;
  return peer_channels(unpack(placed({.op = op, .payload = Bytes{1}, .ranks = ranks}, spread),
                              node.gpu, transport, nic_share(node), options));
}

/// Of ranks that exchange inside layers: the fewest where groups lie in several ways.
int peer_channels_of(const WorkloadContext& context, Axis axis) {
  const Parallelism& par = context.job.parallelism;
  const auto fewest = [&](int ranks, const DomainSpreads& spreads) {
    int least = 0;
    for (const DomainSpread& spread : spreads.ways()) {
      if (spread.per_domain >= ranks) continue;
      const int channels = peer_channels_of(CollectiveOp::all_to_all, ranks, spread, context.node,
                                            context.transport);
      least = least == 0 ? channels : std::min(least, channels);
    }
    return std::max(least, 1);
  };
  switch (axis) {
    case Axis::tensor:
      return fewest(par.tensor, context.tensor_groups);
    case Axis::context:
      return fewest(par.context, context.context_groups);
    case Axis::expert:
    case Axis::expert_return:
      return fewest(par.expert, context.expert_groups);
  }
  assert(false && "no such axis");
  return 1;
}

/// How transfers inside layers load links when they run as flows.
void plan_layer_transfers(const Pieces& pieces, const WorkloadContext& context, NodeCosts& out) {
  for (std::size_t a = 0; a < kAxes; ++a) {
    ExchangeCost cost;
    for (const Piece& layer : pieces.layers) {
      cost += layer.cost(Pass::forward).exchanges[a];
      cost += layer.cost(Pass::backward).exchanges[a];
    }
    const Seconds transfer = cost.transfer + cost.hidden.transfer;
    if (transfer <= Seconds{}) continue;
    const Bytes nvlink = cost.nvlink + cost.hidden.nvlink,
                network = cost.network + cost.hidden.network;
    const bool leaves = network > Bytes{};
    const Bytes unit = leaves ? network : nvlink;
    out.layers[a] = {.rate = (unit / transfer).base_units(),
                     .nvlink_share = nvlink / unit,
                     .network_share = network / unit,
                     .patterns = {},
                     .peer_channels = 1};
    const auto axis = static_cast<Axis>(a);
    // Inside NVLink domains members differ where experts do, and nowhere else.
    if (leaves || (is_of_experts(axis) && expert_load(context.job).fullest > 1)) {
      out.layers[a].patterns = layer_patterns(context, axis, leaves);
    }
    if (leaves) out.layers[a].peer_channels = peer_channels_of(context, axis);
  }
}

/// Layouts that a search tries have not been read: they are held to the rules here.
void check_added_schedule(const TrainingJob& job) {
  const Parallelism& cut = job.parallelism;
  if (!is_extension(cut.schedule) || cut.pipeline == 1) return;
  auto problem =
      problem_of(cut.schedule, cut.pipeline, pipeline_shape(cut).chunks, job.micro_batches());
  if (!problem) return;
  throw InputError({.file = extension_text("schedule", info(cut.schedule).name),
                    .pointer = {},
                    .found = std::move(problem->found),
                    .allowed = std::move(problem->allowed),
                    .nearest = {}});
}

void plan_messages(const Scenario& s, StepPlan& plan) {
  const Parallelism& par = s.job.parallelism;
  const CommunicationPolicy& policy = s.stack.communication;
  const double tokens =
      static_cast<double>(s.job.batch.micro_sequences) * s.job.batch.tokens / par.context;
  const bool split = par.sequence || policy.scatter_gather_pipeline;
  plan.message = Bytes{2 * tokens * s.job.model.hidden / (split ? par.tensor : 1)};
  check_added_schedule(s.job);
  const bool waits = !par.order && info(par.schedule).blocking_sends;
  plan.blocking_sends = waits || !policy.overlap_pipeline;
  plan.connections = {
      .ring = kChannelsPerRail,
      .message = peer_channels_of(CollectiveOp::send_receive, 2, {1, 2}, s.node, s.transport)};
}

NodeCosts node_costs(const Scenario& s, const WorkloadContext& context, Bytes message,
                     const Pieces& pieces) {
  const NodeSpec& node = context.node;
  NodeCosts costs;
  const NicShare nic = nic_share(node);
  const CollectiveCall call{CollectiveOp::send_receive, message, 2, 1};
  costs.message_cost = collective_cost(call, node.gpu, s.transport, nic);
  costs.local_message_cost =
      collective_cost({call.op, call.payload, 2, 2}, node.gpu, s.transport, nic);
  plan_layer_transfers(pieces, context, costs);
  return costs;
}

/// How many ranks of a pair of stages are near each other: one if any pair, of whatever lane and
/// replica, lies on two nodes and two NVLink domains.
int near_in_pairs(const Placement& placement, const std::array<std::uint32_t, 2>& stages) {
  const auto rank_of = [&](std::uint32_t stage) {
    return placement.rank({.tensor = 0, .data = 0, .pipeline = static_cast<int>(stage)});
  };
  // Of a list, so that the two are values: of two arguments they would refer to what is gone.
  const auto [first, last] = std::minmax({rank_of(stages[0]), rank_of(stages[1])});
  const RankGroup lanes = placement.group(ParallelAxis::tensor, {});
  const RankGroup replicas = placement.group(ParallelAxis::data, {});
  const std::vector<GroupSpread> ways = placement.spreads(
      {.first = first,
       .members = {0, last - first},
       .repeats = {{lanes.count, lanes.stride}, {replicas.count, replicas.stride}}});
  const auto is_near = [](const GroupSpread& way) { return way.nodes == 1 || way.domains == 1; };
  return std::ranges::all_of(ways, is_near) ? 2 : 1;
}

void add_exchange(const Scenario& s, const std::vector<std::uint32_t>& pools,
                  const std::array<std::uint32_t, 2>& stages, double parameters,
                  std::string_view what, StepPlan& plan) {
  const Bytes payload{s.stack.communication.gradient_bytes * parameters};
  const int together = near_in_pairs(Placement{plan.placement}, stages);
  const CollectiveCost cost =
      cost_among(s, pools, {CollectiveOp::all_reduce, payload, 2}, together);
  plan.exchanges.push_back({stages, payload, cost, what});
}

/// A tied embedding whose two copies lie on two ranks; both copies of a model that runs two ways,
/// of which each replica reduces its own part where they are sharded.
void plan_exchanges(const Scenario& s, const std::vector<std::uint32_t>& pools, StepPlan& plan) {
  const Parallelism& par = s.job.parallelism;
  const auto ranks = static_cast<std::uint32_t>(par.pipeline);
  if (plan.shape.layout == ChunkLayout::two_way) {
    for (std::uint32_t r = 0; r < ranks / 2; ++r) {
      add_exchange(s, pools, {r, ranks - 1 - r}, plan.stages[r].parameters / par.shards(),
                   "gradients of both copies", plan);
    }
  } else if (s.job.model.tied && !ends_meet(plan.shape) && !s.job.adapters.any() &&
             !s.job.frozen.embedding) {
    add_exchange(s, pools, {0, ranks - 1}, table_parameters(s.job.model) / par.tensor,
                 "embedding gradients", plan);
  }
}

}  // namespace

WorkloadContext workload_context(const Scenario& s, const Placement& placement, std::size_t pool) {
  LayerGroups groups = layer_groups(s.job.parallelism, placement);
  return {.job = s.job,
          .node = s.node_of(pool),
          .stack = s.stack,
          .transport = s.transport,
          .tensor_groups = std::move(groups.tensor),
          .context_groups = std::move(groups.context),
          .expert_groups = std::move(groups.expert),
          .expert_shard_groups = std::move(groups.expert_shard)};
}

void connect(const PipelineShape& shape, StagePlan& stage, ProgramItem& item, int last_backward) {
  if (item.work.pass == Pass::backward_weight) return;
  const ChunkPlace at{stage.stage, item.work.chunk};
  const bool forward = is_forward(item.work.pass);
  const int number = shape.stage_of(at);
  if (!forward && number < last_backward) return;
  const auto from = forward ? shape.before(at) : shape.after(at);
  const auto to = forward ? shape.after(at) : shape.before(at);
  item.needs_message = from && from->rank != at.rank;
  const bool goes_on = forward || number > last_backward;
  item.sends_message = goes_on && to && to->rank != at.rank;
  if (!item.sends_message) return;
  item.direction = forward == shape.rising(at.chunk) ? 0 : 1;
  stage.message_targets[item.direction].push_back({static_cast<std::uint16_t>(to->chunk), forward});
}

namespace {

/// Pools that hold a rank of a stage, of any replica; all of them where `stage` is -1.
std::vector<std::uint32_t> pools_of(const ReplicaVariants& variants, int stage) {
  std::set<std::uint32_t> pools;
  for (const ReplicaVariant& variant : variants.list) {
    if (stage < 0) {
      pools.insert(variant.pools.begin(), variant.pools.end());
    } else {
      pools.insert(variant.pools[static_cast<std::size_t>(stage)]);
    }
  }
  return {pools.begin(), pools.end()};
}

/// Replicas wait for each other in every collective, so all have to post the same ones.
void check_collectives(const Scenario& s, const StepPlan& plan) {
  const auto same = [](const DataCollective& a, const DataCollective& b) {
    return a.op == b.op && a.payload == b.payload && a.channel == b.channel;
  };
  for (const std::vector<StagePlan>& stages : plan.further_variants) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (std::ranges::equal(stages[i].collectives, plan.stages[i].collectives, same)) continue;
      throw InputError({.file = s.file,
                        .pointer = "/batch/micro_batches",
                        .found = "replicas that reduce their gradients in different orders",
                        .allowed = "equal ones, or another schedule",
                        .nearest = {}});
    }
  }
}

/// The groups of each stage, found once for all stages that lie on nodes and NVLink domains in the
/// same way.
class GroupsOfStages {
 public:
  /// Both outlive this.
  GroupsOfStages(const Parallelism& cut, const Placement& placement)
      : cut_(cut), placement_(placement) {}

  const DataGroups& of(int stage) {
    const int way = placement_.rank({.pipeline = stage}) % placement_.period();
    const auto [known, is_new] = known_.try_emplace(way);
    if (is_new) known->second = data_groups(cut_, placement_, stage);
    return known->second;
  }

 private:
  const Parallelism& cut_;
  const Placement& placement_;
  std::map<int, DataGroups> known_;  ///< by the place of the first rank in the pattern of nodes
};

}  // namespace

bool switches_sum(const Scenario& s) {
  if (!s.stack.communication.sharp || s.fabric.faults.empty()) return s.stack.communication.sharp;
  const NicPorts ports = nic_ports(s.node);
  return has_sum_trees({s.fabric, s.nodes, ports.count, ports.bandwidth}, s.nodes);
}

StepPlan plan_step(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  StepPlan plan;
  plan.placement = placement_spec(s);
  plan.widths = {.tensor = par.tensor,
                 .context = par.context,
                 .expert = par.expert,
                 .expert_tensor = par.expert_tensor};
  plan.shape = pipeline_shape(par);
  const Placement placement{plan.placement};
  const ReplicaVariants variants = replica_variants(s, placement);
  const std::vector<std::uint32_t> all_pools = pools_of(variants, -1);
  plan.micro_batches = variants.list.front().micro_batches;
  plan.variant_of = variants.of;
  GroupsOfStages groups{par, placement};
  plan.data_over_nvlink = groups.of(0)[0].per_domain > 1;
  plan.switches_sum = switches_sum(s);
  plan_messages(s, plan);

  std::vector<Pieces> pieces;
  for (std::size_t pool = 0; pool < s.pool_count(); ++pool) {
    const WorkloadContext context = workload_context(s, placement, pool);
    pieces.push_back(make_pieces(context));
    NodeCosts& costs = pool == 0 ? plan : plan.further_pools.emplace_back();
    costs = node_costs(s, context, plan.message, pieces.back());
  }
  if (s.gpus() > 1) {
    const int per_domain = std::min(s.gpus(), plan.placement.nvlink_domain);
    plan.synchronisation = to_step_time(
        cost_among(s, all_pools, {CollectiveOp::all_reduce, Bytes{8}, s.gpus()}, per_domain)
            .latency);
  }
  plan.overhead = to_step_time(s.stack.step_overhead);
  const std::vector<int> layers = layers_per_virtual_stage(s.job.model, par);
  plan.further_variants.resize(variants.list.size() - 1);
  for (std::size_t v = 0; v < variants.list.size(); ++v) {
    const ReplicaVariant& variant = variants.list[v];
    std::vector<StagePlan>& stages = v == 0 ? plan.stages : plan.further_variants[v - 1];
    stages.resize(static_cast<std::size_t>(par.pipeline));
    for (int stage = 0; stage < par.pipeline; ++stage) {
      StagePlan& out = stages[static_cast<std::size_t>(stage)];
      out.stage = stage;
      out.pool = variant.pools[static_cast<std::size_t>(stage)];
      out.micro_batches = variant.micro_batches;
      out.groups = groups.of(stage);
      const std::vector<std::uint32_t> pools = pools_of(variants, stage);
      StageBuilder{s, plan, pieces[out.pool], layers, pools, out}.build();
    }
  }
  check_collectives(s, plan);
  plan_exchanges(s, all_pools, plan);
  return plan;
}

}  // namespace lockstep
