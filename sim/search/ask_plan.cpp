#include "sim/search/ask_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/search/ask.hpp"
#include "sim/search/ask_parts.hpp"
#include "sim/search/compute_optimal.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kAskedUse = 0.4;       // assumed: of the peak, what published runs reach at best
constexpr double kBytesPerWeight = 18;  // bf16 weights, fp32 gradients, Adam: Megatron-Core

/// A quantity above 0 that an option says, at most `most` base units.
double quantity_option(std::string_view option, const std::string& text, Dimension dimension,
                       double most) {
  const auto parsed = parse_quantity(text, dimension);
  const double* const value = std::get_if<double>(&parsed);
  if (value == nullptr || !(*value > 0 && *value <= most)) {
    fail_option(option, text, fmt::format("a number above 0 with one of {}", unit_list(dimension)));
  }
  return *value;
}

/// As JSON, a whole number where it is one.
Json usd_option(std::string_view option, const std::string& text) {
  constexpr double kMostUsd = 1e15;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !(value > 0 && value <= kMostUsd)) {
    fail_option(option, text, "a number of USD above 0");
  }
  if (value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

/// What has to stand beside --model.
void check_parts(const PlanAsk& ask) {
  const auto wants = [&](std::string_view what) {
    fail_option("--model", ask.model, fmt::format("beside it {}", what));
  };
  if (ask.training.empty()) wants("--training TOKENS, as \"15 T tokens\"");
  if (ask.node.empty()) wants("--node NAME,NAME: the servers to compare");
  if (ask.gpus.empty() && ask.time.empty()) {
    wants("--time, such as \"90 d\", from which sizes follow, or --gpus N,N");
  }
}

TransformerShape asked_shape(const Json& model, const PresetStore& presets) {
  const JsonCursor root =
      JsonCursor::parse(std::string(kAskedFile), write_json(Json{{"model", model}}));
  ScenarioDraft draft;
  read_model_choice(root.at("model"), presets, draft);
  return draft.model;
}

NodeSpec server_of(const std::string& name, const PresetStore& presets) {
  const Json scenario{{"cluster", {{"node", name}, {"nodes", 1}}}};
  const JsonCursor root = JsonCursor::parse(std::string(kAskedFile), write_json(scenario));
  return read_cluster(root.at("cluster"), presets).node;
}

/// The two sizes in nodes that a deadline asks for.
std::vector<int> sizes_in_time(const PlanAsk& ask, const ParameterCounts& weights, double tokens,
                               const NodeSpec& node) {
  constexpr double kMostTime = 1e9;
  const Seconds time{quantity_option("--time", ask.time, Dimension::time, kMostTime)};
  const double gpus = node.gpus;
  const FlopsPerSecond peak = std::max(node.gpu.peak_bf16, node.gpu.peak_fp16);
  const double for_work =
      training_compute(weights.active, tokens) / (kAskedUse * gpus * peak) / time;
  const double for_weights =
      Bytes{kBytesPerWeight * weights.total} / (gpus * node.gpu.hbm_capacity);
  const double least = std::ceil(std::max({for_work, for_weights, 1.0}));
  if (!(2 * least <= kMaxNodes / 2.0)) {
    fail_option("--time", ask.time,
                fmt::format("longer: {} nodes of {} would be needed at {:.0f} % of their peak",
                            compact(least), node.name, 100 * kAskedUse));
  }
  const auto nodes = static_cast<int>(std::bit_ceil(static_cast<std::uint32_t>(least)));
  return {nodes, 2 * nodes};
}

std::vector<int> sizes_of(const PlanAsk& ask, const ParameterCounts& weights, double tokens,
                          const NodeSpec& node) {
  if (ask.gpus.empty()) return sizes_in_time(ask, weights, tokens, node);
  std::vector<int> out;
  for (const std::string& size : words_between_commas(ask.gpus)) {
    const int gpus = whole_option("--gpus", size, kMaxGpus);
    check_whole_nodes(size, gpus, node.gpus);
    out.push_back(gpus / node.gpus);
  }
  return out;
}

/// One server of one size.
struct AskedCandidate {
  std::string node;
  int nodes = 1, gpus = 1;
  bool rented = false;
  std::string price{};  ///< its own, of several that --price says
  [[nodiscard]] int sequences() const { return asked_sequences(gpus, nodes, kAskedTokens); }
};

/// Whether a --set is about that part of the candidates' scenario.
bool says_part(const std::vector<std::string>& sets, std::string_view part) {
  return std::ranges::any_of(sets, [&](const std::string& set) {
    return set.starts_with(fmt::format("scenario.{}", part)) ||
           set.starts_with(fmt::format("/scenario/{}", part));
  });
}

/// Prices of the servers in their order; one is for all of them, none: each has its own.
std::vector<std::string> prices_of(const PlanAsk& ask, std::size_t servers) {
  if (ask.price.empty()) return {};
  std::vector<std::string> out = words_between_commas(ask.price);
  for (const std::string& price : out) (void)usd_option("--price", price);
  if (out.size() != 1 && out.size() != servers) {
    fail_option("--price", ask.price,
                servers == 1 ? std::string("one price, since --node has one server")
                             : fmt::format("one price for all servers, or {}, one for each of "
                                           "--node",
                                           servers));
  }
  return out;
}

/// `priced`: the price of a GPU and hour is given, for all of them.
std::vector<AskedCandidate> candidates_of(const PlanAsk& ask, bool priced,
                                          const ParameterCounts& weights, double tokens,
                                          const PresetStore& presets) {
  std::vector<AskedCandidate> out;
  const std::vector<std::string> servers = words_between_commas(ask.node);
  const std::vector<std::string> prices = prices_of(ask, servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const NodeSpec node = server_of(servers[i], presets);
    const bool rented = priced || node.usd_per_gpu_hour.has_value();
    if (!rented && !ask.usd.empty()) {
      fail_option("--usd", ask.usd,
                  fmt::format("beside a price of {}, which has none of its own: --price USD, of a "
                              "GPU and hour",
                              node.name));
    }
    for (const int nodes : sizes_of(ask, weights, tokens, node)) {
      out.push_back({.node = node.name,
                     .nodes = nodes,
                     .gpus = nodes * node.gpus,
                     .rented = rented,
                     .price = prices.size() > 1 ? prices[i] : std::string()});
    }
  }
  return out;
}

Json price_json(const std::string& price) {
  return {{"usd_per_gpu_hour", usd_option("--price", price)}};
}

Json candidate_json(const AskedCandidate& candidate, bool own_batch) {
  Json scenario{{"cluster", {{"node", candidate.node}}}};
  if (own_batch) scenario["batch"] = {{"sequences", candidate.sequences()}};
  if (!candidate.price.empty()) scenario["price"] = price_json(candidate.price);
  return {{"name", fmt::format("{}, {} {}", candidate.node, candidate.gpus,
                               candidate.gpus == 1 ? "GPU" : "GPUs")},
          {"pay", candidate.rented ? "rent" : "own"},
          {"layout", "tuned"},
          {"nodes", Json::array({candidate.nodes})},
          {"scenario", std::move(scenario)}};
}

std::string about_plan(const PlanAsk& ask, int sequences, bool all_rented) {
  std::string out = fmt::format(
      "Asked on the command line. Assumed: steps of {} sequences of {} tokens, or one that the "
      "GPUs "
      "divide; the failures of Llama 3's training; a checkpoint every 30 min.",
      sequences, kAskedTokens);
  if (ask.gpus.empty()) {
    out += fmt::format(
        " Sizes: the least power of two of nodes that is in time at {:.0f} % of the peak, and "
        "twice that.",
        100 * kAskedUse);
  }
  if (!all_rented) out += " Not every server has a list price: --price adds money.";
  return out;
}

}  // namespace

std::string ask_plan(const PlanAsk& ask, const std::vector<std::string>& sets,
                     const PresetStore& presets) try {
  constexpr double kMostTokens = 1e18;
  check_parts(ask);
  const Json model = asked_model(ask.model, presets);
  const double tokens = quantity_option("--training", ask.training, Dimension::count, kMostTokens);
  Json limits = Json::object();
  if (!ask.time.empty()) {
    (void)quantity_option("--time", ask.time, Dimension::time, 1e9);
    limits["time"] = ask.time;
  }
  if (!ask.usd.empty()) limits["usd"] = usd_option("--usd", ask.usd);
  const bool priced = !ask.price.empty() || says_part(sets, "price");
  const std::vector<AskedCandidate> candidates =
      candidates_of(ask, priced, parameter_counts(asked_shape(model, presets)), tokens, presets);
  const int sequences = candidates.front().sequences();
  Json scenario{{"model", model}, {"batch", {{"sequences", sequences}, {"tokens", kAskedTokens}}}};
  const bool each = !candidates.front().price.empty();
  if (!ask.price.empty() && !each) scenario["price"] = price_json(ask.price);
  scenario["run"] = {{"reliability", "llama3_54_days"}, {"checkpoint", asked_checkpoint()}};
  const bool all_rented = std::ranges::all_of(candidates, &AskedCandidate::rented);
  Json plan{{"about", about_plan(ask, sequences, all_rented)},
            {"training", {{"tokens", ask.training}}}};
  if (!limits.empty()) plan["limits"] = std::move(limits);
  plan["scenario"] = std::move(scenario);
  plan["candidates"] = Json::array();
  for (const AskedCandidate& candidate : candidates) {
    const bool own_batch = candidate.sequences() != sequences && !says_part(sets, "batch");
    plan["candidates"].push_back(candidate_json(candidate, own_batch));
  }
  return write_json(plan, 2) + "\n";
} catch (const InputError& error) {
  throw told_of_option(error);
}

}  // namespace lockstep
