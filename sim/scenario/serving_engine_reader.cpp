#include <array>
#include <cstddef>
#include <string_view>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/rl_spec.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostArchitectures = 20;
constexpr Interval kKernelTime{0, 1};
constexpr Interval kReached{0, 1, true};

void declare_product_law(const DeclaredMembers& member, ProductLaw& out) {
  member.required("launch", out.launch, kKernelTime, "The shortest one, alone");
  member.required("bandwidth", out.bandwidth, Dimension::share, kReached,
                  "Share of HBM's rate at which weights are read");
  member.required("efficiency", out.efficiency, Dimension::share, kReached,
                  "Share of the format's peak");
}

void declare_expert_law(const DeclaredMembers& member, ExpertsLaw& out) {
  member.required("launch", out.launch, kKernelTime, "The shortest call, alone");
  member.required("bandwidth", out.bandwidth, Dimension::share, kReached,
                  "Share of HBM's rate at which weights of experts are read");
  member.required("efficiency", out.efficiency, Dimension::share, kReached,
                  "Share of the format's peak");
  member.required("rows", out.rows, Interval{0, 1000},
                  "That tiles compute of an expert beyond those that it has");
  member.optional("activations", out.activations, Dimension::share, Interval{0, 1, true},
                  "Share of HBM's rate at which tokens' rows come and go; default: 0.8");
  member.optional("expert", out.expert, kKernelTime,
                  "Of each expert that has a token, beside its weights; default: 0");
}

void declare_cache(const DeclaredMembers& member, CacheLaw& out) {
  member.required("launch", out.launch, kKernelTime, "The shortest one, alone");
  member.required("bandwidth", out.bandwidth, Dimension::share, kReached,
                  "Share of HBM's rate at which keys and values are read");
  member.required("block", out.block, kKernelTime, "Of a sequence's key head on an SM");
}

void declare_latent(const DeclaredMembers& member, LatentLaw& out) {
  member.required("launch", out.launch, kKernelTime, "The shortest one, alone");
  member.required("bandwidth", out.bandwidth, Dimension::share, kReached,
                  "Share of HBM's rate at which the cache is read");
  member.required("efficiency", out.efficiency, Dimension::share, kReached,
                  "Share of the 16-bit peak");
  member.required("block", out.block, kKernelTime, "Of a sequence on an SM");
}

void declare_prompt(const DeclaredMembers& member, PromptLaw& out) {
  member.required("launch", out.launch, kKernelTime, "The shortest one, alone");
  member.required("efficiency", out.efficiency, Dimension::share, kReached,
                  "Share of the 16-bit peak");
  member.required("ramp", out.ramp, Interval{0, 1e5}, "Tokens that the start of a prompt costs");
}

void declare_sum(const DeclaredMembers& member, SumLaw& out) {
  member.required("base", out.base, kKernelTime, "Of any sum");
  member.required("per_rank", out.per_rank, kKernelTime, "The same, more for each rank");
  member.required("bandwidth", out.bandwidth, Dimension::share, kReached,
                  "Share of NVLink's rate, one direction");
}

template <class Law, class Declare>
void declare_formats(const DeclaredMembers& member, std::array<Law, kWeightFormats>& out,
                     const Declare& declare) {
  for (std::size_t f = 0; f < kWeightFormats; ++f) {
    member.required(kWeightFormatNames[f], out[f], "Of weights of this format", declare);
  }
}

void declare_host_law(const DeclaredMembers& member, HostLaw& out) {
  constexpr Interval kTime{0, 10};
  member.optional("poll", out.poll, 1, 1000,
                  "Passes from one look for new requests to the next; default: 1");
  member.required("request", out.request, kTime, "Before a request waits: HTTP, tokeniser");
  member.required("step", out.step, kTime, "GPU idle between passes");
  member.required("sequence", out.sequence, kTime, "The same, more for every running sequence");
  member.optional("stage", out.stage, kTime,
                  "The same, more in each stage of a pipeline, where the host does not work ahead; "
                  "default: 0");
  member.required("prompt", out.prompt, kTime, "The same, more where there are prompts");
  member.required("prompt_layer", out.prompt_layer, kTime,
                  "Least time of a layer in a pass with prompts, launched kernel by kernel");
  member.required("prompt_latent", out.prompt_latent, kTime,
                  "The same, more with latent attention");
}

void declare_kernels(const DeclaredMembers& member, KernelLaws& out) {
  member.required("architecture", out.architecture, "Of the cards that have such kernels");
  member.required("products", out.products, "Products with weights",
                  [](const DeclaredMembers& of, std::array<ProductLaw, kWeightFormats>& laws) {
                    declare_formats(of, laws, declare_product_law);
                  });
  const auto expert_laws = [](const DeclaredMembers& of, ExpertsLaws& laws) {
    declare_formats(of, laws, declare_expert_law);
  };
  member.required("experts", out.experts, "Grouped products of experts", expert_laws);
  member.optional("wide_experts", out.wide_experts,
                  "The same where attention is data-parallel, if these are other kernels; default: "
                  "as experts",
                  expert_laws);
  member.required("attention", out.attention, "Attention of a decoding step", declare_cache);
  member.required("latent", out.latent, "The same over compressed keys", declare_latent);
  member.required("prompt", out.prompt, "Attention of prompts", declare_prompt);
  member.required("latent_prompt", out.latent_prompt, "The same of latent attention",
                  declare_prompt);
  member.required("one_shot", out.one_shot, "A sum in which each rank reads all others",
                  declare_sum);
  member.required("two_shot", out.two_shot, "A sum that is scattered, then gathered", declare_sum);
  member.required("host", out.host, "What the host takes", declare_host_law);
  member.required(
      "skew", out.skew, Interval{0, 10},
      "What the fullest expert-parallel rank has beyond the mean, as a share, where each has 32 "
      "experts; of n, sqrt(32 / n) as much");
  member.required("launch", out.launch, Interval{0, 2},
                  "Share of a kernel's shortest time that shows among others");
  member.required("layer_gap", out.layer_gap, kKernelTime, "Small kernels of a layer");
  member.required("experts_gap", out.experts_gap, kKernelTime, "The same, more with experts");
  member.required("latent_gap", out.latent_gap, kKernelTime,
                  "The same, more with latent attention");
}

void declare_residual(const DeclaredMembers& member, ServingResidual& out) {
  constexpr Interval kFactor{0, 100, true};
  member.required("kind", out.kind, "Of the model: dense, experts, latent");
  member.required("rows", out.rows, 1, 1 << 20, "Measured rows that it is read off");
  member.required("tpot_low", out.tpot_low, kFactor, "Measured over predicted: 1 of 20 is below");
  member.required("tpot_high", out.tpot_high, kFactor, "1 of 20 is above");
  member.required("ttft_low", out.ttft_low, kFactor, "The same of the first token");
  member.required("ttft_high", out.ttft_high, kFactor, "1 of 20 is above");
}

void declare_drafting(const DeclaredMembers& member, DraftingRelease& out) {
  member.required("release", out.release, "As it calls itself");
  member.required("speculation", out.speculation, "What it drafts", declare_speculation);
}

}  // namespace

void declare_speculation(const DeclaredMembers& member, Speculation& out) {
  member.required("drafts", out.drafts, 1, 16, "Tokens drafted ahead of each");
  member.required("acceptance", out.acceptance, Dimension::share, Interval{0, 1},
                  "Chance that a draft is right where all before it were");
}

void declare_serving_engine(const DeclaredMembers& member, ServingEngine& out) {
  constexpr int kMost = 1 << 24;
  member.required("order", out.order, kPassOrderNames,
                  "mixed: running sequences, and prompts in what is left; prompts_first: prompts "
                  "alone while one has room");
  member.required("pass_tokens", out.pass_tokens, 1, kMost, "That a pass takes, on a rank");
  member.required("most_sequences", out.most_sequences, 1, kMost, "That a replica runs at once");
  member.required("block", out.block, 1, 1 << 16, "Tokens of a block of the cache");
  member.optional("balance_wait", out.balance_wait, 0, 1 << 16,
                  "Passes that prompts wait at most, while all ranks of data-parallel attention "
                  "decode, until each has one; default: 0");
  member.optional("batch_wait", out.batch_wait, 0, 1 << 16,
                  "Passes that prompts wait at most, while sequences run, until a pass has enough "
                  "tokens; not with data-parallel attention; default: 0");
  member.optional("batch_wait_tokens", out.batch_wait_tokens, Dimension::share, Interval{0, 1},
                  "Share of a pass's tokens that is enough; default: 1");
  member.optional("graphs", out.graphs,
                  "Passes without prompts are replayed as CUDA graphs; false: no kernel is; "
                  "default: true");
  member.optional("captured_tokens", out.captured_tokens, 0, kMost,
                  "Passes with prompts that have at most so many rows are replayed as CUDA graphs, "
                  "no longer launched kernel by kernel; default: 0");
  member.required("reserved", out.reserved, Dimension::share, Interval{0, 1},
                  "Share of an answer that must fit when its request is let in");
  member.required("memory_fraction", out.memory_fraction, Dimension::share, kReached,
                  "Of the card: weights, workspaces and the cache");
  member.required("workspace", out.workspace, Interval{0, 1e12}, "Of that fraction: activations");
  member.optional("cache_load", out.cache_load, kCacheLoadNames,
                  "How keys and values come back from host memory or a remote pool: asynchronous: "
                  "beside passes of others; by_layer: beside the pass that needs them; blocking: "
                  "before it; default: blocking");
  member.optional("expert_exchange", out.expert_exchange, kExpertExchangeNames,
                  "How tokens come to experts of other ranks of data-parallel attention: "
                  "all_to_all: to the ranks that have theirs; gather: all to all ranks, but where "
                  "NVLink joins servers and more ranks than a token has experts; default: "
                  "all_to_all");
  member.optional("decoding_request", out.decoding_request, kDecodingRequestNames,
                  "When a pool that decodes is told of a request: at_once: with the pool for "
                  "prompts; after_prompt: when that has answered, and its host then takes the "
                  "request in; default: at_once");
  member.optional("popularity", out.popularity, Interval{0, 1},
                  "How unlike a model's experts are liked: the variance of their shares of the "
                  "tokens over the square of the mean; 0: all alike; default: 0");
  member.required("kernels", kMostArchitectures, "Of one generation of cards", "What kernels take",
                  out.kernels, declare_kernels, [&](const JsonCursor& list) {
                    out.kernels.clear();
                    for (const JsonCursor& one : list.elements(kMostArchitectures)) {
                      declare_kernels({one, Extent::whole}, out.kernels.emplace_back());
                      one.finish();
                    }
                    if (out.kernels.empty()) list.fail("the kernels of at least one generation");
                  });
  member.optional("drafting_releases", kMostArchitectures, "A release of the engine",
                  "Whose measured rows drafted tokens", out.drafting_releases, declare_drafting,
                  [&](const JsonCursor& list) {
                    out.drafting_releases.clear();
                    for (const JsonCursor& one : list.elements(kMostArchitectures)) {
                      declare_drafting({one, Extent::whole}, out.drafting_releases.emplace_back());
                      one.finish();
                    }
                  });
  member.optional("residuals", kMostArchitectures, "Of models of one kind",
                  "How far predictions were off", out.residuals, declare_residual,
                  [&](const JsonCursor& list) {
                    out.residuals.clear();
                    for (const JsonCursor& one : list.elements(kMostArchitectures)) {
                      declare_residual({one, Extent::whole}, out.residuals.emplace_back());
                      one.finish();
                    }
                  });
}

}  // namespace lockstep
