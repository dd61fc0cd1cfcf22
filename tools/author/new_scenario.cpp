#include "tools/author/new_scenario.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "models/base/usage_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/search/ask.hpp"
#include "sim/search/ask_parts.hpp"
#include "sim/search/rebase_files.hpp"
#include "sim/search/serving_layouts.hpp"
#include "tools/author/commented_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kNewComments{
    JsonComment{"/about", "What it is, in a sentence; answers repeat it."},
    JsonComment{"/model", R"(A preset (lockstep list models), or {"huggingface": "config.json"}.)"},
    JsonComment{"/cluster", "Servers and what joins them: lockstep list nodes, fabrics, clusters."},
    JsonComment{"/batch",
                "One step: sequences over all GPUs, tokens of each, sequences of a micro batch."},
    JsonComment{"/parallelism",
                "The layout, found by a search; the number of replicas (data) follows from the "
                "GPUs. lockstep tune finds another."},
    JsonComment{"/recompute", "none, selective or full: memory against time."},
    JsonComment{"/training", "What the whole training takes: time, GPU-hours and price follow."},
    JsonComment{"/price", "An example: what a GPU costs an hour."},
    JsonComment{"/power", "What the site draws; a building of lockstep list facilities."},
    JsonComment{"/run/duration", "Wall time that is simulated."},
    JsonComment{"/run/reliability", "How often what fails: lockstep list reliability."},
    JsonComment{"/run/checkpoint", "Where the state goes, and how often: lockstep list storages."},
    JsonComment{"/run/recovery", "Examples: how a stopped job gets going again."},
    JsonComment{"/run/spares", "Nodes that wait to step in, and how long a repair takes."},
    JsonComment{"/run/trajectories", "Runs drawn at random; their spread is the answer's."},
    JsonComment{"/steps", "How many steps of each job are simulated together."},
    JsonComment{"/jobs", "Jobs that share the fabric: each has nodes, a model and a layout."},
    JsonComment{"/jobs/*/nodes", "Every second node, so that the jobs meet on leaves."},
    JsonComment{"/rl/algorithm",
                "grpo, rloo, dapo, ppo (with a critic and a reward model); dpo, ipo, kto, simpo, "
                "orpo and distillation generate nothing."},
    JsonComment{"/rl/prompts", "Of a rollout; times generations, it is updates times the batch."},
    JsonComment{"/rl/responses", "How long they are, in tokens: an example."},
    JsonComment{"/rl/generation",
                "Engine and tensor width of a replica, in turn with training on the same GPUs; "
                "\"nodes\": on servers of its own."},
    JsonComment{"/serving/load",
                "Requests a second, how many, and how long prompts and answers are, in tokens."},
    JsonComment{"/serving/weights",
                "Format of the layers' products; those of 16 bits need more GPUs than these."},
    JsonComment{"/serving/pools",
                "Replicas that do both; or \"prefill\" and \"decode\" apart. Engines: lockstep "
                "list engines."},
    JsonComment{"/serving/objectives", "What a request should see; the share that does is said."},
    JsonComment{"/queue/admission",
                "strict, easy, conservative, or slurm with rules of its own (\"slurm\")."},
    JsonComment{"/queue/placement", "packed: few leaves for a job; spread: many."},
    JsonComment{"/queue/until", "When the simulation ends."},
    JsonComment{"/queue/jobs",
                "Drawn at random here; a trace of your site's is {\"trace\": {\"file\": "
                "\"jobs.csv\", \"columns\": {\"submit\": \"submit_s\", \"runs\": \"run_s\", "
                "\"gpus\": \"gpus\"}}}, and lockstep queue import reads Slurm's."},
    JsonComment{"/limits", "What a plan has to keep to, and how sure."},
    JsonComment{"/samples", "Draws of what is uncertain: errors of predictions, failures."},
    JsonComment{"/scenario", "What all candidates have."},
    JsonComment{"/scenario/cost",
                "Examples: ports and cables, the building, the years that pay for all, power."},
    JsonComment{"/candidates", "Machines that are compared; sizes are tried one by one."},
    JsonComment{"/candidates/*/layout", "tuned: searched for each size."},
    JsonComment{"/candidates/*/scenario", "What this candidate has beside it."},
    JsonComment{"/candidates/*/scenario/cost", "Examples: what a GPU and the rest of a node cost."},
    JsonComment{"/candidates/*/scenario/price", "An example: what a GPU costs an hour."},
    JsonComment{"/axes", "What is varied: a place in the scenario, and its values."},
    JsonComment{"/objective", "What the best point is best in: a number of the answer."},
};

/// A step with the layout that is fastest; its batch is what run --model assumes.
Json asked_step(const NewWish& wish, int nodes, const PresetStore& presets) {
  const Ask ask{.model = wish.model, .node = wish.node, .nodes = std::to_string(nodes)};
  Json step = Json::parse(ask_scenario(ask, {}, presets));
  step["parallelism"].erase("data");
  return step;
}

/// The model where a sentence names it.
std::string model_words(const NewWish& wish) {
  return wish.model.starts_with('{') ? "A model" : wish.model;
}

std::string new_about(const NewWish& wish, std::string_view what) {
  return fmt::format("{} on {} of {}: {}.", model_words(wish), counted(wish.nodes, "node"),
                     wish.node, what);
}

Json new_step(const NewWish& wish, const PresetStore& presets) {
  const Json asked = asked_step(wish, wish.nodes, presets);
  Json out{{"about", new_about(wish, "one training step")}};
  for (const char* key : {"model", "cluster", "batch", "parallelism", "recompute"}) {
    if (asked.contains(key)) out[key] = asked[key];
  }
  out["training"] = {{"tokens", "1 T tokens"}};
  out["price"] = {{"usd_per_gpu_hour", 2}};
  return out;
}

Json new_run_part() {
  return {{"duration", "14 d"},
          {"reliability", "llama3_54_days"},
          {"checkpoint", {{"to", "storage"}, {"interval", "30 min"}, {"storage", "minio_nvme"}}},
          {"recovery",
           {{"detects_crash", "1 min"},
            {"detects_hang", "10 min"},
            {"diagnoses", "5 min"},
            {"restarts", "5 min"}}},
          {"spares", {{"hot", 1}, {"repair", "2 d"}}},
          {"trajectories", 100}};
}

Json new_weeks(const NewWish& wish, const PresetStore& presets) {
  Json out = new_step(wish, presets);
  out["about"] = new_about(wish, "two weeks of training, with failures and checkpoints");
  out["run"] = new_run_part();
  return out;
}

Json new_jobs(const NewWish& wish, const PresetStore& presets) {
  if (wish.nodes < 2) fail_option("--nodes", "1", "at least 2: one for each of the two jobs");
  const int half = wish.nodes / 2;
  const Json asked = asked_step(wish, half, presets);
  Json jobs = Json::array();
  for (const int first : {0, 1}) {
    jobs.push_back({{"name", first == 0 ? "even" : "odd"},
                    {"nodes", {{"first", first}, {"count", half}, {"stride", 2}}},
                    {"model", asked["model"]},
                    {"parallelism", asked["parallelism"]},
                    {"batch", asked["batch"]}});
    if (asked.contains("recompute")) jobs.back()["recompute"] = asked["recompute"];
  }
  return {
      {"about", new_about(wish, fmt::format("two trainings of {} each", counted(half, "node")))},
      {"cluster", {{"node", wish.node}, {"nodes", wish.nodes}, {"fabric", "fat_tree_2_to_1"}}},
      {"steps", 3},
      {"jobs", std::move(jobs)}};
}

/// A service of one pool, with the layout of its replicas.
Json service_of(const NewWish& wish, const PresetStore& presets, const ServingPool& pool) {
  Json layout{{"replicas", pool.replicas}, {"tensor", pool.tensor}};
  if (pool.pipeline > 1) layout["pipeline"] = pool.pipeline;
  layout["engine"] = "vllm";
  return {{"model", asked_model(wish.model, presets)},
          {"cluster", {{"node", wish.node}, {"nodes", wish.nodes}}},
          {"serving",
           {{"load",
             {{"rate", 2 * pool.replicas},
              {"requests", 2000},
              {"input", {{"mean", 1000}, {"sigma", 0.9}, {"most", 8000}}},
              {"output", {{"mean", 200}, {"sigma", 0.9}, {"most", 1000}}}}},
            {"pools", {{"both", std::move(layout)}}},
            {"objectives", {{"ttft", "1 s"}, {"tpot", "50 ms"}}}}}};
}

/// The service that is asked for, before its layout is known. Throws InputError for models that
/// cannot be served.
ServingSpec service_to_fit(const NewWish& wish, const PresetStore& presets) {
  try {
    const std::string text = write_json(service_of(wish, presets, {}));
    return read_serving(JsonCursor::parse(std::string(kAskedFile), text), presets,
                        ServingLayouts::searched);
  } catch (const InputError& error) {
    throw told_of_option(error);
  }
}

/// A replica that holds its model and the longest request.
struct FittingReplica {
  ServingPool pool;
  bool narrow = false;  ///< with weights of 8 bits, which the scenario has to say
};

/// Replicas of so many stages that hold the model, the narrowest first.
std::vector<ServingPool> replicas_of(const ServingSpec& spec, int stages) {
  const int gpus = spec.cluster.node.gpus;
  std::vector<int> widths;
  for (int width = 1; width <= gpus; ++width) {
    if (gpus % width == 0) widths.push_back(width);
  }
  return serving_layouts(
             spec, spec.pools.front(),
             {.tensor = widths, .pipeline = {stages}, .attention_data = {1}, .expert = {1}})
      .pools;
}

/// As wide as a node and the model allow, on as few nodes as will do. With the formats of `spec`
/// where its nodes hold those, else with weights of 8 bits.
std::optional<FittingReplica> smallest_replica(ServingSpec spec) {
  for (const bool narrow : {false, true}) {
    if (narrow) spec.weights = spec.experts = WeightFormat::fp8;
    for (int stages = 1; stages <= std::min(spec.cluster.nodes, spec.model.layers); ++stages) {
      const std::vector<ServingPool> found = replicas_of(spec, stages);
      if (!found.empty()) return FittingReplica{found.back(), narrow};
    }
  }
  return std::nullopt;
}

[[noreturn]] void fail_to_fit(const NewWish& wish, ServingSpec spec) {
  spec.cluster.nodes = spec.model.layers;
  spec.weights = spec.experts = WeightFormat::fp8;
  const std::optional<FittingReplica> larger = smallest_replica(std::move(spec));
  if (!larger) {
    fail_option("--model", wish.model,
                fmt::format("a model that the GPUs of {} can share out", wish.node));
  }
  fail_option("--nodes", std::to_string(wish.nodes),
              fmt::format("at least {} of {}, which hold {} with weights of 8 bits",
                          larger->pool.pipeline, wish.node, model_words(wish)));
}

Json new_serving(const NewWish& wish, const PresetStore& presets) {
  const ServingSpec spec = service_to_fit(wish, presets);
  std::optional<FittingReplica> fits = smallest_replica(spec);
  if (!fits) fail_to_fit(wish, spec);
  ServingPool& pool = fits->pool;
  pool.replicas = spec.cluster.gpus() / pool.gpus();
  Json out{{"about",
            new_about(wish, fmt::format("requests on {} of {}", counted(pool.replicas, "replica"),
                                        counted(pool.gpus(), "GPU")))}};
  out.update(service_of(wish, presets, pool));
  if (!fits->narrow) return out;
  Json serving{{"weights", "fp8"}};
  serving.update(out["serving"]);
  out["serving"] = std::move(serving);
  return out;
}

/// GRPO on the GPUs that train; one update for each rollout.
Json new_rl(const NewWish& wish, const PresetStore& presets) {
  constexpr int kMostGenerations = 16;
  const std::vector<ServingPool> replicas = replicas_of(service_to_fit(wish, presets), 1);
  if (replicas.empty()) {
    fail_option("--model", wish.model,
                fmt::format("a model whose weights of 16 bits one {} holds", wish.node));
  }
  Json out = new_step(wish, presets);
  out["about"] = new_about(wish, "a step of GRPO, rollouts and training in turn");
  const int sequences = out["batch"]["sequences"];
  const int generations = std::gcd(sequences, kMostGenerations);
  out["batch"]["micro"] = 1;
  out["recompute"] = "full";
  for (const char* of_training : {"training", "price"}) out.erase(of_training);
  out["rl"] = {{"algorithm", "grpo"},
               {"prompts", sequences / generations},
               {"generations", generations},
               {"prompt_tokens", 200},
               {"responses", {{"mean", 1000}, {"most", 3500}}},
               {"generation", {{"engine", "vllm"}, {"tensor", replicas.front().tensor}}}};
  return out;
}

Json new_queue(const NewWish& wish, const PresetStore& presets) {
  const int gpus = presets.node(presets.meant("nodes", wish.node)).gpus;
  Json sizes = Json::array({{1, 0.5}, {gpus, 0.3}});
  if (wish.nodes > 1) sizes.push_back({gpus * std::max(1, wish.nodes / 2), 0.2});
  return {{"about", fmt::format("{} of {} under a scheduler, for a week.",
                                counted(wish.nodes, "node"), wish.node)},
          {"cluster", {{"node", wish.node}, {"nodes", wish.nodes}}},
          {"queue",
           {{"order", "fifo"},
            {"admission", "easy"},
            {"placement", {{"within_node", "best_fit"}, {"across", "packed"}}},
            {"until", "7 d"},
            {"jobs",
             {{{"generate",
                {{"count", 500},
                 {"every", "20 min"},
                 {"gpus", std::move(sizes)},
                 {"mean", "60 min"},
                 {"sigma", 1.5},
                 {"limit_factor", 2}}}}}}}}};
}

Json new_candidate(const NewWish& wish, std::string_view pay) {
  const bool owns = pay == "own";
  Json scenario{{"cluster", {{"node", wish.node}}}};
  if (owns) {
    scenario["cost"] = {{"usd_per_gpu", 25000}, {"usd_per_node", 60000}};
  } else {
    scenario["price"] = {{"usd_per_gpu_hour", 2.5}};
  }
  return {{"name", fmt::format("{} {}", pay, wish.node)},
          {"pay", pay},
          {"layout", "tuned"},
          {"nodes", {wish.nodes, 2 * wish.nodes}},
          {"scenario", std::move(scenario)}};
}

Json new_plan(const NewWish& wish, const PresetStore& presets) {
  const Json asked = asked_step(wish, wish.nodes, presets);
  Json run = new_run_part();
  for (const char* key : {"duration", "trajectories"}) run.erase(key);
  return {{"about", new_about(wish, "buy or rent, and how many")},
          {"training", {{"tokens", "1 T tokens"}}},
          {"limits", {{"time", "365 d"}, {"confidence", "90 %"}}},
          {"prefer", "money"},
          {"samples", 200},
          {"scenario",
           {{"model", asked["model"]},
            {"batch", asked["batch"]},
            {"power", {{"facility", "air_chiller"}}},
            {"cost",
             {{"usd_per_100g_port", 250},
              {"usd_per_facility_w", 12},
              {"years", 4},
              {"usd_per_kwh", 0.07}}},
            {"run", std::move(run)}}},
          {"candidates", {new_candidate(wish, "own"), new_candidate(wish, "rent")}}};
}

Json new_sweep(const NewWish& wish, const PresetStore&) {
  return {{"about", "What the network and the micro batch do to one scenario."},
          {"scenario", wish.scenario},
          {"axes",
           {{{"at", "/cluster/node/nic_bandwidth"},
             {"name", "nic"},
             {"values", {"100 Gb/s", "200 Gb/s", "400 Gb/s"}}},
            {{"at", "/batch/micro"}, {"name", "micro"}, {"values", {1, 2}}}}},
          {"objective", "mfu"}};
}

constexpr std::array kNewKinds{
    NewKind{"step", "one training step, its memory and its price", "run", new_step},
    NewKind{"weeks", "days to months, with failures and checkpoints", "run", new_weeks},
    NewKind{"jobs", "two jobs on one fabric", "run", new_jobs},
    NewKind{"serving", "requests on replicas of a model", "run", new_serving},
    NewKind{"queue", "many jobs under a scheduler", "run", new_queue},
    NewKind{"rl", "a step of reinforcement learning: rollout, scores, training", "run", new_rl},
    NewKind{"plan", "which cluster, how many, how long, for how much", "plan", new_plan},
    NewKind{"sweep", "many variants of one scenario", "sweep", new_sweep},
};

}  // namespace

std::span<const NewKind> new_kinds() { return kNewKinds; }

void refuse_existing(const std::string& file) {
  std::error_code ignored;
  if (file == "-" || !std::filesystem::is_regular_file(file, ignored)) return;
  throw UsageError(
      fmt::format("lockstep new: --output: found {}, which is there already; allowed: a new file",
                  in_quotes(file)));
}

std::string new_scenario_text(const NewKind& kind, const NewWish& wish,
                              const PresetStore& presets) {
  const std::string command = kind.command == "sweep"
                                  ? "lockstep sweep THIS -o results.db"
                                  : fmt::format("lockstep {} THIS", kind.command);
  Json scenario = kind.make(wish, presets);
  rebase_files(scenario, std::string(kAskedFile), wish.file);
  return fmt::format("// {}: {}.\n// Lines like this one are comments.\n", command, kind.sentence) +
         commented_json(scenario, kNewComments);
}

}  // namespace lockstep
