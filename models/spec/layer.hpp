/// A layer, declared: the products, kernels and exchanges that it consists of, with their widths,
/// how ranks share them, what the backward pass repeats, which adapter a product can have, and what
/// is saved. Weights, FLOP, times, memory, adapters and generation are folds over these rows, so a
/// new block is a function that writes them (models/spec/blocks.hpp).
///
/// Widths are those of the whole layer; a fold divides them by the ranks of its job.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/spec/transformer.hpp"

namespace lockstep {

/// Ranks that share something out.
enum class Ways : std::uint8_t { none, tensor, expert_tensor };

/// Columns of a product or a kernel.
struct Width {
  double shared = 0;           ///< cut evenly over the ranks
  double units = 0, unit = 0;  ///< units (key-value heads) of so many columns; a rank has one at
                               ///< least, and there are copies where ranks are more
  double whole = 0;            ///< on every rank

  [[nodiscard]] double all() const { return shared + units * unit + whole; }
  [[nodiscard]] double on(double ranks) const {
    return shared / ranks + (unit > 0 ? std::max(1.0, units / ranks) * unit : 0) + whole;
  }
};

/// Which rows a rank has.
enum class Rows : std::uint8_t {
  tokens,    ///< its tokens, those of the whole tensor-parallel group
  residual,  ///< a part of them where the group splits norms and residuals, else all
  own,       ///< a part of them in any case
  repeated,  ///< all of them, on each rank of the group, of which one would be enough
  copies,    ///< copies of tokens that came to the experts of the rank
  source,    ///< those that cross attention goes over, once for all of them
};

/// What runs again in the backward pass where recomputation says so.
enum class Recomputed : std::uint8_t {
  layer,  ///< all of the layer
  products,
  core,
  norm,
  activation,
  latent_up,
  mlp_up,
  mlp_down,
  projection,
  always,
};

/// Whether selective recomputation names it. Of attention's core: whatever a kernel repeats by
/// itself.
bool recomputes(const RecomputeModules& modules, Recomputed what);

/// A product y = x W, the gradient of its input, and that of its weights.
using ProductNames = std::array<std::string_view, 3>;

struct Product {
  ProductNames names;
  Width in, out;
  Rows rows = Rows::tokens;
  Ways ways = Ways::tensor;
  Recomputed recomputed = Recomputed::products;
  double matrices = 1;     ///< each of which takes all rows; ranks share them out
  bool half = false;       ///< stays in 16 bit in every mixed-precision recipe
  bool in_pieces = false;  ///< can be cut into pieces beside a gather or scatter
  std::optional<AdapterModule> adapter{};
  int adapters = 1;  ///< 2 where it stands for two products with an adapter each
  /// Of a convolution, a product whose input stands in it once for each place of the window (an
  /// implicit GEMM): `in` has all of them, and memory one.
  double places = 1;
  double inputs = 1;  ///< rows of the input for each of the result

  /// Weights of all ranks, of one expert where it is one of experts.
  [[nodiscard]] double weights() const { return matrices * in.all() * out.all(); }
  [[nodiscard]] bool of_experts() const { return rows == Rows::copies; }
};

/// Constants of a stack that a kernel's traffic is in proportion to (ElementwiseTraffic).
enum class Traffic : std::uint8_t {
  fixed,
  norm_residual,
  rotary,
  activation,
  permute,
  expert_bias,
};

/// Work that is bound by memory.
struct Kernel {
  std::string_view name;
  Width columns;
  double bytes = 1;     ///< of each, read and written, times the stack's constant
  double backward = 1;  ///< traffic of the backward pass over that of the forward pass
  int kernels = 1;
  Recomputed recomputed = Recomputed::layer, or_recomputed = Recomputed::layer;
  Rows rows = Rows::tokens;
  Ways ways = Ways::tensor;
  Traffic traffic = Traffic::fixed;
};

/// Keys that a query goes over: all, or the last or best `limit`, of the entries that stand for
/// `ratio` tokens each; or those of its chunk of `limit` tokens.
struct Keys {
  double limit = 0;  ///< 0: none
  double ratio = 1;
  bool chunked = false;
  bool causal = true;      ///< later ones are masked
  bool of_source = false;  ///< not of the sequence, but of what cross attention goes over

  /// A query's, at the end of `tokens`; of chunks the mean over queries, nothing masked.
  [[nodiscard]] double seen(double tokens) const {
    const double entries = tokens / ratio;
    if (limit <= 0 || limit >= entries) return entries;
    if (!chunked) return limit;
    const double rest = entries - limit * std::floor(entries / limit);
    return ((entries - rest) * limit + rest * rest) / entries;
  }
  /// The mean over the queries of a sequence: W - W^2 / (2 S) of S causal entries, half of a chunk,
  /// and all where nothing is masked.
  [[nodiscard]] double mean(double tokens) const {
    const double most = seen(tokens);
    if (!causal) return most;
    if (chunked) return most / 2;
    return most - most * most / (2 * tokens / ratio);
  }
  /// A query's behind `tokens` of a text that grows: of chunks half of one.
  [[nodiscard]] double at_end_of(double tokens) const {
    return chunked && limit > 0 && limit < tokens ? limit / 2 : seen(tokens);
  }
};

/// Scores, softmax and values.
struct Core {
  double heads = 0, kv_heads = 0;
  double head_dim = 0;   ///< mean of a head's query and value
  double query_dim = 0;  ///< of a head's query; 0: as wide as its value
  std::vector<Keys> keys{};

  /// FLOP of one query and key, forward.
  [[nodiscard]] double flops_per_key() const { return 4 * heads * head_dim; }
};

/// Scores by which attention chooses its keys: one product, which every rank of a tensor-parallel
/// group computes.
struct IndexScores {
  double heads = 0, dim = 0;
  Keys keys{};

  [[nodiscard]] double flops_per_key() const { return 2 * heads * dim; }
};

/// A recurrence along the sequence, whose heads ranks share out.
struct Scan {
  double flops = 0, bytes = 0;  ///< of one token, forward
  int kernels = 1;              ///< of a pass
};

/// What tensor-parallel ranks exchange around two products, one split by columns, one by rows.
struct PairExchange {
  ProductNames first, second;
};
/// Tokens to their experts and back.
struct Dispatch {
  double columns = 0;
};
/// Results of experts to all ranks of a group that has the same tokens.
struct ExpertGather {};

using Row =
    std::variant<Product, Kernel, Core, IndexScores, Scan, PairExchange, Dispatch, ExpertGather>;

/// How a tensor is kept for the backward pass.
enum class Keep : std::uint8_t {
  half,              ///< 16 bit
  word,              ///< 32 bit
  residual,          ///< 16 bit and the mask of dropout
  operand,           ///< as the product takes it, if its weights or its adapter have a gradient
  attention,         ///< 16 bit, and beside it the product's own quantised copy
  rotary_copy,       ///< 16 bit, where the stack keeps one
  scores,            ///< of unfused attention: softmax, its mask, and what they make
  source_scores,     ///< the same of cross attention
  trained_operand,   ///< 16 bit, if the weights that it meets have a gradient and no adapter
  activation_input,  ///< of an MLP's activation
  activation_output,
};

/// Who has which part of it.
enum class SavedBy : std::uint8_t {
  tensor,    ///< ranks of a tensor-parallel group share it out
  sequence,  ///< so they do where they split norms and residuals
  stream,    ///< the same, for the residual stream and its norms
};

struct Saved {
  double columns = 0;
  Keep keep = Keep::half;
  std::optional<Recomputed> recomputed{};     ///< not saved where this is recomputed
  std::optional<AdapterModule> product{};     ///< whose operand it is,
  std::optional<AdapterModule> or_product{};  ///< and whose too
  Rows rows = Rows::tokens;
  SavedBy by = SavedBy::tensor;
};

/// What generation keeps of the tokens so far.
struct Cache {
  Width entry{};               ///< elements of an entry
  double entries = 0;          ///< of each token
  double flops_per_entry = 0;  ///< of one query, all heads
  std::vector<Keys> keys{};    ///< that a query reads
  double index_entry = 0;      ///< elements of the index's key, on every rank,
  double index_flops = 0;      ///< and what its scores cost
  Keys index_keys{};
  double state = 0;  ///< elements of a recurrent state, of each sequence
};

struct Layer {
  std::vector<Row> rows{};
  std::vector<Saved> saved{};
  Cache cache{};
  double small = 0;    ///< weights of norms, biases, short convolutions: all but those of products
  double width = 0;    ///< columns of its stream,
  double input = 0;    ///< and those that come in, for each token that comes out
  bool gated = false;  ///< its MLP has a gate
  int tokens = 0, halvings = 0;  ///< as KindShape has them
  bool of_source = false;
  int source_tokens = 0;
};

/// Tokens of a sequence as a layer sees them.
struct Lengths {
  double own = 0;              ///< rows
  double attended = 0;         ///< that attention goes over at most
  double source = 0;           ///< of what cross attention goes over: rows,
  double source_attended = 0;  ///< and what a query goes over at most

  /// Tokens among which a query's keys are.
  [[nodiscard]] double of(const Keys& keys) const {
    return keys.of_source ? source_attended : attended;
  }
};
Lengths lengths_of(const Layer& layer, const Batch& batch);
/// Rows of a product for each token of the batch, experts apart.
double rows_per_token(const Product& product, const Lengths& lengths, const Batch& batch);

/// What a layer of this kind consists of.
Layer declare_layer(const TransformerShape& m, LayerKind kind);

/// Calls `use` with each product.
template <class Use>
void for_each_product(const Layer& layer, const Use& use) {
  for (const Row& row : layer.rows) {
    if (const auto* product = std::get_if<Product>(&row)) use(*product);
  }
}

/// What a function of a layer's kind gives, worked out once for each kind.
template <class Value>
class PerKind {
 public:
  template <class Make>
  Value at(LayerKind kind, const Make& make) {
    for (const auto& [known, value] : values_) {
      if (known == kind) return value;
    }
    return values_.emplace_back(kind, make(kind)).second;
  }

 private:
  std::vector<std::pair<LayerKind, Value>> values_;
};

}  // namespace lockstep
