// Retention, the mixer of RetNet: closed counts, and config.json of its family. What holds for all
// mixers is in tests/sim/step/mixer_rows_test.cpp.
#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"

namespace lockstep {
namespace {

/// RetNet 1.3B of Flash Linear Attention, whose code's defaults are left out; and more keys.
TransformerShape retnet(const std::string& more = {}) {
  const std::string text = R"({"model_type": "retnet", "hidden_size": 2048, "hidden_act": "swish",
      "num_hidden_layers": 24, "vocab_size": 32000)" +
                           more + "}";
  return read_hugging_face(JsonCursor::parse("config.json", text), "retnet").shape;
}
std::string retnet_complaint(const std::string& more) {
  try {
    (void)retnet(more);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("retention: RetNet 1.3B has the weights and FLOP of its products and states") {
  const TransformerShape m = retnet();
  CHECK(info(m.kind(0).mixer).name == "retention");
  // 8 heads of 256 columns of keys and 512 of values: queries, keys, values, the gate and the way
  // out are eight squares; an MLP of 2816; two norms, and one for all heads.
  constexpr double kHidden = 2048, kMatrices = 8 * kHidden * kHidden + 3 * kHidden * 2816;
  CHECK(m.ffn == 2816);
  CHECK(layer_matrix_parameters(m, m.kind(0)) == kMatrices);
  CHECK(total_parameters(m) ==
        24 * (kMatrices + 2 * kHidden + 512) + 2 * 32000 * kHidden + kHidden);
  TrainingJob job;
  job.model = m;
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 2048};
  // By chunks of 64: scores and what they make of values, and a state that is added to and read.
  constexpr double kStates = 8 * (64.0 * (256 + 512) + 4.0 * 256 * 512);
  CHECK(step_flops(job).causal.base_units() ==
        doctest::Approx(2048 * (24 * (6 * kMatrices + 3 * kStates) + 6 * 32000 * kHidden))
            .epsilon(1e-12));
}

TEST_CASE("retention: keys of RetNet's file that decide are read, and others are refused there") {
  const TransformerShape m = retnet(R"(, "num_heads": 16, "expand_k": 0.5, "expand_v": 1,
      "intermediate_size": 4096, "tie_word_embeddings": true)");
  CHECK(m.numbers(m.kind(0).mixer) == MixerNumbers{16, 64, 128});
  CHECK(m.heads == 16);
  CHECK(m.ffn == 4096);
  CHECK(m.tied);
  CHECK(retnet_complaint(R"(, "num_heads": 7)") ==
        "config.json#/num_heads: found 7; allowed: a divisor of 2048 (expand_k) and 4096 "
        "(expand_v) columns");
  CHECK(retnet_complaint(R"(, "attn": {"layers": [1]})").starts_with("config.json#/attn: found "));
  CHECK(retnet_complaint(R"(, "num_kv_heads": 2)") ==
        "config.json#/num_kv_heads: found 2; allowed: 8 (num_heads)");
  CHECK(retnet_complaint(R"(, "use_short_conv": true)") ==
        "config.json#/use_short_conv: found true; allowed: false");
  CHECK(retnet_complaint(R"(, "use_output_gate": false)") ==
        "config.json#/use_output_gate: found false; allowed: true");
}

}  // namespace lockstep
