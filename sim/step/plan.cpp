#include "sim/step/plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "models/kernels/memory_bound.hpp"
#include "models/kernels/order_statistics.hpp"
#include "models/workload/partition.hpp"

namespace lockstep {
namespace {

/// A layer, the embedding or the output projection: the smallest thing that a pass consists of.
struct Piece {
  std::array<PhaseCost, 4> passes;  ///< by Pass
  double parameters = 0;            ///< of one tensor-parallel rank

  [[nodiscard]] const PhaseCost& cost(Pass pass) const {
    return passes[static_cast<std::size_t>(pass)];
  }
};
struct Pieces {
  Piece layer, embedding, head;
};

using MakeOperations = std::vector<Operation> (*)(const WorkloadContext&);

/// Adds the two parts of a backward pass that is split. Kernels are launched in proportion to their
/// time (assumed).
void add_split_backward(MakeOperations make, const WorkloadContext& c, double kernels,
                        Piece& piece) {
  WorkloadContext split = c;
  split.split_backward = true;
  std::vector<Operation> input = make(split);
  std::vector<Operation> weight;
  std::ranges::copy_if(input, std::back_inserter(weight), is_weight_gradient);
  std::erase_if(input, is_weight_gradient);
  PhaseCost inputs = phase_cost(input, true, 0, c), weights = phase_cost(weight, true, 0, c);
  const Seconds both = inputs.total() + weights.total();
  const Seconds host = kernels * c.stack.launch_interval;
  if (host > both) {
    for (PhaseCost* part : {&inputs, &weights}) part->launch = (host - both) / both * part->total();
  }
  piece.passes[static_cast<std::size_t>(Pass::backward_input)] = inputs;
  piece.passes[static_cast<std::size_t>(Pass::backward_weight)] = weights;
}

/// `layers`: 1 for a layer, 0 for the rest, of which launches are not counted.
Piece make_piece(MakeOperations make, const WorkloadContext& c, double layers, double parameters) {
  const StackSpec& s = c.stack;
  const bool again = c.job.recompute == Recompute::full;
  const double kernels = layers * (s.kernels_backward + (again ? s.kernels_forward : 0));
  const std::vector<Operation> operations = make(c);
  Piece piece{.passes = {phase_cost(operations, false, layers * s.kernels_forward, c),
                         phase_cost(operations, true, kernels, c)},
              .parameters = parameters / c.job.parallelism.tensor};
  if (splits_backward(c.job.parallelism)) add_split_backward(make, c, kernels, piece);
  return piece;
}

/// Whether a rank that holds the output projection holds the embedding too.
bool ends_meet(const PipelineShape& shape) {
  return shape.ranks == 1 || shape.layout == ChunkLayout::two_way ||
         (shape.layout == ChunkLayout::v_shape && shape.chunks % 2 == 0);
}

Pieces make_pieces(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const double head = static_cast<double>(m.vocabulary) * m.hidden;
  const bool shared = m.tied && ends_meet(pipeline_shape(c.job.parallelism));
  return {.layer = make_piece(layer_operations, c, 1, layer_parameters(m)),
          .embedding = make_piece(embedding_operations, c, 0, embedding_parameters(m)),
          .head = make_piece(head_operations, c, 0, shared ? 0 : head)};
}

/// Builds the plan of one stage.
class StageBuilder {
 public:
  StageBuilder(const Scenario& scenario, const StepPlan& plan, const Pieces& pieces,
               const GroupSpread& data_spread, StagePlan& out)
      : scenario_(scenario),
        plan_(plan),
        pieces_(pieces),
        spread_(data_spread),
        out_(out),
        policy_(scenario.stack.communication),
        par_(scenario.job.parallelism) {
    const double gpus = scenario.gpus();
    const GpuSpec& gpu = scenario.node.gpu;
    // The slowest GPU of the job sets the pace; beside it every kernel waits for its group's
    // slowest.
    variation_ = gpu.speed_spread * expected_maximum_of_normals(gpus) +
                 gpu.kernel_jitter * expected_maximum_of_normals(par_.tensor);
  }

  void build(const std::vector<int>& layers) {
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      out_.layers.push_back(layers[static_cast<std::size_t>(plan_.shape.stage_of(place(chunk)))]);
    }
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      for (const Piece* piece : chunk_pieces(chunk)) out_.parameters += piece->parameters;
    }
    const bool gathers = sharded() && policy_.overlap_parameters;
    if (gathers) plan_gathers();
    out_.gathers_first = count();
    const std::vector<WorkItem> order = rank_order(par_, plan_.micro_batches, out_.stage);
    find_windows(order);
    for (std::size_t i = 0; i < order.size(); ++i) add_item(order[i], i);
    if (par_.data > 1 && !policy_.overlap_gradients)
      post(reduce_op(), gradient_bytes(out_.parameters));
    out_.reduces_end = count();
    if (sharded() && !policy_.overlap_parameters) {
      post(CollectiveOp::all_gather, parameter_bytes(out_.parameters));
    }
    plan_optimiser();
  }

 private:
  [[nodiscard]] bool sharded() const { return par_.data > 1 && par_.sharding != Sharding::none; }
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
    for (int i = 0; i < out_.layers[static_cast<std::size_t>(chunk)]; ++i) {
      pieces.push_back(&pieces_.layer);
    }
    if (plan_.shape.is_last(place(chunk))) pieces.push_back(&pieces_.head);
    return pieces;
  }

  /// Cuts pieces, in the given order, into gradient buckets of at least the stack's size.
  [[nodiscard]] std::vector<std::size_t> bucket_ends(
      const std::vector<const Piece*>& pieces) const {
    std::vector<std::size_t> ends;
    double parameters = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      parameters += pieces[i]->parameters;
      if (policy_.bucket_parameters > 0 && parameters >= policy_.bucket_parameters) {
        ends.push_back(i + 1);
        parameters = 0;
      }
    }
    if (ends.empty() || ends.back() != pieces.size()) ends.push_back(pieces.size());
    return ends;
  }

  static double parameters_of(const std::vector<const Piece*>& pieces, std::size_t first,
                              std::size_t end) {
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) sum += pieces[i]->parameters;
    return sum;
  }

  void plan_gathers() {
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      const auto pieces = chunk_pieces(chunk);
      std::size_t first = 0;
      for (const std::size_t end : bucket_ends(pieces)) {
        post(CollectiveOp::all_gather, parameter_bytes(parameters_of(pieces, first, end)));
        first = end;
      }
    }
  }

  void post(CollectiveOp op, Bytes payload) {
    if (payload <= Bytes{}) payload = Bytes{1};
    const auto same = [&](const DataChannel& c) { return c.op == op && c.payload == payload; };
    auto it = std::find_if(out_.channels.begin(), out_.channels.end(), same);
    if (it == out_.channels.end()) {
      const double nics = static_cast<double>(scenario_.node.nics) / scenario_.node.gpus;
      const CollectiveCost cost = collective_cost(
          {op, payload, par_.data, std::max(1, spread_.per_domain_max)}, scenario_.node.gpu,
          scenario_.transport, nics * scenario_.node.nic_bandwidth);
      out_.channels.push_back({op, payload, cost});
      it = out_.channels.end() - 1;
    }
    out_.collectives.push_back({op, payload, to_step_time(it->cost.latency),
                                static_cast<std::uint32_t>(it - out_.channels.begin())});
  }

  /// `number`: of the item in its rank's order.
  void add_item(const WorkItem& work, std::size_t number) {
    const int chunk = work.chunk;
    const bool forward = is_forward(work.pass);
    ProgramItem item{.work = work,
                     .first_segment = static_cast<std::uint32_t>(out_.segments.size())};
    connect(plan_.shape, out_, item);
    auto pieces = chunk_pieces(chunk);
    if (!forward) std::reverse(pieces.begin(), pieces.end());
    const bool gathering = first_forward_[work.chunk] == number && out_.gathers_first > 0;
    const bool reducing =
        last_backward_[work.chunk] == number && par_.data > 1 && policy_.overlap_gradients;
    if (gathering || reducing) {
      add_window(pieces, work, forward);
    } else {
      PhaseCost cost;
      for (const Piece* piece : pieces) cost += piece->cost(work.pass);
      add_segment(cost, false);
    }
    item.segments = static_cast<std::uint32_t>(out_.segments.size()) - item.first_segment;
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
    std::uint32_t gathered = forward ? gathers_before(work.chunk) : 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      add_segment(pieces[i]->cost(work.pass), true);
      Segment& segment = out_.segments.back();
      if (forward) segment.needs = gathered + static_cast<std::uint32_t>(bucket) + 1;
      if (i + 1 != ends[bucket]) continue;
      if (!forward) {
        post(reduce_op(), gradient_bytes(parameters_of(pieces, first, i + 1)));
        segment.posts = count();
      }
      first = i + 1;
      ++bucket;
    }
  }
  [[nodiscard]] std::uint32_t gathers_before(int chunk) const {
    std::size_t sum = 0;
    for (int c = 0; c < chunk; ++c) sum += bucket_ends(chunk_pieces(c)).size();
    return static_cast<std::uint32_t>(sum);
  }

  /// `window`: collectives between replicas run beside it, and take their share of the SMs.
  void add_segment(const PhaseCost& cost, bool window) {
    const Seconds kernels = cost.compute() - cost.launch;
    const Seconds yielded =
        window ? policy_.sm_share / (1 - policy_.sm_share) * kernels : Seconds{};
    const Seconds compute = (1 + variation_) * kernels + yielded + cost.launch;
    const bool as_flow = cost.tensor_transfer > Seconds{} &&
                         ((window && plan_.data_over_nvlink) || cost.tensor_network > Bytes{});
    Segment segment{.compute = to_step_time(compute),
                    .tensor = to_step_time(as_flow ? cost.tensor_latency
                                                   : cost.tensor_latency + cost.tensor_transfer)};
    if (as_flow) {
      // Progress runs at the pace of the transfer alone; its links see their share of it.
      segment.tensor_amount = cost.tensor_transfer.base_units() * plan_.tensor_rate;
    }
    out_.segments.push_back(segment);
    const auto book = [&](Bucket bucket, Seconds time) {
      out_.compute[static_cast<std::size_t>(bucket)] += time.base_units();
    };
    book(Bucket::model_flops, cost.useful);
    book(Bucket::kernel_inefficiency, cost.inefficiency + yielded);
    book(Bucket::memory_bound, cost.memory);
    book(Bucket::recompute, cost.recompute);
    book(Bucket::launch, cost.launch);
    book(Bucket::variation, variation_ * kernels);
  }

  void plan_optimiser() {
    const double local = out_.parameters / (sharded() ? par_.data : 1);
    const Bytes traffic{scenario_.stack.optimiser_bytes * local +
                        scenario_.stack.optimiser_unsharded_bytes * out_.parameters};
    out_.optimiser = to_step_time(memory_bound_time(traffic, scenario_.node.gpu));
  }

  const Scenario& scenario_;
  const StepPlan& plan_;
  const Pieces& pieces_;
  const GroupSpread& spread_;
  StagePlan& out_;
  const CommunicationPolicy& policy_;
  const Parallelism& par_;
  double variation_ = 0;
  std::vector<std::size_t> first_forward_, last_backward_;  ///< by chunk: place in the order
};

PlacementSpec placement_spec(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  return {.tensor = par.tensor,
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
  const double tokens = static_cast<double>(s.job.batch.micro_sequences) * s.job.batch.tokens;
  const bool split = par.sequence || policy.scatter_gather_pipeline;
  plan.message = Bytes{2 * tokens * s.job.model.hidden / (split ? par.tensor : 1)};
  const bool waits = !par.order && info(par.schedule).blocking_sends;
  plan.blocking_sends = waits || !policy.overlap_pipeline;
  const CollectiveCall call{CollectiveOp::send_receive, plan.message, 2, 1};
  plan.message_cost = collective_cost(call, s.node.gpu, s.transport, nic);
  plan.local_message_cost =
      collective_cost({call.op, call.payload, 2, 2}, s.node.gpu, s.transport, nic);
}

void add_exchange(const Scenario& s, BytesPerSecond nic, const std::array<std::uint32_t, 2>& stages,
                  double parameters, std::string_view what, StepPlan& plan) {
  const Bytes payload{s.stack.communication.gradient_bytes * parameters};
  const CollectiveCost cost =
      collective_cost({CollectiveOp::all_reduce, payload, 2, 1}, s.node.gpu, s.transport, nic);
  plan.exchanges.push_back({stages, payload, cost, what});
}

/// A tied embedding whose two copies lie on two ranks; both copies of a model that runs two ways,
/// of which each replica reduces its own part where they are sharded.
void plan_exchanges(const Scenario& s, BytesPerSecond nic, StepPlan& plan) {
  const Parallelism& par = s.job.parallelism;
  const auto ranks = static_cast<std::uint32_t>(par.pipeline);
  if (plan.shape.layout == ChunkLayout::two_way) {
    const double shards = par.sharding == Sharding::none ? 1 : par.data;
    for (std::uint32_t r = 0; r < ranks / 2; ++r) {
      add_exchange(s, nic, {r, ranks - 1 - r}, plan.stages[r].parameters / shards,
                   "gradients of both copies", plan);
    }
  } else if (s.job.model.tied && !ends_meet(plan.shape)) {
    add_exchange(s, nic, {0, ranks - 1},
                 static_cast<double>(s.job.model.vocabulary) * s.job.model.hidden / par.tensor,
                 "embedding gradients", plan);
  }
}

/// How a tensor-parallel transfer loads links when it runs as a flow.
void plan_tensor_flow(const Pieces& pieces, StepPlan& plan) {
  const PhaseCost& cost = pieces.layer.cost(Pass::forward);
  if (cost.tensor_transfer <= Seconds{}) return;
  const Bytes unit = cost.tensor_network > Bytes{} ? cost.tensor_network : cost.tensor_nvlink;
  plan.tensor_rate = (unit / cost.tensor_transfer).base_units();
  plan.tensor_nvlink_share = cost.tensor_nvlink / unit;
  plan.tensor_network_share = cost.tensor_network / unit;
}

}  // namespace

void connect(const PipelineShape& shape, StagePlan& stage, ProgramItem& item) {
  if (item.work.pass == Pass::backward_weight) return;
  const ChunkPlace at{stage.stage, item.work.chunk};
  const bool forward = is_forward(item.work.pass);
  const auto from = forward ? shape.before(at) : shape.after(at);
  const auto to = forward ? shape.after(at) : shape.before(at);
  item.needs_message = from && from->rank != at.rank;
  item.sends_message = to && to->rank != at.rank;
  if (!item.sends_message) return;
  item.direction = forward == shape.rising(at.chunk) ? 0 : 1;
  stage.message_targets[item.direction].push_back({static_cast<std::uint16_t>(to->chunk), forward});
}

StepPlan plan_step(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  StepPlan plan;
  plan.placement = placement_spec(s);
  plan.micro_batches = s.job.micro_batches();
  plan.shape = pipeline_shape(par);
  const Placement placement{plan.placement};
  const BytesPerSecond nic = static_cast<double>(s.node.nics) / s.node.gpus * s.node.nic_bandwidth;
  const GroupSpread tensor = placement.spread(placement.group(ParallelAxis::tensor, {}));
  const GroupSpread data = placement.spread(placement.group(ParallelAxis::data, {}));
  const WorkloadContext context{s.job, s.node, s.stack, s.transport, tensor.per_domain_max};
  const Pieces pieces = make_pieces(context);

  plan.data_over_nvlink = par.data > 1 && data.per_domain_max > 1;
  plan.data_over_network = par.data > 1 && data.domains > 1;
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
    StageBuilder{s, plan, pieces, data, out}.build(layers);
  }
  plan_exchanges(s, nic, plan);
  return plan;
}

}  // namespace lockstep
