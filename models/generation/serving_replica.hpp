/// One replica of a model that serves: what it holds, and how long any of its passes takes.
///
/// A pass moves each running sequence one token ahead and takes in pieces of prompts. All rows go
/// through the products together; attention reads the cache of the running sequences, and the
/// pieces see what came before them. Of E experts T tokens meet E (1 - (1 - k / E)^T).
///
/// Ranks of a stage are `tensor` x `attention_data`: groups of tensor-parallel ranks, each of which
/// keeps the cache of its own sequences, while the experts are cut over all ranks of the stage,
/// whole over `expert` of them. A pipeline of p stages works on p parts of the batch in turn, so
/// that a sequence's step takes what all layers take for a p-th of it. A draft
/// is a layer and the output projection once more, and a row of the pass; the layer that drafts is
/// one more of the last layer's kind, with its weights and its part of the cache. A GPU draws its
/// fixed part over the whole pass, what each FLOP and byte takes (models/power/gpu_power.hpp), and
/// its limit at most. A pass with prompts of `captured_tokens` rows at most is replayed as CUDA
/// graphs: the host launches no kernel by itself; where decoding is not captured either, the host
/// launches its layers one by one. Leaves out: overlap of two half batches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/collectives.hpp"
#include "models/generation/layer_cache.hpp"
#include "models/generation/serving_engine.hpp"
#include "models/generation/serving_pass.hpp"
#include "models/power/gpu_power.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

struct ServingReplicaSpec {
  TransformerShape model;
  NodeSpec node;
  TransportSpec transport;
  ServingEngine engine;
  int tensor = 1;
  int pipeline = 1;
  int attention_data = 1;
  int expert = 1;                             ///< ranks over which whole experts are spread
  WeightFormat weights = WeightFormat::bf16;  ///< of layers' products; ends stay in 16 bit
  WeightFormat experts = WeightFormat::bf16;
  double cache_bytes = 2;  ///< of an element of keys and values
  Speculation speculation{};

  /// Of a stage.
  [[nodiscard]] int ranks() const { return tensor * attention_data; }
  [[nodiscard]] int gpus() const { return ranks() * pipeline; }
};

/// Requires the engine's constants for the card, and ranks that divide heads and experts. Not for
/// several threads at once: it remembers what it has worked out.
class ServingReplica final : public PassClock {
 public:
  explicit ServingReplica(ServingReplicaSpec spec);

  [[nodiscard]] const ServingReplicaSpec& spec() const { return spec_; }
  [[nodiscard]] const KernelLaws& laws() const { return laws_; }
  /// From a request to its place in a queue.
  [[nodiscard]] const HostLaw& host() const { return laws_.host; }
  [[nodiscard]] Seconds request_host() const { return laws_.host.request; }
  /// Where it decodes what another pool has begun: from the keys and values to its queue.
  [[nodiscard]] Seconds handover_host() const {
    const bool after = spec_.engine.decoding_request == DecodingRequest::after_prompt;
    return after ? request_host() : Seconds{};
  }
  /// Weights on a GPU.
  [[nodiscard]] Bytes weights() const;
  /// Keys and values of one token on a GPU of the first stage.
  [[nodiscard]] Bytes cache_per_token() const;
  /// Of one token, of the whole model, each part once: what goes to another pool.
  [[nodiscard]] Bytes moved_per_token() const;
  /// Recurrent states of one sequence on a GPU (Mamba-2); 0: the model has none.
  [[nodiscard]] Bytes state_per_sequence() const;
  /// Tokens that the replica's cache holds beside `resident` bytes of others on each GPU; 0: not
  /// even the weights fit.
  [[nodiscard]] double cache_tokens(Bytes resident = {}) const;

  ServingPass pass(const PassLoad& load) override;
  /// What a GPU draws in a pass of that length, its limit at most; all 0 of a card whose constants
  /// nobody knows.
  [[nodiscard]] ByGpuPart<Joules> drawn_by_part(const PassLoad& load, Seconds time) const;

 private:
  struct Shape {
    double in, out, matrices;
    WeightFormat format;
  };
  struct Kind {
    int count = 0;
    int sums = 0;
    bool attends = false, latent = false, experts = false;
    double key_heads = 0;       ///< on a rank
    double flops_per_pair = 0;  ///< of a query and a key of a prompt, on a rank
    double scan_bytes = 0;      ///< of a prompt's token in a recurrence
    std::vector<Keys> keys;     ///< of a prompt's query
    double small_bytes = 0;     ///< of a row: norms, activations
    std::vector<Shape> products;
    LayerCache cache;
    int drafting = 0;  ///< layers more that a GPU holds, for drafts

    [[nodiscard]] int held() const { return count + drafting; }
  };
  /// What depends on rows alone: of a rank and of all ranks.
  struct RowCost {
    bool known = false;
    Seconds products, exchange;
    Joules drawn;  ///< above the fixed part of a GPU
  };
  /// The product with the vocabulary of so many rows.
  struct HeadCost {
    bool known = false;
    Seconds time;
    Joules drawn;
  };

  [[nodiscard]] Kind kind_of(LayerKind kind, int count) const;
  [[nodiscard]] Seconds products_of(const Kind& kind, double rows) const;
  [[nodiscard]] ExpertsCall experts_call(double all_rows, double fullest) const;
  [[nodiscard]] Seconds experts_of(double all_rows) const;
  [[nodiscard]] Seconds sum_of(double rows) const;
  [[nodiscard]] Seconds dispatch_of(double rows) const;
  [[nodiscard]] Seconds head_of(double rows) const;
  [[nodiscard]] Seconds attention_of(double sequences, double context) const;
  [[nodiscard]] Seconds prompts_of(const PassLoad& on_rank) const;
  [[nodiscard]] Seconds launching() const;
  const RowCost& dense(int rows);
  HeadCost head(double rows);
  const RowCost& routed(int all_rows);
  /// Bytes of what tensor-parallel ranks sum; of what a rank sends to experts and gets back; of
  /// recurrent states, read and written.
  [[nodiscard]] Bytes summed(double rows) const;
  [[nodiscard]] Bytes dispatched(double rows) const;
  struct Gathered {
    Bytes there, back;
  };
  [[nodiscard]] bool gathers() const;
  [[nodiscard]] Gathered gathered(double rows) const;
  [[nodiscard]] Bytes states(const Kind& kind, double sequences) const;
  [[nodiscard]] EngineWork work_of(WeightFormat format, const KernelWork& work) const;
  [[nodiscard]] EngineWork work_of_rows(const Kind& kind, double rows) const;
  [[nodiscard]] EngineWork work_of_exchange(const Kind& kind, double rows) const;
  [[nodiscard]] EngineWork work_of_head(double rows) const;
  [[nodiscard]] EngineWork work_of_attention(double sequences, double context) const;
  [[nodiscard]] EngineWork work_of_prompts(const PassLoad& on_rank) const;
  [[nodiscard]] EngineWork work_of_dense(double rows) const;
  [[nodiscard]] EngineWork work_of_routed(double all_rows) const;
  [[nodiscard]] Joules above_fixed(const EngineWork& work) const {
    return powered() ? energy_above_fixed(work, *spec_.node.gpu.power) : Joules{};
  }
  [[nodiscard]] EngineWork work_of_decoding(const PassLoad& load) const;
  [[nodiscard]] EngineWork work_of_pass(const PassLoad& load) const;
  [[nodiscard]] bool powered() const { return spec_.node.gpu.power.has_value(); }
  ServingPass decode_part(const PassLoad& load);
  void add_drafts(int sequences, int all, ServingPass& out);
  /// The pieces of prompts of a pass, shared out.
  struct PromptShare {
    double parts;    ///< ranks that have a piece
    double ways;     ///< of all
    double decoded;  ///< rows of running sequences, on all ranks
    double rows;     ///< on a rank that has a piece
    double all;      ///< on all ranks of a stage
    PassLoad on_rank;
  };
  [[nodiscard]] PromptShare share_of(const PassLoad& load) const;
  [[nodiscard]] double keys_seen(const Kind& kind, double before) const;
  void draw(Joules above, ServingPass& out) const;

  ServingReplicaSpec spec_;
  KernelLaws laws_;
  std::vector<Kind> kinds_;
  int expert_layers_ = 0, latent_layers_ = 0;
  std::vector<RowCost> dense_, routed_;
  std::vector<HeadCost> heads_;
};

/// "dense", "experts", or "latent" of models with latent attention.
std::string_view serving_kind(const TransformerShape& model);

/// The engine's laws for the architecture; those of the nearest that it has for others, which
/// `assumption` then says.
const KernelLaws& laws_for(const ServingEngine& engine, const std::string& architecture,
                           std::string* assumption = nullptr);

}  // namespace lockstep
