#include "sim/step/plan.hpp"

#include <algorithm>
#include <cmath>

#include "models/kernels/memory_bound.hpp"
#include "models/kernels/order_statistics.hpp"
#include "models/workload/partition.hpp"

namespace lockstep {
namespace {

/// A layer, the embedding or the output projection: the smallest thing that a pass consists of.
struct Piece {
  PhaseCost forward, backward;
  double parameters = 0;  ///< of one tensor-parallel rank
};
struct Pieces {
  Piece layer, embedding, head;
};

Piece make_piece(const std::vector<Operation>& operations, const WorkloadContext& c, double kernels,
                 double parameters) {
  const StackSpec& s = c.stack;
  const bool again = kernels > 0 && c.job.recompute == Recompute::full;
  return {
      .forward = phase_cost(operations, false, kernels * s.kernels_forward, c),
      .backward = phase_cost(operations, true,
                             kernels * (s.kernels_backward + (again ? s.kernels_forward : 0)), c),
      .parameters = parameters / c.job.parallelism.tensor};
}

Pieces make_pieces(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const double head = static_cast<double>(m.vocabulary) * m.hidden;
  const bool shared = m.tied && c.job.parallelism.pipeline == 1;
  return {.layer = make_piece(layer_operations(c), c, 1, layer_parameters(m)),
          .embedding = make_piece(embedding_operations(c), c, 0, embedding_parameters(m)),
          .head = make_piece(head_operations(c), c, 0, shared ? 0 : head)};
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
    for (int chunk = 0; chunk < par_.virtual_stages; ++chunk) {
      out_.layers.push_back(layers[static_cast<std::size_t>(chunk * par_.pipeline + out_.stage)]);
    }
    for (int chunk = 0; chunk < par_.virtual_stages; ++chunk) {
      for (const Piece* piece : chunk_pieces(chunk)) out_.parameters += piece->parameters;
    }
    const bool gathers = sharded() && policy_.overlap_parameters;
    if (gathers) plan_gathers();
    out_.gathers_first = count();
    for (const WorkItem& work : stage_order(par_.schedule, {.ranks = par_.pipeline,
                                                            .chunks = par_.virtual_stages,
                                                            .micro_batches = plan_.micro_batches,
                                                            .rank = out_.stage})) {
      add_item(work);
    }
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
  [[nodiscard]] bool first_stage(int chunk) const { return out_.stage == 0 && chunk == 0; }
  [[nodiscard]] bool last_stage(int chunk) const {
    return out_.stage == par_.pipeline - 1 && chunk == par_.virtual_stages - 1;
  }

  /// Pieces of a chunk in forward order.
  [[nodiscard]] std::vector<const Piece*> chunk_pieces(int chunk) const {
    std::vector<const Piece*> pieces;
    if (first_stage(chunk)) pieces.push_back(&pieces_.embedding);
    for (int i = 0; i < out_.layers[static_cast<std::size_t>(chunk)]; ++i) {
      pieces.push_back(&pieces_.layer);
    }
    if (last_stage(chunk)) pieces.push_back(&pieces_.head);
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
    for (int chunk = 0; chunk < par_.virtual_stages; ++chunk) {
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
    const bool reducing = !forward && par_.data > 1 && policy_.overlap_gradients &&
                          static_cast<int>(work.micro_batch) == plan_.micro_batches - 1;
    if (gathering || reducing) {
      add_window(pieces, work, forward);
    } else {
      PhaseCost cost;
      for (const Piece* piece : pieces) cost += forward ? piece->forward : piece->backward;
      add_segment(cost, false);
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
    std::uint32_t gathered = forward ? gathers_before(work.chunk) : 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      add_segment(forward ? pieces[i]->forward : pieces[i]->backward, true);
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

/// How a tensor-parallel transfer loads links when it runs as a flow.
void plan_tensor_flow(const Pieces& pieces, StepPlan& plan) {
  const PhaseCost& cost = pieces.layer.forward;
  if (cost.tensor_transfer <= Seconds{}) return;
  const Bytes unit = cost.tensor_network > Bytes{} ? cost.tensor_network : cost.tensor_nvlink;
  plan.tensor_rate = (unit / cost.tensor_transfer).base_units();
  plan.tensor_nvlink_share = cost.tensor_nvlink / unit;
  plan.tensor_network_share = cost.tensor_network / unit;
}

}  // namespace

StepPlan plan_step(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  StepPlan plan;
  plan.placement = placement_spec(s);
  plan.micro_batches = s.job.micro_batches();
  plan.chunks = par.virtual_stages;
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
  return plan;
}

}  // namespace lockstep
