#include "sim/scenario/read_serving.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/spec/blocks.hpp"
#include "sim/scenario/feature_rules.hpp"
#include "sim/scenario/read_machine_power.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/scenario/served_adapters.hpp"
#include "sim/scenario/serving_lives.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/scenario/serving_tiers.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kUsualEngine = "vllm";
constexpr std::array<std::string_view, 2> kCacheFormats{"bf16", "fp8"};
constexpr std::array<std::string_view, 2> kTransferModes{"by_layer", "whole"};
constexpr int kMostBesideJobs = 200'000;  // requests whose flows are watched one by one
const std::string kNotSearched = "no such key where pools are searched for";

/// What of an engine's rules a scenario changes for all pools.
struct WrittenBatching {
  std::optional<int> pass_tokens, most_sequences, block;
  std::optional<double> reserved, memory_fraction;
  bool prefix_cache = true;
};

struct WrittenPools {
  std::optional<ServingPool> both, prefill, decode;
};

struct WrittenServing {
  WrittenLoad load;
  WrittenPools pools;
  WrittenBatching batching;
  std::optional<WeightFormat> experts;
};

void declare_batching(const DeclaredMembers& member, WrittenBatching& out) {
  constexpr int kMost = 1 << 24;
  member.optional("pass_tokens", out.pass_tokens, 1, kMost, "That a pass takes, on a rank");
  member.optional("most_sequences", out.most_sequences, 1, kMost, "That a replica runs at once");
  member.optional("block", out.block, 1, 1 << 16, "Tokens of a block of the cache");
  member.optional("reserved", out.reserved, Dimension::share, Interval{0, 1},
                  "Share of an answer that must fit when its request is let in");
  member.optional("memory_fraction", out.memory_fraction, Dimension::share, Interval{0, 1, true},
                  "Of the card: weights, workspaces and the cache");
  member.optional("prefix_cache", out.prefix_cache,
                  "Whether what prompts share is kept for the next one; default: true");
}

void declare_pool(const DeclaredMembers& member, ServingPool& out) {
  member.optional(
      "engine", "engines", "The inference engine; default: vllm", "A preset with changes",
      [](const DeclaredMembers& engine) {
        ServingEngine spec;
        declare_serving_engine(engine, spec);
      },
      [](const JsonCursor&) {});  // read_engine_of(), also where none is given
  member.optional("replicas", out.replicas, 1, kMaxGpus, "Default: 1");
  member.optional("tensor", out.tensor, 1, kMaxGpus,
                  "GPUs over which the layers of a replica are cut; default: 1");
  member.optional("pipeline", out.pipeline, 1, kMaxGpus, "Stages of its layers; default: 1");
  member.optional("attention_data", out.attention_data, 1, kMaxGpus,
                  "Groups of such GPUs in a stage, each with the cache of its own sequences; "
                  "default: 1");
  member.optional("expert", out.expert, 1, kMaxGpus,
                  "GPUs of a stage over which whole experts are spread; default: 1, each expert is "
                  "cut over all of them");
  int cluster_pool = 0;
  member.optional("cluster_pool", cluster_pool, 0, kMostClusterPools - 1,
                  "Of the cluster's \"pools\", from 0, whose nodes the replicas fill; default: the "
                  "first for prefill, the second for decode");
  out.cluster_pool = static_cast<std::size_t>(cluster_pool);
  member.optional("autoscale", out.autoscale,
                  "The pool follows its load; \"replicas\" are the most", declare_autoscale);
}

void declare_transfer(const DeclaredMembers& member, ServingTransfer& out) {
  member.optional(
      "mode", choice_type(kTransferModes),
      "by_layer: sent while later layers are worked on; whole: after the prompt; default: by_layer",
      [&](const JsonCursor& at) { out.by_layer = at.choice(kTransferModes) == 0; });
  member.optional(
      "efficiency", out.efficiency, Dimension::share, Interval{0, 1, true},
      "Share of the links' line rate, for loads out of a remote pool too; default: 0.8");
  member.optional("latency", out.latency, Interval{0, 10}, "Of each request's; default: 1 ms");
}

constexpr std::string_view kServingNodes = R"({"oneOf": [
    {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}},
    {"type": "object", "required": ["count"], "additionalProperties": false, "properties": {
      "first": {"type": "integer", "minimum": 0}, "count": {"type": "integer", "minimum": 1},
      "stride": {"type": "integer", "minimum": 1}}}]})";

void declare_serving(const DeclaredMembers& member, WrittenServing& written, ServingSpec& out) {
  member.required("load", written.load, "Who asks what, and when", declare_serving_load);
  member.required("pools", written.pools,
                  R"(Replicas: of one pool, "both", or of two, "prefill" and "decode")",
                  [](const DeclaredMembers& of, WrittenPools& pools) {
                    of.optional("both", pools.both, "Work on prompts and decode", declare_pool);
                    of.optional("prefill", pools.prefill, "Work on prompts", declare_pool);
                    of.optional("decode", pools.decode, "Decode", declare_pool);
                  });
  member.optional("weights", out.weights, kWeightFormatNames,
                  "Format of the layers' products; default: bf16");
  member.optional("experts", written.experts, kWeightFormatNames,
                  "Of the experts; default: as the weights");
  member.optional(
      "cache", choice_type(kCacheFormats), "Format of keys and values; default: bf16",
      [&](const JsonCursor& at) { out.cache_bytes = at.choice(kCacheFormats) == 0 ? 2 : 1; });
  member.optional(
      "router", out.router, kServingRouterNames,
      "Which replica a request goes to; session: turns of a conversation stay where its "
      "first one went; cost: fewest tokens to compute and held; adapter_aware: where its adapter "
      "is on the GPUs; default: least_loaded");
  member.optional("batching", written.batching, "What differs from the engine's own",
                  declare_batching);
  member.optional("cache_tiers", out.tiers,
                  "Memory that keeps what the GPUs' caches have let go of, for prompts that begin "
                  "with it; default: none",
                  declare_cache_tiers);
  member.optional("transfer", out.transfer, "Of keys and values from pool to pool",
                  declare_transfer);
  member.optional("speculation", out.speculation,
                  "Tokens drafted ahead by a layer of the model (MTP); default: none",
                  declare_speculation);
  member.optional("start", out.start, "Of a replica that is switched on, restarted or was repaired",
                  declare_replica_start);
  member.optional("nodes", written_type(std::string(kServingNodes)),
                  "Of the cluster, which the pools fill in this order; default: all",
                  [&](const JsonCursor& at) {
                    if (!out.cluster.pools.empty()) {
                      at.fail(R"(no such key beside "cluster.pools": "cluster_pool" says which )"
                              "nodes a pool fills");
                    }
                    out.nodes = read_node_list(at, out.cluster.nodes);
                  });
  member.optional("failures", out.failures, "Of replicas; default: none fails",
                  declare_serving_failures);
  member.optional("adapters", out.adapters,
                  "Adapters (LoRA), one of which each request is answered with; default: none",
                  declare_served_adapters);
  member.optional("admission", out.admission,
                  "Which requests are turned away, and how long users wait; default: all that fit "
                  "are taken, and users wait",
                  declare_admission);
  member.optional("restarts", out.restarts,
                  "Replicas that are restarted one after the other, as for a new release; default: "
                  "none",
                  declare_restarts);
  member.optional("objectives", out.objectives, "What each request should keep",
                  declare_objectives);
  declare_regions(member, out.regions);
  int seed = static_cast<int>(out.seed);
  member.optional("seed", seed, 0, 1'000'000'000, "Of all draws; default: 1");
  if (member.object() != nullptr) out.seed = static_cast<std::uint64_t>(seed);
}

EngineSpec read_engine_of(const JsonCursor& pool, const PresetStore& presets,
                          std::vector<std::string>& assumptions) {
  const std::optional<JsonCursor> from = pool.find("engine");
  const bool refines = from && from->is_object();
  std::string name(kUsualEngine);
  if (!from || (refines && !from->find("preset"))) {
    assumptions.push_back("engine: " + name + " (not given)");
  } else {
    name = read_preset_name(*from, "engines", presets);
  }
  EngineSpec engine = engine_preset(presets, name);
  if (!engine.serving) {
    (from ? *from : pool).fail("an engine whose preset has \"serving\", as vllm");
  }
  if (refines) {
    declare_serving_engine({*from, Extent::changes}, *engine.serving);
    from->finish();
  }
  return engine;
}

void apply(const WrittenBatching& changes, ServingEngine& out) {
  out.pass_tokens = changes.pass_tokens.value_or(out.pass_tokens);
  out.most_sequences = changes.most_sequences.value_or(out.most_sequences);
  out.block = changes.block.value_or(out.block);
  out.reserved = changes.reserved.value_or(out.reserved);
  out.memory_fraction = changes.memory_fraction.value_or(out.memory_fraction);
}

void check_layout(const JsonCursor& at, const ServingPool& pool, const ServingSpec& spec) {
  const std::optional<LayoutProblem> problem = layout_problem(pool, spec.model);
  if (problem) at.find(problem->key).value_or(at).fail(problem->allowed);
}

void check_memory(const JsonCursor& at, const ServingPool& pool, const ServingSpec& spec) {
  const ServingReplica replica(replica_spec(pool, spec));
  const Bytes weights = replica.weights();
  if (replica.cache_tokens() >= 1) return;
  const GpuSpec& card = spec.node_of(pool).gpu;
  const bool wide = spec.weights == WeightFormat::bf16 || spec.experts == WeightFormat::bf16;
  at.fail(fmt::format(
      "a layout that fits: a GPU would hold {:.1f} GiB of weights, and {} has {:.1f} ({:g} % "
      "used){}",
      weights / gibibytes(1), card.name, card.hbm_capacity / gibibytes(1),
      100 * pool.engine.serving->memory_fraction,
      wide ? R"(; more GPUs, or "weights": "fp8", "fp4" or "int4")" : "; more GPUs"));
}

/// Which kind of node a pool of replicas is on.
void settle_cluster_pool(const JsonCursor& at, const ServingSpec& spec, ServingPool& out) {
  const std::size_t pools = spec.cluster.pools.size();
  const auto written = at.find("cluster_pool");
  if (pools == 0) {
    if (written) written->fail(R"(no such key, unless the cluster has "pools" of several kinds)");
    return;
  }
  if (out.name == "both") {
    at.fail(R"("prefill" and "decode" beside "cluster.pools": replicas of one pool are on GPUs of )"
            "one kind");
  }
  if (!written) out.cluster_pool = out.name == "prefill" ? 0 : 1;
  if (out.cluster_pool >= pools) {
    written->fail(fmt::format("0 to {}: the pools of the cluster", pools - 1));
  }
}

/// Pools that ask for more GPUs than there are: how many, and what would do.
[[noreturn]] void fail_room(const JsonCursor& at, const std::vector<const ServingPool*>& pools,
                            const std::string& where, std::int64_t most, int per_node) {
  std::vector<std::string> parts;
  std::int64_t gpus = 0;
  for (const ServingPool* const pool : pools) {
    gpus += std::int64_t{pool->replicas} * pool->gpus();
    parts.push_back(fmt::format("{}: {} of {}", pool->name, counted(pool->replicas, "replica"),
                                counted(pool->gpus(), "GPU")));
  }
  std::string allowed = fmt::format("at most the {} GPUs of {}, not {}", most, where, gpus);
  const std::int64_t replicas = most / pools.front()->gpus();
  if (pools.size() == 1 && replicas > 0) {
    allowed += fmt::format(", as with replicas {}", replicas);
  }
  allowed += fmt::format("{} {} nodes", pools.size() == 1 && replicas > 0 ? " or" : ", as with",
                         (gpus + per_node - 1) / per_node);
  const auto own = pools.size() == 1 ? at.find(pools.front()->name) : std::nullopt;
  const std::string pointer = own ? own->pointer() : at.pointer();
  throw InputError({.file = at.file(),
                    .pointer = pointer,
                    .found = fmt::format("{} ({})", counted(static_cast<double>(gpus), "GPU"),
                                         fmt::join(parts, "; ")),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

/// Whether replicas fit on the nodes that they fill.
void check_room(const JsonCursor& pools, const ServingSpec& spec) {
  const Cluster& cluster = spec.cluster;
  const int per_node = cluster.node.gpus;
  for (std::size_t kind = 0; kind < cluster.pools.size(); ++kind) {
    std::vector<const ServingPool*> here;
    int gpus = 0;
    for (const ServingPool& pool : spec.pools) {
      if (pool.cluster_pool != kind) continue;
      here.push_back(&pool);
      gpus += pool.replicas * pool.gpus();
    }
    const std::int64_t most = std::int64_t{cluster.pools[kind].nodes} * per_node;
    if (gpus > most) {
      fail_room(pools, here, fmt::format("cluster.pools.{}", kind), most, per_node);
    }
  }
  const int most =
      spec.nodes.empty() ? cluster.gpus() : static_cast<int>(spec.nodes.size()) * per_node;
  if (spec.gpus() <= most) return;
  std::vector<const ServingPool*> all;
  for (const ServingPool& pool : spec.pools) all.push_back(&pool);
  fail_room(pools, all, spec.nodes.empty() ? "the cluster" : "the service's nodes", most, per_node);
}

void take_pools(const JsonCursor& pools, const WrittenServing& written, const PresetStore& presets,
                ServingLayouts layouts, ServingSpec& out) {
  const bool fixed = layouts == ServingLayouts::fixed;
  const auto take = [&](std::string_view name, const std::optional<ServingPool>& from) {
    if (!from) return;
    const JsonCursor at = pools.at(name);
    ServingPool pool = *from;
    pool.name = name;
    settle_cluster_pool(at, out, pool);
    pool.engine = read_engine_of(at, presets, out.assumptions);
    apply(written.batching, *pool.engine.serving);
    if (fixed) check_layout(at, pool, out);
    if (fixed) check_memory(at, pool, out);
    std::string assumption;
    (void)laws_for(*pool.engine.serving, out.node_of(pool).gpu.architecture, &assumption);
    if (!assumption.empty()) out.assumptions.push_back(assumption);
    out.pools.push_back(std::move(pool));
  };
  const WrittenPools& of = written.pools;
  if (of.both && (of.prefill || of.decode)) {
    pools.at("both").fail(R"(either "both", or "prefill" and "decode")");
  }
  if (!of.both && (!of.prefill || !of.decode)) {
    pools.fail(R"("both", or "prefill" and "decode")");
  }
  take("both", of.both);
  take("prefill", of.prefill);
  take("decode", of.decode);
  if (fixed) check_room(pools, out);
}

/// Trainings that share the fabric, where they can meet what is served.
void take_jobs(const JsonCursor& root, const PresetStore& presets, ServingLayouts layouts,
               ServingSpec& out) {
  if (layouts == ServingLayouts::searched) {
    if (!out.nodes.empty()) root.at("serving").at("nodes").fail(kNotSearched);
    if (const auto jobs = root.find("jobs")) jobs->fail(kNotSearched);
    return;
  }
  const auto jobs = root.find("jobs");
  if (!jobs) return;
  if (out.pools.size() < 2) {
    jobs->fail("no such key, unless there are two pools: what one pool sends stays in replicas");
  }
  if (out.nodes.empty()) jobs->fail("serving.nodes beside it: which nodes the pools fill");
  out.beside =
      std::make_shared<SharedScenario>(read_jobs_beside(*jobs, out.cluster, out.nodes, presets));
  out.assumptions.insert(out.assumptions.end(), out.beside->assumptions.begin(),
                         out.beside->assumptions.end());
  out.assumptions.emplace_back(
      "beside trainings: what ranks of a replica exchange inside a pass meets no traffic of "
      "theirs, "
      "only keys and values between pools do");
}

WeightFormat format_called(const std::string& name) {
  const auto found = std::ranges::find(kWeightFormatNames, name);
  return static_cast<WeightFormat>(found - kWeightFormatNames.begin());
}

std::string_view name_of_format(WeightFormat format) {
  return kWeightFormatNames[static_cast<std::size_t>(format)];
}

/// Formats that the scenario leaves open are those of the checkpoint, else 16 bits.
void settle_formats(const JsonCursor& serving, const std::optional<CheckpointFormat>& checkpoint,
                    const std::optional<WeightFormat>& experts, ServingSpec& out) {
  const bool known = checkpoint && !checkpoint->weights.empty();
  const bool open = !serving.find("weights");
  const bool has_experts = out.model.experts.count > 0;
  if (open && known) {
    out.weights = format_called(has_experts ? checkpoint->weights : checkpoint->experts);
  }
  out.experts = experts.value_or(open && known ? format_called(checkpoint->experts) : out.weights);
  if (!open) return;
  std::string text = fmt::format("serving: weights {}", name_of_format(out.weights));
  if (has_experts && !experts) {
    text += fmt::format(", experts {}", name_of_format(out.experts));
  }
  if (known) {
    text +=
        fmt::format(" (not given; as the config.json's quantization_config, {})", checkpoint->said);
  } else if (checkpoint) {
    text += fmt::format(
        " (not given; of the config.json's quantization_config, {}, there are no "
        "laws)",
        checkpoint->said);
  } else {
    text += " (not given)";
  }
  out.assumptions.push_back(std::move(text));
}

void declare_expected_of_serving(const DeclaredMembers& member, ServingSpec& out) {
  member.optional("expect", out.expect, "Bounds on the answer, and where they are from",
                  declare_bounds_expectation);
}

ServingSpec serving_of(const JsonCursor& root, const PresetStore& presets, ServingLayouts layouts) {
  ServingSpec out;
  out.file = root.file();
  const JsonCursor cluster = root.at("cluster");
  check_features(root, cluster.is_object() && cluster.find("pools"), false);
  if (const auto schema = root.find("$schema")) (void)schema->string();
  if (const auto about = root.find("about")) out.about = about->string();
  out.cluster = read_cluster(cluster, presets, NodeKinds::several);
  out.assumptions = out.cluster.assumptions;
  ScenarioDraft draft;
  draft.file = root.file();
  read_model_choice(root.at("model"), presets, draft);
  out.model = draft.model;
  if (!is_decoder(out.model)) {
    root.at("model").fail("a decoder alone, which answers token by token");
  }
  const auto shares = [](const KindShape& k) { return k.shared_by > 1; };
  if (std::ranges::any_of(out.model.kinds, shares)) {
    root.at("model").fail("layers with weights of their own");
  }
  out.assumptions.insert(out.assumptions.end(), draft.assumptions.begin(), draft.assumptions.end());
  MachinePower drawn =
      read_machine_power(root, presets, out.cluster, PowerKeys::site, out.assumptions);
  out.power = std::move(drawn.power);
  out.usd_per_gpu_hour = drawn.usd_per_gpu_hour;
  const JsonCursor serving = root.at("serving");
  WrittenServing written;
  declare_serving({serving, Extent::whole}, written, out);
  out.prefix_cache = written.batching.prefix_cache;
  settle_formats(serving, draft.checkpoint, written.experts, out);
  if (written.pools.both && !out.regions.all.empty() &&
      !serving.at("pools").at("both").find("replicas")) {
    written.pools.both->replicas = replicas_of(out.regions);
  }
  if (out.pools.empty()) take_pools(serving.at("pools"), written, presets, layouts, out);
  settle_cache_tiers(serving, out);
  serving.finish();
  take_jobs(root, presets, layouts, out);
  declare_expected_of_serving({root, Extent::whole}, out);
  root.finish();
  make_requests(serving.at("load"), written.load, out);
  if (out.beside && out.requests.size() > kMostBesideJobs) {
    serving.at("load").fail(fmt::format("at most {} requests beside \"jobs\"", kMostBesideJobs));
  }
  settle_regions(serving, layouts == ServingLayouts::searched, out);
  settle_serving_lives(serving, layouts == ServingLayouts::searched, out);
  settle_admission(serving, out);
  settle_served_adapters(serving, layouts == ServingLayouts::searched, out);
  root.tell_unitless_sets(out.assumptions);
  return out;
}

}  // namespace

ServingReplicaSpec replica_spec(const ServingPool& pool, const ServingSpec& spec) {
  return {.model = spec.model,
          .node = spec.node_of(pool),
          .transport = spec.cluster.transport,
          .engine = *pool.engine.serving,
          .tensor = pool.tensor,
          .pipeline = pool.pipeline,
          .attention_data = pool.attention_data,
          .expert = pool.expert,
          .weights = spec.weights,
          .experts = spec.experts,
          .cache_bytes = spec.cache_bytes,
          .speculation = spec.speculation};
}

std::optional<std::string> tensor_problem(const TransformerShape& m, int ranks) {
  if (m.heads % ranks != 0) return fmt::format("a divisor of the {} heads of {}", m.heads, m.name);
  const std::optional<SharedParts> uneven = uneven_parts(m, ranks);
  if (!uneven) return std::nullopt;
  return fmt::format("a divisor{} of the {} {} of {}", uneven->copied ? " or a multiple" : "",
                     uneven->parts, uneven->what, m.name);
}

std::optional<LayoutProblem> layout_problem(const ServingPool& pool, const TransformerShape& m) {
  if (std::optional<std::string> problem = tensor_problem(m, pool.tensor)) {
    return LayoutProblem{"tensor", *std::move(problem)};
  }
  for (int layer = 0; pool.pipeline > 1 && layer < m.layers; ++layer) {
    const std::string_view why = why_one_stage(shape_of(m, m.kind(layer)));
    if (!why.empty()) return LayoutProblem{"pipeline", fmt::format("1, as {}", why)};
  }
  if (pool.pipeline > m.layers) {
    return LayoutProblem{"pipeline", fmt::format("at most the {} layers of {}", m.layers, m.name)};
  }
  const int ranks = pool.tensor * pool.attention_data;
  if (m.experts.count == 0 && pool.expert > 1) {
    return LayoutProblem{"expert", fmt::format("1: {} has no experts", m.name)};
  }
  if (ranks % pool.expert != 0 || (pool.expert > 1 && m.experts.count % pool.expert != 0)) {
    return LayoutProblem{
        "expert", fmt::format("a divisor of the {} GPUs of a stage and of the {} experts", ranks,
                              m.experts.count)};
  }
  if (m.experts.count > 0 && m.experts.ffn % (ranks / pool.expert) != 0) {
    return LayoutProblem{"expert",
                         fmt::format("more: {} GPUs cannot share the {} columns of an expert",
                                     ranks / pool.expert, m.experts.ffn)};
  }
  return std::nullopt;
}

ServingSpec read_serving(const JsonCursor& root, const PresetStore& presets,
                         ServingLayouts layouts) {
  return root.read_whole([&] { return serving_of(root, presets, layouts); });
}

namespace {

constexpr std::string_view kJobsOfCongestion = "#/jobs";

/// References to types that the schema of a job defines are to that file.
void refer_serving_to_job(nlohmann::ordered_json& schema) {
  if (schema.is_object() && schema.contains("$ref")) {
    const auto of = schema["$ref"].get<std::string>();
    schema["$ref"] = of == kJobsOfCongestion ? "congestion.schema.json#/properties/jobs"
                                             : "scenario.schema.json" + of;
  }
  if (!schema.is_structured()) return;
  for (nlohmann::ordered_json& inner : schema) refer_serving_to_job(inner);
}

}  // namespace

nlohmann::ordered_json serving_schema(const PresetStore& /*presets*/, QuantityBounds bounds) {
  using SchemaJson = nlohmann::ordered_json;
  SchemaJson described = SchemaJson::object();
  const DeclaredMembers member(described, Extent::whole, bounds);
  ServingSpec spec;
  WrittenServing written;
  std::string text;
  const auto elsewhere = [](const JsonCursor&) {};
  member.optional("$schema", text, "Path to this schema, for editors");
  member.optional("about", text, "What is served, in a sentence");
  member.required("cluster", written_type(R"({"$ref": "#/properties/cluster"})"),
                  "The machine; \"nodes\" is required", elsewhere);
  member.required("model", written_type(R"({"$ref": "#/properties/model"})"),
                  "What is served: a preset, a config.json of Hugging Face, or a shape", elsewhere);
  member.required(
      "serving", spec, "The pools that serve, and who asks what",
      [&](const DeclaredMembers& of, ServingSpec& out) { declare_serving(of, written, out); });
  member.optional("jobs", written_type(R"({"$ref": "#/jobs"})"),
                  "Trainings on other nodes, with which the pools share the fabric; they repeat "
                  "their steps until all requests have ended",
                  elsewhere);
  describe_machine_power(member, "What the pools draw is reported; {} is enough", PowerKeys::site);
  declare_expected_of_serving(member, spec);
  refer_serving_to_job(described);
  SchemaJson schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "A model that serves requests on a cluster, for `lockstep run`"},
                    {"description", "Generated from the declarations of the reader."}};
  schema.update(described);
  return schema;
}

}  // namespace lockstep
