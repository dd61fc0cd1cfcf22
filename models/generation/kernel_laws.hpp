/// How long the kernels of inference take: thin products, grouped products of experts, attention
/// over a cache, and the sums that engines' own kernels do over NVLink. Constants are an engine's
/// on one generation of GPUs (models/presets/engines, "kernels"), fitted to kernels timed one by
/// one.
///
/// A product and a group of products, of bytes b and FLOP f:
///
///     T = t0 + ((b / (e_b HBM) + m x)^n + (f / (e_f peak))^n)^(1/n) + a / (e_a HBM)
///
/// with n = 4 and 3. The group alone has m experts with a token, each of which computes `rows` rows
/// more than it has (tiles) and takes x to begin, and a bytes of tokens' rows, read and written
/// once, where kernels go over them several times (quantise, permute, activate, sum). Attention of
/// a decoding step: the same of its bytes (n = 2) and of `block` for every sequence and key head
/// that an SM gets; latent attention also of its FLOP. A sum of S bytes over n ranks is the faster
/// of
///
///     one shot   a + c n + (n - 1) S / (e B)         every rank reads all others
///     two shots  a + c n + 2 (n - 1) / n S / (e B)   scattered, then gathered
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/base/units.hpp"
#include "models/power/gpu_power.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

/// How weights lie in memory and in which format they are multiplied.
enum class WeightFormat : std::uint8_t { bf16, fp8, fp4, int4 };
constexpr std::size_t kWeightFormats = 4;
constexpr std::array<std::string_view, kWeightFormats> kWeightFormatNames{"bf16", "fp8", "fp4",
                                                                          "int4"};
/// Bytes of a weight with its share of scales: of FP4 one of 8 bit for 16, of INT4 one of 16 bit
/// for 64.
constexpr std::array<double, kWeightFormats> kWeightBytes{2, 1, 0.5625, 0.53125};

/// Bytes of an element of what is multiplied with such weights, with its share of scales.
double operand_bytes(WeightFormat format);

/// Weights of products in that format; of wider ones than 16 bit as of these.
WeightFormat weight_format(Precision precision);

struct ProductLaw {
  Seconds launch;
  double bandwidth = 0.8;   ///< e_b
  double efficiency = 0.7;  ///< e_f
};
struct ExpertsLaw {
  Seconds launch;
  double bandwidth = 0.8;
  double efficiency = 0.4;
  double rows = 16;          ///< that tiles cost beyond those that an expert has
  double activations = 0.8;  ///< e_a
  Seconds expert{};          ///< x
};
using ExpertsLaws = std::array<ExpertsLaw, kWeightFormats>;
struct CacheLaw {
  Seconds launch;
  double bandwidth = 0.8;
  Seconds block;  ///< of a sequence's key head on an SM
};
struct LatentLaw {
  Seconds launch;
  double bandwidth = 0.8;
  double efficiency = 0.6;  ///< of the 16-bit peak
  Seconds block;            ///< of a sequence on an SM
};
struct PromptLaw {
  Seconds launch;
  double efficiency = 0.6;  ///< of the 16-bit peak
  double ramp = 500;        ///< tokens of a prompt that the start of its tiles costs
};
struct SumLaw {
  Seconds base, per_rank;
  double bandwidth = 0.6;  ///< of NVLink, one direction
};

/// What the host of such cards takes, and what shows of it.
struct HostLaw {
  /// Passes from one look for new requests to the next, while any runs; after one with prompts it
  /// looks at once (SGLang's SchedulerRecvSkipper).
  int poll = 1;
  Seconds request;        ///< before a request waits: HTTP, tokeniser
  Seconds step;           ///< GPU idle between passes
  Seconds sequence;       ///< the same, more for every sequence that runs on an attention rank
  Seconds stage;          ///< the same, more in each stage of a pipeline, for its part of the batch
  Seconds prompt;         ///< the same, more where a pass has prompts, launched kernel by kernel
  Seconds prompt_layer;   ///< least time of a layer in a pass with prompts, launched one by one
  Seconds prompt_latent;  ///< the same, more where attention is latent

  /// On processors that take `factor` times as long.
  void slow(double factor);
};

/// Of one generation of GPUs.
struct KernelLaws {
  std::string architecture;
  std::array<ProductLaw, kWeightFormats> products;
  ExpertsLaws experts;
  std::optional<ExpertsLaws> wide_experts{};  ///< where attention is data-parallel; none: as these
  CacheLaw attention;
  LatentLaw latent;
  PromptLaw prompt, latent_prompt;
  SumLaw one_shot, two_shot;
  HostLaw host;
  double skew = 0;      ///< what the fullest rank, of 32 experts each, has beyond the mean
  double launch = 1;    ///< share of a kernel's launch time that shows inside a CUDA graph
  Seconds layer_gap;    ///< small kernels of a layer: norms, positions, quantisation
  Seconds experts_gap;  ///< more where it has experts: router, top k, permutation
  Seconds latent_gap;   ///< more where attention is latent
};

/// What a kernel gets done, in the format that it multiplies in.
struct KernelWork {
  Flops flops;
  Bytes moved;  ///< through HBM
};

/// y = x W of `rows` rows, `in` by `out` weights of the format.
KernelWork product_work(WeightFormat format, double rows, double in, double out);
/// The peak that products with such weights are multiplied at.
FlopsPerSecond peak_of(const GpuSpec& gpu, WeightFormat format);
Seconds product_time(const KernelLaws& laws, const GpuSpec& gpu, WeightFormat format, double rows,
                     double in, double out);

/// Of `count` experts those that have a token, on average, where each of so many tokens goes to
/// `per_token` of them: sum over e of 1 - (1 - p_e)^tokens, whose p_e have a beta distribution with
/// the variance `popularity` (per_token / count)^2; 0: all are that mean.
double experts_met(double count, double per_token, double tokens, double popularity);

/// What the experts of a rank do with the tokens that came to them.
struct ExpertsCall {
  double met = 0;      ///< experts of the rank that have a token
  double copies = 0;   ///< of tokens, over all of them
  double weights = 0;  ///< of one expert on the rank
  double hidden = 0, ffn = 0;
};
Seconds experts_time(const KernelLaws& laws, const GpuSpec& gpu, WeightFormat format,
                     const ExpertsCall& call);
/// Of the tokens that came, without the rows that tiles cost beyond them.
KernelWork experts_work(WeightFormat format, const ExpertsCall& call);
/// The FLOP of `work` in the format that products with such weights are multiplied in: the next
/// wider one where the card lacks it.
Flops& flops_of(EngineWork& work, const GpuSpec& gpu, WeightFormat format);

/// Decoding attention over `bytes` of one layer's cache, all sequences, on one rank; `blocks`:
/// sequences times key heads.
Seconds cache_time(const CacheLaw& law, const GpuSpec& gpu, Bytes bytes, double blocks);
Seconds latent_time(const LatentLaw& law, const GpuSpec& gpu, Bytes bytes, Flops flops,
                    double sequences);
/// Attention of prompts, `tokens` each on average.
Seconds prompt_time(const PromptLaw& law, const GpuSpec& gpu, Flops flops, double tokens);
/// A sum over `ranks` of one NVLink domain by the engine's own kernel.
Seconds sum_time(const KernelLaws& laws, const GpuSpec& gpu, Bytes bytes, int ranks);

}  // namespace lockstep
