// Retention (Sun et al. 2023, RetNet, arXiv:2307.08621, section 2): queries and keys with rotary
// positions, a state of keys x values for each head that forgets at a pace of the head's own, a
// norm of each head that a gate of the stream multiplies, and a product out. Source of shapes and
// keys: github:fla-org/flash-linear-attention:fla/layers/ multiscale_retention.py and
// fla/models/retnet/configuration_retnet.py. No measured step has been held against it.
#include <array>
#include <string>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kRetentionIn{"retention_in", "retention_in.input_gradient",
                                    "retention_in.weight_gradient"};
constexpr ProductNames kRetentionOut{"retention_out", "retention_out.input_gradient",
                                     "retention_out.weight_gradient"};

constexpr Mixer kRetention{17};
constexpr auto kRetentionPlace = static_cast<std::size_t>(kRetention);
constexpr int kRetentionChunk = 64;
constexpr std::array kRetentionMembers{
    MixerMember{.key = "heads",
                .required = true,
                .low = 1,
                .high = kMostMixerHeads,
                .sentence = "Heads, each with a state",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRetentionPlace][0]; }},
    MixerMember{.key = "key_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a query and a key",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRetentionPlace][1]; }},
    MixerMember{.key = "value_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a value",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRetentionPlace][2]; }},
    MixerMember{.key = "chunk",
                .low = 1,
                .high = kMostMixerTokens,
                .sentence = "Tokens that the kernels take together; default: 64",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRetentionPlace][3]; }},
};

/// Columns of all heads.
struct RetentionColumns {
  double keys = 0, values = 0;
  /// Queries, keys, values and the gate.
  [[nodiscard]] double made() const { return 2 * keys + 2 * values; }
};
RetentionColumns retention_columns(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kRetention);
  return {static_cast<double>(n[0]) * n[1], static_cast<double>(n[0]) * n[2]};
}

void add_retention(const TransformerShape& m, const KindShape&, Layer& out) {
  const MixerNumbers& n = m.numbers(kRetention);
  const RetentionColumns columns = retention_columns(m);
  const double h = m.hidden, turned = 2 * columns.keys;
  out.rows.emplace_back(Product{.names = kRetentionIn,
                                .in = {.whole = h},
                                .out = {.shared = columns.made()},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(Kernel{.name = "rotary",
                               .columns = {.shared = turned},
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm,
                               .traffic = Traffic::rotary});
  out.rows.emplace_back(
      chunked_scan({.heads = static_cast<double>(n[0]),
                    .keys = static_cast<double>(n[1]),
                    .values = static_cast<double>(n[2]),
                    .chunk = static_cast<double>(n[3] > 0 ? n[3] : kRetentionChunk)}));
  out.rows.emplace_back(Kernel{.name = "gated_norm",
                               .columns = {.shared = columns.values},
                               .bytes = 6,
                               .backward = 1.5,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm});
  out.rows.emplace_back(Product{.names = kRetentionOut,
                                .in = {.shared = columns.values},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kRetentionIn, kRetentionOut});
  // One norm's weights for all heads.
  out.small += n[2] + (m.biases ? columns.made() + h : 0);
  // What the product in gives, what the recurrence makes of it, and the operand of the one out.
  out.saved.push_back({.columns = columns.made() + columns.values});
  out.saved.push_back({.columns = turned, .keep = Keep::rotary_copy});
  out.saved.push_back(
      {.columns = columns.values, .keep = Keep::operand, .product = AdapterModule::projection});
  out.cache.state = columns.values * n[1];
}

std::vector<SharedParts> retention_parts(const TransformerShape& m, const KindShape&) {
  return {{m.numbers(kRetention)[0], "heads of retention"}};
}

}  // namespace

namespace hugging_face {
namespace {

/// Layers of other kinds, and parts of this one that no published model has.
void refuse_other_retention(const JsonCursor& config, int heads) {
  const std::optional<JsonCursor> attention = config.find("attn");
  if (attention && !attention->is_null()) {
    attention->fail("a model without this key, whose layers all have retention");
  }
  if (integer_or(config, "num_kv_heads", 1, kMostHeads, heads) != heads) {
    config.at("num_kv_heads").fail(std::to_string(heads) + " (num_heads)");
  }
  if (flag_or(config, "use_short_conv", false)) config.at("use_short_conv").fail("false");
  if (!flag_or(config, "use_output_gate", true)) config.at("use_output_gate").fail("true");
}

void read_retnet(const JsonCursor& config, std::string_view, TransformerShape& m) {
  constexpr int kUsualHeads = 8, kUsualRatio = 2, kUnit = 256;
  constexpr double kKeys = 1, kValues = 2;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / 64);
  const int heads = integer_or(config, "num_heads", 1, kMostHeads, kUsualHeads);
  refuse_other_retention(config, heads);
  const int keys = whole_units(config, "expand_k", kKeys, m.hidden, 1);
  const int values = whole_units(config, "expand_v", kValues, m.hidden, 1);
  if (keys % heads != 0 || values % heads != 0) {
    config.at("num_heads")
        .fail("a divisor of " + std::to_string(keys) + " (expand_k) and " + std::to_string(values) +
              " (expand_v) columns");
  }
  // Two thirds of a multiple of the stream's width, up to whole units.
  const int wide = m.hidden * integer_or(config, "hidden_ratio", 1, 64, kUsualRatio) * 2 / 3;
  m.ffn =
      integer_or(config, "intermediate_size", 1, kMostWidth, (wide + kUnit - 1) / kUnit * kUnit);
  m.gated = m.rotary = true;
  m.tied = flag_or(config, "tie_word_embeddings", false);
  share_states(heads, values / heads, m);
  m.mixers[kRetentionPlace] = {heads, keys / heads, values / heads};
  const KindShape layer{.mixer = kRetention, .ffn = m.ffn};
  set_kinds(config, std::vector<KindShape>(static_cast<std::size_t>(m.layers), layer), m);
}

}  // namespace
}  // namespace hugging_face

extern const MixerKind kRetentionMixer;
constinit const MixerKind kRetentionMixer{
    .mixer = kRetention,
    .name = "retention",
    .add = add_retention,
    .operations = "retention_*",
    .sentence =
        "Retention: linear attention with rotary positions whose heads forget at a fixed "
        "pace (RetNet)",
    .members = kRetentionMembers,
    .known = [](const TransformerShape& m) { return m.numbers(kRetention)[0] > 0; },
    .whole_sequence = "retention passes its state along the sequence",
    .shared = retention_parts,
    .columns = [](const TransformerShape& m) { return retention_columns(m).made(); },
    .model_families = "retnet",
    .read_model = hugging_face::read_retnet};

}  // namespace lockstep
