#include "sim/search/ask.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/json_text.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/ask_parts.hpp"
#include "sim/search/search_base.hpp"
#include "sim/search/tune.hpp"
#include "sim/search/tuned_scenario.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Whether it has what all config.json of Hugging Face have, of transformers or of diffusers.
bool is_hugging_face(const Json& object) {
  return object.contains("model_type") || object.contains("architectures") ||
         object.contains("_class_name");
}

/// The model as a scenario says it. A file, or its text, is a config.json of Hugging Face, else
/// what a scenario has at "model".
Json model_of(const std::string& written, const PresetStore& presets) {
  if (written.starts_with('{')) {
    Json object = JsonCursor::parse("--model", written).json();
    return is_hugging_face(object) ? Json{{"huggingface", std::move(object)}} : object;
  }
  if (std::string preset = presets.meant("models", written); !preset.empty()) return preset;
  std::error_code none;
  fs::path path = written;
  if (fs::is_directory(path, none)) path /= "config.json";
  if (!fs::exists(path, none)) {
    if (written.ends_with(".json"))
      fail_option("--model", written, "a file that is there, or the name of a preset");
    return written;
  }
  const std::string file = path.generic_string();
  const JsonCursor root = JsonCursor::parse(file, quote_non_finite(read_text_file(file)));
  Json object = root.json();
  if (is_hugging_face(object)) return {{"huggingface", file}};
  if (object.contains("cluster") || command_of(root) != "run") {
    fail_option("--model", written,
                fmt::format("a model, and this is a scenario: lockstep {} {} takes it",
                            command_of(root), written));
  }
  return object;
}

/// Nodes of the machine, or the GPUs of a part of one node.
struct Size {
  int nodes = 1;
  std::optional<int> part{};
};

Size size_of(const Ask& ask, int gpus_of_node) {
  if (ask.gpus.empty())
    return {.nodes = ask.nodes.empty() ? 1 : whole_option("--nodes", ask.nodes, kMaxNodes)};
  if (!ask.nodes.empty()) fail_option("--gpus", ask.gpus, "this or --nodes, not both");
  const int gpus = whole_option("--gpus", ask.gpus, kMaxGpus);
  if (gpus < gpus_of_node) return {.nodes = 1, .part = gpus};
  check_whole_nodes(ask.gpus, gpus, gpus_of_node);
  return {.nodes = gpus / gpus_of_node};
}

Json cluster_of(const Ask& ask, const PresetStore& presets, Json& parallelism) {
  if (!ask.cluster.empty()) {
    if (!ask.node.empty()) fail_option("--node", ask.node, "this or --cluster, not both");
    if (!ask.gpus.empty()) fail_option("--gpus", ask.gpus, "--nodes beside --cluster");
    Json cluster{{"preset", ask.cluster}};
    if (!ask.nodes.empty()) cluster["nodes"] = whole_option("--nodes", ask.nodes, kMaxNodes);
    if (!ask.fabric.empty()) cluster["fabric"] = ask.fabric;
    return cluster.size() == 1 ? Json(ask.cluster) : cluster;
  }
  constexpr std::string_view kMachine = "--node NAME --nodes N, or --cluster NAME";
  if (ask.node.empty() && !ask.model.empty()) {
    fail_option("--model", ask.model, fmt::format("beside it a machine: {}", kMachine));
  }
  if (ask.node.empty()) {
    throw InputError({.file = "command line",
                      .pointer = {},
                      .found = "no machine",
                      .allowed = std::string(kMachine),
                      .nearest = {}});
  }
  // Also where the name is wrong, which its reader says with the nearest one.
  const std::string node = presets.meant("nodes", ask.node);
  const Size size = size_of(ask, node.empty() ? 1 : presets.node(node).gpus);
  if (size.part) parallelism["data"] = *size.part;
  Json cluster{{"node", ask.node}, {"nodes", size.nodes}};
  if (!ask.fabric.empty()) cluster["fabric"] = ask.fabric;
  return cluster;
}

/// Reads "parallelism" and the like of what the command line fixes: the search keeps to it.
TuneSpace fixed_by(const Json& scenario) {
  TuneSpace space;
  const auto number = [](const Json& object, const char* key, std::vector<int>& out) {
    const auto at = object.find(key);
    if (at != object.end() && at->is_number_integer()) out = {at->get<int>()};
  };
  const auto choice = [](const Json& object, const char* key, const auto& names, auto& out) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_string()) return;
    using Value = typename std::decay_t<decltype(out)>::value_type;
    const auto name = std::ranges::find(names, std::string_view(at->get_ref<const std::string&>()));
    if (name != std::ranges::end(names))
      out = {static_cast<Value>(name - std::ranges::begin(names))};
  };
  choice(scenario, "recompute", kRecomputeNames, space.recompute);
  if (const auto batch = scenario.find("batch"); batch != scenario.end() && batch->is_object())
    number(*batch, "micro", space.micro_sequences);
  const auto layout = scenario.find("parallelism");
  if (layout == scenario.end() || !layout->is_object()) return space;
  number(*layout, "tensor", space.tensor);
  number(*layout, "pipeline", space.pipeline);
  number(*layout, "context", space.context);
  number(*layout, "expert", space.expert);
  number(*layout, "expert_tensor", space.expert_tensor);
  number(*layout, "virtual_stages", space.virtual_stages);
  choice(*layout, "sharding", kShardingNames, space.sharding);
  std::vector<std::size_t> places;
  choice(*layout, "schedule", schedule_names(), places);
  for (const std::size_t place : places) space.schedules.push_back(schedule_at(place));
  return space;
}

/// --tokens, which some take for those of the whole training.
int sequence_option(const std::string& text) {
  try {
    return whole_option("--tokens", text, kMaxGpus);
  } catch (const InputError& error) {
    const auto parsed = parse_quantity(text, Dimension::count);
    if (!std::holds_alternative<double>(parsed)) throw;
    fail_option("--tokens", text,
                error.problem().allowed +
                    ", of one sequence; of a training: --set training.tokens=" + text);
  }
}

/// What the question leaves open, filled in; without a layout.
Json filled_in(const Ask& ask, const PresetStore& presets) {
  Json parallelism = Json::object();
  Json scenario{{"model", model_of(ask.model, presets)},
                {"cluster", cluster_of(ask, presets, parallelism)},
                {"batch", Json::object()}};
  if (!parallelism.empty()) scenario["parallelism"] = parallelism;
  scenario["batch"]["tokens"] = ask.tokens.empty() ? kAskedTokens : sequence_option(ask.tokens);
  return scenario;
}

/// The batch, where neither an option nor `sets` say it; they were applied to the scenario.
void fill_batch(const Ask& ask, const PresetStore& presets, Json& scenario) {
  Json& batch = scenario["batch"];
  if (!batch.is_object() || batch.contains("sequences")) return;
  if (!ask.sequences.empty()) {
    batch["sequences"] = whole_option("--sequences", ask.sequences, kMaxGpus);
    return;
  }
  Json with_cluster = scenario;
  with_cluster.erase("batch");
  const JsonCursor root = JsonCursor::parse(std::string(kAskedFile), write_json(with_cluster));
  const Cluster cluster = read_cluster(root.at("cluster"), presets);
  const auto tokens = batch.find("tokens");
  const bool counted = tokens != batch.end() && tokens->is_number_integer();
  const std::int64_t length =
      counted ? std::max<std::int64_t>(1, tokens->get<std::int64_t>()) : kAskedTokens;
  const auto part = scenario.find("parallelism");
  std::int64_t gpus = std::int64_t{cluster.nodes} * cluster.node.gpus;
  if (cluster.nodes == 1 && part != scenario.end() && part->contains("data"))
    gpus = part->at("data").get<std::int64_t>();
  batch["sequences"] = asked_sequences(gpus, cluster.nodes, length, scenario.contains("lora"));
}

/// A run of weeks saves as one of `plan` without a file does, unless `sets`, which were applied to
/// the scenario, say how, or say all of the run. True: it was filled in.
bool fill_checkpoint(const std::vector<std::string>& sets, Json& scenario) {
  const auto run = scenario.find("run");
  const auto says_all = [](const std::string& set) { return set.starts_with("run="); };
  if (std::ranges::any_of(sets, says_all)) return false;
  if (run == scenario.end() || !run->is_object() || run->contains("checkpoint")) return false;
  (*run)["checkpoint"] = asked_checkpoint();
  return true;
}

std::string about(const Ask& ask, const TuneResult& found, const std::vector<std::string>& sets) {
  const Scenario& scenario = found.best.front().scenario;
  const Batch& batch = scenario.job.batch;
  std::string out = "Asked on the command line.";
  const bool says_batch =
      std::ranges::any_of(sets, [](const std::string& set) { return set.starts_with("batch"); });
  if (!says_batch && (ask.sequences.empty() || ask.tokens.empty())) {
    out += fmt::format(" Assumed: a step of {} of {} tokens (--sequences, --tokens).",
                       counted(batch.sequences, "sequence"), grouped(batch.tokens));
  }
  // A rack's name may be that of one of its servers.
  if (const NodeSpec& node = scenario.node; scenario.nodes > 1 || ask.gpus.empty()) {
    if (node.nvlink_domain > node.gpus && scenario.gpus() < node.nvlink_domain) {
      out += fmt::format(" A node of {} has {}: {} of the {} that NVLink joins.", node.name,
                         counted(node.gpus, "GPU"), scenario.gpus(), node.nvlink_domain);
    }
  }
  const double step_s = found.best.front().step_s;
  const bool safer = step_s > (1 + kTie) * found.fastest_s, ties = step_s > found.fastest_s;
  out += fmt::format(" {}{} that {}fits in memory.", kLayoutIs,
                     ties ? "within 1 % of the fastest" : "the fastest", safer ? "surely " : "");
  return out;
}

}  // namespace

std::string ask_scenario(const Ask& ask, const std::vector<std::string>& sets,
                         const PresetStore& presets, const AskOptions& options) try {
  const std::string file(kAskedFile);
  Json scenario =
      JsonCursor::parse(file, write_json(filled_in(ask, presets)), JsonStyle::plain, sets).json();
  fill_batch(ask, presets, scenario);
  const bool saves = fill_checkpoint(sets, scenario);
  const std::string text = write_json(scenario);
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, sets);
  SearchBase base =
      search_base_of(read_job_file(root, presets).draft, presets, {.profiles = options.profiles});
  base.scenario.folding = options.folding;
  const TuneSpace space = fixed_by(root.json());
  const StepIntervals intervals(presets);
  const auto slow_end = [&intervals](const Scenario& tied) { return intervals.slow_end(tied); };
  const TuneResult found = tune(base.scenario, {.space = space,
                                                .keep = 1,
                                                .own_problem = base.own_problem,
                                                .slow_end = slow_end,
                                                .threads = options.threads,
                                                .interrupted = [] { return false; },
                                                .progress = options.progress});
  if (found.best.empty()) fail_without_layout(base.scenario, found, space);
  const Scenario& best = found.best.front().scenario;
  Json tuned = tuned_scenario(root, best, file, file);
  std::string words = about(ask, found, sets);
  if (saves)
    words += " Assumed: a checkpoint every 30 min to minio_nvme (--set run.checkpoint=...).";
  Json out{{"about", std::move(words)}};
  out.update(tuned);
  return write_json(out, 2) + "\n";
} catch (const InputError& error) {
  throw told_of_option(error);
}

Json asked_model(const std::string& written, const PresetStore& presets) try {
  Json model = model_of(written, presets);
  const JsonCursor root =
      JsonCursor::parse(std::string(kAskedFile), write_json(Json{{"model", model}}));
  ScenarioDraft draft;
  read_model_choice(root.at("model"), presets, draft);  // throws where it is none
  return model;
} catch (const InputError& error) {
  throw told_of_option(error);
}

std::string ask_collective(const Ask& machine, const std::string& ops, const std::string& sizes,
                           const PresetStore& presets) try {
  Json part = Json::object();
  const Json cluster = cluster_of(machine, presets, part);
  Json collective{{"op", words_between_commas(ops)}};
  if (!sizes.empty()) collective["sizes"] = words_between_commas(sizes);
  if (part.contains("data")) collective["ranks"] = part["data"];
  const Json scenario{
      {"about", "Asked on the command line."}, {"cluster", cluster}, {"collective", collective}};
  const std::string text = write_json(scenario, 2) + "\n";
  // So that a wrong name is told of its option.
  const JsonCursor root = JsonCursor::parse(std::string(kAskedFile), text);
  (void)read_cluster(root.at("cluster"), presets);
  return text;
} catch (const InputError& error) {
  throw told_of_option(error);
}

ScenarioKind asked_kind(const Ask& ask, const std::vector<std::string>& sets,
                        const PresetStore& presets) try {
  return scenario_kind(JsonCursor::parse(
      std::string(kAskedFile), write_json(filled_in(ask, presets)), JsonStyle::plain, sets));
} catch (const InputError& error) {
  throw told_of_option(error);
}

}  // namespace lockstep
