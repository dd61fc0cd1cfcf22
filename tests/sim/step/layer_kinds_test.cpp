// Models whose layers are of declared kinds, over random shapes: what is declared is counted,
// computed, saved, split and refused as it says.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "models/layer/operations.hpp"
#include "models/spec/layer.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

/// Widths of a model, drawn: each a multiple of what four ranks share out.
struct Drawn {
  explicit Drawn(RandomStream& random) {
    const auto times = [&](int unit, std::uint32_t most) {
      return unit * static_cast<int>(1 + random.below(most));
    };
    hidden = times(256, 4);
    heads = times(8, 3);
    head_dim = times(32, 4);
    value_dim = times(32, 4);
    ffn = times(128, 6);
    expert_ffn = times(64, 4);
    rank = times(64, 4);
    latent = times(64, 3);
    window = times(64, 8);
    keys = times(64, 8);
    index_dim = times(32, 2);
  }
  int hidden, heads, head_dim, value_dim, ffn, expert_ffn, rank, latent, window, keys, index_dim;
  static constexpr double kTokens = 2048;

  [[nodiscard]] double attention(double kv_heads, double d, double v) const {
    return hidden * (heads * d + kv_heads * (d + v)) + heads * v * hidden;
  }
  [[nodiscard]] double mlp() const { return 3.0 * hidden * ffn; }
  /// Causal keys of a query, of entries that stand for `ratio` tokens, at most `limit`.
  [[nodiscard]] static double mean_keys(double limit, double ratio = 1) {
    const double entries = kTokens / ratio, most = limit > 0 ? std::min(limit, entries) : entries;
    return most - most * most / (2 * entries);
  }
  /// The same of chunks, of which the last may be shorter.
  [[nodiscard]] static double mean_in_chunks(double chunk) {
    const double rest = std::fmod(kTokens, chunk);
    return ((kTokens - rest) * chunk + rest * rest) / (2 * kTokens);
  }
};

/// A model of four layers, of which all are of the kind "x" or in turns of "x" and "f", full
/// attention with an MLP; and the closed count of the products of a layer of "x" that a token
/// meets, and of the FLOP of its attention.
struct KindCase {
  std::string_view name;
  std::string (*json)(const Drawn&);
  double (*weights)(const Drawn&);
  double (*attention)(const Drawn&);
  bool shares_sequence;    ///< between context-parallel ranks
  bool has_stages = true;  ///< of a pipeline
};

constexpr std::array kCases{
    KindCase{"windows with heads of their own",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "window": {}, "kv_heads": 8, "head_dim": {},
                       "value_dim": {}, "ffn": {}}}, F], "pattern": "xfxf")",
                   d.window, 2 * d.head_dim, d.value_dim, d.ffn);
             },
             [](const Drawn& d) { return d.attention(8, 2 * d.head_dim, d.value_dim) + d.mlp(); },
             [](const Drawn& d) {
               return 2.0 * d.heads * (2 * d.head_dim + d.value_dim) * Drawn::mean_keys(d.window);
             },
             true},
    KindCase{"one projection for keys and values, and no MLP in some layers",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "one_projection": true}},
                       {{"letter": "n", "mixer": "none", "ffn": {}}}, F], "pattern": "xfnx")",
                   2 * d.ffn);
             },
             [](const Drawn& d) {
               return d.attention(4, d.head_dim, d.head_dim) - 4.0 * d.hidden * d.head_dim;
             },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); }, true},
    KindCase{"chunks, of which the last is not whole",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "window": {}, "chunked": true, "ffn": {}}}, F],
                      "pattern": "xfxf")",
                   d.window + 32, d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) {
               return 4.0 * d.heads * d.head_dim * Drawn::mean_in_chunks(d.window + 32);
             },
             true},
    KindCase{"attention and MLP beside each other",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "parallel": true, "ffn": {}}}, F],
                      "pattern": "xfxx")",
                   d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); }, true},
    KindCase{"an encoder's layers",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "bidirectional": true, "ffn": {}}}, F],
                      "pattern": "xxff")",
                   d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::kTokens; }, true},
    KindCase{"an encoder's layers, each word of which sees a window around it",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "bidirectional": true, "window": {},
                       "ffn": {}}}, F], "pattern": "xxff")",
                   d.window, d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * d.window; }, true},
    KindCase{"attention over an encoder's result",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "cross": true, "ffn": {0}}},
                        {{"letter": "e", "bidirectional": true, "ffn": {0}}}],
                      "pattern": "xeex")",
                   d.ffn);
             },
             [](const Drawn& d) { return 2 * d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) {
               return 4.0 * d.heads * d.head_dim * (Drawn::mean_keys(0) + Drawn::kTokens);
             },
             true, false},
    KindCase{"two streams of tokens that attend together",
             [](const Drawn& d) {
               return fmt::format(
                   R"("joint_attention": {{"vectors": 6}}, "kinds": [{{"letter": "x",
                        "mixer": "joint_attention", "bidirectional": true, "ffn": {0}}},
                        {{"letter": "c", "mixer": "closing_joint_attention",
                          "bidirectional": true, "ffn": {0}}}],
                      "pattern": "xxxc")",
                   d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::kTokens; }, true},
    KindCase{"two streams that one product of the model modulates",
             [](const Drawn& d) {
               return fmt::format(
                   R"("joint_attention": {{"vectors": 6, "shared_modulation": 1}}, "kinds": [
                        {{"letter": "x", "mixer": "joint_attention", "bidirectional": true,
                          "ffn": {0}}}],
                      "pattern": "xxxx")",
                   d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::kTokens; }, true},
    KindCase{"layers that have their weights together",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "bidirectional": true, "shared_by": 3,
                        "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::kTokens; }, true,
             false},
    KindCase{
        "scores of a table of distances both ways",
        [](const Drawn& d) {
          return fmt::format(
              R"("kinds": [{{"letter": "x", "bidirectional": true, "distances": {},
                        "ffn": {}}}, F],
                      "pattern": "xxxf")",
              d.keys, d.ffn);
        },
        [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
        [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * (Drawn::kTokens + 2 * d.keys); },
        false},
    KindCase{"sums of each few tokens beside a window",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "bidirectional": true, "window": {},
                        "summaries": 16, "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.window, d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) {
               return 4.0 * d.heads * d.head_dim * (d.window + Drawn::kTokens / 16);
             },
             false},
    KindCase{"attention over the embedding beside the stream",
             [](const Drawn& d) {
               return fmt::format(
                   R"("mamba": {{"heads": 8, "head_dim": 64, "groups": 4, "state": 64}},
                      "wide_attention": {{"inputs": 2}},
                      "kinds": [{{"letter": "x", "mixer": "wide_attention", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.ffn);
             },
             [](const Drawn& d) {
               return d.attention(4, d.head_dim, d.head_dim) +
                      d.hidden * (d.heads + 8.0) * d.head_dim + d.mlp();
             },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); }, true},
    KindCase{"Mamba behind a use of it, with thin products of its own",
             [](const Drawn& d) {
               return fmt::format(
                   R"("mamba": {{"heads": 8, "head_dim": {0}, "groups": 4, "state": 64}},
                      "wide_attention": {{"inputs": 2, "attention_rank": {1}, "mlp_rank": {2}}},
                      "kinds": [{{"letter": "x", "mixer": "adapted_mamba"}}, F],
                      "pattern": "xxxf")",
                   d.head_dim, d.rank, d.latent);
             },
             [](const Drawn& d) {
               const double h = d.hidden, inner = 8.0 * d.head_dim;
               return h * (3 * inner + 2 * 4 * 64 + 8) + h * h +
                      d.rank * (3 * 2 * h + (d.heads + 8.0) * d.head_dim) +
                      d.latent * (h + 2.0 * d.ffn);
             },
             [](const Drawn& d) {
               const double inner = 8.0 * d.head_dim;
               return 256 * (4 * 64 + inner) + 4 * inner * 64;
             },
             false},
    KindCase{"modulated attention beside its MLP",
             [](const Drawn& d) {
               return fmt::format(
                   R"("modulated_attention": {{"vectors": 3}}, "kinds": [{{"letter": "x",
                        "mixer": "modulated_attention", "bidirectional": true, "parallel": true,
                        "ffn": {}}}, F],
                      "pattern": "xfxx")",
                   d.ffn);
             },
             [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::kTokens; }, true},
    KindCase{"a gate of what attention gives",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "output_gate": true, "ffn": {}}}, F],
                      "pattern": "xfxx")",
                   d.ffn);
             },
             [](const Drawn& d) {
               return d.attention(4, d.head_dim, d.head_dim) +
                      static_cast<double>(d.hidden) * d.heads * d.head_dim + d.mlp();
             },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); }, true},
    KindCase{
        "a gated delta net",
        [](const Drawn& d) {
          return fmt::format(
              R"("delta": {{"key_heads": 8, "value_heads": 16, "key_dim": {}, "value_dim": {}}},
                      "kinds": [{{"letter": "x", "mixer": "delta", "ffn": {}}}, F],
                      "pattern": "xxxf")",
              d.head_dim, d.value_dim, d.ffn);
        },
        [](const Drawn& d) {
          const double k = 8.0 * d.head_dim, v = 16.0 * d.value_dim;
          return d.hidden * (2 * k + 2 * v + 2 * 16) + v * d.hidden + d.mlp();
        },
        [](const Drawn& d) {
          return 16.0 * (6.0 * d.head_dim * d.value_dim + 128.0 * (d.head_dim + d.value_dim));
        },
        false},
    KindCase{"a gated short convolution",
             [](const Drawn& d) {
               return fmt::format(
                   R"("short_convolution": {{"kernel": 3}},
                      "kinds": [{{"letter": "x", "mixer": "short_convolution", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.ffn);
             },
             [](const Drawn& d) { return 4.0 * d.hidden * d.hidden + d.mlp(); },
             [](const Drawn&) { return 0.0; }, false},
    KindCase{
        "linear attention",
        [](const Drawn& d) {
          return fmt::format(
              R"("linear_attention": {{"heads": 8, "head_dim": {}}},
                      "kinds": [{{"letter": "x", "mixer": "linear_attention", "ffn": {}}}, F],
                      "pattern": "xxxf")",
              d.head_dim, d.ffn);
        },
        [](const Drawn& d) { return 5.0 * d.hidden * 8 * d.head_dim + d.mlp(); },
        [](const Drawn& d) { return 8.0 * (512.0 * d.head_dim + 4.0 * d.head_dim * d.head_dim); },
        false},
    KindCase{"linear attention with narrow keys and gates of each head",
             [](const Drawn& d) {
               return fmt::format(
                   R"("linear_attention": {{"heads": 8, "head_dim": {}, "key_dim": {},
                        "head_gates": 2, "chunk": 64}},
                      "kinds": [{{"letter": "x", "mixer": "linear_attention", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.head_dim, d.index_dim, d.ffn);
             },
             [](const Drawn& d) {
               const double made = 8.0 * (2 * d.index_dim + 2 * d.head_dim + 2);
               return d.hidden * (made + 8.0 * d.head_dim) + d.mlp();
             },
             [](const Drawn& d) {
               return 8.0 * (64.0 * (d.index_dim + d.head_dim) + 4.0 * d.index_dim * d.head_dim);
             },
             false},
    KindCase{"an embedding of each layer's own",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "layer_input": {}, "ffn": {}}}, F],
                      "pattern": "xfxx")",
                   d.rank, d.ffn);
             },
             [](const Drawn& d) {
               return d.attention(4, d.head_dim, d.head_dim) + d.mlp() + 3.0 * d.hidden * d.rank;
             },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); }, true},
    KindCase{"streams that alternate, and a thin path beside attention",
             [](const Drawn& d) {
               return fmt::format(
                   R"("residual_streams": 4, "alternating": true,
                      "kinds": [{{"letter": "x", "side_rank": {}, "ffn": {}}}, F],
                      "pattern": "xfxx")",
                   d.rank, d.ffn);
             },
             [](const Drawn& d) {
               return d.attention(4, d.head_dim, d.head_dim) + d.mlp() +
                      2.0 * d.hidden * (d.rank + 4);
             },
             [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); }, true},
    KindCase{"a gate on an earlier layer's memory",
             [](const Drawn& d) {
               return fmt::format(
                   R"("mamba": {{"heads": 8, "head_dim": {0}, "groups": 4, "state": 64}},
                      "kinds": [{{"letter": "x", "mixer": "gated_memory", "ffn": {1}}},
                        {{"letter": "m", "mixer": "mamba", "ffn": {1}}}, F], "pattern": "xmxf")",
                   d.head_dim, d.ffn);
             },
             [](const Drawn& d) { return 2.0 * d.hidden * 8 * d.head_dim + d.mlp(); },
             [](const Drawn&) { return 0.0; }, false, false},
    KindCase{"attention and Mamba-2 beside each other",
             [](const Drawn& d) {
               return fmt::format(
                   R"("mamba": {{"heads": 8, "head_dim": {}, "groups": 4, "state": 64}},
                      "kinds": [{{"letter": "x", "mixer": "attention_and_mamba", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.head_dim, d.ffn);
             },
             [](const Drawn& d) {
               const double inner = 8.0 * d.head_dim;
               return d.attention(4, d.head_dim, d.head_dim) +
                      d.hidden * (3 * inner + 2 * 4 * 64 + 8) + d.mlp();
             },
             [](const Drawn& d) {
               const double inner = 8.0 * d.head_dim;
               return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0) + 256 * (4 * 64 + inner) +
                      4 * inner * 64;
             },
             false},
    KindCase{"a gated recurrence",
             [](const Drawn& d) {
               return fmt::format(
                   R"("gated_recurrence": {{"width": {}, "blocks": 8}},
                      "kinds": [{{"letter": "x", "mixer": "gated_recurrence", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   8 * d.rank, d.ffn);
             },
             [](const Drawn& d) {
               return 3.0 * d.hidden * 8 * d.rank + 2.0 * 8 * d.rank * d.rank + d.mlp();
             },
             [](const Drawn& d) { return 7.0 * 8 * d.rank; }, false},
    KindCase{"RWKV of generation 4, whose state is one number for each column",
             [](const Drawn& d) {
               return fmt::format(
                   R"("rwkv": {{"generation": 4, "heads": {0}, "head_dim": 1}},
                      "kinds": [{{"letter": "x", "mixer": "rwkv", "ffn": {1}}}, F],
                      "pattern": "xxxf")",
                   d.hidden, d.ffn);
             },
             [](const Drawn& d) { return 5.0 * d.hidden * d.hidden + d.mlp(); },
             [](const Drawn& d) { return 7.0 * d.hidden; }, false},
    KindCase{"RWKV of generation 6, with thin products and a gate behind the MLP",
             [](const Drawn& d) {
               return fmt::format(
                   R"("rwkv": {{"generation": 6, "heads": 8, "head_dim": {}, "low_rank": {}}},
                      "kinds": [{{"letter": "x", "mixer": "rwkv", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.head_dim, d.rank, d.ffn);
             },
             [](const Drawn& d) {
               const double h = d.hidden, columns = 8.0 * d.head_dim;
               return 5 * h * columns + d.rank * (h + columns) + h * h + d.mlp();
             },
             [](const Drawn& d) { return 7.0 * 8 * d.head_dim * d.head_dim; }, false},
    KindCase{"RWKV of generation 7, whose state is corrected",
             [](const Drawn& d) {
               return fmt::format(
                   R"("rwkv": {{"generation": 7, "heads": 8, "head_dim": {}, "low_rank": {}}},
                      "kinds": [{{"letter": "x", "mixer": "rwkv", "ffn": {}}}, F],
                      "pattern": "xxxf")",
                   d.head_dim, d.rank, d.ffn);
             },
             [](const Drawn& d) {
               const double h = d.hidden, columns = 8.0 * d.head_dim;
               return 4 * h * columns + d.rank * (h + columns) + d.mlp();
             },
             [](const Drawn& d) { return 9.0 * 8 * d.head_dim * d.head_dim; }, false},
    KindCase{
        "Kimi Delta Attention",
        [](const Drawn& d) {
          return fmt::format(
              R"("delta": {{"key_heads": 8, "value_heads": 8, "key_dim": {0}, "value_dim": {0},
                                 "channel_decay": true, "gate_rank": {0}}},
                      "kinds": [{{"letter": "x", "mixer": "delta", "ffn": {1}}}, F],
                      "pattern": "xxxf")",
              d.head_dim, d.ffn);
        },
        [](const Drawn& d) {
          const double w = 8.0 * d.head_dim, thin = d.head_dim;
          return d.hidden * (3 * w + 8) + 2 * (d.hidden + w) * thin + w * d.hidden + d.mlp();
        },
        [](const Drawn& d) { return 8.0 * (6.0 * d.head_dim * d.head_dim + 256.0 * d.head_dim); },
        false},
    KindCase{"latent attention over the keys that an index chooses",
             [](const Drawn& d) {
               return fmt::format(
                   R"("latent_attention": {{"query_rank": {0}, "key_value_rank": {1},
                        "nope_dim": {2}, "rope_dim": 32, "value_dim": {3}}},
                      "kinds": [{{"letter": "x", "latent": true, "ffn": {4},
                        "index": {{"keys": {5}, "heads": 4, "dim": {6}}}}},
                        {{"letter": "s", "latent": true, "ffn": {4},
                        "index": {{"keys": {5}, "heads": 4, "dim": {6}, "shared": true}}}}],
                      "pattern": "xsxs")",
                   d.rank, d.latent, d.head_dim, d.value_dim, d.ffn, d.keys, d.index_dim);
             },
             [](const Drawn& d) {
               const double q = d.head_dim + 32, h = d.hidden, a = d.heads;
               const double latent = h * d.rank + d.rank * a * q + h * (d.latent + 32) +
                                     d.latent * a * (d.head_dim + d.value_dim) +
                                     a * d.value_dim * h;
               return latent + d.rank * 4.0 * d.index_dim + h * (d.index_dim + 4) + d.mlp();
             },
             [](const Drawn& d) {
               return 2.0 * d.heads * (d.head_dim + 32 + d.value_dim) * Drawn::mean_keys(d.keys) +
                      2.0 * 4 * d.index_dim * Drawn::mean_keys(0);
             },
             false},
    KindCase{"blocks of keys that an index chooses",
             [](const Drawn& d) {
               return fmt::format(
                   R"("kinds": [{{"letter": "x", "ffn": {},
                        "index": {{"keys": {}, "heads": 4, "dim": {}, "block": 64}}}}, F],
                      "pattern": "xfxf")",
                   d.ffn, d.keys, d.index_dim);
             },
             [](const Drawn& d) {
               return d.attention(4, d.head_dim, d.head_dim) + d.hidden * 5.0 * d.index_dim +
                      d.mlp();
             },
             [](const Drawn& d) {
               return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(d.keys) +
                      2.0 * 4 * d.index_dim * Drawn::mean_keys(0, 64);
             },
             false},
    KindCase{"compressed keys beside a window, and experts in a latent",
             [](const Drawn& d) {
               return fmt::format(
                   R"("low_rank": {{"query_rank": {0}, "output_groups": 4, "output_rank": {1}}},
                      "experts": {{"count": 16, "per_token": 4, "ffn": {2}, "shared_ffn": 128,
                                   "latent": {1}}},
                      "residual_streams": 2,
                      "kinds": [{{"letter": "x", "kv_heads": 1, "one_projection": true,
                        "window": {3}, "compression": 4, "experts": true,
                        "index": {{"keys": {4}, "heads": 4, "dim": {5}}}}},
                        {{"letter": "w", "kv_heads": 1, "one_projection": true, "window": {3},
                          "compression": 128, "experts": true}}],
                      "pattern": "xxwx")",
                   d.rank, d.latent, d.expert_ffn, d.window, d.keys, d.index_dim);
             },
             [](const Drawn& d) {
               const double h = d.hidden, q = static_cast<double>(d.heads) * d.head_dim;
               const double attention = h * (d.rank + d.head_dim) + d.rank * q + q * d.latent +
                                        4.0 * d.latent * h + h * 4 * d.head_dim;
               const double index = d.rank * 4.0 * d.index_dim + h * (4.0 * d.index_dim + 4);
               const double experts =
                   h * 16 + 2 * h * d.latent + 4 * 3.0 * d.latent * d.expert_ffn + 3 * h * 128;
               return attention + index + experts + 2 * 2 * h * (2 + 2) * 2;
             },
             [](const Drawn& d) {
               return 4.0 * d.heads * d.head_dim *
                          (Drawn::mean_keys(d.window) + Drawn::mean_keys(d.keys, 4)) +
                      2.0 * 4 * d.index_dim * Drawn::mean_keys(0, 4);
             },
             false},
};

Scenario scenario_of(const KindCase& one, const Drawn& d,
                     const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  std::string kinds = one.json(d);
  const std::string full = fmt::format(R"({{"letter": "f", "ffn": {}}})", d.ffn);
  if (const std::size_t at = kinds.find(", F]"); at != std::string::npos) {
    kinds.replace(at + 2, 1, full);
  }
  const std::string text = fmt::format(
      R"({{"model": {{"layers": 4, "hidden": {}, "heads": {}, "kv_heads": 4, "head_dim": {},
            "ffn": {}, "vocabulary": 4096, "gated": true, "rotary": true, {}}},
          "cluster": {{"node": "dgx_h100", "nodes": 1}},
          "parallelism": {{"tensor": 1, "pipeline": 1, "data": 8}},
          "batch": {{"sequences": 8, "tokens": 2048}}, "recompute": "none",
          "stack": {{"preset": "megatron_core",
                     "allow": ["lora.bf16", "models.short_convolution"]}}}})",
      d.hidden, d.heads, d.head_dim, d.ffn, kinds);
  return read_scenario("kinds.json", text, presets, {set});
}

/// Calls `check` with some shapes of each case.
void for_each_shape(const std::function<void(const KindCase&, const Drawn&)>& check) {
  constexpr int kShapes = 3;
  RandomStream random{{.seed = test::test_seed()}};
  for (const KindCase& one : kCases) {
    for (int i = 0; i < kShapes; ++i) {
      const Drawn drawn{random};
      CAPTURE(one.name);
      CAPTURE(drawn.hidden);
      check(one, drawn);
    }
  }
}

std::vector<std::string> cut(int tensor, int pipeline, int data) {
  return {fmt::format("parallelism.tensor={}", tensor),
          fmt::format("parallelism.pipeline={}", pipeline),
          fmt::format("parallelism.data={}", data)};
}

std::string complaint(const KindCase& one, const Drawn& d, const std::vector<std::string>& set) {
  try {
    (void)scenario_of(one, d, set);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("layer kinds: weights are the closed count, and FLOP are 6 of them and attention") {
  for_each_shape([](const KindCase& one, const Drawn& d) {
    const TrainingJob job = scenario_of(one, d).job;
    const TransformerShape& m = job.model;
    CHECK(layer_matrix_parameters(m, m.kind(0)) == doctest::Approx(one.weights(d)).epsilon(1e-12));
    // A model of this layer alone.
    TrainingJob alone = job;
    alone.model.layers = 1;
    alone.model.pattern.resize(1);
    const double tokens = 8 * Drawn::kTokens;
    const double head = 4096.0 * d.hidden;
    const double expected = tokens * (6 * (one.weights(d) + head) + 3 * one.attention(d));
    CHECK(step_flops(alone).causal.base_units() == doctest::Approx(expected).epsilon(1e-12));
  });
}

TEST_CASE("layer kinds: useful FLOP of all ranks add up to the model FLOP of the step") {
  for_each_shape([](const KindCase& one, const Drawn& d) {
    for (const int tensor : {1, 2, 4}) {
      CAPTURE(tensor);
      const Scenario s = scenario_of(one, d, cut(tensor, 1, 8 / tensor));
      const WorkloadContext c{s.job, s.node, s.stack, s.transport, tensor, 1, 1};
      Flops gpu;
      const auto add = [&](const std::vector<Operation>& operations) {
        for (const Operation& o : operations) gpu += o.useful;
      };
      add(embedding_operations(c));
      add(head_operations(c));
      for (int i = 0; i < 4; ++i) add(layer_operations(c, s.job.model.kind(i)));
      CHECK(8.0 * tensor * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
    }
  });
}

TEST_CASE("layer kinds: ranks share out what a layer saves, but for what each of them has whole") {
  for_each_shape([](const KindCase& one, const Drawn& d) {
    const Scenario whole = scenario_of(one, d), split = scenario_of(one, d, cut(4, 1, 2));
    const LayerKind kind = whole.job.model.kind(0);
    const KeyIndex& index = shape_of(whole.job.model, kind).index;
    const double all = saved_per_layer(whole.job, whole.stack, kind).base_units();
    const double part = saved_per_layer(split.job, split.stack, kind).base_units();
    double repeated = 0;
    for (const Saved& saved : declare_layer(whole.job.model, kind).saved) {
      if (saved.rows == Rows::repeated) repeated += 2 * Drawn::kTokens * saved.columns;
    }
    CHECK((repeated > 0 || index.keys == 0));
    CHECK(4 * (part - repeated) == doctest::Approx(all - repeated).epsilon(1e-12));
  });
}

TEST_CASE("layer kinds: a step folded is the step unfolded, under every kind of parallelism") {
  for_each_shape([](const KindCase& one, const Drawn& d) {
    const bool experts = scenario_of(one, d).job.model.experts.count > 0;
    std::vector<std::vector<std::string>> ways{cut(2, 2, 2), cut(1, 1, 8), cut(1, 1, 8),
                                               cut(2, 1, 4), cut(2, 1, 4)};
    ways[1].emplace_back("parallelism.sharding=zero3");
    ways[2].emplace_back("recompute=full");
    ways[3].emplace_back(R"(lora={"rank": 8, "modules": ["qkv", "projection"]})");
    ways[4].emplace_back(R"(offload={"optimiser": 1})");
    if (experts) {
      ways.push_back(cut(1, 1, 8));
      ways.back().emplace_back("parallelism.expert=8");
    }
    for (const std::vector<std::string>& way : ways) {
      CAPTURE(way.back());
      if (!one.has_stages && way[1] == "parallelism.pipeline=2") {
        CHECK(complaint(one, d, way)
                  .find("#/parallelism/pipeline: found 2 (--set parallelism.pipeline=2); allowed: "
                        "1, as ") != std::string::npos);
        continue;
      }
      const Scenario s = scenario_of(one, d, way);
      const double folded = simulate_step(s).step_s;
      CHECK(folded > 0);
      CHECK(simulate_step(s, {.folding = Folding::unfolded}).step_s ==
            doctest::Approx(folded).epsilon(1e-9));
      CHECK(peak_memory(s.job, s.stack, 0).needed() > Bytes{});
    }
  });
}

TEST_CASE("layer kinds: what cannot share a sequence out says why in one line") {
  for_each_shape([](const KindCase& one, const Drawn& d) {
    std::vector<std::string> set = cut(1, 1, 4);
    set.emplace_back("parallelism.context=2");
    const std::string text = complaint(one, d, set);
    CHECK(text.empty() == one.shares_sequence);
    if (text.empty()) return;
    CHECK(text.find("#/parallelism/context: found 2") != std::string::npos);
    CHECK(text.find("allowed: 1, as ") != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  });
}

TEST_CASE("layer kinds: blocks beside each other save, sum and exchange once what two do twice") {
  const auto* const parallel = std::ranges::find(
      kCases, std::string_view{"attention and MLP beside each other"}, &KindCase::name);
  REQUIRE(parallel != kCases.end());
  RandomStream random{{.seed = test::test_seed()}};
  const Drawn d{random};
  const Scenario s = scenario_of(*parallel, d, cut(4, 1, 2));
  const TransformerShape& m = s.job.model;
  const LayerKind beside = m.kind(0), after = m.kind(1);
  REQUIRE(beside.parallel);
  REQUIRE_FALSE(after.parallel);
  // One norm's weights, one input of it and one operand of the products behind it, 16 bit each.
  CHECK(layer_parameters(m, after) - layer_parameters(m, beside) == d.hidden);
  const double saved =
      (saved_per_layer(s.job, s.stack, after) - saved_per_layer(s.job, s.stack, beside))
          .base_units();
  CHECK(saved ==
        doctest::Approx(4 * Drawn::kTokens * d.hidden / (s.job.parallelism.sequence ? 4 : 1)));
  const WorkloadContext c{s.job, s.node, s.stack, s.transport, 4, 1, 1};
  const auto exchanges = [&](LayerKind kind) {
    const std::vector<Operation> operations = layer_operations(c, kind);
    return std::ranges::count(operations, OperationKind::collective, &Operation::kind);
  };
  CHECK(2 * exchanges(beside) == exchanges(after));
  CHECK(exchanges(beside) > 0);
}

namespace {

/// Layers of "f", full attention, and of "s", whose keys are those of the one before.
KindCase shared_keys_case() {
  return {"keys and values of the layer before",
          [](const Drawn& d) {
            return fmt::format(
                R"("kinds": [{{"letter": "s", "shared_keys": true, "ffn": {}}}, F],
                   "pattern": "fsfs")",
                d.ffn);
          },
          [](const Drawn& d) { return d.attention(4, d.head_dim, d.head_dim) + d.mlp(); },
          [](const Drawn& d) { return 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0); },
          true,
          false};
}

}  // namespace

TEST_CASE(
    "layer kinds: keys of another layer have no weights, are kept once and attended to twice") {
  RandomStream random{{.seed = test::test_seed()}};
  const Drawn d{random};
  const KindCase one = shared_keys_case();
  const Scenario s = scenario_of(one, d);
  const TransformerShape& m = s.job.model;
  const LayerKind own = m.kind(0), shared = m.kind(1);
  const double keys = 2.0 * 4 * d.head_dim;
  CHECK(layer_parameters(m, own) - layer_parameters(m, shared) == keys * d.hidden);
  CHECK(layer_matrix_parameters(m, own) == doctest::Approx(one.weights(d)).epsilon(1e-12));
  const Layer lends = declare_layer(m, own), takes = declare_layer(m, shared);
  CHECK(lends.cache.entries == 1);
  CHECK(takes.cache.entries == 0);
  CHECK(takes.cache.entry.all() == lends.cache.entry.all());
  // Keys and values are saved where they are made.
  CHECK(saved_per_layer(s.job, s.stack, own) > saved_per_layer(s.job, s.stack, shared));
  TrainingJob alone = s.job;
  alone.model.layers = 2;
  alone.model.pattern.resize(2);
  const double tokens = 8 * Drawn::kTokens, head = 4096.0 * d.hidden;
  const double weights = 2 * one.weights(d) - keys * d.hidden + head;
  CHECK(step_flops(alone).causal.base_units() ==
        doctest::Approx(tokens * (6 * weights + 6 * one.attention(d))).epsilon(1e-12));
  const double folded = simulate_step(s).step_s;
  CHECK(simulate_step(s, {.folding = Folding::unfolded}).step_s ==
        doctest::Approx(folded).epsilon(1e-9));
  CHECK(complaint(one, d, cut(1, 2, 4)).find("allowed: 1, as the model has layers that take") !=
        std::string::npos);
  CHECK(complaint(one, d, {R"(model.pattern="sfsf")"})
            .find("allowed: a layer with as many keys and values of its own before s") !=
        std::string::npos);
}

TEST_CASE("layer kinds: an attention core takes no longer for fewer keys") {
  for_each_shape([](const KindCase& one, const Drawn& d) {
    const Scenario s = scenario_of(one, d, {"batch.tokens=8192"});
    if (shape_of(s.job.model, s.job.model.kind(0)).index.keys == 0) return;
    Scenario more = s;
    for (KindShape& kind : more.job.model.kinds) kind.index.keys *= 2;
    CHECK(simulate_step(more).step_s >= simulate_step(s).step_s);
  });
}

TEST_CASE("layer kinds: weights that layers have together count once, and the work in each") {
  const auto* const together = std::ranges::find(
      kCases, std::string_view{"layers that have their weights together"}, &KindCase::name);
  REQUIRE(together != kCases.end());
  RandomStream random{{.seed = test::test_seed()}};
  const Drawn d{random};
  const TransformerShape& m = scenario_of(*together, d).job.model;
  TransformerShape apart = m;
  apart.kinds.front().shared_by = 0;
  const double one = layer_parameters(apart, apart.kind(0));
  CHECK(total_parameters(m) == doctest::Approx(total_parameters(apart) - 2 * one).epsilon(1e-12));
  KindCase uneven = *together;
  uneven.json = [](const Drawn& drawn) {
    return fmt::format(R"("kinds": [{{"letter": "x", "shared_by": 2, "ffn": {}}}, F],
                          "pattern": "xxxf")",
                       drawn.ffn);
  };
  CHECK(complaint(uneven, d, {}) ==
        "kinds.json#/model/kinds/0/shared_by: found 2; allowed: a divisor of 3, its letters in "
        "\"pattern\"");
}

TEST_CASE("layer kinds: a narrow table of words counts and computes as wide as it is") {
  KindCase narrow = *std::ranges::find(
      kCases, std::string_view{"layers that have their weights together"}, &KindCase::name);
  narrow.json = [](const Drawn& drawn) {
    return fmt::format(
        R"("table_width": 128, "tied": true,
           "kinds": [{{"letter": "x", "ffn": {}}}], "pattern": "xxxx")",
        drawn.ffn);
  };
  RandomStream random{{.seed = test::test_seed()}};
  const Drawn d{random};
  const Scenario s = scenario_of(narrow, d);
  CHECK(embedding_parameters(s.job.model) == 4096.0 * 128);
  const double layers = 4 * (d.attention(4, d.head_dim, d.head_dim) + d.mlp());
  const double cores = 4 * 4.0 * d.heads * d.head_dim * Drawn::mean_keys(0);
  CHECK(step_flops(s.job).causal.base_units() ==
        doctest::Approx(8 * Drawn::kTokens * (6 * (layers + 4096.0 * 128) + 3 * cores))
            .epsilon(1e-12));
  const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 1};
  Flops head;
  for (const Operation& o : head_operations(c)) head += o.useful;
  CHECK(head.base_units() == doctest::Approx(6 * Drawn::kTokens * 4096.0 * 128).epsilon(1e-12));
}

}  // namespace lockstep
