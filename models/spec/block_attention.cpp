#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kQkv{"qkv", "qkv.input_gradient", "qkv.weight_gradient"};
constexpr ProductNames kQueryUp{"query_up", "query_up.input_gradient", "query_up.weight_gradient"};
constexpr ProductNames kKeyValueUp{"key_value_up", "key_value_up.input_gradient",
                                   "key_value_up.weight_gradient"};
constexpr ProductNames kOutputGroups{"output_groups", "output_groups.input_gradient",
                                     "output_groups.weight_gradient"};
constexpr ProductNames kOutputGate{"output_gate", "output_gate.input_gradient",
                                   "output_gate.weight_gradient"};
constexpr ProductNames kCompressor{"compressor", "compressor.input_gradient",
                                   "compressor.weight_gradient"};
constexpr ProductNames kProjection{"projection", "projection.input_gradient",
                                   "projection.weight_gradient"};

/// The product that compresses, on every tensor-parallel rank over its part of the tokens, its
/// norm, and the product of the queries.
void add_compressed_queries(const TransformerShape& m, const KindShape& k, double query_rank,
                            double beside, Layer& out) {
  const double h = m.hidden, down = query_rank + beside;
  out.rows.emplace_back(Product{.names = kQkv,
                                .in = {.whole = h},
                                .out = {.whole = down},
                                .rows = Rows::residual,
                                .ways = Ways::none,
                                .adapter = AdapterModule::qkv,
                                .adapters = query_rank > 0 ? 2 : 1});
  out.rows.emplace_back(Kernel{.name = "latent_norm",
                               .columns = {.whole = down},
                               .bytes = 8,
                               .backward = 1.5,
                               .kernels = 2,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::latent_up,
                               .rows = Rows::residual,
                               .ways = Ways::none});
  out.rows.emplace_back(Product{.names = kQueryUp,
                                .in = {.whole = query_rank > 0 ? query_rank : h},
                                .out = {.shared = static_cast<double>(k.heads) * k.head_dim},
                                .recomputed = Recomputed::latent_up,
                                .adapter = AdapterModule::query_up});
}

/// Queries, keys and values out of compressed vectors.
void add_latent(const TransformerShape& m, const KindShape& k, Layer& out) {
  const LatentAttention& l = m.latent;
  const double heads = k.heads, query = l.nope_dim + l.rope_dim;
  add_compressed_queries(m, k, l.query_rank, l.key_value_rank + l.rope_dim, out);
  out.rows.emplace_back(Product{.names = kKeyValueUp,
                                .in = {.whole = static_cast<double>(l.key_value_rank)},
                                .out = {.shared = heads * (l.nope_dim + l.value_dim)},
                                .recomputed = Recomputed::latent_up,
                                .adapter = AdapterModule::key_value_up});
  // Positions go into a part of each head, and heads are put together again.
  out.rows.emplace_back(Kernel{.name = "rotary",
                               .columns = {.shared = heads * 2 * query},
                               .kernels = 2,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::latent_up,
                               .traffic = Traffic::rotary});
  out.small += l.query_rank + l.key_value_rank;
  // Compressed vectors, and what comes out of them unless that is made again.
  out.saved.push_back(
      {.columns = 2.0 * (l.query_rank + l.key_value_rank) + l.rope_dim, .by = SavedBy::sequence});
  out.saved.push_back(
      {.columns = heads * (2 * query + l.value_dim), .recomputed = Recomputed::latent_up});
  // Decoded on the compressed vector, which is key and value of every head
  // (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2).
  out.cache.entry.whole = static_cast<double>(l.key_value_rank) + l.rope_dim;
  out.cache.flops_per_entry = 2 * heads * (2.0 * l.key_value_rank + l.rope_dim);
}

/// Columns of queries, keys and values that come straight out of the hidden state, or of queries
/// out of a compressed one.
void add_heads(const TransformerShape& m, const KindShape& k, Layer& out) {
  const double h = m.hidden, heads = k.heads;
  const double key_value = k.one_projection ? k.head_dim : k.head_dim + k.value_dim;
  const double queries = heads * k.head_dim;
  const Width attended =
      k.shared_keys
          ? Width{.shared = queries}
          : Width{.shared = queries, .units = static_cast<double>(k.kv_heads), .unit = key_value};
  const double rank = m.low_rank.query_rank;
  if (rank > 0) {
    add_compressed_queries(m, k, rank, k.kv_heads * key_value, out);
    out.small += rank;
    out.saved.push_back({.columns = 2 * rank, .by = SavedBy::sequence});
  } else {
    Width columns = attended;
    if (k.output_gate) columns.shared += heads * k.value_dim;
    out.rows.emplace_back(Product{.names = kQkv,
                                  .in = {.whole = h},
                                  .out = columns,
                                  .in_pieces = true,
                                  .adapter = AdapterModule::qkv});
  }
  if (m.rotary) {
    out.rows.emplace_back(
        Kernel{.name = "rotary",
               .columns = attended,
               .recomputed = Recomputed::norm,
               .or_recomputed = rank > 0 ? Recomputed::latent_up : Recomputed::norm,
               .traffic = Traffic::rotary});
  }
  if (m.biases && !k.bare_heads) out.small += attended.all();
  out.saved.push_back({.columns = attended.all()});
  if (m.rotary) out.saved.push_back({.columns = attended.all(), .keep = Keep::rotary_copy});
  out.cache.entry = {.units = static_cast<double>(k.kv_heads), .unit = key_value};
  out.cache.flops_per_entry = 2 * heads * (k.head_dim + k.value_dim);
}

/// One key of several tokens: two products, of what is added up and of its weights; twice the
/// columns where neighbouring entries overlap, which those that an index chooses from do
/// (DeepSeek-V4's technical report, section 2.3).
void add_compressor(const TransformerShape& m, const KindShape& k, Layer& out) {
  const double columns = (k.index.keys > 0 ? 2 : 1) * static_cast<double>(k.head_dim);
  out.rows.emplace_back(Product{.names = kCompressor,
                                .in = {.whole = static_cast<double>(m.hidden)},
                                .out = {.whole = 2 * columns},
                                .rows = Rows::residual,
                                .ways = Ways::none});
  out.rows.emplace_back(Kernel{.name = "compression",
                               .columns = {.whole = 2 * columns},
                               .bytes = 2,
                               .rows = Rows::residual,
                               .ways = Ways::none});
  out.small += k.compression * columns + k.head_dim;
  out.saved.push_back({.columns = 2 * columns, .by = SavedBy::sequence});
}

/// Keys and values of sums over several tokens, which plain products make beside those of the
/// tokens; sums and a norm of them are a kernel.
void add_summaries(const TransformerShape& m, const KindShape& k, Layer& out) {
  constexpr double kHalfWord = 2;
  const double h = m.hidden;
  const double columns = k.kv_heads * static_cast<double>(k.head_dim + k.value_dim) / k.summaries;
  out.rows.emplace_back(Kernel{.name = "summaries",
                               .columns = {.whole = h + 2 * h / k.summaries},
                               .bytes = kHalfWord,
                               .rows = Rows::residual,
                               .ways = Ways::none});
  out.small += h;
  out.saved.push_back({.columns = columns});
}

/// What a query goes over.
std::vector<Keys> keys_of(const KindShape& k) {
  const double chosen = k.index.keys;
  if (k.chunked || k.bidirectional) {
    std::vector<Keys> keys{
        {.limit = static_cast<double>(k.window), .chunked = k.chunked, .causal = !k.bidirectional}};
    // A table has as many entries either way. Its scores both ways, without values, are as much
    // work as attention over it is.
    if (k.summaries > 0) {
      keys.push_back({.ratio = static_cast<double>(k.summaries), .causal = false});
    }
    if (k.distances > 0) {
      const Keys entries{.limit = static_cast<double>(k.distances), .causal = false};
      keys.insert(keys.end(), 2, entries);
    }
    return keys;
  }
  if (k.compression > 0) {
    return {{.limit = static_cast<double>(k.window)},
            {.limit = chosen, .ratio = static_cast<double>(k.compression)}};
  }
  return {{.limit = chosen > 0 ? chosen : k.window}};
}

void add_output(const TransformerShape& m, const KindShape& k, Layer& out) {
  const double h = m.hidden, values = static_cast<double>(k.heads) * k.value_dim;
  if (k.output_gate) {
    // Plain attention makes it with its queries, latent attention by a product of its own.
    if (k.latent) {
      out.rows.emplace_back(
          Product{.names = kOutputGate, .in = {.whole = h}, .out = {.shared = values}});
    }
    out.rows.emplace_back(Kernel{
        .name = "output_gate", .columns = {.shared = values}, .bytes = 6, .backward = 5.0 / 3});
    out.saved.push_back({.columns = 2 * values});
  }
  double columns = values;
  if (m.low_rank.output_groups > 0) {
    const double groups = m.low_rank.output_groups, rank = m.low_rank.output_rank;
    out.rows.emplace_back(Product{.names = kOutputGroups,
                                  .in = {.whole = values / groups},
                                  .out = {.whole = rank},
                                  .recomputed = Recomputed::projection,
                                  .matrices = groups});
    columns = groups * rank;
    out.saved.push_back(
        {.columns = columns, .keep = Keep::operand, .product = AdapterModule::projection});
  }
  out.rows.emplace_back(Product{.names = kProjection,
                                .in = {.shared = columns},
                                .out = {.whole = h},
                                .recomputed = Recomputed::projection,
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kQkv, kProjection});
  if (m.biases) out.small += h;
}

constexpr ProductNames kCrossQuery{"cross_query", "cross_query.input_gradient",
                                   "cross_query.weight_gradient"};
constexpr ProductNames kCrossKeyValue{"cross_key_value", "cross_key_value.input_gradient",
                                      "cross_key_value.weight_gradient"};
constexpr ProductNames kCrossProjection{"cross_projection", "cross_projection.input_gradient",
                                        "cross_projection.weight_gradient"};

void add_attention(const TransformerShape& m, const KindShape& k, Layer& out) {
  if (k.latent) {
    add_latent(m, k, out);
  } else {
    add_heads(m, k, out);
  }
  if (k.compression > 0) add_compressor(m, k, out);
  if (k.summaries > 0) add_summaries(m, k, out);
  if (k.index.keys > 0 && !k.index.shared) add_index(m, k, out);
  const double heads = k.heads;
  const Core core{.heads = heads,
                  .kv_heads = k.latent ? heads : static_cast<double>(k.kv_heads),
                  .head_dim = (k.head_dim + k.value_dim) / 2.0,
                  .query_dim = static_cast<double>(k.head_dim),
                  .keys = keys_of(k)};
  out.rows.emplace_back(core);
  out.saved.push_back({.columns = heads * k.value_dim,
                       .keep = Keep::attention,
                       .recomputed = Recomputed::core,
                       .product = AdapterModule::projection});
  out.saved.push_back({.columns = heads, .keep = Keep::scores});
  out.cache.keys = core.keys;
  // Of compressed keys; the window beside them is a constant that is left out. Keys of another
  // layer are read, but kept there.
  out.cache.entries = k.shared_keys ? 0 : 1 / core.keys.back().ratio;
  add_output(m, k, out);
}

std::vector<SharedParts> attention_parts(const TransformerShape& m, const KindShape& k) {
  std::vector<SharedParts> parts{{k.heads, "attention heads"},
                                 {k.kv_heads, "key-value heads", true}};
  if (!k.latent && m.low_rank.output_groups > 0) {
    parts.push_back({m.low_rank.output_groups, "output groups"});
  }
  return parts;
}

}  // namespace

/// Plain, windowed, compressed and latent attention, with or without an index.
constinit const MixerKind kAttentionMixer{.mixer = Mixer::attention,
                                          .name = "attention",
                                          .add = add_attention,
                                          .shared = attention_parts};

void add_cross_attention(const TransformerShape& m, const KindShape& k, Layer& out) {
  const double h = m.hidden, heads = k.heads;
  const double queries = heads * k.head_dim, values = heads * k.value_dim;
  const Width key_value{.units = static_cast<double>(k.kv_heads),
                        .unit = static_cast<double>(k.head_dim + k.value_dim)};
  out.rows.emplace_back(Product{.names = kCrossQuery,
                                .in = {.whole = h},
                                .out = {.shared = queries},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(Product{.names = kCrossKeyValue,
                                .in = {.whole = static_cast<double>(k.source_width)},
                                .out = key_value,
                                .rows = Rows::source,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(Core{.heads = heads,
                             .kv_heads = static_cast<double>(k.kv_heads),
                             .head_dim = (k.head_dim + k.value_dim) / 2.0,
                             .query_dim = static_cast<double>(k.head_dim),
                             .keys = {{.causal = false, .of_source = true}}});
  out.rows.emplace_back(Product{.names = kCrossProjection,
                                .in = {.shared = values},
                                .out = {.whole = h},
                                .recomputed = Recomputed::projection,
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kCrossQuery, kCrossProjection});
  if (m.biases) out.small += (k.bare_heads ? 0 : queries + key_value.all()) + h;
  out.saved.push_back({.columns = queries});
  out.saved.push_back({.columns = key_value.all(), .rows = Rows::source});
  out.saved.push_back({.columns = values,
                       .keep = Keep::attention,
                       .recomputed = Recomputed::core,
                       .product = AdapterModule::projection});
  out.saved.push_back({.columns = heads, .keep = Keep::source_scores});
}

}  // namespace lockstep
