// What a replica that serves holds.
#include "models/generation/serving_replica.hpp"

#include <doctest/doctest.h>
#include <utility>

#include "sim/scenario/rl_spec.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

ServingReplica replica_that_drafts(int drafts, const char* model = "llama3_70b") {
  ServingReplicaSpec spec;
  spec.model = test::presets().model(model);
  spec.node = test::presets().node("dgx_h200");
  spec.transport = test::presets().transport("infiniband");
  spec.engine = *engine_preset(test::presets(), "vllm").serving;
  spec.tensor = 8;
  spec.speculation.drafts = drafts;
  return ServingReplica(spec);
}

}  // namespace

TEST_CASE(
    "serving replica: the layer that drafts has weights and a cache, however many it drafts") {
  const ServingReplica plain = replica_that_drafts(0), drafting = replica_that_drafts(2);
  // Llama 3 70B: queries and outputs, keys and values, three products of the MLP; over 8 ranks.
  const double layer = 2.0 * 8192 * 8192 + 2.0 * 8192 * 1024 + 3.0 * 8192 * 28672;
  CHECK((drafting.weights() - plain.weights()).base_units() == test::near(2 * layer / 8));
  CHECK(plain.cache_per_token().base_units() == test::near(80 * 2 * 2 * 1024 / 8.0));
  CHECK(drafting.cache_per_token().base_units() == test::near(81 * 2 * 2 * 1024 / 8.0));
  CHECK(drafting.cache_tokens() < 80 / 81.0 * plain.cache_tokens());
  CHECK(replica_that_drafts(1).weights() == drafting.weights());
}

TEST_CASE("serving replica: a tower of images and a narrow table are held as they are") {
  const auto held = [](TransformerShape model) {
    ServingReplicaSpec spec = replica_that_drafts(0).spec();
    spec.model = std::move(model);
    return ServingReplica(spec).weights().base_units();
  };
  const TransformerShape plain = test::presets().model("llama3_70b");
  TransformerShape seeing = plain, narrow = plain;
  seeing.vision_parameters = 4e8;
  narrow.table_width = 1024;
  CHECK(held(seeing) - held(plain) == test::near(2 * 4e8 / 8));
  CHECK(held(plain) - held(narrow) == test::near(2 * 2.0 * 128256 * (8192 - 1024) / 8));
}

TEST_CASE("serving replica: an attention rank's host has its own sequences alone to look after") {
  const auto host = [](int tensor, int attention_data, int sequences) {
    ServingReplicaSpec spec = replica_that_drafts(0, "deepseek_v3").spec();
    spec.tensor = tensor;
    spec.attention_data = attention_data;
    spec.expert = 8;
    ServingReplica replica(spec);
    const Seconds of_pass = replica.pass({.sequences = sequences, .context = 1e3 * sequences}).host;
    return (of_pass - replica.host().step) / replica.host().sequence;
  };
  CHECK(host(8, 1, 64) == test::near(64.0));
  CHECK(host(1, 8, 64) == test::near(8.0));
  CHECK(host(1, 8, 65) == test::near(9.0));  // the fullest rank's
  CHECK(host(2, 4, 64) == test::near(16.0));
}

TEST_CASE("serving replica: passes with prompts in CUDA graphs wait for no launches") {
  const auto pass = [](int captured, double tokens) {
    ServingReplicaSpec spec = replica_that_drafts(0).spec();
    spec.engine.captured_tokens = captured;
    ServingReplica replica(spec);
    return replica.pass({.prompts = 1, .prompt_tokens = tokens, .prompt_pairs = tokens}).total();
  };
  const ServingReplica replica = replica_that_drafts(0);
  CHECK(pass(0, 100) > 80.0 * replica.host().prompt_layer + replica.host().prompt);
  CHECK(pass(512, 100) < pass(0, 100) - replica.host().prompt);
  CHECK(pass(512, 512) < pass(0, 512));
  CHECK(pass(512, 513) == pass(0, 513));
}

}  // namespace lockstep
