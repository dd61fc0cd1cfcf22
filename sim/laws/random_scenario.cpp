#include "sim/laws/random_scenario.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/core/random.hpp"
#include "sim/laws/draws.hpp"
#include "sim/laws/random_job.hpp"
#include "sim/laws/random_site.hpp"
#include "sim/scenario/scenario_file.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Of StreamName::purpose: tests that draw jobs alone have 7.
constexpr std::uint32_t kScenarioDraws = 8;

/// Everything but one training job by itself, part by part.
class ManyDraw : Draws {
 public:
  explicit ManyDraw(RandomStream& random) : Draws(random) {}

  Json serving() {
    const bool two = once_in(3);
    Json pools;
    if (two) {
      pools = {{"prefill", pool(false)}, {"decode", pool(true)}};
      const Json engine = pools["prefill"]["engine"];
      pools["decode"]["engine"] = engine;
    } else {
      pools = {{"both", pool(true)}};
    }
    Json out{
        {"load", load()},
        {"pools", std::move(pools)},
        {"weights", one_of<std::string>({"bf16", "fp8", "fp4"})},
        {"cache", one_of<std::string>({"bf16", "fp8"})},
        {"router", one_of<std::string>({"round_robin", "least_loaded", "power_of_two", "random"})},
        {"seed", below(1000)}};
    if (once_in(3)) out["objectives"] = {{"ttft", "1 s"}, {"tpot", "40 ms"}};
    if (once_in(4)) out["batching"] = {{"most_sequences", one_of<int>({2, 16, 64})}};
    if (two && once_in(2)) out["transfer"] = {{"mode", one_of<std::string>({"by_layer", "whole"})}};
    return {
        {"model", one_of<std::string>({"llama3_8b", "llama3_8b", "llama3_70b", "qwen3_30b_a3b"})},
        {"cluster",
         {{"node", one_of<std::string>({"dgx_h100", "dgx_b200", "dgx_a100_80gb"})},
          {"nodes", one_of<int>({2, 4})},
          {"fabric", one_of<std::string>({"rail_optimised", "fat_tree"})}}},
        {"serving", std::move(out)}};
  }

  Json queue() {
    Json out{
        {"order", one_of<std::string>({"fifo", "fifo", "sjf", "srtf", "srsf", "las", "priority"})},
        {"admission", one_of<std::string>({"strict", "best_effort", "easy", "conservative"})},
        {"placement",
         {{"within_node", one_of<std::string>({"first_fit", "best_fit", "worst_fit"})},
          {"across", one_of<std::string>({"first_fit", "packed", "spread"})}}},
        {"seed", below(1000)}};
    if (once_in(3)) {
      out["preemption"] = {{"mode", "evict"},
                           {"exempt", one_of<std::string>({"0 s", "1 h"})},
                           {"restart", one_of<std::string>({"0 s", "5 min"})},
                           {"checkpoint", "30 min"}};
    }
    if (once_in(3)) out["reliability"] = one_of<std::string>({"meta_rsc1", "llama3_54_days"});
    if (once_in(4)) out["quotas"] = Json::array({{{"account", "a"}, {"gpus", 16}}});
    if (once_in(4)) out["until"] = one_of<std::string>({"2 d", "20 d"});
    out["jobs"] = Json::array({{{"generate", generated()}}});
    if (once_in(4)) {
      Json drain{{"nodes", 1}, {"at", "10 h"}, {"lasts", one_of<std::string>({"1 h", "2 d"})}};
      if (once_in(2)) drain["deadline"] = "4 h";
      out["health"] = {{"drains", Json::array({drain})}, {"burn_in", "30 min"}};
    }
    Json cluster{
        {"node", "dgx_h100"}, {"nodes", one_of<int>({1, 2, 4, 16})}, {"fabric", "fat_tree"}};
    if (once_in(4)) {
      out["burst"] = {{"nodes", one_of<int>({0, 1, 8})},
                      {"after", one_of<std::string>({"0 s", "30 min"})},
                      {"starts", one_of<std::string>({"0 s", "5 min"})},
                      {"keeps", one_of<std::string>({"0 s", "20 min"})},
                      {"usd_per_gpu_hour", 3},
                      {"speed", one_of<double>({1.0, 0.7, 1.6})}};
    }
    return {{"cluster", std::move(cluster)}, {"queue", std::move(out)}};
  }

  /// Two or three jobs on nodes of their own, side by side or interleaved.
  Json jobs() {
    const int count = 2 + below(2), nodes = one_of<int>({2, 4});
    const bool interleaved = once_in(2);
    Json list = Json::array();
    for (int i = 0; i < count; ++i) {
      Json where{{"first", interleaved ? i : i * nodes}, {"count", nodes}};
      if (interleaved) where["stride"] = count;
      const int tensor = one_of<int>({1, 2}), data = 8 * nodes / tensor;
      list.push_back(
          {{"name", std::string(1, static_cast<char>('a' + i))},
           {"nodes", std::move(where)},
           {"model",
            {{"layers", 4}, {"hidden", 2048}, {"heads", 16}, {"ffn", 8192}, {"vocabulary", 32000}}},
           {"parallelism",
            {{"tensor", tensor},
             {"data", data},
             {"sharding", one_of<std::string>({"none", "zero1", "zero3"})}}},
           {"batch", {{"sequences", data * one_of<int>({1, 2})}, {"tokens", 2048}}},
           {"recompute", "none"},
           {"stack", "megatron_core"}});
    }
    Json fabric{{"kind", "fat_tree"},
                {"routing", one_of<std::string>({"spray", "ecmp", "adaptive"})},
                {"levels", 2},
                {"leaf_ports_down", one_of<int>({8, 16})},
                {"leaf_oversubscription", one_of<int>({1, 2, 4})}};
    return {{"cluster",
             {{"node", "dgx_h100"}, {"nodes", count * nodes}, {"fabric", std::move(fabric)}}},
            {"steps", one_of<int>({1, 2, 3})},
            {"jobs", std::move(list)}};
  }

  Json rl() {
    const int nodes = one_of<int>({1, 2}), pipeline = one_of<int>({1, 2});
    Json out{{"algorithm", one_of<std::string>({"grpo", "grpo", "ppo"})},
             {"prompts", one_of<int>({16, 64})},
             {"generations", one_of<int>({4, 8})},
             {"updates", one_of<int>({1, 2})},
             {"prompt_tokens", 100},
             {"responses", {{"mean", one_of<int>({200, 600})}, {"most", 1500}}},
             {"generation",
              {{"engine", {{"preset", "vllm"}, {"memory_fraction", 0.6}}},
               {"tensor", one_of<int>({1, 2})}}}};
    const int data = 8 * nodes / pipeline;
    return {{"model", "llama3_8b"},
            {"cluster", {{"node", "dgx_h100"}, {"nodes", nodes}, {"fabric", "rail_optimised"}}},
            {"parallelism",
             {{"tensor", 1}, {"pipeline", pipeline}, {"data", data}, {"sharding", "zero1"}}},
            {"batch", {{"sequences", data * 4}, {"micro", 1}, {"tokens", 2048}}},
            {"recompute", "full"},
            {"stack", "megatron_core"},
            {"rl", std::move(out)}};
  }

 private:
  Json pool(bool decodes) {
    Json out{{"replicas", one_of<int>({1, 2, 4})},
             {"tensor", one_of<int>({1, 2, 4})},
             {"engine", one_of<std::string>({"vllm", "sglang", "tensorrt_llm"})}};
    if (decodes && once_in(6)) out["pipeline"] = 2;
    return out;
  }
  Json load() {
    const auto length = [&](int mean) -> Json {
      if (once_in(2)) return {{"low", mean / 2}, {"high", 2 * mean}};
      return {{"mean", mean}, {"sigma", one_of<double>({0, 0.5, 1})}, {"most", 8 * mean}};
    };
    Json out{{"requests", one_of<int>({1, 20, 200})},
             {"input", length(one_of<int>({50, 500, 2000}))},
             {"output", length(one_of<int>({10, 100, 300}))}};
    if (once_in(3)) {
      out["clients"] = one_of<int>({1, 8, 40});
      if (once_in(3)) out["think"] = "2 s";
    } else {
      out["rate"] = one_of<double>({0.1, 2, 20, 200});
    }
    return out;
  }
  Json generated() {
    Json out{{"count", one_of<int>({1, 30, 300})},
             {"gpus", Json::array({{1, 0.5}, {3, 0.1}, {8, 0.4}})},
             {"mean", one_of<std::string>({"5 min", "3 h"})},
             {"sigma", one_of<double>({0, 1, 2})},
             {"accounts", Json::array({{"a", 0.5}, {"b", 0.5}})},
             {"limit_factor", one_of<double>({1, 3})}};
    if (!once_in(4)) out["every"] = one_of<std::string>({"1 min", "20 min"});
    if (once_in(2)) out["priorities"] = Json::array({{0, 0.7}, {5, 0.3}});
    return out;
  }
};

JobDrawOptions options_of(RandomStream& random, bool weeks) {
  const auto once_in = [&](std::uint32_t times) { return random.below(times) == 0; };
  return {.fabrics = once_in(3) ? RandomFabrics::symmetric : RandomFabrics::every,
          .straggler = !weeks && once_in(5),
          .pools = !weeks && once_in(6),
          .power = once_in(5),
          .weeks = weeks,
          .most_nodes = once_in(6) ? 64 : 8};
}

AnswerKind kind_drawn(RandomStream& random) {
  constexpr AnswerKind kDrawn[] = {AnswerKind::step, AnswerKind::step,    AnswerKind::step,
                                   AnswerKind::step, AnswerKind::step,    AnswerKind::run,
                                   AnswerKind::run,  AnswerKind::serving, AnswerKind::queue,
                                   AnswerKind::jobs, AnswerKind::rl};
  return kDrawn[random.below(std::size(kDrawn))];
}

std::optional<Json> drawn_scenario(RandomStream& random, AnswerKind kind) {
  switch (kind) {
    case AnswerKind::step:
      return draw_job(random, options_of(random, false));
    case AnswerKind::run: {
      std::optional<Json> out = draw_job(random, options_of(random, true));
      if (out && random.below(3) == 0) add_random_site(random, *out);
      return out;
    }
    case AnswerKind::jobs:
      return ManyDraw(random).jobs();
    case AnswerKind::rl:
      return ManyDraw(random).rl();
    case AnswerKind::queue:
      return ManyDraw(random).queue();
    case AnswerKind::serving:
      return ManyDraw(random).serving();
  }
  return std::nullopt;
}

// --- shrinking ---------------------------------------------------------------------------------

/// Everything that may be left out or made smaller, by pointer; larger parts first.
void collect(const Json& value, const Json::json_pointer& at,
             std::vector<Json::json_pointer>& out) {
  if (!at.empty()) out.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) collect(member, at / key, out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, out);
  }
}

void erase_at(Json& document, const Json::json_pointer& at) {
  Json& parent = document[at.parent_pointer()];
  if (parent.is_array()) {
    parent.erase(std::stoul(at.back()));
  } else {
    parent.erase(at.back());
  }
}

/// Smaller values that may do in place of one, smallest first.
std::vector<Json> smaller(const Json& value) {
  std::vector<Json> out;
  if (value.is_object() && value.contains("preset")) out.push_back(value.at("preset"));
  if (value.is_number_integer() || value.is_number_unsigned()) {
    const auto number = value.get<std::int64_t>();
    for (const std::int64_t less : {std::int64_t{1}, number / 4, number / 2}) {
      if (less > 0 && less < number) out.emplace_back(less);
    }
  }
  if (value.is_boolean() && value.get<bool>()) out.emplace_back(false);
  return out;
}

/// Not where the fabric cannot join that many nodes, or a width does not divide.
bool can_be_read(const std::string& text, const PresetStore& presets) {
  try {
    (void)read_scenario_file(parse_scenario("random.json", text), presets);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::string random_scenario(const RandomScenario& which, const PresetStore& presets) {
  RandomStream random({.seed = which.seed, .trajectory = which.number, .purpose = kScenarioDraws});
  const AnswerKind any = kind_drawn(random);
  while (true) {
    const std::optional<Json> drawn = drawn_scenario(random, which.kind.value_or(any));
    if (!drawn) continue;
    std::string text = write_json(*drawn);
    if (can_be_read(text, presets)) return text;
  }
}

Json shrunk(const Json& scenario, const std::function<bool(const Json&)>& fails, int most) {
  Json best = scenario;
  int asked = 0;
  const auto take = [&](Json candidate) {
    if (asked >= most) return false;
    ++asked;
    if (!fails(candidate)) return false;
    best = std::move(candidate);
    return true;
  };
  for (bool smaller_yet = true; smaller_yet && asked < most;) {
    smaller_yet = false;
    std::vector<Json::json_pointer> places;
    collect(best, Json::json_pointer(), places);
    for (const Json::json_pointer& at : places) {
      if (!best.contains(at)) continue;  // gone with what held it
      Json without = best;
      erase_at(without, at);
      if (take(std::move(without))) {
        smaller_yet = true;
        continue;
      }
      for (const Json& less : smaller(best.at(at))) {
        Json with = best;
        with[at] = less;
        if (!take(std::move(with))) continue;
        smaller_yet = true;
        break;
      }
    }
  }
  return best;
}

}  // namespace lockstep
