#include "models/layer/flops.hpp"

#include <algorithm>

#include "models/spec/layer.hpp"

namespace lockstep {
namespace {

/// Of one token of the batch in one layer, forward.
struct TokenWork {
  double matrices = 0;          ///< weights that it meets
  double causal = 0, full = 0;  ///< attention and recurrences: the causal part, and all of it
  double recomputed = 0;        ///< FLOP that recomputation repeats
};

/// Adds up rows; experts that drop a token do no work for it.
class TokenWorkSum {
 public:
  TokenWorkSum(const TrainingJob& job, AttentionKernel attention, const Lengths& lengths)
      : job_(job),
        lengths_(lengths),
        rows_(lengths.own / job.batch.tokens),
        copies_(job.model.experts.per_token * expert_load(job).kept),
        repeats_core_(job.recompute == Recompute::selective &&
                      (attention == AttentionKernel::unfused
                           ? recomputes(job.modules, Recomputed::core)
                           : job.modules.fused_attention)) {}

  void operator()(const Product& p) {
    const double weights =
        (p.of_experts() ? copies_ : 1) * rows_per_token(p, lengths_, job_.batch) * p.weights();
    sum_.matrices += weights;
    if (job_.recompute != Recompute::selective) return;
    if (recomputes(job_.modules, p.recomputed)) sum_.recomputed += 2 * weights;
    sum_.recomputed += job_.modules.products * 2 * weights;
  }
  void operator()(const Core& core) {
    for (const Keys& keys : core.keys) add_attention(core.flops_per_key(), keys);
  }
  void operator()(const IndexScores& index) { add_attention(index.flops_per_key(), index.keys); }
  void operator()(const Scan& scan) {
    sum_.causal += rows_ * scan.flops;
    sum_.full += rows_ * scan.flops;
  }
  template <class Other>
  void operator()(const Other&) {}

  [[nodiscard]] TokenWork total() const {
    TokenWork work = sum_;
    if (job_.recompute == Recompute::full) work.recomputed = 2 * work.matrices + work.full;
    return work;
  }

 private:
  void add_attention(double per_key, const Keys& keys) {
    const double tokens = lengths_.of(keys);
    sum_.causal += rows_ * per_key * keys.mean(tokens);
    sum_.full += rows_ * per_key * keys.seen(tokens);
    if (repeats_core_) sum_.recomputed += rows_ * per_key * keys.seen(tokens);
  }

  const TrainingJob& job_;
  Lengths lengths_;
  double rows_;  ///< of the layer, for each token of the batch
  double copies_;
  bool repeats_core_;  ///< in a pass of its own: a flash kernel does it inside the backward one
  TokenWork sum_{};
};

TokenWork token_work(const TrainingJob& job, AttentionKernel attention, LayerKind kind) {
  const Layer layer = declare_layer(job.model, kind);
  TokenWorkSum sum{job, attention, lengths_of(layer, job.batch)};
  for (const Row& row : layer.rows) std::visit(sum, row);
  return sum.total();
}

}  // namespace

StepFlops step_flops(const TrainingJob& job, AttentionKernel attention) {
  const TransformerShape& m = job.model;
  const double head = table_parameters(m);
  const double extra = m.predicted_tokens;
  const double joined = 2.0 * m.hidden * m.hidden;  // a further token's product, norms apart
  double matrices = head + extra * (head + joined);
  double frozen = 0;  // all passes of what is, but those of adapters' frozen weights
  if (job.frozen.output) {
    frozen += 4 * head;
    matrices -= head;
  }
  double causal = 0, full = 0, recomputed = 0;
  PerKind<TokenWork> known;
  for (int i = 0; i < m.layers + m.predicted_tokens; ++i) {
    const LayerKind kind = job.kind(std::min(i, m.layers - 1));
    const TokenWork work =
        known.at(kind, [&](LayerKind k) { return token_work(job, attention, k); });
    const bool forward_only = kind.gradients == Gradients::none;
    if (kind.gradients == Gradients::all) {
      matrices += work.matrices;
    } else {
      frozen += (forward_only ? 2 : 4) * work.matrices;
    }
    causal += work.causal * (forward_only ? 1.0 / 3 : 1.0);
    full += work.full * (forward_only ? 1.0 / 3 : 1.0);
    if (!forward_only) recomputed += work.recomputed;
  }
  const double tokens = static_cast<double>(job.batch.sequences) * job.batch.tokens;
  const double products =
      (job.adapters.any() ? 4.0 : 6.0) * matrices + frozen + 6.0 * met_adapter_parameters(job);
  return {.causal = Flops{tokens * (products + 3.0 * causal)},
          .full = Flops{tokens * (products + 3.0 * full)},
          .hardware = Flops{tokens * (products + 3.0 * full + recomputed)}};
}

}  // namespace lockstep
