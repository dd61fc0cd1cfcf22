/// What an inference engine does while it serves requests as they come: how it puts passes together
/// and what its kernels take. Read from models/presets/engines, "serving".
#pragma once

#include <string>
#include <vector>

#include "models/generation/kernel_laws.hpp"

namespace lockstep {

/// Which work a pass takes in first.
enum class PassOrder : std::uint8_t {
  mixed,          ///< every running sequence, and prompts in the room that is left
  prompts_first,  ///< prompts alone as long as one waits that has room
};
constexpr std::array<std::string_view, 2> kPassOrderNames{"mixed", "prompts_first"};

/// How keys and values that slower memory holds come back to the GPUs.
enum class CacheLoad : std::uint8_t {
  asynchronous,  ///< beside passes of others; their request is worked on when all are there
  by_layer,      ///< beside the pass that needs them, whose layers wait for theirs only
  blocking,      ///< before that pass, which waits for all
};
constexpr std::array<std::string_view, 3> kCacheLoadNames{"asynchronous", "by_layer", "blocking"};

/// Tokens that are drafted ahead and checked by the same pass as the next one (Leviathan et al.
/// 2023, arXiv:2211.17192): of k drafts, each right with the chance a, a pass yields (1 - a^(k+1))
/// / (1 - a) tokens of a sequence.
struct Speculation {
  int drafts = 0;
  double acceptance = 0;

  [[nodiscard]] double tokens_per_pass() const {
    double sum = 1, all_right = 1;
    for (int d = 0; d < drafts; ++d) sum += all_right *= acceptance;
    return sum;
  }
};
/// A release whose measured rows drafted, of models that predict further tokens.
struct DraftingRelease {
  std::string release;
  Speculation speculation;
};

/// How far predictions were off: between which factors nine of ten measured times lay, of models of
/// one kind.
struct ServingResidual {
  std::string kind;  ///< "dense", "experts", "latent"
  int rows = 0;      ///< that it is read off
  double tpot_low = 1, tpot_high = 1;
  double ttft_low = 1, ttft_high = 1;
};

/// How tokens come to the experts of other ranks of data-parallel attention, and back.
enum class ExpertExchange : std::uint8_t {
  all_to_all,  ///< each token to the ranks of its experts (DeepEP's low-latency kernels)
  /// All tokens to all ranks and the sums back, an all-gather and a reduce-scatter of the library;
  /// to the ranks of their experts only where NVLink joins servers and there are more of these
  /// ranks than a token has experts.
  gather,
};
constexpr std::array<std::string_view, 2> kExpertExchangeNames{"all_to_all", "gather"};

/// When the pool that decodes is told of a request, whose host then takes it in.
enum class DecodingRequest : std::uint8_t {
  at_once,       ///< with the pool for prompts (SGLang's router)
  after_prompt,  ///< when that has answered (vLLM's proxy, TensorRT-LLM's disaggregated server)
};
constexpr std::array<std::string_view, 2> kDecodingRequestNames{"at_once", "after_prompt"};

struct ServingEngine {
  PassOrder order = PassOrder::mixed;
  int pass_tokens = 8192;     ///< of prompts and of running sequences together, on a rank
  int most_sequences = 1024;  ///< that a replica runs at once
  int block = 16;             ///< tokens of a block of the cache
  int balance_wait = 0;  ///< passes that prompts wait at most until each attention rank has one
  int batch_wait = 0;    ///< passes that prompts wait at most until a pass has enough tokens
  double batch_wait_tokens = 1;  ///< share of a pass's tokens that is enough
  bool graphs = true;            ///< passes without prompts are CUDA graphs
  int captured_tokens = 0;       ///< passes with prompts of so many rows at most are CUDA graphs
  double reserved = 0;           ///< share of a request's answer that must fit when it is let in
  double memory_fraction = 0.9;
  Bytes workspace = gibibytes(4);
  CacheLoad cache_load = CacheLoad::blocking;
  ExpertExchange expert_exchange = ExpertExchange::all_to_all;
  DecodingRequest decoding_request = DecodingRequest::at_once;
  /// How unlike experts are liked: the variance of their shares of the tokens over the mean
  /// squared.
  double popularity = 0;
  std::vector<KernelLaws> kernels;
  std::vector<ServingResidual> residuals{};
  std::vector<DraftingRelease> drafting_releases{};
};

}  // namespace lockstep
