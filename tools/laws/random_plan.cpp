#include "tools/laws/random_plan.hpp"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"
#include "sim/core/random.hpp"
#include "sim/laws/draws.hpp"
#include "sim/search/read_plan.hpp"
#include "sim/search/serving_plan.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of StreamName::purpose: those of `lockstep comm` have 9.
constexpr std::uint32_t kPlanDraws = 10, kServingPlanDraws = 11;

class PlanDraw : Draws {
 public:
  explicit PlanDraw(RandomStream& random) : Draws(random) {}

  Json training() {
    Json out{{"training", {{"tokens", one_of<std::string>({"5 B", "20 B", "100 B"}) + " tokens"}}},
             {"limits", limits()},
             {"samples", one_of<int>({10, 20})},
             {"seed", below(1000)},
             {"scenario", trained()}};
    if (once_in(2)) out["prefer"] = one_of<std::string>({"time", "energy", "gpus", "money"});
    if (once_in(4)) add_regions(out);
    Json candidates = Json::array();
    for (int i = 0, count = 1 + below(3); i < count; ++i) candidates.push_back(machine(i));
    out["candidates"] = std::move(candidates);
    return out;
  }

  Json service() {
    Json out{{"prefer", one_of<std::string>({"gpus", "money"})},
             {"pools", one_of<std::string>({"any", "one", "two"})},
             {"scenario", served()}};
    if (once_in(2)) {
      out["failures"] = {{"gpu_mean_time", one_of<std::string>({"5000 h", "50000 h"})},
                         {"repair", one_of<std::string>({"1 h", "1 d"})}};
    }
    if (once_in(6)) {
      out["map"] = {{"input", {500}}, {"output", {50, 200}}, {"rate", {2}}, {"requests", 100}};
    }
    const bool rents = once_in(2);
    Json candidates = Json::array();
    for (int i = 0, count = 1 + below(2); i < count; ++i) {
      Json scenario{{"cluster",
                     {{"node", one_of<std::string>({"dgx_h100", "dgx_b200", "dgx_a100_80gb"})},
                      {"nodes", one_of<int>({1, 2, 4})},
                      {"fabric", one_of<std::string>({"rail_optimised", "fat_tree"})}}}};
      if (rents) {
        scenario["price"] = {{"usd_per_gpu_hour", one_of<double>({1.5, 2.5, 4})}};
      } else {
        scenario["cost"] = {{"usd_per_gpu", one_of<double>({20'000, 40'000})},
                            {"usd_per_node", 60'000},
                            {"usd_per_kwh", 0.1},
                            {"years", 4}};
      }
      candidates.push_back({{"name", std::string(1, static_cast<char>('a' + i))},
                            {"scenario", std::move(scenario)}});
    }
    out["candidates"] = std::move(candidates);
    return out;
  }

 private:
  Json limits() {
    Json out{{"time", one_of<std::string>({"3 d", "30 d", "300 d"})}};
    if (once_in(2)) out["confidence"] = one_of<std::string>({"50 %", "90 %"});
    if (once_in(4)) out["power"] = one_of<std::string>({"100 kW", "1 MW"});
    if (once_in(4)) out["usd"] = one_of<double>({50'000, 5e6});
    return out;
  }
  Json trained() {
    Json out{{"model", "llama3_8b"},
             {"cluster", {{"fabric", one_of<std::string>({"rail_optimised", "fat_tree"})}}},
             {"parallelism",
              {{"tensor", one_of<int>({1, 2, 8})},
               {"sharding", one_of<std::string>({"zero1", "zero3"})}}},
             {"batch", {{"sequences", 256}, {"micro", 1}, {"tokens", 8192}}},
             {"recompute", "full"},
             {"stack", one_of<std::string>({"megatron_core", "neutral"})},
             {"power", {{"facility", one_of<std::string>({"air_chiller", "liquid"})}}},
             {"cost",
              {{"usd_per_100g_port", 250},
               {"usd_per_facility_w", one_of<double>({0, 12})},
               {"usd_per_kwh", one_of<double>({0.04, 0.15})},
               {"years", one_of<int>({3, 5})}}}};
    Json run{{"reliability", one_of<std::string>({"llama3_54_days", "meta_rsc1"})}};
    if (!once_in(4)) {
      run["checkpoint"] = {{"interval", one_of<std::string>({"10 min", "2 h"})},
                           {"storage", {{"write", "5 GB/s"}, {"read", "5 GB/s"}}}};
    }
    if (once_in(2)) run["spares"] = {{"hot", one_of<int>({1, 2})}, {"repair", "1 d"}};
    out["run"] = std::move(run);
    return out;
  }
  Json machine(int i) {
    const bool owns = once_in(2);
    Json scenario{{"cluster", {{"node", one_of<std::string>({"dgx_h100", "dgx_b200"})}}}};
    if (owns) {
      scenario["cost"] = {{"usd_per_gpu", one_of<double>({20'000, 40'000})},
                          {"usd_per_node", 60'000}};
    } else {
      scenario["price"] = {{"usd_per_gpu_hour", one_of<double>({1.5, 3})}};
    }
    Json out{{"name", std::string(1, static_cast<char>('a' + i))},
             {"pay", owns ? "own" : "rent"},
             {"nodes", one_of<std::vector<int>>({{4}, {8}, {2, 4}, {4, 16}})},
             {"scenario", std::move(scenario)}};
    if (once_in(4)) out["layout"] = "tuned";
    if (owns && once_in(2)) add_lots(out);
    if (once_in(4)) {
      out["then"] = Json::array({{{"name", "refinement"},
                                  {"tokens", "1 B tokens"},
                                  {"machines", "kept"},
                                  {"scenario", {{"batch", {{"sequences", 64}}}}}}});
    }
    return out;
  }
  /// Its machines come in lots; those of one size alone.
  void add_lots(Json& candidate) {
    const int nodes = candidate["nodes"].back();
    candidate["nodes"] = {nodes};
    candidate["scenario"].erase("cost");
    const int first = once_in(2) ? nodes : nodes / 2;
    Json lots = Json::array({lot("first", first)});
    if (first < nodes || once_in(3)) lots.push_back(lot("second", nodes - first + 1));
    candidate["scenario"]["run"] = {{"purchase",
                                     {{"interest", one_of<std::string>({"0 %", "8 %"})},
                                      {"deposit", one_of<std::string>({"0 %", "30 %"})},
                                      {"loses", "35 %"},
                                      {"staff_usd_per_month", one_of<int>({0, 20'000})},
                                      {"lots", std::move(lots)}}}};
  }
  Json lot(const char* name, int nodes) {
    const auto terms =
        one_of<std::string>({"buy", "buy", "lease", "reserved", "on_demand", "spot"});
    Json out{{"name", name}, {"terms", terms}, {"nodes", nodes}};
    if (once_in(2)) out["lead_time"] = one_of<std::string>({"2 d", "20 d"});
    if (once_in(3)) out["ordered"] = "5 d";
    if (terms == "buy" || terms == "lease") {
      out["usd_per_node"] = 300'000;
    } else {
      out["usd_per_gpu_hour"] = one_of<double>({1, 3});
    }
    if (terms == "lease" || terms == "reserved") {
      out["term"] = one_of<std::string>({"30 d", "365 d"});
    }
    if (terms == "lease" && once_in(2)) out["residual"] = "30 %";
    if (terms == "spot" && once_in(2)) out["taken_away"] = "10 d";
    return out;
  }
  /// Two places, in the first of which the data lies.
  void add_regions(Json& plan) {
    Json regions = Json::array();
    for (const char* name : {"here", "there"}) {
      Json region{{"name", name},
                  {"latency", one_of<std::string>({"5 ms", "60 ms"})},
                  {"bandwidth", one_of<std::string>({"10 Gb/s", "100 Gb/s"})},
                  {"egress_usd_per_gb", 0.02}};
      region["scenario"] = {{"cost", {{"usd_per_kwh", one_of<double>({0.05, 0.2})}}},
                            {"power", {{"outside_celsius", one_of<int>({5, 30})}}}};
      regions.push_back(std::move(region));
    }
    plan["regions"] = std::move(regions);
    plan["data"] = {{"bytes", one_of<std::string>({"1 TB", "100 TB"})}, {"regions", {"here"}}};
    if (once_in(2)) plan["data"]["may_leave"] = {"there"};
  }
  Json served() {
    Json load{{"requests", one_of<int>({100, 300})},
              {"input", {{"mean", one_of<int>({300, 1500})}, {"sigma", 0.6}, {"most", 6000}}},
              {"output", {{"mean", one_of<int>({50, 200})}, {"sigma", 0.6}, {"most", 800}}}};
    if (once_in(4)) {
      load["clients"] = one_of<int>({4, 32});
    } else {
      load["rate"] = one_of<double>({1, 4, 15});
    }
    const auto engine = one_of<std::string>({"vllm", "sglang", "tensorrt_llm"});
    Json out{{"load", std::move(load)},
             {"weights", one_of<std::string>({"bf16", "fp8"})},
             {"pools", {{"both", {{"engine", engine}}}}},
             {"seed", below(1000)}};
    out["objectives"] = one_of<Json>({{{"ttft_p99", "2 s"}, {"tpot_p99", "50 ms"}},
                                      {{"ttft_p90", "500 ms"}},
                                      {{"tpot_p50", "20 ms"}},
                                      {{"ttft", "2 s"}, {"tpot", "60 ms"}, {"attained", "90 %"}}});
    return {
        {"model", one_of<std::string>({"llama3_8b", "llama3_8b", "llama3_70b", "qwen3_30b_a3b"})},
        {"serving", std::move(out)}};
  }
};

/// Drawn again while its reader refuses it, as sizes that share a batch unevenly are.
template <class Draw, class Read>
std::string drawn_plan(const StreamName& stream, Draw draw, Read read) {
  RandomStream random(stream);
  while (true) {
    std::string text = write_json(draw(random));
    try {
      read(text);
      return text;
    } catch (const InputError&) {
      continue;
    }
  }
}

}  // namespace

std::string random_plan(std::uint64_t seed, std::uint32_t number, const PresetStore& presets) {
  return drawn_plan(
      {.seed = seed, .trajectory = number, .purpose = kPlanDraws},
      [](RandomStream& random) { return PlanDraw(random).training(); },
      [&](const std::string& text) { (void)read_plan("random.json", text, presets); });
}

std::string random_serving_plan(std::uint64_t seed, std::uint32_t number,
                                const PresetStore& presets) {
  return drawn_plan(
      {.seed = seed, .trajectory = number, .purpose = kServingPlanDraws},
      [](RandomStream& random) { return PlanDraw(random).service(); },
      [&](const std::string& text) {
        (void)read_serving_plan(JsonCursor::parse("random.json", text), presets);
      });
}

}  // namespace lockstep
