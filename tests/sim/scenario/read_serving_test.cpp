// Scenarios with "serving": what is read, what is refused and how, traces and drawn requests.
#include "sim/scenario/read_serving.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/serving_trace.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const std::string kServingSchema = LOCKSTEP_SOURCE_DIR "/scenarios/serving.schema.json";

Json sound_serving() {
  return Json::parse(R"({
    "model": "llama3_70b",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "serving": {
      "load": {"rate": 4, "requests": 2000, "input": {"mean": 1000, "sigma": 0.5},
               "output": {"low": 100, "high": 300}},
      "pools": {"both": {"replicas": 2, "tensor": 8, "engine": "vllm"}},
      "weights": "fp8", "cache": "fp8", "router": "power_of_two",
      "batching": {"pass_tokens": 4096, "most_sequences": 64},
      "objectives": {"ttft": "1 s", "tpot": "30 ms"}, "seed": 5
    }
  })");
}

ServingSpec read_served(const Json& scenario, const std::string& file = "s.json") {
  return read_serving(JsonCursor::parse(file, scenario.dump()), test::presets());
}

std::string served_message(const Json& scenario) {
  try {
    (void)read_served(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

Json with_served(const std::string& pointer, const Json& value) {
  Json out = sound_serving();
  out[Json::json_pointer("/serving" + pointer)] = value;
  return out;
}

void refuses(const Json& scenario, const std::string& part) {
  const std::string message = served_message(scenario);
  CAPTURE(message);
  CHECK(message.find(part) != std::string::npos);
}

std::string trace_message(const std::string& text) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.csv";
  std::ofstream(path) << text;
  try {
    (void)read_request_trace(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("serving: what is read, and draws of the lengths and times that were asked for") {
  const ServingSpec spec = read_served(sound_serving());
  CHECK(spec.gpus() == 16);
  CHECK(spec.pools.at(0).engine.serving->pass_tokens == 4096);
  CHECK(spec.pools.at(0).engine.serving->most_sequences == 64);
  CHECK(spec.weights == WeightFormat::fp8);
  CHECK(spec.cache_bytes == 1);
  double input = 0, low = 1e9, high = 0;
  for (const ServedRequest& r : spec.requests) {
    input += r.input;
    low = std::min<double>(low, r.output);
    high = std::max<double>(high, r.output);
  }
  REQUIRE(spec.requests.size() == 2000);
  CHECK(input / 2000 == test::near(1000).epsilon(0.03));
  CHECK(low >= 100);
  CHECK(high <= 300);
  const double span = to_seconds(spec.requests.back().arrival).base_units();
  CHECK(span == test::near(500).epsilon(0.06));
  CHECK(read_served(sound_serving()).requests.back().arrival == spec.requests.back().arrival);
}

TEST_CASE("serving: arrivals of any variation keep their rate") {
  for (const double variation : {0.0, 0.5, 3.0}) {
    CAPTURE(variation);
    Json scenario = with_served("/load/burstiness", variation);
    scenario["serving"]["load"]["requests"] = 100'000;
    const ServingSpec spec = read_served(scenario);
    const double span = to_seconds(spec.requests.back().arrival).base_units();
    CHECK(span == test::near(25'000).epsilon(0.03));
  }
}

TEST_CASE("serving: the mean length that a load is said to have is that of what is drawn") {
  Json scenario = with_served("/load/output", {{"mean", 211}, {"sigma", 1.2}, {"most", 400}});
  scenario["serving"]["load"]["requests"] = 400'000;
  const ServingSpec spec = read_served(scenario);
  double tokens = 0;
  for (const ServedRequest& r : spec.requests) tokens += r.output;
  // 211 Phi(-0.067) + 400 Phi(-1.133)
  CHECK(tokens / 400'000 == test::near(151.3).epsilon(0.005));
  CHECK(spec.load.find("answers of 151 on average (log-normal, sigma 1.2, cut at 400; without "
                       "that 211)") != std::string::npos);
}

TEST_CASE("serving: formats that are left open are those of the checkpoint, and said") {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& quantisation, const Json& weights) {
    const std::string config = folder.write("config.json", R"({"model_type": "mixtral",
        "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
        "num_local_experts": 8, "num_experts_per_tok": 2)" + quantisation +
                                                               "}");
    Json scenario = sound_serving();
    scenario["model"] = {{"huggingface", config}};
    scenario["serving"].erase("weights");
    if (!weights.is_null()) scenario["serving"]["weights"] = weights;
    return read_served(scenario, folder.path() + "/s.json");
  };
  const auto says = [](const ServingSpec& spec, const std::string& words) {
    return std::ranges::any_of(spec.assumptions, [&](const std::string& text) {
      return text.find(words) != std::string::npos;
    });
  };
  const ServingSpec plain = read("", nullptr);
  CHECK(plain.weights == WeightFormat::bf16);
  CHECK(says(plain, "serving: weights bf16, experts bf16 (not given)"));
  const std::string mxfp4 =
      R"(, "quantization_config": {"quant_method": "mxfp4",
                                   "modules_to_not_convert": ["self_attn"]})";
  const ServingSpec quantised = read(mxfp4, nullptr);
  CHECK(quantised.weights == WeightFormat::bf16);
  CHECK(quantised.experts == WeightFormat::fp4);
  CHECK(says(quantised, "(not given; as the config.json's quantization_config, mxfp4)"));
  // What the scenario says holds, for experts too.
  const ServingSpec said = read(mxfp4, "fp8");
  CHECK(said.weights == WeightFormat::fp8);
  CHECK(said.experts == WeightFormat::fp8);
  CHECK_FALSE(says(said, "serving: weights"));
  CHECK(says(read(R"(, "quantization_config": {"quant_method": "gptq", "bits": 3})", nullptr),
             "of the config.json's quantization_config, gptq, there are no laws"));
}

TEST_CASE("serving: how long repairs and looks at the load take is said where it is not given") {
  const auto times = [](const ServingSpec& spec) {
    std::vector<std::string> out;
    for (const std::string& text : spec.assumptions) {
      if (text.starts_with("failures.") || text.starts_with("both.autoscale.")) out.push_back(text);
    }
    return out;
  };
  Json scenario = sound_serving();
  CHECK(times(read_served(scenario)).empty());
  scenario["serving"]["failures"] = {{"gpu_mean_time", "30 d"}};
  scenario["serving"]["pools"]["both"]["autoscale"] = {{"least", 1}, {"target", 8}};
  CHECK(times(read_served(scenario)) ==
        std::vector<std::string>{
            "both.autoscale.check: 10 s (not given)", "both.autoscale.calm: 300 s (not given)",
            "failures.repair: 3600 s (not given)", "failures.detect: 10 s (not given)"});
  scenario["serving"]["failures"]["repair"] = "1 h";
  scenario["serving"]["pools"]["both"]["autoscale"]["calm"] = "5 min";
  CHECK(times(read_served(scenario)) ==
        std::vector<std::string>{"both.autoscale.check: 10 s (not given)",
                                 "failures.detect: 10 s (not given)"});
}

TEST_CASE("serving: mistakes name the place and what is allowed") {
  refuses(with_served("/pools/both/tensor", 6), "a divisor of the 64 heads of llama3_70b");
  Json uneven = with_served("/pools/both/tensor", 4);
  uneven["model"] = Json{{"preset", "llama3_70b"}, {"heads", 24}, {"kv_heads", 6}};
  refuses(uneven, "a divisor or a multiple of the 6 key-value heads of llama3_70b");
  Json recurs = with_served("/pools/both/tensor", 8);
  recurs["model"] = Json{{"preset", "llama3_70b"}, {"layers", 2}, {"pattern", "rr"}};
  recurs["model"]["gated_recurrence"] = Json{{"width", 1000}, {"blocks", 20}};
  recurs["model"]["kinds"] =
      Json::array({Json{{"letter", "r"}, {"mixer", "gated_recurrence"}, {"ffn", 64}}});
  refuses(recurs, "a divisor of the 20 blocks of gated recurrences of llama3_70b");
  Json lent = with_served("/pools/both/pipeline", 2);
  lent["model"] = "hunyuan_large";
  refuses(lent, "1, as the model has layers that take their keys and values from others");
  Json wide = with_served("/pools/both/tensor", 1);
  wide["serving"]["weights"] = "bf16";
  refuses(wide, "a layout that fits: a GPU would hold 131");
  refuses(
      with_served("/pools/both/replicas", 3),
      "#/serving/pools/both: found 24 GPUs (both: 3 replicas of 8 GPUs); allowed: at most the 16 "
      "GPUs of the cluster, not 24, as with replicas 2 or 3 nodes");
  refuses(with_served("/pools/both/expert", 2), "llama3_70b has no experts");
  refuses(with_served("/pools/prefill", Json{{"tensor", 8}}),
          "either \"both\", or \"prefill\" and \"decode\"");
  refuses(with_served("/weights", "nvfp4"), "Did you mean \"fp4\"?");
  refuses(with_served("/router", "round_robbin"), "Did you mean \"round_robin\"?");
  refuses(with_served("/load/clients", 4), "either \"rate\" or \"clients\"");
  refuses(with_served("/load/think", "1 s"), "no such key without \"clients\"");
  Json turns = with_served("/load/conversation", Json{{"turns", 2}});
  turns["serving"]["load"].erase("rate");
  refuses(turns, "no such key without \"rate\"");
  refuses(with_served("/load/prefix", Json{{"count", 2}}), "tokens");
  refuses(with_served("/load/output/low", 400), "at most \"high\"");
  refuses(with_served("/load/input/mean", 0), "found 0");
  refuses(with_served("/load/input/most", 999),
          "/serving/load/input/most: found 999; allowed: at least the mean, 1000");
  refuses(with_served("/load/trace", "no-such.csv"), "no such key beside \"trace\"");
  refuses(with_served("/pools/both/engine", "vlm"), "Did you mean \"vllm\"?");
  Json alone = with_served("/load", Json{{"trace", "no-such.csv"}});
  refuses(alone, "LOCKSTEP_DATA names");
  Json training = sound_serving();
  training["run"] = Json{{"reliability", "llama3_54_days"}};
  refuses(training, "a pool that serves trains nothing");
}

TEST_CASE("serving: more requests than memory holds are refused before they are drawn") {
  refuses(with_served("/load/requests", 100'000'000),
          "s.json#/serving/load/requests: found 100000000; allowed: a whole number from 1 to "
          "40000000");
  // Of clients the usual number, ten each.
  Json closed = with_served("/load/clients", 5'000'000);
  closed["serving"]["load"].erase("rate");
  closed["serving"]["load"].erase("requests");
  refuses(closed,
          "s.json#/serving/load/clients: found 5000000; allowed: at most 4,000,000 clients "
          "of 10 requests each");
}

TEST_CASE("serving: traces in the forms that people have") {
  const test::TemporaryFolder folder;
  const auto read_as = [&](const std::string& text) {
    const std::string path = folder.path() + "/trace";
    std::ofstream(path) << text;
    return read_request_trace(path);
  };
  for (const char* text :
       {"arrival_s,input_tokens,output_tokens\n7.5,100,20\n9,200,30\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.0000000,100,20\n"
        "2023-11-17 00:00:00.5000000,200,30\n",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,100,20,120,API log\n6.5,GPT-4,200,30,230,API log\n",
        "{\"timestamp\": 0, \"input_length\": 100, \"output_length\": 20, \"hash_ids\": [0]}\n"
        "{\"timestamp\": 1500, \"input_length\": 200, \"output_length\": 30}\n"}) {
    CAPTURE(text);
    const std::vector<ServedRequest> requests = read_as(text);
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].arrival == 0);
    CHECK(requests[1].arrival == 1'500'000'000);
    CHECK(requests[1].input == 200);
    CHECK(requests[1].output == 30);
  }
}

TEST_CASE("serving: a trace of clients' rates is drawn from, in the seed of the scenario") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/clients.csv")
      << "client,window_s,requests_per_s,interarrival_cv,input_p50,input_p90,input_p99,output_p50,"
         "output_p90,output_p99\na,0,4,2,100,200,300,10,20,30\n";
  const auto spec_of = [&](int requests, int seed) {
    Json scenario = with_served("/load", Json{{"trace", "clients.csv"}});
    if (requests > 0) scenario["serving"]["load"]["requests"] = requests;
    scenario["serving"]["seed"] = seed;
    return read_served(scenario, folder.path() + "/s.json");
  };
  const ServingSpec all = spec_of(0, 5);
  CHECK(all.requests.size() > 1000);  // 600 s of 4 a second
  CHECK(spec_of(100, 5).requests.size() == 100);
  CHECK(spec_of(100, 5).load ==
        "100 requests of the trace clients.csv, drawn from its clients' rates");
  CHECK(spec_of(0, 6).requests[1].arrival != all.requests[1].arrival);
}

TEST_CASE("serving: blocks of a trace with equal ids behind equal ones are the same beginning") {
  const test::TemporaryFolder folder;
  for (
      const char* text :
      {"arrival_s,input_tokens,output_tokens,prefix_blocks\n0,1100,1,7 8 9\n1,1200,1,7 8 5\n"
       "2,900,1,8 9\n3,600,1,\n",
       "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 1, \"hash_ids\": [7, 8, 9]}\n"
       "{\"timestamp\": 1, \"input_length\": 1200, \"output_length\": 1, \"hash_ids\": [7, 8, 5]}\n"
       "{\"timestamp\": 2, \"input_length\": 900, \"output_length\": 1, \"hash_ids\": [8, 9]}\n"
       "{\"timestamp\": 3, \"input_length\": 600, \"output_length\": 1}\n"}) {
    const std::string path = folder.path() + "/blocks";
    std::ofstream(path) << text;
    std::vector<PrefixNode> tree;
    const std::vector<ServedRequest> requests = read_request_trace(path, &tree);
    const auto node = [&](std::int32_t of) { return tree[static_cast<std::size_t>(of)]; };
    REQUIRE(tree.size() == 6);
    CHECK(node(requests[0].prefix).tokens == 1100);
    CHECK(node(requests[0].prefix).parent == node(requests[1].prefix).parent);
    CHECK(node(node(requests[0].prefix).parent).tokens == 1024);
    CHECK(node(requests[2].prefix).tokens == 900);
    CHECK(requests[3].prefix < 0);
  }
}

TEST_CASE("serving: a trace that cannot be served names its row") {
  const std::string heading = "arrival_s,input_tokens,output_tokens\n";
  const auto says = [](const std::string& text, const std::string& part) {
    const std::string message = trace_message(text);
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  says(heading + "1,10,10\n0.5,10,10\n",
       "row 2: found an arrival 0.5 s before that of the row above");
  says(heading + "0,0,10\n", "row 1: found prompt of 0 tokens; allowed: 1 to 16777216 tokens");
  says(heading + "0,10,0\n", "row 1: found answer of 0 tokens");
  says(heading + "0,20000000,10\n", "prompt of 20000000 tokens");
  says(heading + "x,10,10\n", "arrival_s \"x\"");
  says(heading, "no request");
  says("when,input_tokens,output_tokens\n1,1,1\n", "no column \"arrival_s\"");
  says("arrival_s,input_tokens,output_tokens,prefix_blocks\n0,9,9,1 x\n", "prefix_blocks \"x\"");
  says("{\"timestamp\": 0}\n", "no number \"input_length\"");
}

TEST_CASE("serving: trainings on other nodes of the fabric, and where the pools lie") {
  Json scenario = sound_serving();
  scenario["cluster"]["nodes"] = 4;
  scenario["serving"]["pools"] = {{"prefill", {{"tensor", 8}}}, {"decode", {{"tensor", 8}}}};
  scenario["serving"]["nodes"] = {{"count", 2}, {"stride", 2}};
  scenario["jobs"] = Json::parse(R"([{"name": "training", "nodes": [1, 3], "model": "llama3_8b",
    "parallelism": {"data": 16}, "batch": {"sequences": 16, "tokens": 8192}}])");
  const ServingSpec spec = read_served(scenario);
  CHECK(spec.nodes == std::vector<int>{0, 2});
  REQUIRE(spec.beside);
  CHECK(spec.beside->jobs.size() == 1);
  CHECK(spec.beside->jobs[0].nodes == std::vector<int>{1, 3});
  const auto changed = [&](const std::string& pointer, const Json& value) {
    Json out = scenario;
    out[Json::json_pointer(pointer)] = value;
    return out;
  };
  refuses(changed("/jobs/0/nodes", Json::array({1, 2})),
          "s.json#/jobs/0/nodes: found an array; allowed: nodes on which nothing is served; node 2 "
          "serves");
  refuses(changed("/jobs", Json::array()),
          "s.json#/jobs: found an array; allowed: at least one job");
  refuses(changed("/jobs/0/batchs", 1), "s.json#/jobs/0/batchs");
  refuses(changed("/serving/nodes", Json::array({0})),
          "allowed: at most the 8 GPUs of the service's nodes, not 16");
  refuses(changed("/serving/nodes", Json::array({0, 4})), "s.json#/serving/nodes/1");
  refuses(changed("/serving/pools", {{"both", {{"tensor", 8}}}}),
          "unless there are two pools: what one pool sends stays in replicas");
  refuses(changed("/serving/load/requests", 300'000), "at most 200000 requests beside \"jobs\"");
  Json nowhere = scenario;
  nowhere["serving"].erase("nodes");
  refuses(nowhere, "serving.nodes beside it: which nodes the pools fill");
}

TEST_CASE(
    "serving: memory behind the caches is held against the node, the engine and the batching") {
  CHECK_FALSE(read_served(sound_serving()).tiers);
  const Json remote{{"memory", "40 TB"}, {"bandwidth", "100 GB/s"}};
  const Json host{{"memory", "1.5 TB"}};
  const ServingSpec spec = read_served(with_served("/cache_tiers", {{"host", host}}));
  REQUIRE(spec.tiers);
  CHECK(spec.tiers->host->memory == Bytes{1.5e12});
  CHECK_FALSE(spec.tiers->remote);
  CHECK(spec.tiers->load == CacheLoad::asynchronous);
  CHECK(std::ranges::count(spec.assumptions,
                           "cache_tiers: load asynchronous (not given; as vllm does)") == 1);
  CHECK(std::ranges::count(spec.assumptions,
                           "cache_tiers: written when the GPUs let go of it (write_back)") == 1);
  CHECK(std::ranges::count(spec.assumptions, "cache_tiers: reuse fastest (not given)") == 1);
  CHECK(std::ranges::count(spec.assumptions, "cache_tiers: preemption fastest (not given)") == 1);
  const ServingSpec both = read_served(
      with_served("/cache_tiers", {{"host", host}, {"remote", remote}, {"load", "by_layer"}}));
  CHECK(both.tiers->load == CacheLoad::by_layer);
  CHECK(both.tiers->remote->bandwidth == gigabytes_per_second(100));

  const auto refuses = [](const Json& scenario, const std::string& text) {
    const std::string message = served_message(scenario);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  const Json drives{{"memory", "30 TB"}, {"bandwidth", "40 GB/s"}};
  CHECK(spec.tiers->reuse == CacheReuse::fastest);
  CHECK(spec.tiers->preemption == CachePreemption::fastest);
  const ServingSpec disk = read_served(
      with_served("/cache_tiers",
                  {{"host", host}, {"disk", drives}, {"reuse", "load"}, {"preemption", "swap"}}));
  CHECK(disk.tiers->disk->memory == Bytes{3e13});
  CHECK(disk.tiers->disk->bandwidth == gigabytes_per_second(40));
  CHECK(disk.tiers->disk->latency == Seconds{1e-4});
  CHECK(disk.tiers->reuse == CacheReuse::load);
  CHECK(disk.tiers->preemption == CachePreemption::swap);
  CHECK(std::ranges::none_of(disk.assumptions, [](const std::string& each) {
    return each.find("reuse") != std::string::npos || each.find("preemption") != std::string::npos;
  }));
  refuses(with_served("/cache_tiers", Json::object()),
          "allowed: \"host\", \"disk\", \"remote\" or several of them");
  refuses(with_served("/cache_tiers", {{"disk", drives}, {"preemption", "swap"}}),
          "s.json#/serving/cache_tiers/preemption: ");
  refuses(with_served("/cache_tiers", {{"disk", {{"memory", "3 TB"}}}}), "bandwidth");
  refuses(with_served("/cache_tiers", {{"disk", drives}, {"reuse", "always"}}),
          "fastest, load, recompute");
  const Json large = with_served("/cache_tiers", {{"host", {{"memory", "3 TB"}}}});
  refuses(large, "s.json#/serving/cache_tiers/host/memory: ");
  refuses(large, "allowed: at most the 2000 GB of a node's host");
  refuses(with_served("/cache_tiers", {{"remote", {{"memory", "3 TB"}}}}), "bandwidth");
  refuses(with_served("/cache_tiers", {{"host", host}, {"load", "later"}}),
          "asynchronous, by_layer, blocking");
  Json off = with_served("/cache_tiers", {{"host", host}});
  off["serving"]["batching"]["prefix_cache"] = false;
  refuses(off, "no such key where \"batching\" has \"prefix_cache\": false");
}

// To write it: LOCKSTEP_WRITE_SCHEMA=1 build/tests/lockstep_tests -tc='serving.schema.json*'
TEST_CASE("serving.schema.json is what the reader declares") {
  const std::string text = write_json(serving_schema(test::presets()), 2) + "\n";
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (std::getenv("LOCKSTEP_WRITE_SCHEMA") != nullptr) std::ofstream(kServingSchema) << text;
  CHECK(read_text_file(kServingSchema) == text);
}

}  // namespace lockstep
