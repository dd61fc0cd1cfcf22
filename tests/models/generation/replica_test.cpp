#include "models/generation/replica.hpp"

#include <doctest/doctest.h>

#include "models/kernels/gemm.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

const PresetStore& engine_presets() {
  static const PresetStore presets;
  return presets;
}

/// Nothing but kernels: no host, the whole card for weights and cache.
ReplicaSpec bare(const char* model, int tensor = 1) {
  ReplicaSpec spec;
  spec.model = engine_presets().model(model);
  spec.node = engine_presets().node("dgx_h100");
  spec.transport = engine_presets().transport("infiniband");
  spec.engine.memory_fraction = 1;
  spec.engine.workspace = Bytes{};
  spec.tensor = tensor;
  return spec;
}

double cache_of(const char* model, int tensor = 1, double bytes = 2) {
  ReplicaSpec spec = bare(model, tensor);
  spec.cache_bytes = bytes;
  return Replica(spec).cache_per_token().base_units();
}

}  // namespace

TEST_CASE("replica: the cache of a token, by grouped heads, latent vectors, formats and ranks") {
  CHECK(cache_of("llama3_8b") == 32 * 2 * 8 * 128 * 2);
  CHECK(cache_of("llama3_8b", 1, 1) == cache_of("llama3_8b") / 2);
  CHECK(cache_of("llama3_8b", 8) == cache_of("llama3_8b") / 8);
  CHECK(cache_of("llama3_8b", 16) == cache_of("llama3_8b", 8));  // eight heads at the most
  CHECK(cache_of("deepseek_v3") == 61 * (512 + 64) * 2);         // keys and values in one
  CHECK(cache_of("deepseek_v3", 8) == cache_of("deepseek_v3"));  // on every rank
  CHECK(cache_of("nemotron_h_8b") == 4 * 2 * 8 * 128 * 2);       // four layers of 52 attend
}

TEST_CASE("replica: weights are shared out, the rest of the card is cache") {
  Replica one(bare("llama3_8b")), two(bare("llama3_8b", 2));
  CHECK(one.weights().base_units() == test::near(2 * 8.03e9).epsilon(0.001));
  CHECK(two.weights().base_units() == test::near(one.weights().base_units() / 2));
  const double left = (one.spec().node.gpu.hbm_capacity - one.weights()) / one.cache_per_token();
  CHECK(one.cache_tokens(Bytes{}) == test::near(left));
  CHECK(one.cache_tokens(one.spec().node.gpu.hbm_capacity) == 0);
  ReplicaSpec fp8 = bare("llama3_8b");
  fp8.weights = Precision::fp8;
  CHECK(Replica(fp8).weights() < 0.6 * one.weights());
}

TEST_CASE("replica: slower processors of a scenario stretch the engine's host times") {
  ReplicaSpec spec = bare("llama3_8b");
  spec.engine.step_host = microseconds(200);
  spec.engine.sequence_host = microseconds(3);
  const Seconds usual = Replica(spec).decode_step(16, 100).host;
  CHECK(usual / microseconds(248) == test::near(1));
  spec.node.host.emplace().slowed = 2.5;
  CHECK(Replica(spec).decode_step(16, 100).host / usual == test::near(2.5));
  HostLaw law;
  law.request = microseconds(8);
  law.step = microseconds(2);
  law.slow(3);
  CHECK(law.request == microseconds(24));
  CHECK(law.step == microseconds(6));
}

TEST_CASE("replica: one sequence waits for the weights, and long prompts for arithmetic") {
  Replica replica(bare("llama3_8b"));
  const GpuSpec& gpu = replica.spec().node.gpu;
  // All but the input embedding is read, of which a step needs one row.
  const Bytes read = replica.weights() - Bytes{2.0 * 128256 * 4096};
  const Seconds step = replica.decode_step(1, 1).products;
  CHECK(step > read / gpu.gemm.bandwidth);
  CHECK(step < 1.15 * (read / gpu.gemm.bandwidth));
  // A few more sequences cost next to nothing.
  CHECK(replica.decode_step(8, 1).products < 1.1 * step);
  const int tokens = 8192;
  const Seconds arithmetic =
      Flops{2 * 6.98e9 * tokens} / gemm_rate(Precision::bf16, gpu, Load::sustained);
  const Seconds prefill = replica.prefill_pass(1, tokens).products;
  CHECK(prefill > arithmetic);
  CHECK(prefill < 1.15 * arithmetic);
}

TEST_CASE("replica: attention reads the cache of every sequence, windows no further back") {
  Replica replica(bare("llama3_8b"));
  const GpuSpec& gpu = replica.spec().node.gpu;
  const int sequences = 64;
  const double context = 3000;
  const Seconds reading = sequences * context * replica.cache_per_token() /
                          (replica.spec().engine.cache_bandwidth * gpu.hbm_bandwidth);
  const Seconds attention = replica.decode_step(sequences, context).attention;
  CHECK(attention.base_units() == test::near((reading + 32.0 * gpu.memory.launch).base_units()));
  Replica windowed(bare("gpt_oss_20b"));
  const double window = windowed.spec().model.window;
  const Seconds near = windowed.decode_step(1, window).attention;
  const Seconds far = windowed.decode_step(1, 3 * window).attention;
  CHECK(far < 2.2 * near);  // half of the layers see all of it
}

TEST_CASE("replica: experts that no token meets are not read") {
  Replica replica(bare("qwen3_30b_a3b"));
  const double one = replica.decode_step(1, 1).products.base_units();
  const double some = replica.decode_step(16, 1).products.base_units();
  const double all = replica.decode_step(512, 1).products.base_units();
  CHECK(some > 3 * one);
  CHECK(all > 1.4 * some);
  CHECK(all < 2 * (replica.weights() / replica.spec().node.gpu.gemm.bandwidth).base_units());
}

TEST_CASE("replica: ranks exchange, launches take time where nothing is captured") {
  Replica one(bare("llama3_70b", 1)), eight(bare("llama3_70b", 8));
  CHECK(one.decode_step(4, 100).exchange == Seconds{});
  CHECK(eight.decode_step(4, 100).exchange > Seconds{});
  CHECK(eight.decode_step(4, 100).total() < 0.3 * one.decode_step(4, 100).total());
  ReplicaSpec eager = bare("llama3_8b", 8);
  eager.engine.graphs = false;
  eager.engine.kernels_per_layer = 100;
  Replica slow(eager);
  CHECK(slow.decode_step(1, 1).total() >= 32 * 100 * eager.engine.launch_interval);
}

TEST_CASE("replica: attention computes scores and what they weigh, where it waits for arithmetic") {
  // 64 query heads share one key head in 8 bit: 4 FLOP for each of 64 x 128 elements, against 256
  // bytes. An engine that reaches a thousandth of the peak waits for the FLOP.
  ReplicaSpec spec = bare("llama3_8b");
  spec.model.heads = 64;
  spec.model.kv_heads = 1;
  spec.cache_bytes = 1;
  spec.engine.cache_arithmetic = 1e-3;
  Replica replica(spec);
  const GpuSpec& gpu = spec.node.gpu;
  const double rate = 1e-3 * gpu.peak_bf16.base_units();
  const double layer = gpu.memory.launch.base_units() + 16 * 1000.0 * 4 * 64 * 128 / rate;
  CHECK(replica.decode_step(16, 1000).attention.base_units() == test::near(32 * layer));
}

TEST_CASE("replica: recurrent states are read and written in every step, however long the text") {
  // 24 Mamba-2 layers of 128 heads of 64, each with a state of 128, in 16 bit.
  Replica replica(bare("nemotron_h_8b"));
  CHECK(replica.state_per_sequence().base_units() == 24 * 128 * 64 * 128 * 2);
  const double rate =
      replica.spec().engine.cache_bandwidth * replica.spec().node.gpu.hbm_bandwidth.base_units();
  const auto attention = [&](int sequences, double context) {
    return replica.decode_step(sequences, context).attention.base_units();
  };
  // A sequence more reads its cache, and its states, and writes these.
  const double cache = 100 * replica.cache_per_token().base_units();
  const double states = 2 * replica.state_per_sequence().base_units();
  CHECK(attention(5, 100) - attention(4, 100) == test::near((cache + states) / rate));
  CHECK(attention(4, 1100) - attention(4, 100) == test::near(4 * 10 * cache / rate));
}

}  // namespace lockstep
