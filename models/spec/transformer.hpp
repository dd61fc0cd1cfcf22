/// The shape of a transformer, how it is cut over GPUs, and what it is fed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/spec/adapters.hpp"
#include "models/spec/delta.hpp"
#include "models/spec/expert_load.hpp"
#include "models/spec/host_offload.hpp"
#include "models/spec/mamba.hpp"
#include "models/spec/precision.hpp"

namespace lockstep {

/// Mixture of experts in place of an MLP: a router sends each token to a few of many experts.
struct ExpertShape {
  int count = 0;          ///< E, routed experts of a layer; 0: dense
  int per_token = 1;      ///< k, routed experts that a token goes to
  int ffn = 0;            ///< width of one expert
  int shared_ffn = 0;     ///< width of the MLP that every token takes beside them; 0: none
  int leading_dense = 0;  ///< layers before the first with experts
  int interval = 1;       ///< of the layers after those every n-th has experts, the last of each n
  /// Width of what experts take and return, between a product before their dispatch and one behind
  /// their sum (NVIDIA 2025, Nemotron 3: LatentMoE); 0: that of the residual stream.
  int latent = 0;
  bool gated_shared = false;  ///< a gate of one column weighs what every token takes

  /// Columns that an expert takes and returns.
  [[nodiscard]] double width(int hidden) const { return latent > 0 ? latent : hidden; }
};

/// Multi-head latent attention: queries, keys and values come from compressed vectors (DeepSeek-AI
/// 2024, arXiv:2405.04434, section 2.1). TransformerShape::head_dim is then the mean of the width
/// of a head's queries and values, on which attention's FLOP depend.
struct LatentAttention {
  int query_rank = 0;      ///< 0: queries are not compressed
  int key_value_rank = 0;  ///< 0: plain attention
  int nope_dim = 0;        ///< of a head's query and key: without position
  int rope_dim = 0;        ///< with position; one key for all heads
  int value_dim = 0;
};

/// Queries of plain attention out of a compressed vector, and its result in groups of heads through
/// a narrow product each (DeepSeek-V4).
struct LowRankAttention {
  int query_rank = 0;     ///< 0: queries are not compressed
  int output_groups = 0;  ///< 0: one product behind attention
  int output_rank = 0;    ///< columns of each group
};

/// Attention over a choice of the keys: an index scores them all, with few narrow heads and one key
/// for all of these, and attention goes over the best (DeepSeek-AI 2025, arXiv:2512.02556, section
/// 2.1).
struct KeyIndex {
  int keys = 0;         ///< that attention goes over at most; 0: no index, all keys
  int heads = 0;        ///< of the index
  int dim = 0;          ///< of each of them
  int block = 1;        ///< keys that are scored and chosen together
  bool shared = false;  ///< takes the choice of a layer before it, and has no index of its own

  friend bool operator==(const KeyIndex&, const KeyIndex&) = default;
};

/// A convolution over an image, or two with a sum around them. The tokens of its layer are those of
/// its result.
struct ConvolutionShape {
  int in = 0, out = 0;      ///< channels
  int kernel = 0;           ///< side of the window of each of its results; 0: no convolution
  int skip = 0;             ///< channels of `in` that come from a layer further back
  int moment = 0;           ///< width of the vector that says the moment, added between two
  bool halves = false;      ///< its input's sides are twice as long,
  bool doubles = false;     ///< or half as long, and are stretched before it
  bool norm = false;        ///< a norm before it,
  bool activation = false;  ///< and an activation behind that

  /// Tokens of the input for each of the result.
  [[nodiscard]] double inputs() const { return halves ? 4 : doubles ? 0.25 : 1; }
  friend bool operator==(const ConvolutionShape&, const ConvolutionShape&) = default;
};

/// A tower that turns each image into tokens of the sequence, in front of the layers.
struct VisionTower {
  int layers = 0;  ///< 0: none, or nobody says what it consists of
  int hidden = 0, heads = 0, ffn = 0;
  int patches = 0;     ///< of an image, among which attention stays
  bool gated = false;  ///< three MLP matrices instead of two

  friend bool operator==(const VisionTower&, const VisionTower&) = default;
};

/// What lets tokens see each other, by its place in mixer_kinds() (models/spec/blocks.hpp). Those
/// that formulas name have names here.
enum class Mixer : std::uint8_t { attention, mamba, none, delta };
constexpr std::size_t kNamedMixers = 4, kMostMixers = 24;
/// Numbers of a mixer that all layers of a model share, in the order that its own file gives them.
using MixerNumbers = std::array<int, 6>;

/// A kind of layer of a model whose layers differ by more than experts and windows. Numbers that
/// are 0 are those of the model.
struct KindShape {
  std::string letter{};  ///< in TransformerShape::pattern
  Mixer mixer = Mixer::attention;
  int heads = 0;                ///< of queries
  int kv_heads = 0;             ///< of keys and values
  int head_dim = 0;             ///< of a query and a key
  int value_dim = 0;            ///< of a value, where it is not the same
  bool latent = false;          ///< attention is latent, as TransformerShape::latent says
  bool one_projection = false;  ///< keys are values too
  bool output_gate = false;     ///< a gate for each column of what attention gives
  bool shared_keys = false;     ///< keys and values are those of a layer before it
  int window = 0;               ///< tokens that attention looks back; 0: all
  bool chunked = false;         ///< not back, but over a chunk of so many tokens
  bool bidirectional = false;   ///< attention sees later tokens too: a layer of an encoder
  bool cross = false;           ///< a block of attention over an encoder's result behind the mixer
  int compression = 0;          ///< tokens of which one key is made, seen beside the window
  KeyIndex index{};
  /// Entries of a table of distances, as far as which queries are scored against where keys are,
  /// and keys against where queries are (DeBERTa); 0: none.
  int distances = 0;
  int summaries =
      0;        ///< tokens of which one key more is made, which all see beside a window; 0: none
  int ffn = 0;  ///< width of an MLP; 0: none
  int side_rank = 0;        ///< columns of two thin products beside the mixer; 0: none
  int layer_input = 0;      ///< columns of an embedding of its own, added behind it; 0: none
  bool experts = false;     ///< in place of it
  bool parallel = false;    ///< mixer and MLP read the same input, and one sum takes both results
  int hidden = 0;           ///< width of its own stream
  int tokens = 0;           ///< of a sequence, where they are not the batch's: words of a tower
  int halvings = 0;         ///< of both sides of an image: each leaves a quarter of the tokens
  bool of_source = false;   ///< a layer of an encoder: its tokens are Batch::source()
  int source_tokens = 0;    ///< that `cross` attends to; 0: Batch::source()
  int source_width = 0;     ///< of each of them
  bool plain_mlp = false;   ///< two matrices, whatever TransformerShape::gated says
  bool bare_heads = false;  ///< queries, keys and values have no biases, whatever else has
  int shared_by = 0;        ///< layers that have one set of weights together; 0: each its own
  ConvolutionShape convolution{};

  friend bool operator==(const KindShape&, const KindShape&) = default;
};

/// What the backward pass makes in a part of a model: gradients of weights and of inputs, those of
/// inputs alone (of what is frozen behind what is trained), or nothing (before all that is
/// trained).
enum class Gradients : std::uint8_t { all, inputs, none };

/// What differs between the layers of a model.
struct LayerKind {
  bool experts = false;
  bool windowed = false;  ///< attention over TransformerShape::window tokens only
  Mixer mixer = Mixer::attention;
  bool feed_forward = true;  ///< an MLP or experts, after the mixer where there is one
  bool cross = false;        ///< attention over an encoder's result between them
  bool parallel = false;     ///< mixer and MLP beside each other
  Gradients gradients = Gradients::all;
  std::uint8_t declared = 0;  ///< n: TransformerShape::kinds[n - 1]; 0: by the model's own numbers

  [[nodiscard]] int blocks() const {
    return (mixer != Mixer::none ? 1 : 0) + (feed_forward ? 1 : 0) + (cross ? 1 : 0);
  }
  /// Sums into the residual stream, each of which tensor-parallel ranks share.
  [[nodiscard]] int sums() const { return blocks() - (parallel ? 1 : 0); }
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// A decoder, or an encoder. Counts; a (heads) times d (head_dim) is the width of the attention.
struct TransformerShape {
  std::string name;
  int layers = 0;      ///< l
  int hidden = 0;      ///< h, width of the residual stream
  int heads = 0;       ///< a, query heads
  int kv_heads = 0;    ///< g, key and value heads; g = a without grouping
  int head_dim = 0;    ///< d
  int ffn = 0;         ///< f
  int vocabulary = 0;  ///< V
  bool gated = false;  ///< SwiGLU or GeGLU: three MLP matrices instead of two
  bool tied = false;   ///< input embedding and output projection share weights
  bool learned_positions = false;
  int max_positions = 0;  ///< rows of the learned position table
  bool biases = false;
  bool rotary = false;
  ExpertShape experts{};
  LatentAttention latent{};
  double activation_traffic = 1;  ///< of its activation over that of SwiGLU or GELU
  int window = 0;           ///< tokens that windowed attention looks back; 0: none is windowed
  int window_interval = 1;  ///< n, of which the first window_layers are windowed, and so on
  int window_layers = 1;    ///< Gemma 3: 5 of every 6
  bool chunked = false;     ///< windows are chunks of the sequence, which attention does not leave
  bool bidirectional = false;  ///< an encoder: attention sees later tokens too
  /// Attention and MLP read the same input, and one sum takes both results (GPT-J, PaLM).
  bool parallel = false;
  bool separate_norms = false;  ///< of parallel blocks, each has a norm of its own (GPT-NeoX)
  /// Of hybrid models: a letter for each layer, which is one block (kPatternLetters); with `kinds`,
  /// the letters of those.
  std::string pattern{};
  std::vector<KindShape> kinds{};  ///< at most kMostKinds
  MambaShape mamba{};
  DeltaShape delta{};
  std::array<MixerNumbers, kMostMixers> mixers{};  ///< of mixers without a struct of their own
  LowRankAttention low_rank{};
  /// Residual streams that blocks read from and write to by products of their own
  /// (hyper-connections: Zhu et al. 2024, arXiv:2409.19606; DeepSeek-V4).
  int residual_streams = 1;
  /// Of these streams one goes through a layer, which predicts the others before it and corrects
  /// them behind it by few numbers a token (AltUp: Baykal et al. 2023, arXiv:2301.13310).
  bool alternating = false;
  bool last_norm = true;  ///< there is a norm behind the last layer
  /// Weights of a tower that turns images into tokens, beside the embedding: stored and trained.
  /// Without images it computes nothing.
  double vision_parameters = 0;
  VisionTower tower{};  ///< the same weights' layers, which run where a batch has images
  /// Weights beside the embedding that no layer has and that compute next to nothing: an
  /// embedding's norm, an encoder's pooler, biases of the output.
  double other_parameters = 0;
  /// Columns of the tables of words and positions, which products among other_parameters bring to
  /// the width of the layers and back (ALBERT: Lan et al. 2019, arXiv:1909.11942, section 3.1); 0:
  /// h.
  int table_width = 0;
  int predicted_tokens = 0;  ///< further tokens that are predicted, by a layer of the last kind and
                             ///< the output projection again each (DeepSeek-V3's MTP)

  /// Of layer 0 to layers - 1, all trained; the layers that predict further tokens are like the
  /// last.
  [[nodiscard]] LayerKind kind(int layer) const;
  [[nodiscard]] const MixerNumbers& numbers(Mixer mixer) const {
    return mixers[static_cast<std::size_t>(mixer)];
  }
};

/// Whether it can answer token by token: attention sees earlier tokens alone, and all layers work
/// on the tokens of one sequence, not on an image's or on another sequence's.
bool is_decoder(const TransformerShape& m);

constexpr std::size_t kMostKinds = 100;
/// All that a layer of this kind has, with the model's numbers where the kind has none of its own.
KindShape shape_of(const TransformerShape& m, LayerKind kind);
KindShape complete_kind(const TransformerShape& m, KindShape kind);
/// The model whose tower's layers are in front of the others, and run on `images` of each sequence.
/// Their weights are no longer among vision_parameters. Requires a tower and images.
TransformerShape with_images(const TransformerShape& m, int images);
/// Weights of the tower's layers that it put there; 0 for other models.
double running_tower_parameters(const TransformerShape& m);

/// Weights of the matrix products of one layer that a token meets: attention and MLP, of experts
/// those that it goes to; no norms and biases.
double layer_matrix_parameters(const TransformerShape& m, LayerKind kind = {});
/// Weights of one layer that every rank of an expert-parallel group has: all but routed experts. Of
/// those that several layers have together, its part.
double layer_parameters(const TransformerShape& m, LayerKind kind = {});
/// How many layers have the weights of one of this kind together.
int layers_together(const TransformerShape& m, LayerKind kind);
/// Weights of all routed experts of one layer that has experts.
double expert_parameters(const TransformerShape& m);
/// Products and norms by which a further token is predicted, beside its layer.
double prediction_parameters(const TransformerShape& m);
/// Columns of the table of words, and all of it.
double embedding_width(const TransformerShape& m);
double table_parameters(const TransformerShape& m);
/// Input embedding, learned positions, a vision tower and other weights, which are on the first
/// stage.
double embedding_parameters(const TransformerShape& m);
/// Weights of the whole model; a tied embedding counts once.
double total_parameters(const TransformerShape& m);
/// Output projection, unless it is the embedding's, and final norm.
double output_parameters(const TransformerShape& m);

/// zero3: weights too, gathered layer by layer where they are used (ZeRO-3, PyTorch's FSDP).
enum class Sharding : std::uint8_t { none, zero1, zero2, zero3 };
enum class Recompute : std::uint8_t { none, selective, full };
/// What Recompute::selective repeats in the backward pass instead of saving its result; names as in
/// Megatron-Core's recompute_modules, and beside them what policies of JAX leave out of what they
/// save (github:AI-Hypercomputer/maxtext: remat_policy).
struct RecomputeModules {
  bool core_attention = true;
  bool layer_norm = false;
  bool activation = false;  ///< of the MLP, or of the experts
  bool latent_up = false;   ///< the products behind compressed queries, keys and values
  bool mlp = false;         ///< of layers without experts, and shared experts
  bool mlp_up = false;      ///< of the same: the products before the activation, and with them it
  bool projection = false;  ///< the product behind attention
  bool fused_attention = false;  ///< a fused kernel's forward pass, not only what it repeats itself
  double products = 0;           ///< share of the other products (per-operation checkpointing)
};
enum class Schedule : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  breadth_first,
  zb_h1,
  zb_h2,
  zb_v,
  dualpipe,
  dualpipev,
  fixed,  ///< Parallelism::order, which a person wrote
  // Behind it those that code outside the tree added (models/pipeline/schedule_extension.hpp).
};
struct FixedOrder;  // models/pipeline/schedule.hpp
/// Where embedding or output projection count when layers are split over stages.
enum class EndPlace : std::uint8_t {
  automatic,  ///< in the place of a layer where that makes the split even, else beside
  beside,     ///< with the layers of the first or last stage, not counted
  layer,      ///< in the place of a layer
  stage,      ///< a stage of its own
};
/// How layers are split over pipeline stages when nobody writes them out
/// (models/spec/partition.hpp).
enum class LayerSplit : std::uint8_t { even, by_cost };

/// How context-parallel ranks see each other's keys and values: passed on around a ring beside the
/// attention kernels (Liu et al. 2023, arXiv:2310.01889), gathered before them (Dubey et al. 2024,
/// arXiv:2407.21783, section 3.3.2), or heads swapped for tokens (Jacobs et al. 2023, DeepSpeed
/// Ulysses, arXiv:2309.14509).
enum class ContextExchange : std::uint8_t { ring, all_gather, all_to_all };
/// How tokens get to their experts: every copy straight to its expert's GPU, or one copy to each
/// NVLink domain, which hands it on (DeepEP, HybridEP).
enum class ExpertDispatch : std::uint8_t { all_to_all, two_level };
/// Products of sequence-parallel ranks and the gathers and scatters beside them: one after the
/// other, or cut into a piece for each rank, so that the copies of one piece run beside the product
/// of another (PyTorch's asynchronous tensor parallelism, Transformer Engine's user buffers).
enum class TensorOverlap : std::uint8_t { none, pieces };

struct Parallelism {
  int tensor = 1;          ///< t
  int pipeline = 1;        ///< p
  int context = 1;         ///< c, ranks that share a sequence
  int expert = 1;          ///< e, ranks over which the experts of a layer are spread
  int expert_tensor = 1;   ///< ranks that share each expert
  int data = 1;            ///< d
  int virtual_stages = 1;  ///< v, model chunks per pipeline rank
  bool sequence = false;   ///< norms, dropout and residuals split over the tensor-parallel group
  /// Empty: as CommunicationPolicy::tensor_exposed says.
  std::optional<TensorOverlap> tensor_overlap{};
  Sharding sharding = Sharding::none;
  ContextExchange context_exchange = ContextExchange::ring;
  ExpertDispatch expert_dispatch = ExpertDispatch::all_to_all;
  bool expert_overlap = false;  ///< dispatch and combine run beside another micro batch's compute
  /// zero3: neighbouring replicas that hold a copy of the weights together, copies being kept equal
  /// by all-reduce (HSDP); 0: all replicas.
  int shard_group = 0;
  /// zero3: weights are let go after the forward pass and gathered again for the backward pass.
  bool reshard = true;
  /// zero3: layers whose weights are gathered ahead of their use.
  int prefetch = 1;
  Schedule schedule = Schedule::one_f_one_b;
  /// Layers of every virtual stage in pipeline order (p * v entries, chunk-major: all ranks of
  /// chunk 0, then of chunk 1); empty: split as `split` says.
  std::vector<int> layers_per_stage;
  LayerSplit split = LayerSplit::even;
  EndPlace embedding = EndPlace::automatic, output = EndPlace::automatic;
  std::shared_ptr<const FixedOrder> order{};  ///< set where `schedule` is fixed

  /// Pieces that a product beside a gather or scatter of tensor-parallel ranks is cut into.
  [[nodiscard]] int tensor_pieces() const {
    return sequence && tensor_overlap == TensorOverlap::pieces ? tensor : 1;
  }
  /// Ranks that hold the same weights: they reduce each other's gradients.
  [[nodiscard]] int replicas() const { return context * data; }
  /// Ranks that hold the same experts.
  [[nodiscard]] int expert_replicas() const {
    return tensor * context * data / (expert * expert_tensor);
  }
  /// Of them, those among which a sharded state is split.
  [[nodiscard]] int shards() const {
    if (sharding == Sharding::none) return 1;
    return sharding == Sharding::zero3 && shard_group > 0 ? shard_group : replicas();
  }
  /// Whether replicas reduce the gradients of every micro batch, as each keeps only its share of
  /// them; pipelined stages reduce once, after their last micro batch.
  [[nodiscard]] bool reduces_each_micro_batch() const {
    return pipeline == 1 && shards() > 1 && sharding >= Sharding::zero2;
  }
};

struct Batch {
  int sequences = 1;        ///< over all replicas, per step
  int micro_sequences = 1;  ///< b, per micro batch and replica
  int tokens = 1;           ///< s, per sequence
  /// Of packed sequences: mean length of the sample that a token is in, weighted by tokens, so that
  /// attention inside samples does tokens x sample_tokens instead of tokens^2; 0: not packed.
  double sample_tokens = 0;
  int source_tokens = 0;  ///< of what an encoder reads beside each sequence; 0: as many as `tokens`
  int images = 0;         ///< of a sequence, among whose tokens theirs are

  [[nodiscard]] int source() const { return source_tokens > 0 ? source_tokens : tokens; }
  /// Tokens that attention goes over at most.
  [[nodiscard]] double attended() const { return sample_tokens > 0 ? sample_tokens : tokens; }
};

/// Parts of a model whose weights stay as they are.
struct FrozenParts {
  bool embedding = false;
  int layers = 0;       ///< the first so many
  bool output = false;  ///< output projection and final norm

  [[nodiscard]] bool any() const { return embedding || layers > 0 || output; }
};

/// A training job as the models see it.
struct TrainingJob {
  TransformerShape model;
  Parallelism parallelism;
  Batch batch;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  RecomputeModules modules;  ///< of selective recomputation
  ExpertRouting routing;
  Adapters adapters;  ///< where any: all else is frozen
  HostOffload offload;
  FrozenParts frozen;

  /// As TransformerShape::kind(), with what its backward pass makes.
  [[nodiscard]] LayerKind kind(int layer) const;
  /// Whether the backward pass ends before the first layers and the embedding.
  [[nodiscard]] bool stops_early() const { return frozen.embedding && frozen.layers > 0; }
  /// Micro batches per replica and step.
  [[nodiscard]] int micro_batches() const {
    return batch.sequences / (batch.micro_sequences * parallelism.data);
  }
};

/// Weights that have a gradient: of adapters where there are any, else of all that is not frozen.
double trained_parameters(const TrainingJob& job);

}  // namespace lockstep
