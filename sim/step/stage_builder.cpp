#include "sim/step/stage_builder.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <iterator>

#include "models/kernels/memory_bound.hpp"
#include "models/layer/offload.hpp"
#include "sim/step/stage_chunks.hpp"
#include "sim/step/stage_collectives.hpp"
#include "sim/step/stage_segments.hpp"

namespace lockstep {
namespace {

/// Puts the passes of a stage in order, and the collectives of its replicas beside them.
class StageBuilder {
 public:
  StageBuilder(const Scenario& scenario, const StepPlan& plan, const Pieces& pieces,
               const std::vector<int>& layers, const std::vector<std::uint32_t>& pools,
               StagePlan& out)
      : scenario_(scenario),
        plan_(plan),
        out_(out),
        policy_(scenario.stack.communication),
        par_(scenario.job.parallelism),
        chunks_(scenario.job, plan.shape, pieces, layers, out),
        collectives_(scenario, plan.switches_sum, pools, out),
        segments_(scenario, plan, out) {
    if (!scenario.job.stops_early()) return;
    const int frozen = scenario.job.frozen.layers;
    for (int end = layers.front();
         end <= frozen && last_backward_stage_ + 1 < std::ssize(layers);) {
      end += layers[static_cast<std::size_t>(++last_backward_stage_)];
    }
  }

  void build() {
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      for (const Piece* piece : chunks_.pieces(chunk)) trained_ += piece->trained;
    }
    out_.parameters = trained_.sum();
    const std::vector<WorkItem> order = rank_order(par_, out_.micro_batches, out_.stage);
    find_windows(order);
    if (collectives_.gathers_weights()) {
      plan_uses(order);
      const int ahead = policy_.overlap_parameters ? par_.prefetch : 0;
      for (int i = 0; i <= ahead; ++i) post_gather();
    } else if (collectives_.sharded() && policy_.overlap_parameters) {
      plan_gathers();
    }
    out_.gathers_first = collectives_.count();
    for (std::size_t i = 0; i < order.size(); ++i) add_item(order[i], i);
    if (par_.replicas() > 1 && !par_.reduces_each_micro_batch() &&
        !collectives_.gathers_weights() && !policy_.overlap_gradients) {
      collectives_.reduce(trained_);
    }
    out_.reduces_end = collectives_.count();
    if (collectives_.sharded() && !policy_.overlap_parameters) collectives_.gather(trained_);
    plan_optimiser();
  }

 private:
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

  void plan_gathers() {
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      const auto pieces = chunks_.pieces(chunk);
      std::size_t first = 0;
      for (const std::size_t end : bucket_ends(pieces)) {
        collectives_.gather(trained_of(pieces, first, end));
        gathered_.push_back(collectives_.count());
        first = end;
      }
    }
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
      for (const Piece* piece : chunks_.pass_over(work).pieces) {
        const Weights& w = piece->weights;
        uses_.push_back({{piece->stored * w.all, piece->stored * w.experts},
                         piece->trained,
                         needs && (forward || (!piece->root && piece->goes_back))});
      }
    }
  }
  /// Posts the gather of the next use that has one.
  void post_gather() {
    if (posted_uses_ == uses_.size()) return;
    Use& use = uses_[posted_uses_++];
    if (!use.gathered) return;
    collectives_.gather_split(use.weights);
    use.needs = collectives_.count();
  }
  /// What goes on between replicas beside a pass over weights like these.
  Seconds beside_sharded(const Use& use, bool reduces) {
    Seconds beside;
    if (use.gathered) collectives_.add_gather_time(use.weights, beside);
    if (reduces) collectives_.add_reduce_time(use.trained, beside);
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
      segments_.add(piece->cost(work.pass), true, beside_sharded(use, reduces));
      Segment& segment = out_.segments.back();
      segment.needs = std::max(use.needs, reduced_);
      if (reduces) {
        collectives_.reduce_split(piece->trained);
        if (!policy_.overlap_gradients) reduced_ = collectives_.count();
      }
      post_gather();
      segment.posts = collectives_.count();
    }
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
    const StageChunks::ChunkPass& pass_over = chunks_.pass_over(work);
    item.copies = pass_over.copies;
    const bool gathering = first_forward_[work.chunk] == number && out_.gathers_first > 0;
    const bool reduces = reduces_after(work, number);
    const std::uint32_t reduced = reduced_;
    if (collectives_.gathers_weights()) {
      add_sharded(pass_over.pieces, work, number);
    } else if (gathering || (reduces && policy_.overlap_gradients)) {
      add_window(pass_over.pieces, work, forward);
    } else {
      segments_.add(pass_over.cost, false, {});
    }
    // A stage may have no layer, embedding or head: its passes take no time, and are passed on.
    if (pass_over.pieces.empty() && out_.segments.size() == item.first_segment) {
      segments_.add(pass_over.cost, false, {});
    }
    Segment& first = out_.segments[item.first_segment];
    first.needs = std::max(first.needs, reduced);
    if (reduces && !collectives_.gathers_weights()) reduce_in_turn();
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
    collectives_.reduce(trained_);
    out_.segments.back().posts = reduced_ = collectives_.count();
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
          forward ? collectives_.gather_time(trained) : collectives_.reduce_time(trained);
      segments_.add(pieces[i]->cost(work.pass), true,
                    pieces[i]->trained.sum() / std::max(1.0, trained.sum()) * bucket_time);
      Segment& segment = out_.segments.back();
      if (forward) segment.needs = gathered_[gathered + bucket];
      if (i + 1 != ends[bucket]) continue;
      if (!forward) {
        collectives_.reduce(trained);
        segment.posts = collectives_.count();
      }
      first = i + 1;
      ++bucket;
    }
  }
  /// Buckets that are gathered for the chunks before.
  [[nodiscard]] std::size_t gathers_before(int chunk) const {
    std::size_t sum = 0;
    for (int c = 0; c < chunk; ++c) sum += bucket_ends(chunks_.pieces(c)).size();
    return sum;
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
  StagePlan& out_;
  const CommunicationPolicy& policy_;
  const Parallelism& par_;
  StageChunks chunks_;
  StageCollectives collectives_;
  StageSegments segments_;
  std::vector<std::size_t> first_forward_, last_backward_;  ///< by chunk: place in the order
  int last_backward_stage_ = 0;                             ///< where the backward pass ends
  Weights trained_;                                         ///< of all chunks
  std::vector<std::uint32_t> gathered_;  ///< by bucket: collectives, its gathers the last of them
  std::uint32_t reduced_ = 0;            ///< collectives that the next pass waits for

  std::vector<Use> uses_;        ///< in program order
  std::size_t use_ = 0;          ///< next to be planned
  std::size_t posted_uses_ = 0;  ///< whose gathers are posted, or not needed
};

}  // namespace

void build_stage(const Scenario& scenario, const StepPlan& plan, const Pieces& pieces,
                 const std::vector<int>& layers, const std::vector<std::uint32_t>& pools,
                 StagePlan& out) {
  StageBuilder{scenario, plan, pieces, layers, pools, out}.build();
}

}  // namespace lockstep
