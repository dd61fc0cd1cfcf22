// `lockstep run` of scenarios with "serving".
#include "tools/lockstep/serving/run_serving.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_serving.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

const std::string kServingFolder = LOCKSTEP_SOURCE_DIR "/scenarios/serving/";
const std::string kChatScenario = kServingFolder + "llama3-70b-h100-chat.json";
const std::string kTwoPools = kServingFolder + "deepseek-r1-b200-pools.json";
const std::string kScaling = kServingFolder + "llama3-8b-h100-scaling.json";
const std::string kConversations = kServingFolder + "llama3-70b-h100-conversations.json";
const std::string kDocuments = kServingFolder + "llama3-70b-h100-documents.json";
const std::string kBeside = kServingFolder + "beside-training.json";
const std::string kClosedLoop = kServingFolder + "llama3-70b-b200-clients.json";

nlohmann::json served(std::vector<std::string> args) {
  args.insert(args.begin(), "run");
  args.insert(args.end(), {"--format", "json"});
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

double number(const nlohmann::json& answer, const std::string& pointer) {
  return answer.at(nlohmann::json::json_pointer(pointer)).get<double>();
}

}  // namespace

TEST_CASE("lockstep run: every shipped serving scenario answers, and its shares add up") {
  for (const std::string& file :
       {kChatScenario, kTwoPools, kClosedLoop, kConversations, kScaling, kBeside}) {
    CAPTURE(file);
    const nlohmann::json answer = served({file, "--set", "serving.load.requests=300"});
    CHECK(answer["kind"] == "serving");
    CHECK(answer["served"] == 300);
    double shares = 0;
    for (const auto& bucket : answer["waterfall"]) shares += bucket["share"].get<double>();
    CHECK(shares == doctest::Approx(1));
    CHECK(number(answer, "/ttft_s/p50") <= number(answer, "/ttft_s/p99"));
    CHECK(number(answer, "/ttft_s/mean") < number(answer, "/e2e_s/mean"));
  }
}

TEST_CASE("lockstep run: what the conversations' scenario expects of its cache, it gets") {
  const nlohmann::json claim = served({kConversations}).at("claim");
  REQUIRE(claim.at("bounds").size() == 2);
  for (const nlohmann::json& bound : claim.at("bounds")) CHECK(bound.at("kept") == true);
  const Ran without =
      lockstep_with({"run", kConversations, "--set", "serving.batching.prefix_cache=false"});
  CHECK(without.exit == Exit::assertion_missed);
  CHECK(without.err.starts_with("expectation missed: prefix_found_share>0.9: "));
}

TEST_CASE("lockstep run: long documents are found in all tiers, and nothing replaces these") {
  const nlohmann::json answer = served({kDocuments});
  for (const nlohmann::json& bound : answer.at("claim").at("bounds")) {
    CHECK(bound.at("kept") == true);
  }
  const nlohmann::json& tiers = answer.at("cache_tiers").at("tiers");
  REQUIRE(tiers.size() == 3);
  double found = number(answer, "/cache_tiers/gpu_found_share");
  for (const nlohmann::json& tier : tiers) {
    CHECK(number(tier, "/found_share") > 0.01);
    found += number(tier, "/found_share");
  }
  CHECK(tiers[1]["name"] == "disk");
  CHECK(found == doctest::Approx(number(answer, "/prefix_found_share")));
  for (const char* change : {"serving.cache_tiers.reuse=recompute",
                             R"(serving.cache_tiers={"host": {"memory": "1 TB"}})"}) {
    CAPTURE(change);
    const Ran ran = lockstep_with({"run", kDocuments, "--set", change});
    CHECK(ran.exit == Exit::assertion_missed);
    CHECK(ran.err.starts_with("expectation missed: prefix_found_share>0.9: "));
  }
}

TEST_CASE("lockstep run: prompts on one kind of GPU, decoding on another, each by its name") {
  const std::string file = kServingFolder + "llama3-70b-h100-a100-pools.json";
  const nlohmann::json answer = served({file});
  for (const nlohmann::json& bound : answer.at("claim").at("bounds")) {
    CHECK(bound.at("kept") == true);
  }
  CHECK(answer["pools"][0]["node"] == "dgx_h100");
  CHECK(answer["pools"][1]["node"] == "dgx_a100_80gb");
  CHECK(number(answer, "/rent/usd") ==
        doctest::Approx(number(answer, "/pools/0/rent_usd") + number(answer, "/pools/1/rent_usd")));
  const Ran table = lockstep_with({"run", file});
  REQUIRE_MESSAGE(table.exit == Exit::ok, table.err);
  for (const char* word : {"on dgx_h100", "on dgx_a100_80gb", "(prefill)", "1.20", "(decode)"}) {
    CAPTURE(word);
    CHECK(table.out.find(word) != std::string::npos);
  }
}

TEST_CASE("lockstep run: memory behind small caches finds what these have let go of") {
  // A cache of 36,000 tokens a replica, for conversations that hold far more together.
  std::vector<std::string> args{kConversations,
                                "--set",
                                "serving.load.requests=3000",
                                "--set",
                                "serving.batching.memory_fraction=0.28",
                                "--set",
                                "expect.that=[\"served>0\"]"};
  const nlohmann::json without = served(args);
  CHECK_FALSE(without.contains("cache_tiers"));
  const auto with = [&](const std::string& memory) {
    std::vector<std::string> changed = args;
    changed.insert(changed.end(), {"--set", "serving.cache_tiers.host.memory=" + memory});
    return served(changed);
  };
  const nlohmann::json none = with("0 GB"), all = with("1.5 TB");
  CHECK(none["ttft_s"] == without["ttft_s"]);
  CHECK(none["e2e_s"] == without["e2e_s"]);
  CHECK(number(none, "/cache_tiers/loads") == 0);
  CHECK(number(all, "/cache_tiers/loads") > 0);
  CHECK(number(all, "/prefix_found_share") > number(none, "/prefix_found_share"));
  const nlohmann::json& host = all["cache_tiers"]["tiers"][0];
  CHECK(host["name"] == "host");
  CHECK(
      number(all, "/prefix_found_share") ==
      doctest::Approx(number(all, "/cache_tiers/gpu_found_share") + number(host, "/found_share")));
  CHECK(number(host, "/written_bytes") ==
        doctest::Approx(number(host, "/left_bytes") + number(host, "/held_bytes")));
  // Four nodes of it, half of each a replica's.
  CHECK(number(host, "/capacity_bytes") == doctest::Approx(4 * 1.5e12));
}

TEST_CASE("lockstep run: a service's page has what the memory behind its caches held") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/serving.html";
  const auto written = [&](std::vector<std::string> changes) {
    std::vector<std::string> args{"run",   kConversations,
                                  "--set", "serving.load.requests=1000",
                                  "--set", "serving.batching.memory_fraction=0.28",
                                  "--set", "expect.that=[\"served>0\"]"};
    for (const std::string& change : changes) args.insert(args.end(), {"--set", change});
    args.insert(args.end(), {"--report", page});
    const Ran ran = lockstep_with(args);
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return read_text_file(page);
  };
  CHECK(written({}).find("Memory behind the caches") == std::string::npos);
  const std::string text =
      written({"serving.cache_tiers.host.memory=200 GB",
               R"(serving.cache_tiers.remote={"memory": "40 TB", "bandwidth": "100 GB/s"})"});
  CHECK(text.find("Memory behind the caches") != std::string::npos);
  CHECK(text.find(" in host memory, ") != std::string::npos);
  CHECK(text.find("host memory</td>") != std::string::npos);
  CHECK(text.find("remote pool</td>") != std::string::npos);
  CHECK(text.find("40,000\u00a0GB") != std::string::npos);
}

TEST_CASE("lockstep run: more load on the same replicas, later tokens") {
  const std::vector<std::string> few{kChatScenario, "--set", "serving.load.requests=2000"};
  std::vector<std::string> many = few;
  many.insert(many.end(), {"--set", "serving.load.rate=60"});
  const nlohmann::json light = served(few), heavy = served(many);
  CHECK(number(heavy, "/tpot_s/mean") > number(light, "/tpot_s/mean"));
  CHECK(number(heavy, "/ttft_s/p99") > number(light, "/ttft_s/p99"));
  CHECK(number(heavy, "/attained_share") <= number(light, "/attained_share"));
  CHECK(number(heavy, "/output_tokens_per_s") > number(light, "/output_tokens_per_s"));
}

TEST_CASE("lockstep run: a load that cannot be served, or is over soon, is said to be") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/serving.html";
  const auto words = [&](const char* change) {
    const Ran ran = lockstep_with({"run", kChatScenario, "--set", change, "--report", page});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return ran.out;
  };
  const auto course = [](const char* change) {
    return served({kChatScenario, "--set", change})["load_course"];
  };
  CHECK(words("serving.load.rate=400").find("more and more wait") != std::string::npos);
  CHECK(read_text_file(page).find("more and more wait") != std::string::npos);
  CHECK(course("serving.load.rate=400") == "growing");
  CHECK(words("serving.load.requests=60").find("The load is short") != std::string::npos);
  CHECK(course("serving.load.requests=60") == "short");
  CHECK(course("serving.load.rate=4") == "steady");
  CHECK_FALSE(served({kClosedLoop}).contains("load_course"));
}

TEST_CASE("lockstep run: keys and values take their time between two pools") {
  const nlohmann::json by_layer = served({kTwoPools, "--set", "serving.load.requests=300"});
  const nlohmann::json whole = served(
      {kTwoPools, "--set", "serving.load.requests=300", "--set", "serving.transfer.mode=whole"});
  CHECK(number(by_layer, "/transfer_s") < number(whole, "/transfer_s"));
  // 576 elements of a byte in each of 61 layers.
  CHECK(number(whole, "/transferred_bytes") ==
        doctest::Approx(number(whole, "/input_tokens") * 61 * 576));
}

TEST_CASE("lockstep run: an objective that nothing can meet is said, not hidden") {
  const Ran ran = lockstep_with({"run", kClosedLoop, "--set", "serving.objectives.ttft=1 us"});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("no request keeps them") != std::string::npos);
}

TEST_CASE("lockstep run: a row for each request") {
  const Ran ran =
      lockstep_with({"run", kClosedLoop, "--set", "serving.load.requests=3", "--format", "csv"});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.starts_with("arrival_s,input_tokens,output_tokens,scheduled_s,first_token_s,"));
  CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 4);
}

TEST_CASE("lockstep run: a page of what requests see, where time goes, and the load over time") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/serving.html";
  const Ran ran =
      lockstep_with({"run", kTwoPools, "--set", "serving.load.requests=300", "--report", page});
  CHECK(ran.exit == Exit::ok);
  const std::string html = read_text_file(page);
  // While nothing arrives there is no first token, which is not one after 0 s.
  const std::size_t name = html.find(R"("name":"Time to the first token, by arrival")");
  REQUIRE(name != std::string::npos);
  const std::size_t data = html.rfind(R"("data":[)", name);
  CHECK(html.substr(data, name - data).find(",null]") != std::string::npos);
  for (const char* part : {"to the first token (TTFT)", "Where the GPU time goes", "prefill",
                           "Requests being served or waiting", "of 300 requests served",
                           "What was simulated", "Pool prefill", "4 x TP 4, EP 4, sglang",
                           "weights fp8, experts fp4, cache fp8", ">4 x dgx_<wbr>b200, "}) {
    CHECK_MESSAGE(html.find(part) != std::string::npos, part);
  }
  REQUIRE(
      lockstep_with({"run", kChatScenario, "--set", "serving.load.requests=300", "--report", page})
          .exit == Exit::ok);
  const std::string powered = read_text_file(page);
  for (const char* part :
       {"Power and energy", "Power of the site", "A million tokens of answers",
        "weights fp8, cache fp8", "TTFT 1.00\u00a0s, TPOT 50.0\u00a0ms, for 99.0\u00a0% of them"}) {
    CHECK_MESSAGE(powered.find(part) != std::string::npos, part);
  }
  // Answers of a token each have no time per token.
  const Ran short_answers =
      lockstep_with({"run", kChatScenario, "--set", "serving.load.requests=5", "--set",
                     R"(serving.load.output={"mean": 1})", "--report", page});
  CHECK_MESSAGE(short_answers.exit == Exit::ok, short_answers.err);
}

TEST_CASE("lockstep run: what serving draws and costs, owned and rented") {
  const std::vector<std::string> few{kChatScenario, "--set", "serving.load.requests=300"};
  const nlohmann::json answer = served(few);
  CHECK(number(answer, "/power/joules_per_output_token") * number(answer, "/output_tokens") ==
        doctest::Approx(number(answer, "/power/energy_j")));
  CHECK(number(answer, "/power/gpu_mean_w") < number(answer, "/power/gpu_limit_w"));
  CHECK(number(answer, "/usd_per_million_output_tokens") ==
        number(answer, "/owned/usd_per_million_output_tokens"));
  CHECK(answer["billed"] == "owned");
  std::vector<std::string> tariff = few;
  tariff.insert(tariff.end(), {"--set", R"(cost={"usd_per_kwh": 0.1})"});
  const nlohmann::json rented = served(tariff);
  CHECK(rented["billed"] == "rent");
  CHECK_FALSE(rented.contains("owned"));
  CHECK(number(rented, "/usd_per_million_output_tokens") ==
        number(rented, "/rent/usd_per_million_output_tokens"));
  CHECK(number(rented, "/partial/usd") ==
        doctest::Approx(number(rented, "/power/energy_j") / 3.6e6 * 0.1));
  std::vector<std::string> dearer = few;
  dearer.insert(dearer.end(), {"--set", "price.usd_per_gpu_hour=5"});
  CHECK(number(served(dearer), "/rent/usd") == doctest::Approx(2 * number(answer, "/rent/usd")));
  const Ran ran = lockstep_with({"run", kClosedLoop, "--set", "cost.usd_per_gpu=1"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("no such key, unless there is \"power\"") != std::string::npos);
  const Ran capped = lockstep_with({"run", kChatScenario, "--set", "power.cap=400 W"});
  CHECK(capped.exit == Exit::bad_input);
  CHECK(capped.err.find("#/power/cap") != std::string::npos);
}

TEST_CASE("lockstep run: a timeline of requests, and what a scrape would read") {
  const test::TemporaryFolder folder;
  const std::string trace = folder.path() + "/t.json", metrics = folder.path() + "/m.prom";
  REQUIRE(lockstep_with({"run", kClosedLoop, "--set", "serving.load.requests=7", "--trace", trace,
                         "--metrics", metrics})
              .exit == Exit::ok);
  const nlohmann::json events = nlohmann::json::parse(read_text_file(trace)).at("traceEvents");
  int begun = 0, ended = 0, decoded = 0;
  for (const auto& event : events) {
    begun += event["ph"] == "b";
    ended += event["ph"] == "e";
    decoded += event["ph"] == "b" && event["name"] == "decode";
  }
  CHECK(begun == ended);
  CHECK(decoded == 7);
  const std::string text = read_text_file(metrics);
  for (const char* line : {"vllm:time_to_first_token_seconds_bucket{model_name=\"llama3_70b\",",
                           "vllm:e2e_request_latency_seconds_count{model_name=\"llama3_70b\"} 7",
                           "vllm:generation_tokens_total{", "# EOF"}) {
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
  }
  CHECK(lockstep_with({"run", kClosedLoop, "--trace", folder.path() + "/t.pftrace"}).exit ==
        Exit::bad_input);
  const Ran other = lockstep_with(
      {"run", LOCKSTEP_SOURCE_DIR "/scenarios/bloom-176b.json", "--metrics", metrics});
  CHECK(other.exit == Exit::bad_input);
  CHECK(other.err.find("--metrics is for a scenario with \"queue\" or \"serving\"") !=
        std::string::npos);
  CHECK(other.err.find("--power-trace FILE.om") != std::string::npos);
}

TEST_CASE("lockstep run: what a scrape of vLLM and LMCache would read of the cache tiers") {
  const test::TemporaryFolder folder;
  const std::string metrics = folder.path() + "/m.prom";
  const std::vector<std::string> args{"run", kDocuments, "--metrics", metrics, "--format"};
  std::vector<std::string> json = args, csv = args;
  json.emplace_back("json");
  csv.emplace_back("csv");
  const Ran ran = lockstep_with(json);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json answer = nlohmann::json::parse(ran.out);
  const std::string text = read_text_file(metrics);
  const auto read = [&](const std::string& name, const std::string& labels = {}) {
    const std::string line = "\n" + name + "{model_name=\"llama3_70b\"" + labels + "} ";
    const std::size_t at = text.find(line);
    REQUIRE_MESSAGE(at != std::string::npos, line);
    return std::stod(text.substr(at + line.size()));
  };
  const auto source = [&](const std::string& name) {
    return read("vllm:prompt_tokens_by_source_total", ",source=\"" + name + "\"");
  };
  const double asked = read("vllm:prefix_cache_queries_total");
  CHECK(source("local_compute") + source("local_cache_hit") + source("external_kv_transfer") ==
        asked);
  CHECK(source("local_cache_hit") == read("vllm:prefix_cache_hits_total"));
  CHECK(source("external_kv_transfer") == read("vllm:external_prefix_cache_hits_total"));
  CHECK(read("lmcache:num_hit_tokens_total") == read("vllm:external_prefix_cache_hits_total"));
  CHECK(read("vllm:prompt_tokens_cached_total") / asked ==
        doctest::Approx(number(answer, "/prefix_found_share")));
  const nlohmann::json& tiers = answer.at("cache_tiers").at("tiers");
  double hits = 0;
  for (const nlohmann::json& tier : tiers) {
    const std::string label = ",tier=\"" + tier.at("name").get<std::string>() + "\"";
    hits += read("lockstep:cache_tier_hit_tokens_total", label);
    CHECK(read("lockstep:cache_tier_load_bytes_total", label) ==
          doctest::Approx(number(tier, "/loaded_bytes")));
  }
  CHECK(hits == source("external_kv_transfer"));
  CHECK(read("vllm:kv_offload_load_bytes_total") ==
        doctest::Approx(number(tiers[0], "/loaded_bytes")));
  CHECK(read("lmcache:local_cache_usage") == doctest::Approx(number(tiers[0], "/held_bytes")));
  CHECK(read("lmcache:local_storage_usage") == doctest::Approx(number(tiers[1], "/held_bytes")));
  CHECK(read("lmcache:num_remote_read_bytes_total") ==
        doctest::Approx(number(tiers[2], "/loaded_bytes")));
  const Ran rows = lockstep_with(csv);
  CHECK(rows.out.find(",found_tokens,external_computed_tokens\n") != std::string::npos);
}

TEST_CASE("lockstep run, serving: an option that a service would not follow is refused") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--profile", "h100_sxm5_measured"},
        {"--hash-seeds", "3"},
        {"--allow-oom"},
        {"--explain-fabric"}}) {
    std::vector<std::string> args{"run", kChatScenario, "--set", "serving.load.requests=10"};
    args.insert(args.end(), words.begin(), words.end());
    const Ran ran = lockstep_with(args);
    CAPTURE(words.front());
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    CHECK(ran.err.starts_with("lockstep run: " + words.front() + " is for a scenario "));
    CHECK(ran.err.ends_with("llama3-70b-h100-chat.json has \"serving\"\n"));
  }
}

TEST_CASE("lockstep run: a model that does not fit is an error with the sizes") {
  const Ran ran =
      lockstep_with({"run", kClosedLoop, "--set", "serving.pools.both.tensor=1", "--set",
                     "serving.weights=bf16", "--set", "cluster.node=dgx_h100"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("a layout that fits") != std::string::npos);
}

TEST_CASE("lockstep run: a service beside a training, each slower where their flows meet") {
  const std::vector<std::string> few{kBeside, "--set", "serving.load.requests=200"};
  const nlohmann::json answer = served(few);
  const nlohmann::json& beside = answer.at("beside");
  const nlohmann::json& job = beside.at("jobs").at(0);
  CHECK(number(job, "/steps") >= 1);
  CHECK(number(job, "/slowdown") > 1.001);
  CHECK(number(answer, "/transfer_s") > number(beside, "/transfer_alone_s"));
  CHECK(number(answer, "/ttft_mean_s") > number(beside, "/ttft_mean_alone_s"));
  REQUIRE_FALSE(beside.at("links").empty());
  for (const nlohmann::json& link : beside.at("links")) {
    CHECK(number(link, "/service_bytes") > 0);
    CHECK(number(link, "/training_bytes") > 0);
    CHECK(number(link, "/mean_utilisation") <= 1 + 1e-9);
  }
  REQUIRE_FALSE(beside.at("transfers").empty());
  CHECK(number(beside, "/transfers/0/slowdown") > 1);
  // Uplinks for every port: they do not meet on any link that is full.
  std::vector<std::string> wide = few;
  wide.insert(wide.end(), {"--set", "cluster.fabric.leaf_oversubscription=1"});
  const nlohmann::json roomy = served(wide);
  CHECK(number(roomy, "/beside/jobs/0/slowdown") < number(job, "/slowdown"));
  CHECK(number(roomy, "/transfer_s") == number(roomy, "/beside/transfer_alone_s"));
  const Ran table = lockstep_with({"run", kBeside, "--set", "serving.load.requests=200"});
  CHECK(table.out.find("Who slows whom") != std::string::npos);
  CHECK(table.out.find("where they meet") != std::string::npos);
}

// Wall times of `lockstep run` on one core: a million requests of the chat at 24 a second 5.3 s,
// 200,000 at 0.5 a second, which decode alone, 7.8 s.
TEST_CASE("serving_takes: within 2 of what loads take, crowded and sparse") {
  const auto takes = [](const char* rate, const char* requests) {
    const std::vector<std::string> sets{std::string("serving.load.rate=") + rate,
                                        std::string("serving.load.requests=") + requests};
    const JsonCursor root =
        JsonCursor::parse(kChatScenario, read_text_file(kChatScenario), JsonStyle::plain, sets);
    return serving_takes(read_serving(root, test::presets())).base_units();
  };
  const double crowded = 1e6 / 5.3, sparse = 2e5 / 7.8;  // requests a second
  CHECK(20'000 / takes("24", "20000") > crowded / 2);
  CHECK(20'000 / takes("24", "20000") < crowded * 2);
  CHECK(20'000 / takes("0.5", "20000") > sparse / 2);
  CHECK(20'000 / takes("0.5", "20000") < sparse * 2);
}

}  // namespace lockstep
