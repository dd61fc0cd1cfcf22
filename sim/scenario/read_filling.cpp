#include "sim/scenario/read_filling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/openb_trace.hpp"
#include "sim/scenario/recorded_path.hpp"
#include "sim/scenario/spec_schemas.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostSources = 10'000;
constexpr int kMostAlike = 1'000'000;
constexpr double kMostArrivals = 2e6;
constexpr double kMostScores = 2e7;                               // shapes of pods times nodes
constexpr std::size_t kFillingTraceLimit = std::size_t{1} << 30;  // bytes
constexpr double kMib = 1024.0 * 1024;
constexpr Interval kFillingCpus{0, 1e6};
constexpr Interval kFillingMemory{0, 1e15};
constexpr Interval kShareOfGpus{0, 10, true};
constexpr Interval kShareOfPods{0, 1, true};

constexpr ValueType kModelNames = written_type(R"({"type": "array", "minItems": 1,
    "items": {"type": "string", "minLength": 1}})");
constexpr ValueType kPolicyNames = written_type(R"({"type": "array", "minItems": 1, "maxItems": 6,
    "uniqueItems": true, "items": {"enum": ["random", "dot_product", "gpu_clustering",
    "gpu_packing", "best_fit", "fgd"]}})");

/// An entry of "nodes" or "pods": alike ones, or a file of all kinds.
template <class Shape>
struct ShapeSource {
  std::string trace;
  std::optional<double> cpus;
  std::optional<Bytes> memory;
  Shape shape;
};
using NodeSource = ShapeSource<NodeShape>;
using PodSource = ShapeSource<PodShape>;

void declare_node_source(const DeclaredMembers& member, NodeSource& out) {
  member.optional(
      "trace", out.trace,
      "A CSV instead of the other keys, a row for each node: cpu_milli, memory_mib, gpus "
      "(or gpu), gpu_model (or model), as Alibaba's openb has them; may be compressed. "
      "From the document's folder, else from the one that LOCKSTEP_DATA names");
  member.optional("count", out.shape.count, 1, kMostAlike, "Nodes that are alike; default: 1");
  member.optional("cpus", out.cpus, kFillingCpus, "CPUs of a node; required without \"trace\"");
  member.optional("memory", out.memory, kFillingMemory,
                  "Host memory of a node; required without \"trace\"");
  member.optional("gpus", out.shape.gpus, 0, kMostNodeGpus, "GPUs of a node; default: none");
  member.optional("gpu_model", out.shape.gpu_model,
                  "What pods call its GPUs in their \"gpu_models\"; default: no name");
}

void declare_pod_source(const DeclaredMembers& member, PodSource& out) {
  member.optional(
      "trace", out.trace,
      "A CSV instead of the other keys, a row for each pod: cpu_milli, memory_mib, gpus "
      "(or num_gpu), gpu_milli, and maybe gpu_models (or gpu_spec) with names between "
      "\"|\", as Alibaba's openb has them; may be compressed. From the document's "
      "folder, else from the one that LOCKSTEP_DATA names");
  member.optional("count", out.shape.count, 1, kMostAlike,
                  "Pods that ask for the same; default: 1");
  member.optional("cpus", out.cpus, kFillingCpus, "CPUs that a pod asks for; default: 0");
  member.optional("memory", out.memory, kFillingMemory, "Host memory; default: 0");
  member.optional("gpus", out.shape.gpus, 0, kMostNodeGpus, "GPUs, all of one node; default: none");
  out.shape.gpu_milli = kGpuMilli;
  member.optional("gpu_milli", out.shape.gpu_milli, 1, kGpuMilli,
                  "Thousandths of a GPU, of a pod of one; default: 1000, the whole of it");
  member.optional("gpu_models", kModelNames,
                  "The models of GPUs, any of which will do; default: any at all",
                  [&](const JsonCursor& at) {
                    for (const JsonCursor& name : at.elements(kMostSources)) {
                      out.shape.gpu_models.push_back(name.string());
                    }
                    if (out.shape.gpu_models.empty()) at.fail("at least one name of a model");
                  });
}

/// The text of a trace.
std::string trace_text(const JsonCursor& at, const std::string& path) {
  if (at.keys().size() > 1) at.fail("\"trace\" alone, which has all of the other keys");
  return read_maybe_gzip(path, kFillingTraceLimit);
}

std::string trace_path(const JsonCursor& at, const std::string& file) {
  const std::optional<std::string> path = recorded_path(at.file(), file);
  if (path) return *path;
  at.at("trace").fail(
      "a file in the document's folder, or in the one that the environment variable LOCKSTEP_DATA "
      "names");
}

template <class Shape>
void take_amounts(const ShapeSource<Shape>& source, Shape& out) {
  out.cpu_milli = std::llround(source.cpus.value_or(0) * 1000);
  out.memory_mib = std::llround(source.memory.value_or(Bytes{}).base_units() / kMib);
}

void add_node_sources(const JsonCursor& list, FillingSpec& out) {
  for (const JsonCursor& at : list.elements(kMostSources)) {
    NodeSource source;
    declare_node_source({at, Extent::whole}, source);
    at.finish();
    if (!source.trace.empty()) {
      const std::string path = trace_path(at, source.trace);
      read_openb_nodes(path, trace_text(at, path), out.nodes);
      continue;
    }
    source.cpus = at.at("cpus").number(kFillingCpus);  // required here
    source.memory = at.at("memory").bytes(kFillingMemory);
    take_amounts(source, source.shape);
    out.nodes.push_back(source.shape);
  }
  unite_shapes(out.nodes);
}

/// A pod that no node has the GPUs for is a mistake in what is written out.
void check_model_names(const JsonCursor& at, const PodShape& pod, const FillingSpec& spec) {
  std::vector<std::string> models;
  bool has_gpus = false;
  for (const NodeShape& node : spec.nodes) {
    has_gpus = has_gpus || node.gpus > 0;
    if (!node.gpu_model.empty()) models.push_back(node.gpu_model);
  }
  if (!has_gpus) return;  // which is said of the nodes
  for (std::size_t m = 0; m < pod.gpu_models.size(); ++m) {
    if (std::ranges::count(models, pod.gpu_models[m]) > 0) continue;
    at.at("gpu_models").elements(kMostSources)[m].fail_name(models);
  }
}

/// Whether an empty node of the shape has what the pod asks for.
bool takes_pod(const NodeShape& node, const PodShape& pod) {
  const std::vector<std::string>& models = pod.gpu_models;
  const bool has_model = models.empty() || std::ranges::count(models, node.gpu_model) > 0;
  return node.cpu_milli >= pod.cpu_milli && node.memory_mib >= pod.memory_mib &&
         (pod.gpus == 0 || (has_model && node.gpus >= pod.gpus));
}

bool some_node_takes(const FillingSpec& spec, const PodShape& pod) {
  return std::ranges::any_of(spec.nodes,
                             [&pod](const NodeShape& node) { return takes_pod(node, pod); });
}

/// A pod that is wider than every node would count as asked for, and never be placed.
void check_that_a_node_takes(const JsonCursor& at, const PodShape& pod, const FillingSpec& spec) {
  const auto has_gpus = [](const NodeShape& node) { return node.gpus > 0; };
  if (std::ranges::none_of(spec.nodes, has_gpus)) return;  // which is said of the nodes
  if (some_node_takes(spec, pod)) return;
  for (const char* const key : {"gpus", "cpus", "memory"}) {
    PodShape without = pod;
    if (*key == 'g') without.gpus = 0;
    if (*key == 'c') without.cpu_milli = 0;
    if (*key == 'm') without.memory_mib = 0;
    if (at.find(key) && some_node_takes(spec, without)) {
      at.at(key).fail("at most what one of the nodes has that have the rest of what it asks for");
    }
  }
  at.fail("at most the GPUs, CPUs and memory of one of the nodes");
}

/// Those of a trace are what was recorded: they are told.
void tell_of_pods_without_nodes(FillingSpec& out) {
  double pods = 0, gpus = 0, all_pods = 0, all_gpus = 0;
  for (const PodShape& pod : out.pods) {
    const bool fits = some_node_takes(out, pod);
    const double asked = static_cast<double>(pod.count) * pod.total_milli() / kGpuMilli;
    all_pods += pod.count;
    all_gpus += asked;
    pods += fits ? 0 : pod.count;
    gpus += fits ? 0 : asked;
  }
  if (pods == 0) return;
  out.assumptions.push_back(fmt::format(
      "pods: {} of {} ask for more GPUs, CPUs or memory than any node has, or for a model that "
      "none has; they count as asked for, with {:.1f} % of the GPUs, and are never placed",
      grouped(pods), grouped(all_pods), 100 * gpus / all_gpus));
}

void add_pod_sources(const JsonCursor& list, FillingSpec& out) {
  for (const JsonCursor& at : list.elements(kMostSources)) {
    PodSource source;
    declare_pod_source({at, Extent::whole}, source);
    at.finish();
    if (!source.trace.empty()) {
      const std::string path = trace_path(at, source.trace);
      read_openb_pods(path, trace_text(at, path), out.pods);
      continue;
    }
    take_amounts(source, source.shape);
    PodShape& pod = source.shape;
    if (pod.gpus == 0) {
      for (const char* const key : {"gpu_milli", "gpu_models"}) {
        if (at.find(key)) at.at(key).fail("no such key without \"gpus\"");
      }
      pod.gpu_milli = 0;
    }
    if (pod.gpus > 1 && pod.gpu_milli < kGpuMilli) {
      at.at("gpu_milli").fail("1000: only of a single GPU a share can be asked for");
    }
    check_model_names(at, pod, out);
    check_that_a_node_takes(at, pod, out);
    out.pods.push_back(std::move(pod));
  }
  unite_shapes(out.pods);
}

void read_policies(const JsonCursor& at, FillingSpec& out) {
  out.policies.clear();
  read_choices(at, kFillingPolicyNames, [&](std::size_t policy) {
    out.policies.push_back(static_cast<FillingPolicy>(policy));
  });
  const std::set<FillingPolicy> unique(out.policies.begin(), out.policies.end());
  if (out.policies.empty() || unique.size() < out.policies.size()) {
    at.fail("at least one policy, each once");
  }
}

void declare_filling(const DeclaredMembers& member, FillingSpec& out) {
  for (std::size_t p = 0; p < kFillingPolicyNames.size(); ++p) {
    out.policies.push_back(static_cast<FillingPolicy>(p));
  }
  member.optional(
      "policies", kPolicyNames,
      "Where pods go: random; dot_product, where requests and what is left point apart; "
      "gpu_clustering, beside pods of as many GPUs; gpu_packing, on GPUs in use, else on "
      "nodes in use; best_fit, where least is left; fgd, where fragments grow least. "
      "Default: all six",
      [&](const JsonCursor& at) { read_policies(at, out); });
  member.required(
      "nodes", kMostSources, "Nodes that are alike, or a file of them", "The cluster",
      [](const DeclaredMembers& one) {
        NodeSource source;
        declare_node_source(one, source);
      },
      [&](const JsonCursor& list) { add_node_sources(list, out); });
  member.required(
      "pods", kMostSources, "Pods that ask for the same, or a file of them",
      "The workload: all of it comes in a drawn order, then more pods drawn from it",
      [](const DeclaredMembers& one) {
        PodSource source;
        declare_pod_source(one, source);
      },
      [&](const JsonCursor& list) { add_pod_sources(list, out); });
  member.optional("until", out.until, Dimension::share, kShareOfGpus,
                  "Pods come until they have asked for so many of the GPUs; default: 130 %");
  member.optional("at", out.at, Dimension::share, kShareOfGpus,
                  "When so many of the GPUs have been asked for, the answer is read; at most "
                  "\"until\"; default: 100 %");
  member.optional("typical", out.typical, Dimension::share, kShareOfPods,
                  "Fragments are reckoned by the most frequent requests, as many as this share of "
                  "the pods makes; default: 95 %");
  member.optional("seeds", out.seeds, 1, 1000,
                  "Orders of nodes and pods, each drawn anew; default: 10");
  member.optional("seed", out.seed, 0, 1'000'000'000, "Of the first order; default: 1");
}

/// What takes more memory or time than anybody means.
void check_filling_size(const JsonCursor& at, const FillingSpec& out) {
  double nodes = 0, gpus = 0, pods = 0, asked = 0;
  for (const NodeShape& node : out.nodes) {
    nodes += node.count;
    gpus += static_cast<double>(node.count) * node.gpus;
  }
  for (const PodShape& pod : out.pods) {
    pods += pod.count;
    asked += static_cast<double>(pod.count) * pod.total_milli() / kGpuMilli;
  }
  if (gpus == 0) at.at("nodes").fail("at least one node with a GPU");
  if (asked == 0) at.at("pods").fail("at least one pod that asks for a GPU");
  if (pods + out.until * gpus / (asked / pods) > kMostArrivals) {
    at.at("pods").fail(
        fmt::format("at most {} pods until so much has been asked for", grouped(kMostArrivals)));
  }
  if (nodes * static_cast<double>(out.pods.size()) > kMostScores) {
    at.at("nodes").fail(
        fmt::format("nodes times kinds of pods of at most {}", grouped(kMostScores)));
  }
  if (out.at > out.until) {
    at.at(at.find("at") ? "at" : "until").fail(R"("at" is at most "until")");
  }
}

nlohmann::ordered_json amounts_json(std::int64_t cpu_milli, std::int64_t memory_mib, int count) {
  return {{"count", count},
          {"cpus", static_cast<double>(cpu_milli) / 1000},
          {"memory", fmt::format("{} MiB", memory_mib)}};
}

}  // namespace

FillingSpec read_filling(const JsonCursor& root) {
  return root.read_whole([&] {
    FillingSpec out;
    out.file = root.file();
    if (const auto schema = root.find("$schema")) (void)schema->string();
    if (const auto about = root.find("about")) out.about = about->string();
    const JsonCursor at = root.at("filling");
    declare_filling({at, Extent::whole}, out);
    at.finish();
    root.finish();
    check_filling_size(at, out);
    tell_of_pods_without_nodes(out);
    root.tell_unitless_sets(out.assumptions);
    return out;
  });
}

bool has_filling_traces(const JsonCursor& root) {
  using FillingJson = nlohmann::ordered_json;
  for (const char* const list : {"/filling/nodes", "/filling/pods"}) {
    const FillingJson::json_pointer at(list);
    if (!root.json().contains(at) || !root.json().at(at).is_array()) continue;
    for (const FillingJson& source : root.json().at(at)) {
      if (!source.is_object() || !source.contains("trace")) continue;
      const FillingJson& trace = source.at("trace");
      if (trace.is_string() && !recorded_path(root.file(), trace.get<std::string>())) return false;
    }
  }
  return true;
}

nlohmann::ordered_json filling_schema(QuantityBounds bounds) {
  using SchemaJson = nlohmann::ordered_json;
  SchemaJson described = SchemaJson::object();
  const DeclaredMembers member(described, Extent::whole, bounds);
  FillingSpec spec;
  std::string text;
  member.optional("$schema", text, "Path to this schema, for editors");
  member.optional("about", text, "What is filled with what, in a sentence");
  member.required("filling", spec, "The cluster, the workload, and the policies",
                  [](const DeclaredMembers& of, FillingSpec& out) { declare_filling(of, out); });
  refer_to_job_schema(described);
  SchemaJson schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "A cluster that is filled with pods, for `lockstep queue fill`"},
                    {"description", "Generated from the declarations of the reader."}};
  schema.update(described);
  return schema;
}

nlohmann::ordered_json filling_document(const FillingSpec& spec) {
  using FillingJson = nlohmann::ordered_json;
  FillingJson nodes = FillingJson::array(), pods = FillingJson::array();
  for (const NodeShape& node : spec.nodes) {
    FillingJson& out =
        nodes.emplace_back(amounts_json(node.cpu_milli, node.memory_mib, node.count));
    out["gpus"] = node.gpus;
    if (!node.gpu_model.empty()) out["gpu_model"] = node.gpu_model;
  }
  for (const PodShape& pod : spec.pods) {
    FillingJson& out = pods.emplace_back(amounts_json(pod.cpu_milli, pod.memory_mib, pod.count));
    if (pod.gpus == 0) continue;
    out["gpus"] = pod.gpus;
    if (pod.shares()) out["gpu_milli"] = pod.gpu_milli;
    if (!pod.gpu_models.empty()) out["gpu_models"] = pod.gpu_models;
  }
  FillingJson filling{{"nodes", std::move(nodes)}, {"pods", std::move(pods)}};
  FillingJson out = FillingJson::object();
  if (!spec.about.empty()) out["about"] = spec.about;
  out["filling"] = std::move(filling);
  return out;
}

}  // namespace lockstep
