#include "sim/step/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/kernels/memory_bound.hpp"
#include "models/kernels/order_statistics.hpp"
#include "models/workload/partition.hpp"

namespace lockstep {
namespace {

/// Weights of one rank: those that all its replicas have, and those of routed experts.
struct Weights {
  double all = 0, experts = 0;

  [[nodiscard]] double sum() const { return all + experts; }
  Weights& operator+=(const Weights& o) {
    all += o.all;
    experts += o.experts;
    return *this;
  }
};

/// A layer, the embedding or the output projection: the smallest thing that a pass consists of.
struct Piece {
  PhaseCost forward, backward;
  Weights weights;
  bool root = false;  ///< not a layer
};
struct Pieces {
  std::array<Piece, 4> layers;  ///< by piece_of(kind); only those of the model are filled
  Piece embedding, head;
  Piece prediction;  ///< of a further token: its layer, the projection again, and what joins them

  static std::size_t piece_of(LayerKind kind) {
    return (kind.experts ? 1U : 0U) + (kind.windowed ? 2U : 0U);
  }
};

Piece make_root(const std::vector<Operation>& operations, const WorkloadContext& c,
                double parameters) {
  Piece piece;
  piece.forward = phase_cost(operations, false, {}, c);
  piece.backward = phase_cost(operations, true, {}, c);
  piece.weights.all = parameters / c.job.parallelism.tensor;
  piece.root = true;
  return piece;
}

/// A layer with experts takes at least a third of its host time forward, the rest backward.
Piece make_layer(const WorkloadContext& c, LayerKind kind) {
  const StackSpec& s = c.stack;
  const Parallelism& par = c.job.parallelism;
  const double again = c.job.recompute == Recompute::full ? s.kernels_forward : 0;
  Seconds experts;
  Piece piece;
  if (kind.experts) {
    const double here = static_cast<double>(c.job.model.experts.count) / par.expert;
    experts = s.expert_host_layer + here * s.expert_host_expert;
    piece.weights.experts = expert_parameters(c.job.model) / (par.expert * par.expert_tensor);
  }
  const std::vector<Operation> operations = layer_operations(c, kind);
  const Seconds forward = std::max(s.kernels_forward * s.launch_interval, 1.0 / 3 * experts);
  const Seconds backward =
      std::max((s.kernels_backward + again) * s.launch_interval, 2.0 / 3 * experts);
  piece.forward = phase_cost(operations, false, forward, c);
  piece.backward = phase_cost(operations, true, backward, c);
  piece.weights.all = layer_parameters(c.job.model, kind) / par.tensor;
  return piece;
}

Pieces make_pieces(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const double head = static_cast<double>(m.vocabulary) * m.hidden;
  const bool shared = m.tied && c.job.parallelism.pipeline == 1;
  Pieces out;
  std::array<bool, 4> made{};
  for (int i = 0; i < m.layers; ++i) {
    const std::size_t number = Pieces::piece_of(m.kind(i));
    if (!made[number]) out.layers[number] = make_layer(c, m.kind(i));
    made[number] = true;
  }
  out.embedding = make_root(embedding_operations(c), c, embedding_parameters(m));
  out.head = make_root(head_operations(c), c, shared ? 0 : head);
  if (m.predicted_tokens > 0) {
    // It shares embedding and output projection with the model.
    out.prediction = make_root(prediction_operations(c), c, prediction_parameters(m));
    for (const Piece* part : {&out.layers[Pieces::piece_of(m.kind(m.layers - 1))], &out.head}) {
      out.prediction.forward += part->forward;
      out.prediction.backward += part->backward;
      if (!part->root) out.prediction.weights += part->weights;
    }
  }
  return out;
}

/// Builds the plan of one stage.
class StageBuilder {
 public:
  /// `layers`: of each virtual stage of the pipeline.
  StageBuilder(const Scenario& scenario, const StepPlan& plan, const Pieces& pieces,
               const std::vector<int>& layers, StagePlan& out)
      : scenario_(scenario),
        plan_(plan),
        pieces_(pieces),
        out_(out),
        policy_(scenario.stack.communication),
        par_(scenario.job.parallelism) {
    const double gpus = scenario.gpus();
    const GpuSpec& gpu = scenario.node.gpu;
    // The slowest GPU of the job sets the pace; beside it every kernel waits for its group's
    // slowest.
    variation_ =
        gpu.speed_spread * expected_maximum_of_normals(gpus) +
        gpu.kernel_jitter * expected_maximum_of_normals(std::max(par_.tensor * par_.context,
                                                                 par_.expert * par_.expert_tensor));
    for (int chunk = 0; chunk < par_.virtual_stages; ++chunk) {
      const auto number = chunk * par_.pipeline + out_.stage;
      out_.layers.push_back(layers[static_cast<std::size_t>(number)]);
      first_layers_.push_back(std::accumulate(layers.begin(), layers.begin() + number, 0));
    }
  }

  void build() {
    for (int chunk = 0; chunk < par_.virtual_stages; ++chunk) {
      for (const Piece* piece : chunk_pieces(chunk)) weights_ += piece->weights;
    }
    out_.parameters = weights_.sum();
    if (gathers_weights()) {
      plan_uses();
      const int ahead = policy_.overlap_parameters ? par_.prefetch : 0;
      for (int i = 0; i <= ahead; ++i) post_gather();
    } else if (sharded() && policy_.overlap_parameters) {
      plan_gathers();
    }
    out_.gathers_first = count();
    for (const WorkItem& work : stage_order(par_.schedule, schedule_call())) {
      add_item(work);
    }
    if (par_.replicas() > 1 && !gathers_weights() && !policy_.overlap_gradients) reduce(weights_);
    out_.reduces_end = count();
    if (sharded() && !policy_.overlap_parameters) gather(weights_);
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
  [[nodiscard]] bool first_stage(int chunk) const { return out_.stage == 0 && chunk == 0; }
  [[nodiscard]] bool last_stage(int chunk) const {
    return out_.stage == par_.pipeline - 1 && chunk == par_.virtual_stages - 1;
  }

  /// Pieces of a chunk in forward order.
  [[nodiscard]] std::vector<const Piece*> chunk_pieces(int chunk) const {
    std::vector<const Piece*> pieces;
    if (first_stage(chunk)) pieces.push_back(&pieces_.embedding);
    const TransformerShape& model = scenario_.job.model;
    const int first = first_layers_[static_cast<std::size_t>(chunk)];
    for (int i = first; i < first + out_.layers[static_cast<std::size_t>(chunk)]; ++i) {
      pieces.push_back(&pieces_.layers[Pieces::piece_of(model.kind(i))]);
    }
    if (last_stage(chunk)) {
      pieces.push_back(&pieces_.head);
      for (int i = 0; i < model.predicted_tokens; ++i) pieces.push_back(&pieces_.prediction);
    }
    return pieces;
  }

  /// Cuts pieces, in the given order, into gradient buckets of at least the stack's size.
  [[nodiscard]] std::vector<std::size_t> bucket_ends(
      const std::vector<const Piece*>& pieces) const {
    std::vector<std::size_t> ends;
    double parameters = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      parameters += pieces[i]->weights.sum();
      if (policy_.bucket_parameters > 0 && parameters >= policy_.bucket_parameters) {
        ends.push_back(i + 1);
        parameters = 0;
      }
    }
    if (ends.empty() || ends.back() != pieces.size()) ends.push_back(pieces.size());
    return ends;
  }

  static Weights weights_of(const std::vector<const Piece*>& pieces, std::size_t first,
                            std::size_t end) {
    Weights sum;
    for (std::size_t i = first; i < end; ++i) sum += pieces[i]->weights;
    return sum;
  }

  /// Replicas of the experts are fewer than those of the rest, and a group of their own.
  [[nodiscard]] bool exchanges_experts(const Weights& w) const {
    return w.experts > 0 && par_.expert_replicas() > 1;
  }
  void gather(const Weights& w) {
    post(CollectiveOp::all_gather, parameter_bytes(w.all));
    if (exchanges_experts(w)) {
      post(CollectiveOp::all_gather, parameter_bytes(w.experts), DataGroupKind::experts);
    }
  }
  void reduce(const Weights& w) {
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
    for (int chunk = 0; chunk < par_.virtual_stages; ++chunk) {
      const auto pieces = chunk_pieces(chunk);
      std::size_t first = 0;
      for (const std::size_t end : bucket_ends(pieces)) {
        gather(weights_of(pieces, first, end));
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
    auto it = std::find_if(out_.channels.begin(), out_.channels.end(), same);
    if (it == out_.channels.end()) {
      const DataGroup& group = out_.groups[static_cast<std::size_t>(kind)];
      const double nics = static_cast<double>(scenario_.node.nics) / scenario_.node.gpus;
      CollectiveCost cost =
          collective_cost({op, payload, group.ranks, group.per_domain}, scenario_.node.gpu,
                          scenario_.transport, nics * scenario_.node.nic_bandwidth);
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
    Weights weights;
    bool gathered;            ///< for this pass; else they are there from an earlier one
    std::uint32_t needs = 0;  ///< collectives of the stage, its gather the last of them
  };

  /// The weights that a pass gathers, piece by piece in the order of use. Embedding and output
  /// projection stay gathered through a micro batch (FSDP's root module).
  void plan_uses() {
    for (const WorkItem& work : stage_order(par_.schedule, schedule_call())) {
      const bool forward = work.pass == Pass::forward;
      const bool kept = !par_.reshard && (!forward || (par_.pipeline > 1 && work.micro_batch > 0));
      auto pieces = chunk_pieces(work.chunk);
      if (!forward) std::reverse(pieces.begin(), pieces.end());
      for (const Piece* piece : pieces) {
        uses_.push_back({piece->weights, !kept && (forward || !piece->root)});
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
    for_each_split(use.weights, [&](double parameters, DataGroupKind kind) {
      if (use.gathered) {
        beside += time_alone(CollectiveOp::all_gather, parameter_bytes(parameters), kind);
      }
      if (reduces) {
        beside += time_alone(CollectiveOp::reduce_scatter, gradient_bytes(parameters), kind);
      }
    });
    return beside;
  }
  /// One segment per piece: waits for its weights, gathers those of a later one, and scatters its
  /// gradients. Without overlap a piece gathers when the one before is done, and waits for the
  /// scatter of that.
  void add_sharded(const std::vector<const Piece*>& pieces, const WorkItem& work, bool forward) {
    const bool last = static_cast<int>(work.micro_batch) == plan_.micro_batches - 1;
    // Pipelined stages keep whole gradients until their last micro batch.
    const bool reduces = !forward && (par_.pipeline == 1 || last);
    for (const Piece* piece : pieces) {
      const Use& use = uses_[use_++];
      add_segment(forward ? piece->forward : piece->backward, true, beside_sharded(use, reduces));
      Segment& segment = out_.segments.back();
      segment.needs = std::max(use.needs, reduced_);
      if (reduces) {
        reduce_sharded(piece->weights);
        if (!policy_.overlap_gradients) reduced_ = count();
      }
      post_gather();
      segment.posts = count();
    }
  }
  void reduce_sharded(const Weights& w) {
    for_each_split(w, [&](double parameters, DataGroupKind kind) {
      post(CollectiveOp::reduce_scatter, gradient_bytes(parameters), kind);
    });
    if (par_.shards() == par_.replicas()) return;
    post(CollectiveOp::all_reduce, gradient_bytes(w.all / par_.shards()), DataGroupKind::copies);
  }
  [[nodiscard]] ScheduleCall schedule_call() const {
    return {.ranks = par_.pipeline,
            .chunks = par_.virtual_stages,
            .micro_batches = plan_.micro_batches,
            .rank = out_.stage};
  }

  void add_item(const WorkItem& work) {
    const int chunk = work.chunk;
    const bool forward = work.pass == Pass::forward;
    ProgramItem item{
        .work = work,
        .first_segment = static_cast<std::uint32_t>(out_.segments.size()),
        .needs_message = par_.pipeline > 1 && !(forward ? first_stage(chunk) : last_stage(chunk)),
        .sends_message = par_.pipeline > 1 && !(forward ? last_stage(chunk) : first_stage(chunk))};
    auto pieces = chunk_pieces(chunk);
    if (!forward) std::reverse(pieces.begin(), pieces.end());
    const bool gathering = forward && work.micro_batch == 0 && out_.gathers_first > 0;
    const bool reducing = !forward && par_.replicas() > 1 && policy_.overlap_gradients &&
                          static_cast<int>(work.micro_batch) == plan_.micro_batches - 1;
    if (gathers_weights()) {
      add_sharded(pieces, work, forward);
    } else if (gathering || reducing) {
      add_window(pieces, work, forward);
    } else {
      PhaseCost cost;
      for (const Piece* piece : pieces) cost += forward ? piece->forward : piece->backward;
      add_segment(cost, false, {});
    }
    item.segments = static_cast<std::uint32_t>(out_.segments.size()) - item.first_segment;
    if (item.sends_message) {
      const int next = forward ? (out_.stage == par_.pipeline - 1 ? chunk + 1 : chunk)
                               : (out_.stage == 0 ? chunk - 1 : chunk);
      out_.message_chunks[forward ? 0 : 1].push_back(static_cast<std::uint16_t>(next));
    }
    if (work.micro_batch == 0) {
      StepTime& pass = forward ? out_.forward : out_.backward;
      for (std::uint32_t i = 0; i < item.segments; ++i) {
        const Segment& s = out_.segments[item.first_segment + i];
        pass += s.compute + s.tensor;
      }
    }
    out_.items.push_back(item);
  }

  /// A pass beside which replicas exchange: one segment per piece, so that buckets come and go
  /// between them.
  void add_window(const std::vector<const Piece*>& pieces, const WorkItem& work, bool forward) {
    const auto ends = bucket_ends(pieces);
    std::size_t bucket = 0;
    std::size_t first = 0;
    const std::size_t gathered = forward ? gathers_before(work.chunk) : 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Weights weights = weights_of(pieces, first, ends[bucket]);
      const Seconds bucket_time =
          forward ? time_alone(CollectiveOp::all_gather, scenario_.stack.parameter_bytes, weights)
                  : time_alone(reduce_op(), policy_.gradient_bytes, weights);
      add_segment(forward ? pieces[i]->forward : pieces[i]->backward, true,
                  pieces[i]->weights.sum() / std::max(1.0, weights.sum()) * bucket_time);
      Segment& segment = out_.segments.back();
      if (forward) segment.needs = gathered_[gathered + bucket];
      if (i + 1 != ends[bucket]) continue;
      if (!forward) {
        reduce(weights);
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
    const Seconds kernels = cost.compute() - cost.launch;
    const Seconds yielded = policy_.sm_share / (1 - policy_.sm_share) * std::min(kernels, beside);
    const Seconds compute = (1 + variation_) * kernels + yielded + cost.launch;
    const ExchangeCost exchange = cost.exchange();
    const bool as_flow = exchange.transfer > Seconds{} &&
                         ((window && plan_.data_over_nvlink) || exchange.network > Bytes{});
    Segment segment{.compute = to_step_time(compute),
                    .tensor = to_step_time(as_flow ? exchange.latency : exchange.total())};
    if (as_flow) {
      // Progress runs at the pace of the transfer alone; its links see their share of it.
      segment.tensor_amount = exchange.transfer.base_units() * plan_.tensor_rate;
    }
    out_.segments.push_back(segment);
    for (std::size_t a = 0; a < kAxes; ++a) {
      out_.exchange[a] += cost.exchanges[a].total().base_units();
    }
    const auto book = [&](Bucket bucket, Seconds time) {
      out_.compute[static_cast<std::size_t>(bucket)] += time.base_units();
    };
    book(Bucket::model_flops, cost.useful);
    book(Bucket::kernel_inefficiency, cost.inefficiency + yielded);
    book(Bucket::memory_bound, cost.memory);
    book(Bucket::recompute, cost.recompute);
    book(Bucket::launch, cost.launch);
    book(Bucket::expert_imbalance, cost.imbalance);
    book(Bucket::variation, variation_ * kernels);
  }

  void plan_optimiser() {
    const double expert_shards =
        par_.sharding == Sharding::none ? 1 : std::max(1, par_.expert_replicas());
    const double local = weights_.all / par_.shards() + weights_.experts / expert_shards;
    const Bytes traffic{scenario_.stack.optimiser_bytes * local +
                        scenario_.stack.optimiser_unsharded_bytes * out_.parameters};
    out_.optimiser = to_step_time(memory_bound_time(traffic, scenario_.node.gpu));
  }

  const Scenario& scenario_;
  const StepPlan& plan_;
  const Pieces& pieces_;
  StagePlan& out_;
  const CommunicationPolicy& policy_;
  const Parallelism& par_;
  double variation_ = 0;
  std::vector<int> first_layers_;        ///< of each chunk, in the model
  Weights weights_;                      ///< of all chunks
  std::vector<std::uint32_t> gathered_;  ///< by bucket: collectives, its gathers the last of them
  std::uint32_t reduced_ = 0;            ///< collectives that the next pass waits for

  std::vector<Use> uses_;        ///< in program order
  std::size_t use_ = 0;          ///< next to be planned
  std::size_t posted_uses_ = 0;  ///< whose gathers are posted, or not needed
};

PlacementSpec placement_spec(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  return {.tensor = par.tensor * par.context,
          .data = par.data,
          .pipeline = par.pipeline,
          .order = parse_rank_order(s.stack.placement).value(),
          .gpus_per_node = s.node.gpus,
          .nvlink_domain = s.node.nvlink_domain,
          .nic_ports = nic_ports(s.node).count};
}

void plan_messages(const Scenario& s, BytesPerSecond nic, StepPlan& plan) {
  const Parallelism& par = s.job.parallelism;
  const CommunicationPolicy& policy = s.stack.communication;
  const double tokens =
      static_cast<double>(s.job.batch.micro_sequences) * s.job.batch.tokens / par.context;
  const bool split = par.sequence || policy.scatter_gather_pipeline;
  plan.message = Bytes{2 * tokens * s.job.model.hidden / (split ? par.tensor : 1)};
  plan.blocking_sends = par.schedule != Schedule::interleaved || !policy.overlap_pipeline;
  const CollectiveCall call{CollectiveOp::send_receive, plan.message, 2, 1};
  plan.message_cost = collective_cost(call, s.node.gpu, s.transport, nic);
  plan.local_message_cost =
      collective_cost({call.op, call.payload, 2, 2}, s.node.gpu, s.transport, nic);
  if (s.job.model.tied && par.pipeline > 1) {
    plan.embedding_reduce =
        Bytes{policy.gradient_bytes * s.job.model.vocabulary * s.job.model.hidden / par.tensor};
    plan.embedding_cost = collective_cost({CollectiveOp::all_reduce, plan.embedding_reduce, 2, 1},
                                          s.node.gpu, s.transport, nic);
  }
}

/// How a transfer inside layers loads links when it runs as a flow.
void plan_tensor_flow(const Pieces& pieces, StepPlan& plan) {
  ExchangeCost cost;
  for (const Piece& layer : pieces.layers) {
    cost += layer.forward.exchange();
    cost += layer.backward.exchange();
  }
  if (cost.transfer <= Seconds{}) return;
  const Bytes unit = cost.network > Bytes{} ? cost.network : cost.nvlink;
  plan.tensor_rate = (unit / cost.transfer).base_units();
  plan.tensor_nvlink_share = cost.nvlink / unit;
  plan.tensor_network_share = cost.network / unit;
}

}  // namespace

WorkloadContext workload_context(const Scenario& s, const Placement& placement) {
  const Parallelism& par = s.job.parallelism;
  const GroupSpread tensor = placement.spread({.first = 0, .count = par.tensor, .stride = 1});
  const GroupSpread context =
      placement.spread({.first = 0, .count = par.context, .stride = par.tensor});
  const GroupSpread experts =
      placement.spread({.first = 0, .count = par.expert, .stride = par.expert_tensor});
  return {.job = s.job,
          .node = s.node,
          .stack = s.stack,
          .transport = s.transport,
          .tensor_ranks_per_domain = tensor.per_domain_max,
          .context_ranks_per_domain = context.per_domain_max,
          .expert_ranks_per_domain = experts.per_domain_max};
}

StepPlan plan_step(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  StepPlan plan;
  plan.placement = placement_spec(s);
  plan.micro_batches = s.job.micro_batches();
  plan.chunks = par.virtual_stages;
  const Placement placement{plan.placement};
  const BytesPerSecond nic = static_cast<double>(s.node.nics) / s.node.gpus * s.node.nic_bandwidth;
  const WorkloadContext context = workload_context(s, placement);
  const Pieces pieces = make_pieces(context);

  plan.data_over_nvlink = data_groups(par, placement, 0)[0].per_domain > 1;
  plan_messages(s, nic, plan);
  plan_tensor_flow(pieces, plan);
  if (s.gpus() > 1) {
    const int per_domain = std::min(s.gpus(), s.node.nvlink_domain);
    plan.synchronisation =
        to_step_time(collective_cost({CollectiveOp::all_reduce, Bytes{8}, s.gpus(), per_domain},
                                     s.node.gpu, s.transport, nic)
                         .latency);
  }
  plan.overhead = to_step_time(s.stack.step_overhead);
  const std::vector<int> layers = layers_per_virtual_stage(s.job.model, par);
  plan.stages.resize(static_cast<std::size_t>(par.pipeline));
  for (int stage = 0; stage < par.pipeline; ++stage) {
    StagePlan& out = plan.stages[static_cast<std::size_t>(stage)];
    out.stage = stage;
    out.groups = data_groups(par, placement, stage);
    StageBuilder{s, plan, pieces, layers, out}.build();
  }
  return plan;
}

}  // namespace lockstep
