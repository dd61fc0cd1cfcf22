// What a replica that serves holds.
#include "models/generation/serving_replica.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <memory>
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

/// Nothing but kernels: no host, the whole card for weights and cache.
ServingReplicaSpec bare(const char* model, int tensor = 1) {
  ServingReplicaSpec spec;
  spec.model = test::presets().model(model);
  spec.model.predicted_tokens = 0;
  spec.node = test::presets().node("dgx_h100");
  spec.transport = test::presets().transport("infiniband");
  EngineSpec engine = engine_preset(test::presets(), "vllm");
  engine.memory_fraction = 1;
  engine.workspace = Bytes{};
  engine.step_host = engine.sequence_host = Seconds{};
  spec.engine = engine.rollout();
  spec.tensor = tensor;
  return spec;
}
double cache_of(const char* model, int tensor = 1, double bytes = 2) {
  ServingReplicaSpec spec = bare(model, tensor);
  spec.cache_bytes = bytes;
  return ServingReplica(spec).cache_per_token().base_units();
}
ServingPass decode(ServingReplica& replica, int sequences, double each) {
  return replica.pass({.sequences = sequences, .context = sequences * each});
}

}  // namespace

TEST_CASE("serving replica: the cache of a token, by heads, latent vectors, formats and ranks") {
  CHECK(cache_of("llama3_8b") == 32 * 2 * 8 * 128 * 2);
  CHECK(cache_of("llama3_8b", 1, 1) == cache_of("llama3_8b") / 2);
  CHECK(cache_of("llama3_8b", 8) == cache_of("llama3_8b") / 8);
  CHECK(cache_of("llama3_8b", 16) == cache_of("llama3_8b", 8));  // eight heads at the most
  CHECK(cache_of("deepseek_v3") == 61 * (512 + 64) * 2);         // keys and values in one
  CHECK(cache_of("deepseek_v3", 8) == cache_of("deepseek_v3"));  // on every rank
  CHECK(cache_of("nemotron_h_8b") == 4 * 2 * 8 * 128 * 2);       // four layers of 52 attend
}

TEST_CASE("serving replica: weights are shared out, the rest of the card is cache") {
  const ServingReplica one(bare("llama3_8b")), two(bare("llama3_8b", 2));
  CHECK(one.weights().base_units() == test::near(2 * 8.03e9).epsilon(0.001));
  CHECK(two.weights().base_units() == test::near(one.weights().base_units() / 2));
  const Bytes card = one.spec().node.gpu.hbm_capacity;
  CHECK(one.cache_tokens() == test::near((card - one.weights()) / one.cache_per_token()));
  const Bytes others = gibibytes(10);
  CHECK(one.cache_tokens(others) ==
        test::near((card - one.weights() - others) / one.cache_per_token()));
  CHECK(one.cache_tokens(card) == 0);
  ServingReplicaSpec fp8 = bare("llama3_8b");
  fp8.weights = WeightFormat::fp8;
  CHECK(ServingReplica(fp8).weights() < 0.6 * one.weights());
}

TEST_CASE("serving replica: a rollout has the engine's host times, on slower processors longer") {
  ServingReplicaSpec spec = bare("llama3_8b");
  EngineSpec engine = engine_preset(test::presets(), "vllm");
  engine.step_host = microseconds(200);
  engine.sequence_host = microseconds(3);
  spec.engine = engine.rollout();
  ServingReplica usual(spec);
  const Seconds host = decode(usual, 16, 100).host;
  CHECK(host / microseconds(248) == test::near(1));
  spec.node.host.emplace().slowed = 2.5;
  ServingReplica slow(spec);
  CHECK(decode(slow, 16, 100).host / host == test::near(2.5));
  engine.step_host.reset();
  engine.sequence_host.reset();
  const HostLaw serves = laws_for(*engine.serving, "hopper").host;
  spec.node = bare("llama3_8b").node;
  spec.engine = engine.rollout();
  ServingReplica served(spec);
  CHECK(decode(served, 16, 100).host / (serves.step + 16 * serves.sequence) == test::near(1));
}

TEST_CASE("serving replica: one sequence waits for the weights, and long prompts for arithmetic") {
  ServingReplica replica(bare("llama3_8b"));
  const GpuSpec& gpu = replica.spec().node.gpu;
  // All but the input embedding is read, of which a step needs one row.
  const Bytes read = replica.weights() - Bytes{2.0 * 128256 * 4096};
  const Seconds step = decode(replica, 1, 1).products;
  CHECK(step > read / gpu.hbm_bandwidth);
  CHECK(step < 1.5 * (read / gpu.hbm_bandwidth));
  // A few more sequences cost next to nothing.
  CHECK(decode(replica, 8, 1).products < 1.1 * step);
  const double tokens = 8192;
  const Seconds arithmetic = Flops{2 * 6.98e9 * tokens} / gpu.peak_bf16;
  const Seconds prefill =
      replica
          .pass({.prompts = 1, .prompt_tokens = tokens, .prompt_pairs = tokens * (tokens + 1) / 2})
          .prompts;
  CHECK(prefill > arithmetic);
  CHECK(prefill < 2.5 * arithmetic);
}

TEST_CASE("serving replica: attention reads the cache of all sequences, windows no further back") {
  ServingReplica replica(bare("llama3_8b"));
  const int sequences = 64;
  const auto attention = [&](double each) { return decode(replica, sequences, each).attention; };
  const Bytes more = sequences * 3e5 * replica.cache_per_token();
  const double rate = laws_for(replica.spec().engine, "hopper").attention.bandwidth;
  // Far out the bytes alone count.
  CHECK((attention(6e5) - attention(3e5)).base_units() ==
        test::near((more / (rate * replica.spec().node.gpu.hbm_bandwidth)).base_units())
            .epsilon(1e-3));
  ServingReplica windowed(bare("gpt_oss_20b"));
  const double window = windowed.spec().model.window;
  const Seconds near = decode(windowed, 64, 50 * window).attention;
  const Seconds far = decode(windowed, 64, 100 * window).attention;
  CHECK(far > 1.3 * near);
  CHECK(far < 2 * near);  // half of the layers see all of it
}

TEST_CASE("serving replica: experts that no token meets are not read") {
  ServingReplica replica(bare("qwen3_30b_a3b"));
  const double one = decode(replica, 1, 1).products.base_units();
  const double some = decode(replica, 16, 1).products.base_units();
  const double all = decode(replica, 512, 1).products.base_units();
  CHECK(some > 1.5 * one);
  CHECK(all > 1.4 * some);
  // A half-empty pass reads them all too, and the whole card's weights take so long at least.
  CHECK(all > (replica.weights() / replica.spec().node.gpu.hbm_bandwidth).base_units());
}

TEST_CASE("serving replica: ranks exchange, and where nothing is captured layers are launched") {
  ServingReplica one(bare("llama3_70b", 1)), eight(bare("llama3_70b", 8));
  CHECK(decode(one, 4, 100).exchange == Seconds{});
  CHECK(decode(eight, 4, 100).exchange > Seconds{});
  CHECK(decode(eight, 4, 100).total() < 0.3 * decode(one, 4, 100).total());
  ServingReplicaSpec eager = bare("llama3_8b", 8);
  const Seconds captured = ServingReplica(eager).pass({.sequences = 1, .context = 1}).total();
  eager.engine.graphs = false;
  ServingReplica slow(eager);
  const Seconds least = 32.0 * slow.host().prompt_layer;
  CHECK(captured < least);
  CHECK(decode(slow, 1, 1).total().base_units() == test::near(least.base_units()));
}

TEST_CASE("serving replica: parts of what a pass draws are all of it") {
  for (const char* model : {"llama3_8b", "qwen3_30b_a3b", "deepseek_v3", "nemotron_h_8b"}) {
    CAPTURE(model);
    ServingReplicaSpec spec = bare(model);
    spec.node = test::presets().node("dgx_h200");
    for (const int drafts : {0, 2}) {
      spec.speculation.drafts = drafts;
      spec.attention_data = spec.expert = spec.model.experts.count > 0 ? 4 : 1;
      ServingReplica replica(spec);
      for (const PassLoad load : {PassLoad{.sequences = 37, .context = 37e3},
                                  PassLoad{.prompts = 1, .prompt_tokens = 300, .prompt_pairs = 5e4},
                                  PassLoad{.sequences = 9,
                                           .context = 4e3,
                                           .prompts = 3,
                                           .prompt_tokens = 3000,
                                           .prompt_pairs = 2e6}}) {
        const ServingPass pass = replica.pass(load);
        CHECK(sum(replica.drawn_by_part(load, pass.total())) / pass.drawn == test::near(1));
      }
    }
  }
}

TEST_CASE("serving replica: recurrent states are read and written in every step") {
  // 24 Mamba-2 layers of 128 heads of 64, each with a state of 128, in 16 bit.
  ServingReplica replica(bare("nemotron_h_8b"));
  CHECK(replica.state_per_sequence().base_units() == 24 * 128 * 64 * 128 * 2);
  // Whose text is short reads little but states: a sequence more, one more of them.
  const auto attention = [&](int sequences) {
    return decode(replica, sequences, 1).attention.base_units();
  };
  const double rate = 0.8 * replica.spec().node.gpu.hbm_bandwidth.base_units();
  const double states = 2 * replica.state_per_sequence().base_units();
  CHECK(attention(5) - attention(4) == test::near(states / rate).epsilon(0.05));
}

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

TEST_CASE(
    "serving replica: experts' tokens are gathered by all ranks, or sent where NVLink joins") {
  const auto of = [](const char* node, int ranks, ExpertExchange exchange) {
    ServingReplicaSpec spec = bare("llama4_maverick");  // a token has one expert
    spec.node = test::presets().node(node);
    spec.engine.kernels = engine_preset(test::presets(), "tensorrt_llm").serving->kernels;
    spec.engine.expert_exchange = exchange;
    spec.attention_data = spec.expert = ranks;
    spec.weights = spec.experts = WeightFormat::fp8;
    ServingReplica replica(spec);
    return decode(replica, 64 * ranks, 1000).exchange;
  };
  const TransformerShape shape = test::presets().model("llama4_maverick");
  const NodeSpec node = test::presets().node("dgx_h200");
  const auto library = [&](CollectiveOp op, double bytes_of_element) {
    const Bytes all{bytes_of_element * 64 * 8 * shape.experts.width(shape.hidden)};
    return collective_time({op, all, 8, 8}, node.gpu, test::presets().transport("infiniband"),
                           nic_share(node));
  };
  double layers = 0;
  for (const auto& [kind, count] : layer_kinds(shape)) layers += kind.experts ? count : 0;
  const Seconds layer =
      library(CollectiveOp::all_gather, 1) + library(CollectiveOp::reduce_scatter, 2);
  const Seconds gathered = of("dgx_h200", 8, ExpertExchange::gather);
  CHECK(gathered / (layers * layer) == test::near(1));
  CHECK(gathered > of("dgx_h200", 8, ExpertExchange::all_to_all));
  // More ranks than experts of a token, over NVLink of a rack: each token to its experts' ranks.
  CHECK(of("gb200_nvl72", 8, ExpertExchange::gather) ==
        of("gb200_nvl72", 8, ExpertExchange::all_to_all));
}

TEST_CASE("serving replica: each stage of a pipeline shows what its host does not do ahead") {
  const auto host = [](int pipeline) {
    ServingReplicaSpec spec = bare("llama3_8b");
    spec.engine = *engine_preset(test::presets(), "vllm").serving;
    spec.pipeline = pipeline;
    const Seconds without = decode(*std::make_unique<ServingReplica>(spec), 8, 100).host;
    for (KernelLaws& laws : spec.engine.kernels) laws.host.stage = microseconds(4000);
    return decode(*std::make_unique<ServingReplica>(spec), 8, 100).host - without;
  };
  CHECK(host(1) == Seconds{});
  CHECK(host(4) / microseconds(16'000) == test::near(1));
}

TEST_CASE("serving replica: under a cap prompts slow as the clock does, and decoding does not") {
  const auto pass = [](double watts, const PassLoad& load) {
    ServingReplicaSpec spec = bare("llama3_8b");
    spec.node.gpu = capped(spec.node.gpu, Watts{watts});
    return ServingReplica(spec).pass(load);
  };
  const PassLoad decoding{.sequences = 1, .context = 1000};
  CHECK(pass(350, decoding).total() / pass(700, decoding).total() == test::near(1).epsilon(0.01));
  // Long prompts are products: 1 / c as long, with c the clock that the cap leaves.
  const PassLoad prompts{.prompts = 8, .prompt_tokens = 8192, .prompt_pairs = 8 * 1024 * 512};
  const double clock = capped_clock(test::presets().node("dgx_h100").gpu, Watts{350});
  const double slower = pass(350, prompts).total() / pass(700, prompts).total();
  CHECK(clock < 0.8);
  CHECK(slower > 1 + 0.7 * (1 / clock - 1));
  CHECK(slower < 1 / clock);
}

TEST_CASE("kernel laws: experts take their weights, their beginnings, tiles and tokens' rows") {
  KernelLaws laws;
  laws.experts[0] = {.launch = Seconds{1e-6},
                     .bandwidth = 0.5,
                     .efficiency = 0.25,
                     .rows = 0,
                     .activations = 0.1,
                     .expert = {}};
  GpuSpec gpu;
  gpu.hbm_bandwidth = BytesPerSecond{1e12};
  gpu.peak_bf16 = gpu.peak_fp16 = FlopsPerSecond{1e15};
  const auto time = [&](const ExpertsCall& call) {
    return experts_time(laws, gpu, WeightFormat::bf16, call).base_units();
  };
  // Hardly any token: 2 bytes a weight at half of HBM's rate, and a row of 8 x 2 + 8 x 2 + 2 x 2
  // x 4.
  const ExpertsCall few{.met = 10, .copies = 1e-6, .weights = 1e6, .hidden = 8, .ffn = 4};
  CHECK(time(few) == test::near(1e-6 + 2e7 / 0.5e12));
  laws.experts[0].expert = Seconds{1e-7};
  CHECK(time(few) == test::near(1e-6 + 2e7 / 0.5e12 + 10 * 1e-7));
  // So many that only FLOP and rows count; 1,000 rows more of every expert are as many more tokens.
  const ExpertsCall many{.met = 10, .copies = 1e6, .weights = 1e6, .hidden = 8, .ffn = 4};
  const double flop = 2 * 1e6 * 1e6 / 0.25e15, rows = 1e6 * (8 * 4 + 4 * 4) / 0.1e12;
  CHECK(time(many) == test::near(1e-6 + flop + rows).epsilon(1e-4));
  laws.experts[0].rows = 1000;
  CHECK(time(many) == test::near(1e-6 + 1.01 * flop + rows).epsilon(1e-4));
}

TEST_CASE("serving replica: experts that have a token, where some are liked more") {
  // One token has its own experts, however they are liked; very many have all that are liked at
  // all.
  for (const double popularity : {0.0, 0.3, 1.0}) {
    CHECK(experts_met(128, 4, 1, popularity) == test::near(4.0));
    CHECK(experts_met(8, 8, 3, popularity) == 8);
    CHECK(experts_met(128, 4, 1e9, popularity) == test::near(128.0).epsilon(1e-4));
  }
  CHECK(experts_met(128, 4, 2, 0) == test::near(128 * (1 - std::pow(31.0 / 32, 2))));
  CHECK(experts_met(128, 4, 100, 1e-7) == test::near(experts_met(128, 4, 100, 0)).epsilon(1e-5));
  // Beta(1, 3): p is 1/4 on average and its variance 3/80, 0.6 of the mean's square. Of T tokens
  // none goes there with probability 3 / (3 + T).
  for (const double tokens : {1.0, 2.0, 10.0, 1000.0}) {
    CHECK(experts_met(8, 2, tokens, 0.6) == test::near(8 * (1 - 3 / (3 + tokens))));
  }
  // Liked so unlike that all tokens have the same.
  CHECK(experts_met(4, 2, 1000, 1) == test::near(2.0).epsilon(1e-6));
}

TEST_CASE(
    "serving replica: wide_experts are of data-parallel attention, skew of experts on a rank") {
  const auto products = [](int data, int expert, double skew, bool wide) {
    ServingReplicaSpec spec = bare("qwen3_30b_a3b");
    spec.attention_data = data;
    spec.tensor = 8 / data;
    spec.expert = expert;
    for (KernelLaws& laws : spec.engine.kernels) {
      laws.skew = skew;
      laws.wide_experts.reset();
      if (!wide) continue;
      laws.wide_experts = laws.experts;
      for (ExpertsLaw& law : *laws.wide_experts) law.bandwidth *= 0.5, law.efficiency *= 0.5;
    }
    ServingReplica replica(spec);
    return decode(replica, 4096, 1).products.base_units();
  };
  CHECK(products(8, 8, 0.2, true) > 1.3 * products(8, 8, 0.2, false));
  CHECK(products(1, 8, 0.2, true) == products(1, 8, 0.2, false));
  // 128 experts: 16 on each of 8 ranks, 32 on each of 4, where the skew is as it is written.
  const auto longer = [&](int expert) {
    return products(8, expert, 0.4, false) - products(8, expert, 0, false);
  };
  CHECK(longer(8) > 1.2 * longer(4));
  CHECK(products(8, 1, 0.4, false) == products(8, 1, 0, false));
}

}  // namespace lockstep
