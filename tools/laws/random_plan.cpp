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
    Json candidates = Json::array();
    for (int i = 0, count = 1 + below(2); i < count; ++i) {
      candidates.push_back(
          {{"name", std::string(1, static_cast<char>('a' + i))},
           {"scenario",
            {{"cluster",
              {{"node", one_of<std::string>({"dgx_h100", "dgx_b200", "dgx_a100_80gb"})},
               {"nodes", one_of<int>({1, 2, 4})},
               {"fabric", one_of<std::string>({"rail_optimised", "fat_tree"})}}},
             {"price", {{"usd_per_gpu_hour", one_of<double>({1.5, 2.5, 4})}}}}}});
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
    return out;
  }
  Json served() {
    Json load{{"rate", one_of<double>({1, 4, 15})},
              {"requests", one_of<int>({100, 300})},
              {"input", {{"mean", one_of<int>({300, 1500})}, {"sigma", 0.6}, {"most", 6000}}},
              {"output", {{"mean", one_of<int>({50, 200})}, {"sigma", 0.6}, {"most", 800}}}};
    Json out{{"load", std::move(load)},
             {"weights", one_of<std::string>({"bf16", "fp8"})},
             {"pools", {{"both", {{"engine", one_of<std::string>({"vllm", "sglang"})}}}}},
             {"seed", below(1000)}};
    out["objectives"] = one_of<Json>({{{"ttft_p99", "2 s"}, {"tpot_p99", "50 ms"}},
                                      {{"ttft_p90", "500 ms"}},
                                      {{"tpot_p50", "20 ms"}},
                                      {{"ttft", "2 s"}, {"tpot", "60 ms"}, {"attained", "90 %"}}});
    return {{"model", one_of<std::string>({"llama3_8b", "llama3_8b", "llama3_70b"})},
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
