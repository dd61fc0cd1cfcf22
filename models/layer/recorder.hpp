/// Collects the operations of a layer; knows how each kind is timed.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/layer/operations.hpp"
#include "models/spec/layer.hpp"

namespace lockstep {

/// Sizes of one tensor-parallel rank and one micro batch.
struct Widths {
  double tokens, tensor, hidden;
  double residual_tokens;  ///< rows of norms and residuals on one rank
};
Widths widths(const WorkloadContext& context);
/// Of a layer that has tokens or a width of its own.
Widths widths(const WorkloadContext& context, const Layer& layer);

class Recorder {
 public:
  explicit Recorder(const WorkloadContext& context, Gradients gradients = Gradients::all)
      : c_(context), gpu_(context.node.gpu), gradients_(gradients) {}

  /// y = x W and its two backward products. `x_width` columns in, `y_width` out, of `tokens` rows.
  struct Linear {
    std::array<std::string_view, 3> names;
    double tokens, x_width, y_width;
    Precision precision;
    double repeated = 0;  ///< share of the forward product that runs again in the backward pass
    double groups = 1;    ///< experts that share the rows out evenly, with a matrix each
    double load = 1;      ///< of the fullest rank over the mean: the others wait
    double useful = 1;    ///< share of the rows that are tokens, not padding
    bool in_layer = true;
    /// Kernels of equal rows that the product and its input gradient are cut into; the weights'
    /// gradient stays whole.
    double pieces = 1;
    const Product* product = nullptr;  ///< as the layer declares it; nothing outside of layers
    double places = 1, inputs = 1;     ///< of a convolution, as Product has them
  };
  /// With adapters the weights have no gradient, and the products that have one take it along;
  /// neither have frozen ones.
  void linear(const Linear& l);

  struct AttentionCall {
    std::string_view name = "attention";
    AttentionShape shape{};
    /// Calls of `shape`. Context-parallel ranks take several each: every rank holds an early and a
    /// late piece of the sequence, so that the causal half is shared out evenly. Of entries that
    /// stand for several tokens: a part of one.
    double parts = 1;
    double useful = 1;      ///< share of the work that no other rank does too
    bool repeated = false;  ///< runs again in the backward pass
  };
  void attention(const AttentionCall& call);

  /// A recurrence over `tokens`, of which this rank has 1 / `ways` of the heads. The backward pass
  /// makes the states again and two gradients of everything.
  void scan(const Scan& shape, double tokens, double ways, bool repeated);

  /// `kernels` of equal traffic; 0: the traffic rides on a product's own kernel.
  void memory(std::string_view name, Phase phase, Bytes traffic, int kernels, double load = 1);
  void elementwise(std::string_view name, double bytes, double backward_ratio, int kernels,
                   bool repeated, double load = 1);

  /// A collective inside a layer.
  struct Exchange {
    std::string_view name;
    Axis axis = Axis::tensor;
    Phase phase = Phase::forward;
    CollectiveCall call{};    ///< how its members lie is in `groups`
    DomainSpreads groups{};   ///< that run it at once: compute waits for the slowest of them
    double slowdown = 1;      ///< time over that of nccl-tests
    double exposed = 1;       ///< share that compute waits for ...
    Seconds hidden_behind{};  ///< ... of the time beyond this
    Seconds spare{};          ///< compute that could cover more than it does
    double times = 1;         ///< one after the other
    double crossing = 1;  ///< share of the members whose bytes leave the NVLink domain, if any do
  };
  void exchange(const Exchange& e);
  /// A tensor-parallel collective of which compute waits for `exposed` of the time beyond what
  /// `hidden_behind` covers.
  void collective(std::string_view name, Phase phase, CollectiveOp op, Bytes payload,
                  double exposed = 1.0, Seconds hidden_behind = {});
  /// Tokens to their experts or back: `copies` bytes that this rank sends, one for each expert of
  /// each token. Beside another micro batch (Parallelism::expert_overlap) it hides behind `cover`.
  /// The fullest rank gets as many more as expert_load() says, or sends them `back`.
  void dispatch(std::string_view name, Phase phase, Bytes copies, Seconds cover, bool back);

  /// Time of the last operation named so, for what may hide behind it.
  [[nodiscard]] Seconds time_of(std::string_view name) const;
  [[nodiscard]] Seconds time_of(std::string_view name, Phase phase) const;
  /// Of all operations so far but collectives.
  [[nodiscard]] Seconds compute_time(Phase phase) const;
  /// All operations; of the forward pass alone where there are no gradients.
  std::vector<Operation> take();

 private:
  void adapter(const Linear& l, const Product& declared);
  void share_adapter(Phase phase, CollectiveOp op, Bytes payload, bool of_experts);
  [[nodiscard]] Bytes attention_traffic(const AttentionShape& s) const;
  [[nodiscard]] CollectiveCost cost_of(const CollectiveCall& call,
                                       const DomainSpreads& groups) const;
  [[nodiscard]] Seconds time_alone(const Exchange& e) const;
  [[nodiscard]] Exchange placed_dispatch(Exchange e, const DomainSpread& spread) const;
  void add(const Operation& operation) { operations_.push_back(operation); }
  void product(std::string_view name, Phase phase, const GemmShape& shape, const Linear& of,
               Flops useful);

  const WorkloadContext& c_;
  const GpuSpec& gpu_;
  Gradients gradients_;
  std::vector<Operation> operations_;
};

}  // namespace lockstep
