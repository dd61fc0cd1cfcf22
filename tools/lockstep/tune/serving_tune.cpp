#include "tools/lockstep/tune/serving_tune.hpp"

#include <array>
#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/search/rebase_files.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/tune/tune_options.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/tune/serving_tune_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostKeptWays = 10'000;
constexpr std::array<std::string_view, 3> kPoolChoices{"any", "one", "two"};
constexpr std::array<std::string_view, 4> kOfServices{"attention-data", "pass-tokens", "sequences",
                                                      "pools"};
constexpr std::array<std::string_view, 10> kOfTrainings{
    "context",  "virtual-stages", "micro-batch", "recompute", "sharding",
    "schedule", "exhaustive",     "profile",     "fold",      "stack"};

template <std::size_t N>
void refuse_options(const ParsedOptions& options, const std::array<std::string_view, N>& names,
                    std::string_view why) {
  for (const std::string_view name : names) {
    if (options.has(name)) throw UsageError(fmt::format("--{}: no such option for {}", name, why));
  }
}

ServingTuneOptions serving_options(const ParsedOptions& options) {
  const std::string pools = options.choice("pools", kPoolChoices);
  ServingTuneOptions out;
  out.space = {.tensor = numbers_of(options, "tensor"),
               .pipeline = numbers_of(options, "pipeline"),
               .attention_data = numbers_of(options, "attention-data"),
               .expert = numbers_of(options, "expert"),
               .pass_tokens = numbers_of(options, "pass-tokens"),
               .most_sequences = numbers_of(options, "sequences")};
  out.one_pool = pools != "two";
  out.two_pools = pools != "one";
  if (options.has("objective") && options.choice("objective", kServingGoalNames) == "throughput") {
    out.goal = ServingGoal::throughput;
  }
  out.keep = static_cast<std::size_t>(whole_number(options, "keep", 10, kMostKeptWays));
  out.threads = options.has("jobs") ? whole_number(options, "jobs", 1, kMostJobs) : 0;
  return out;
}

/// Goodput needs something to keep.
void check_goal(const JsonCursor& root, const ServingSpec& spec, ServingGoal goal) {
  if (goal != ServingGoal::goodput) return;
  const JsonCursor serving = root.at("serving");
  if (!spec.asks()) {
    throw InputError({.file = spec.file,
                      .pointer = "/serving",
                      .found = "no \"objectives\"",
                      .allowed = "what requests should keep; or --objective throughput",
                      .nearest = {}});
  }
  if (spec.clients > 0 && !spec.objectives.per_request()) {
    serving.at("objectives")
        .fail("ttft, tpot or e2e, as the load has clients; or --objective throughput");
  }
  if (spec.clients == 0 && arrival_rate(spec) == 0) {
    serving.at("load").fail("requests that come over some time; or --objective throughput");
  }
}

[[noreturn]] void fail_without_way(const ServingSpec& spec, const ServingTune& result) {
  throw InputError(
      {.file = spec.file,
       .pointer = "/serving/pools",
       .found = fmt::format("no layout that serves on {}: of {} that were looked at {} do not "
                            "hold the weights and the longest request, {} keep the objectives at "
                            "no rate",
                            counted(result.gpus, "GPU"), result.layouts.looked_at,
                            result.layouts.over_memory, result.layouts.pools.size()),
       .allowed = "more GPUs, other values to try, or objectives that something can keep",
       .nearest = {}});
}

/// The scenario as it was written with the pools that were found.
Json tuned_service(const JsonCursor& written, const TunedService& found, const std::string& from,
                   const std::string& to) {
  Json out = written.json();
  Json& serving = out["serving"];
  const Json own = serving["pools"];
  Json engine;
  for (const Json& pool : own) {
    if (engine.is_null() && pool.contains("engine")) engine = pool["engine"];
  }
  const bool kinds = out["cluster"].contains("pools");
  Json pools = Json::object();
  for (const ServingPool& pool : found.trial.pools) {
    Json& of = pools[pool.name];
    of = {{"replicas", pool.replicas},
          {"tensor", pool.tensor},
          {"pipeline", pool.pipeline},
          {"attention_data", pool.attention_data},
          {"expert", pool.expert}};
    if (!kinds) {
      if (!engine.is_null()) of["engine"] = engine;
      continue;
    }
    // Each pool has been searched with its own engine.
    of["cluster_pool"] = pool.cluster_pool;
    if (own[pool.name].contains("engine")) of["engine"] = own[pool.name]["engine"];
  }
  serving["pools"] = std::move(pools);
  const ServingEngine& passes = *found.trial.pools.front().engine.serving;
  serving["batching"]["pass_tokens"] = passes.pass_tokens;
  serving["batching"]["most_sequences"] = passes.most_sequences;
  out.erase("expect");  // it is about the pools as they were
  rebase_files(out, from, to);
  return out;
}

}  // namespace

void refuse_serving_options(const ParsedOptions& options) {
  refuse_options(options, kOfServices, "a training");
}

namespace {

/// What a search found, with what it was asked.
struct FoundServices {
  ServingSpec spec;
  ServingTune result;
  ServingGoal goal = ServingGoal::goodput;

  [[nodiscard]] ServingTuneStudy study() const { return {spec, result, goal}; }
};

FoundServices searched_services(const JsonCursor& root, const PresetStore& presets,
                                const ParsedOptions& options, Console& console) {
  refuse_options(options, kOfTrainings, "a service");
  ServingTuneOptions how = serving_options(options);
  FoundServices found{.spec = read_serving(root, presets, ServingLayouts::searched),
                      .result = {},
                      .goal = how.goal};
  check_goal(root, found.spec, how.goal);
  if (!found.spec.cluster.pools.empty() && !how.two_pools) {
    throw UsageError("--pools one: a cluster with \"pools\" has one for prompts and one to decode");
  }
  const InterruptGuard guard;
  Progress progress(console.err, "layouts", 1, console.err_is_terminal && !options.has("quiet"));
  how.interrupted = [] { return InterruptGuard::interrupted(); };
  how.progress = [&](std::size_t done, std::size_t most) { progress.update(done, most); };
  found.result = tune_serving(found.spec, how);
  if (found.result.best.empty() && !found.result.interrupted) {
    fail_without_way(found.spec, found.result);
  }
  return found;
}

}  // namespace

std::optional<nlohmann::ordered_json> serving_tune_point(const JsonCursor& root,
                                                         const PresetStore& presets,
                                                         const ParsedOptions& options,
                                                         Console& console) {
  const FoundServices found = searched_services(root, presets, options, console);
  if (found.result.interrupted) return std::nullopt;
  return serving_tune_json(found.study());
}

Exit answer_serving_tune(const JsonCursor& root, const std::string& path,
                         const PresetStore& presets, const ParsedOptions& options,
                         Console& console) {
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const FoundServices found = searched_services(root, presets, options, console);
  const ServingTune& result = found.result;
  if (options.has("output") && !result.best.empty()) {
    OutputFile file(options.get("output"));
    file.write(
        write_json(tuned_service(root, result.best.front(), path, options.get("output")), 2) +
        "\n");
    file.commit();
  }
  const ServingTuneStudy study = found.study();
  const ServingSpec& spec = found.spec;
  if (reports) {
    AnswerBasis basis{.simulated = cluster_words(spec.cluster),
                      .written = written_in(root),
                      .assumptions = spec.assumptions,
                      .presets = &presets,
                      .named = presets_of(spec.cluster, presets)};
    basis.simulated.push_back({"Load", spec.load});
    write_report(options, serving_tune_page(study, basis));
  }
  const Answer answer = format == "json" ? Answer(JsonText(serving_tune_json(study)))
                        : format == "csv"
                            ? Answer(serving_tune_csv(study))
                            : Answer::terminal(serving_tune_table(study, console.style));
  console.out << answer.str();
  return result.interrupted ? Exit::interrupted : Exit::ok;
}

}  // namespace lockstep
