// Certificates: a planted mistake is found, laws that do not apply are not counted, and stopping
// leaves what was tried.
#include "sim/laws/check_laws.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/schema_errors.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStep =
    R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000},
        "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "fat_tree"},
        "parallelism": {"tensor": 2, "pipeline": 2, "data": 4},
        "batch": {"sequences": 16, "tokens": 2048}, "recompute": "none",
        "stack": "megatron_core"})";
constexpr const char* kRun =
    R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000},
        "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "fat_tree"},
        "parallelism": {"tensor": 2, "data": 8}, "batch": {"sequences": 16, "tokens": 2048},
        "recompute": "none", "stack": "megatron_core",
        "run": {"duration": "20 d", "trajectories": 30,
          "reliability": {"modes": [{"name": "crash", "component": "node", "mean_time": "8 d"}]},
          "checkpoint": {"interval": "1 h",
            "storage": {"write": "1 GB/s", "read": "2 GB/s"}}}})";
constexpr const char* kSite =
    R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000},
        "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "fat_tree"},
        "parallelism": {"tensor": 2, "data": 8}, "batch": {"sequences": 16, "tokens": 2048},
        "recompute": "none", "stack": "megatron_core", "power": {}, "cost": {"usd_per_kwh": 0.07},
        "run": {"duration": "40 d", "trajectories": 4,
          "reliability": {"modes": [{"name": "crash", "component": "node", "mean_time": "8 d"}]},
          "checkpoint": {"interval": "1 h", "storage": {"write": "1 GB/s", "read": "2 GB/s"}},
          "site": {"limit": "30 kW", "weather": {"mean_celsius": 15}, "solar": "10 kW",
            "latitude": 50, "demand_usd_per_kw_month": 12,
            "battery": {"energy_mwh": 0.02, "power": "10 kW"},
            "cooling": {"units": 4, "unit_heat": "8 kW", "mean_time": "30 d"}}}})";
constexpr const char* kServing =
    R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
        "serving": {"load": {"rate": 4, "requests": 60, "input": {"low": 100, "high": 400},
            "output": {"low": 20, "high": 60}},
          "pools": {"both": {"replicas": 2, "tensor": 2, "engine": "vllm"}}}})";
constexpr const char* kQueue =
    R"({"cluster": {"node": "dgx_h100", "nodes": 2},
        "queue": {"order": "fifo", "admission": "easy",
          "jobs": [{"generate": {"count": 100, "every": "10 min",
            "gpus": [[1, 0.5], [8, 0.3], [16, 0.2]], "mean": "40 min", "sigma": 1}}]}})";

const StepIntervals& intervals() {
  static const StepIntervals read(test::presets());
  return read;
}

Certificate certificate_of(const std::string& text, const std::vector<Law>& laws,
                           std::function<bool()> go_on = {}) {
  LawSubject subject({.file = "laws.json", .text = text, .go_on = std::move(go_on)},
                     test::presets(), intervals());
  return check_laws(subject, laws);
}

std::map<std::string, LawVerdict> verdicts(const Certificate& certificate) {
  std::map<std::string, LawVerdict> out;
  for (const LawResult& law : certificate.laws) {
    for (const LawBreak& each : law.book.breaks()) {
      FAIL_CHECK(law.name << ": " << each.what << ": " << each.found << ", expected "
                          << each.expected);
    }
    out[law.name] = law.book.verdict();
  }
  return out;
}

bool applied(LawVerdict verdict) {
  return verdict == LawVerdict::held || verdict == LawVerdict::held_with_anomalies;
}

void check_applied(const std::map<std::string, LawVerdict>& all,
                   const std::set<std::string>& expected) {
  for (const std::string& name : expected) {
    CAPTURE(name);
    REQUIRE(all.contains(name));
    CHECK(applied(all.at(name)));
  }
}

TEST_CASE("laws: of a step, a run, requests and a queue those that are about them hold") {
  const std::set<std::string> any{"time", "asked_twice", "key_order", "as_written"};
  check_applied(verdicts(certificate_of(kStep, product_laws())), any);
  check_applied(
      verdicts(certificate_of(kStep, product_laws())),
      {"flop", "tokens", "memory", "formulas", "bytes", "work", "unfolded", "said_again", "bounds",
       "pipeline", "batch", "recomputation", "hardware.peak_flops", "hardware.hbm_bandwidth",
       "hardware.nvlink_bandwidth", "hardware.network_bandwidth", "hardware.memory_capacity"});
  const auto run = verdicts(certificate_of(kRun, product_laws()));
  check_applied(run, any);
  check_applied(
      run, {"books", "tokens", "threads", "seeds", "better_runs", "failure_rates", "undisturbed"});
  const auto serving = verdicts(certificate_of(kServing, product_laws()));
  check_applied(serving, any);
  check_applied(serving, {"tokens", "formulas", "capacity", "hardware.hbm_bandwidth"});
  const auto queue = verdicts(certificate_of(kQueue, product_laws()));
  check_applied(queue, any);
  check_applied(queue, {"groups", "capacity"});
  CHECK(queue.at("memory") == LawVerdict::does_not_apply);
  CHECK(queue.at("hardware.peak_flops") == LawVerdict::does_not_apply);
}

TEST_CASE("laws: better hardware is tried with many requests where routers send a few otherwise") {
  // Its 50 requests take 11 % longer with 1.25 times the memory bandwidth, 5,000 of them 3 % less.
  const std::string text = R"({"model": "llama3_8b", "cluster": {"node": "dgx_b200", "nodes": 2},
      "serving": {"load": {"requests": 50, "input": {"mean": 500}, "output": {"low": 1, "high": 20},
          "rate": 200}, "pools": {"both": {"replicas": 4, "tensor": 4}},
        "router": "power_of_two", "seed": 385}})";
  std::vector<Law> laws = product_laws();
  std::erase_if(laws, [](const Law& law) { return law.name != "hardware.hbm_bandwidth"; });
  CHECK(verdicts(certificate_of(text, laws)).at("hardware.hbm_bandwidth") == LawVerdict::held);
}

TEST_CASE("laws: on hashed paths better hardware is tried with five draws of the hashes") {
  // Hops of 5.6 us in place of 7 make the step of the first draw 2.06 % longer, of five 0.63 %.
  const std::string text = R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192,
        "vocabulary": 32000},
      "cluster": {"node": "dgx_h100",
        "fabric": {"kind": "torus", "routing": "ecmp", "torus": [4, 12]}},
      "parallelism": {"tensor": 2, "pipeline": 3, "data": 64, "sharding": "zero1",
        "sequence": false, "schedule": "gpipe"},
      "batch": {"sequences": 576, "tokens": 2048}, "recompute": "full",
      "stack": {"preset": "megatron_core", "allow": ["schedules.gpipe"],
        "communication": {"overlap_gradients": false}},
      "stragglers": [{"gpu": 337, "slowdown": 1.05}]})";
  std::vector<Law> laws = product_laws();
  std::erase_if(laws, [](const Law& law) { return law.name != "hardware.transport_latency"; });
  const Certificate certificate = certificate_of(text, laws);
  CHECK(verdicts(certificate).at("hardware.transport_latency") == LawVerdict::held_with_anomalies);
  const std::vector<LawAnomaly> anomalies = certificate.laws.front().book.anomalies();
  REQUIRE(anomalies.size() == 1);
  CHECK(anomalies.front().what.ends_with("mean of five hash draws"));
}

std::vector<Law> energy_law() {
  std::vector<Law> laws = product_laws();
  std::erase_if(laws, [](const Law& law) { return law.name != "energy"; });
  return laws;
}

TEST_CASE("laws: energy is held of every kind of answer that has it") {
  const std::string folder = LOCKSTEP_SOURCE_DIR "/scenarios/";
  for (const char* file : {"rl/grpo-llama3-8b-power.json", "serving/llama3-70b-h100-chat.json",
                           "queue/searches-then-training.json"}) {
    CAPTURE(file);
    check_applied(verdicts(certificate_of(read_text_file(folder + file), energy_law())),
                  {"energy"});
  }
  Json jobs = Json::parse(read_text_file(folder + "congestion/two-jobs-one-spine.json"));
  const std::string plain = write_json(jobs);
  jobs["power"] = Json::object();
  const std::string powered = write_json(jobs);
  check_applied(verdicts(certificate_of(powered, energy_law())), {"energy"});
  CHECK(verdicts(certificate_of(plain, energy_law())).at("energy") == LawVerdict::does_not_apply);
  LawSubject wrong({.file = "laws.json",
                    .text = powered,
                    .plant = [](Json& a, std::size_t, const Question&) { a["idle_w"] = 1; }},
                   test::presets(), intervals());
  CHECK(check_laws(wrong, energy_law()).broken());
}

TEST_CASE("laws: every law has a name of its own and a sentence, and applies to something") {
  std::set<std::string> names;
  for (const Law& law : product_laws()) {
    CAPTURE(law.name);
    CHECK(names.insert(law.name).second);
    CHECK(law.sentence.ends_with('.'));
    CHECK(law.sentence.size() <= 100);
  }
}

using Mistakes = std::map<std::string, std::function<void(Json&)>>;

void check_found(const char* text, const Mistakes& mistakes) {
  for (const auto& [name, mistake] : mistakes) {
    CAPTURE(name);
    const auto plant = [&, &make = mistake](Json& answer, std::size_t number, const Question&) {
      if (number == 0) make(answer);
    };
    LawSubject subject({.file = "laws.json", .text = text, .plant = plant}, test::presets(),
                       intervals());
    std::vector<Law> laws = product_laws();
    std::erase_if(laws, [&, &of = name](const Law& law) { return law.name != of; });
    REQUIRE(laws.size() == 1);
    const Certificate certificate = check_laws(subject, laws);
    CHECK(certificate.broken());
    CHECK_FALSE(certificate.laws.front().book.breaks().empty());
  }
}

TEST_CASE(
    "laws: a mistake that is planted in the books of a site breaks the law that is about it") {
  const auto more = [](Json& number) { number = number.get<double>() * (1 + 1e-8); };
  check_found(kSite, {{"site_energy", [&](Json& a) { more(a["site"]["months"][0]["imported_j"]); }},
                      {"site_money", [&](Json& a) { more(a["site"]["energy_usd"]); }},
                      {"site_power", [&](Json& a) { more(a["site"]["stranded_w"]); }},
                      {"site_prices", [&](Json& a) { more(a["site"]["machines_j"]); }}});
  std::vector<Law> laws = product_laws();
  std::erase_if(laws, [](const Law& law) { return !law.name.starts_with("site_"); });
  const auto all = verdicts(certificate_of(kSite, laws));
  REQUIRE(all.size() == 4);
  for (const auto& [name, verdict] : all) CHECK(verdict == LawVerdict::held);
}

TEST_CASE("laws: a mistake that is planted in an answer breaks the law that is about it") {
  const Mistakes mistakes{
      {"time", [](Json& a) { a["waterfall"][3]["seconds"] = 1e-6; }},
      {"flop", [](Json& a) { a["mfu_causal"] = a["mfu_causal"].get<double>() * (1 + 1e-5); }},
      {"tokens", [](Json& a) { a["tokens_per_step"] = 1; }},
      {"memory",
       [](Json& a) {
         Json& weights = a["stages"][1]["memory"]["weights_gib"];
         weights = weights.get<double>() + 1e-6;
       }},
      {"formulas", [](Json& a) { a["tokens_per_s_per_gpu"] = 1; }},
      {"asked_twice", [](Json& a) { a["gpus"] = 17; }},
      {"unfolded",
       [](Json& a) {
         for (const char* name : {"step_s", "exact_low_s", "exact_high_s"}) {
           a[name] = a[name].get<double>() * 1.001;
         }
       }},
      {"hardware.hbm_bandwidth", [](Json& a) { a["step_s"] = a["step_s"].get<double>() / 2; }},
      {"bounds", [](Json& a) { a["step_s"] = a["step_s"].get<double>() / 2; }},
      {"batch", [](Json& a) { a["step_s"] = a["step_s"].get<double>() * 3; }},
  };
  check_found(kStep, mistakes);
}

TEST_CASE("laws: whoever stops them keeps those that were tried") {
  int asked = 0;
  const Certificate certificate =
      certificate_of(kStep, product_laws(), [&] { return ++asked < 3; });
  CHECK(certificate.stopped);
  CHECK_FALSE(certificate.laws.empty());
  CHECK(certificate.laws.size() < product_laws().size());
  CHECK_FALSE(certificate.broken());
}

TEST_CASE(
    "certificate.schema.json is made of the rows of a certificate, and certificates keep it") {
  const std::string path = LOCKSTEP_SOURCE_DIR "/scenarios/certificate.schema.json";
  const std::string text = write_json(certificate_schema(), 2) + "\n";
  if (std::getenv("LOCKSTEP_WRITE_SCHEMA") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  CHECK(read_text_file(path) == text);
  const Certificate certificate = certificate_of(kStep, product_laws());
  const Json json = certificate_json(certificate);
  Json answer{{"lockstep_version", "0"}};
  answer.update(json);
  CHECK(test::schema_errors(Json::parse(text), answer) == std::vector<std::string>{});
  CHECK(json.at("held").get<int>() + json.at("held_with_anomalies").get<int>() +
            json.at("broken").get<int>() + json.at("do_not_apply").get<int>() ==
        json.at("tried").get<int>());
  for (const Json& law : json.at("laws")) {
    CHECK(law.contains("why") == (law.at("verdict") == "does not apply"));
    CHECK(law.contains("largest_difference") == (law.at("comparisons").get<int>() > 0));
  }
}

}  // namespace
}  // namespace lockstep
