#include "tools/views/tables/listing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/collectives/algorithms.hpp"
#include "models/collectives/collectives.hpp"
#include "models/pipeline/schedule.hpp"
#include "models/power/site_power.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/answer/answer.hpp"
#include "sim/laws/check_laws.hpp"
#include "sim/measured/diagnosis.hpp"
#include "sim/scenario/preset_files.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "tools/console/options.hpp"
#include "tools/views/tables/command_fields.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

std::string gigabytes(BytesPerSecond rate) { return number_text(rate.base_units() / 1e9); }
std::string tera(FlopsPerSecond rate) { return number_text(rate.base_units() / 1e12); }
std::string text(double value) { return number_text(value); }

Listing list_gpus(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"bf16_tflops_per_s", "bf16 TFLOP/s"},
               {"fp8_tflops_per_s", "fp8 TFLOP/s"},
               {"hbm_gib", "HBM GiB"},
               {"hbm_gb_per_s", "HBM GB/s"},
               {"nvlink_gb_per_s", "NVLink GB/s"},
               {"sms", "SMs"},
               {"architecture", "architecture", false}},
              {}};
  for (const std::string& name : presets.names("gpus")) {
    const GpuSpec& gpu = presets.gpu(name);
    out.rows.push_back({name, tera(gpu.peak_bf16), tera(gpu.peak_fp8),
                        significant(gpu.hbm_capacity / gibibytes(1), 4),
                        gigabytes(gpu.hbm_bandwidth), gigabytes(gpu.nvlink_bandwidth),
                        text(gpu.sm_count), gpu.architecture});
  }
  return out;
}

Listing list_nodes(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"gpu", "GPU", false},
               {"gpus", "GPUs"},
               {"nvlink_domain", "NVLink domain"},
               {"nics", "NICs"},
               {"nic_gbit_per_s", "NIC Gb/s"},
               {"usd_per_gpu_hour", "USD/GPU-h"},
               {"transport", "transport", false}},
              {}};
  for (const std::string& name : presets.names("nodes")) {
    const NodeSpec& node = presets.node(name);
    out.rows.push_back({name, node.gpu.name, text(node.gpus), text(node.nvlink_domain),
                        text(node.nics), text(node.nic_bandwidth.base_units() * 8e-9),
                        node.usd_per_gpu_hour ? text(*node.usd_per_gpu_hour) : "", node.transport});
  }
  return out;
}

Listing list_models(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"parameters", "parameters"},
               {"active", "active"},
               {"layers", "layers"},
               {"hidden", "hidden"},
               {"heads", "heads"},
               {"kv_heads", "KV heads"},
               {"ffn", "FFN"},
               {"vocabulary", "vocabulary"}},
              {}};
  for (const std::string& name : presets.names("models")) {
    const TransformerShape& m = presets.model(name);
    const ParameterCounts counts = parameter_counts(m);
    out.rows.push_back({name, fmt::format("{:.0f}", counts.total),
                        fmt::format("{:.0f}", counts.active), text(m.layers), text(m.hidden),
                        text(m.heads), text(m.kv_heads), text(m.ffn), text(m.vocabulary)});
  }
  return out;
}

Listing list_stacks(const PresetStore& presets) {
  Listing out{{{"name", "name", false}, {"about", "about", false}}, {}};
  for (const std::string& name : presets.names("stacks")) {
    out.rows.push_back({name, presets.stack(name).spec.about});
  }
  return out;
}

/// Whether `levels` says something of the kind.
bool is_tree(FabricKind kind) {
  return kind == FabricKind::fat_tree || kind == FabricKind::rail_optimised ||
         kind == FabricKind::rail_only;
}

Listing list_engines(const PresetStore& presets) {
  Listing out{{{"name", "name", false}, {"about", "about", false}}, {}};
  for (const std::string& name : presets.names("engines")) {
    out.rows.push_back({name, engine_preset(presets, name).about});
  }
  return out;
}

Listing list_operators(const PresetStore& presets) {
  Listing out{{{"name", "name", false}}, {}};
  for (const std::string& name : presets.names("operators")) out.rows.push_back({name});
  return out;
}

Listing list_fabrics(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"kind", "kind", false},
               {"routing", "routing", false},
               {"levels", "levels"},
               {"about", "about", false}},
              {}};
  for (const std::string& name : presets.names("fabrics")) {
    const FabricSpec& f = presets.fabric(name);
    out.rows.push_back({name, std::string(name_of(f.kind)), std::string(name_of(f.routing)),
                        is_tree(f.kind) ? text(f.levels) : "", f.about});
  }
  return out;
}

Listing list_transports(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"efficiency", "share of NIC rate"},
               {"send_receive_efficiency", "one pair"},
               {"hop_latency_us", "hop latency us"},
               {"ring_hop_latency_us", "ring hop us"},
               {"other_names", "other names", false}},
              {}};
  for (const std::string& name : presets.names("transports")) {
    const TransportSpec& t = presets.transport(name);
    out.rows.push_back(
        {name, text(t.efficiency), text(t.send_receive_efficiency),
         text(t.hop_latency.base_units() * 1e6), text(t.ring_hop_latency.base_units() * 1e6),
         fmt::format("{}", fmt::join(other_preset_names("transports", name), ", "))});
  }
  return out;
}

/// What the fastest regime of an operation reaches with large messages.
std::string best_bandwidth(const std::vector<CollectiveRegime>& regimes) {
  BytesPerSecond best;
  for (const CollectiveRegime& regime : regimes) best = std::max(best, regime.bus_bandwidth);
  return regimes.empty() ? "" : gigabytes(best);
}

Listing list_nvlinks(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"all_reduce_gb_per_s", "all-reduce GB/s"},
               {"all_gather_gb_per_s", "all-gather GB/s"},
               {"all_to_all_gb_per_s", "all-to-all GB/s"},
               {"send_receive_gb_per_s", "one pair GB/s"}},
              {}};
  for (const std::string& name : presets.names("nvlinks")) {
    const IntraNodeCollectives& links = presets.nvlink(name);
    out.rows.push_back({name, best_bandwidth(links.all_reduce), best_bandwidth(links.all_gather),
                        best_bandwidth(links.all_to_all), best_bandwidth(links.send_receive)});
  }
  return out;
}

Listing list_reliability(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"modes", "ways to fail"},
               {"gpu_hours_between_failures", "GPU-hours between"},
               {"about", "about", false}},
              {}};
  constexpr double kGpusPerNode = 8, kNodesPerRack = 4;
  for (const std::string& name : presets.names("reliability")) {
    const ReliabilitySpec& spec = presets.reliability(name);
    double rate = 0;  // of one GPU with its share of node and rack
    for (const ReliabilityMode& of : spec.modes) {
      double share = of.component == FailingComponent::gpu ? 1 : 1 / kGpusPerNode;
      if (of.component == FailingComponent::rack) share /= kNodesPerRack;
      if (of.component == FailingComponent::job || of.component == FailingComponent::cable) {
        share = 0;
      }
      if (of.mode.stops_job()) rate += share * 3600 / of.mode.mean_time.base_units();
    }
    out.rows.push_back({name, text(static_cast<double>(spec.modes.size())),
                        text(std::round(1 / rate)), spec.about});
  }
  return out;
}

Listing list_chassis(const PresetStore& presets) {
  constexpr std::array<std::string_view, 3> kCooling{"air", "liquid", "immersion"};
  Listing out{{{"name", "name", false},
               {"cooling", "cooling", false},
               {"host_w", "host busy W"},
               {"supply_efficiency", "supply efficiency"},
               {"nodes_per_rack", "nodes per rack"},
               {"about", "about", false}},
              {}};
  for (const std::string& name : presets.names("chassis")) {
    const ChassisSpec& c = presets.chassis(name);
    const Watts host = c.cpus * c.cpu_busy + c.memory + c.drives + c.board + c.nvlink_switches;
    out.rows.push_back({name, std::string(kCooling[static_cast<std::size_t>(c.cooling)]),
                        text(host.base_units()), text(c.supply_efficiency), text(c.nodes_per_rack),
                        c.about});
  }
  return out;
}

Listing list_storages(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"write_gb_per_s", "write GB/s"},
               {"read_gb_per_s", "read GB/s"},
               {"network", "network", false},
               {"about", "about", false}},
              {}};
  for (const std::string& name : presets.names("storages")) {
    const StorageSpec& storage = presets.storage(name);
    out.rows.push_back({name, gigabytes(storage.write), gigabytes(storage.read),
                        std::string(kStorageNetworks[static_cast<std::size_t>(storage.network)]),
                        storage.about});
  }
  return out;
}

Listing list_facilities(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"pue_10", "PUE at 10 C"},
               {"pue_20", "20 C"},
               {"pue_35", "35 C"},
               {"about", "about", false}},
              {}};
  for (const std::string& name : presets.names("facilities")) {
    const FacilitySpec& f = presets.facility(name);
    const auto pue = [&](double celsius) {
      return fmt::format("{:.3f}", power_usage_effectiveness(f, celsius));
    };
    out.rows.push_back({name, pue(10), pue(20), pue(35), f.about});
  }
  return out;
}

Listing list_clusters(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"gpu", "GPU", false},
               {"gpus", "GPUs"},
               {"fabric", "fabric", false},
               {"power_limit_mw", "MW at most"},
               {"about", "about", false}},
              {}};
  for (const std::string& name : presets.names("clusters")) {
    const ClusterPreset& c = presets.cluster(name);
    const double gpus = c.cluster.nodes.value_or(0) * static_cast<double>(c.cluster.node.gpus);
    out.rows.push_back({name, c.cluster.node.gpu.name, text(gpus),
                        c.cluster.fabric ? c.cluster.fabric->name : "",
                        c.power_limit ? text(c.power_limit->base_units() * 1e-6) : "", c.about});
  }
  return out;
}

Listing list_profiles(const PresetStore& presets) {
  Listing out{{{"name", "name", false},
               {"gpu", "GPU", false},
               {"products", "products"},
               {"attention", "attention"},
               {"memory_bound", "memory-bound"},
               {"collectives", "collectives"},
               {"about", "about", false}},
              {}};
  for (const std::string& name : presets.names("profiles")) {
    const Profile p = load_profile(name, presets);
    const auto count = [](const auto& points) { return text(static_cast<double>(points.size())); };
    out.rows.push_back({name, p.gpu, count(p.gemm), count(p.attention), count(p.memory),
                        count(p.collectives), p.about});
  }
  return out;
}

Listing list_scenarios(const PresetStore& presets) {
  Listing out{{{"name", "name", false}, {"command", "for", false}, {"about", "about", false}}, {}};
  for (const ShippedScenario& each : shipped_scenarios(presets)) {
    out.rows.push_back({each.name, "lockstep " + each.command, each.sentence});
  }
  return out;
}

/// The kinds that are a table in the code: name, summary, source.
template <class Kinds>
Listing list_table(const Kinds& kinds) {
  Listing out{{{"name", "name", false}, {"summary", "summary", false}, {"source", "source", false}},
              {}};
  for (const auto& kind : kinds) {
    out.rows.push_back(
        {std::string(kind.name), std::string(kind.summary), std::string(kind.source)});
  }
  return out;
}

Listing list_collectives(const PresetStore&) { return list_table(collective_kinds()); }
Listing list_fabric_kinds(const PresetStore&) { return list_table(fabric_kinds()); }
Listing list_routings(const PresetStore&) { return list_table(routings()); }
Listing list_algorithms(const PresetStore&) { return list_table(collective_algorithms()); }
Listing list_schedules(const PresetStore&) { return list_table(schedules()); }

/// Adds the members, those of members behind a dot, those of a list's elements behind ".*.".
void add_field_rows(std::span<const FieldInfo> fields, const std::string& before,
                    std::string_view answer, Listing& out) {
  constexpr std::array<std::string_view, 3> kBetter{"", "more", "less"};
  for (const FieldInfo& field : fields) {
    const std::string name = before + field.name;
    const std::string means =
        field.successor.empty() ? field.sentence : "Old name of " + before + field.successor + ".";
    const std::string_view unit = field.is_number() ? unit_at(name) : field.unit();
    out.rows.push_back({name, std::string(answer), std::string(unit),
                        std::string(kBetter[static_cast<std::size_t>(field.better)]), means});
    const bool several = field.kind == FieldKind::objects || field.kind == FieldKind::named_objects;
    const std::string inside = name + (several ? ".*." : ".");
    add_field_rows(field.members, inside, answer, out);
  }
}

Listing list_fields(const PresetStore&) {
  Listing out{{{"name", "member", false},
               {"answer", "answer to", false},
               {"unit", "unit", false},
               {"better", "better", false},
               {"about", "what it is", false}},
              {},
              true};
  for (const AnswerKind kind : kAnswerKinds) {
    add_field_rows(answer_fields(kind), "", name_of(kind), out);
  }
  for (const CommandFields& command : command_fields()) {
    add_field_rows(command.fields(), "", command.answer, out);
  }
  add_field_rows(diagnosis_fields(), "", "diagnose", out);
  add_field_rows(certificate_fields(), "", "check", out);
  return out;
}

Listing list_keys(const PresetStore& presets) {
  Listing out{{{"key", "key", false},
               {"of", "of", false},
               {"value", "value", false},
               {"unit", "unit", false},
               {"allowed", "allowed", false},
               {"default", "default", false},
               {"about", "what it is", false}},
              {},
              true};
  for (ScenarioKey& key : scenario_keys(presets)) {
    out.rows.push_back({std::move(key.path), std::move(key.of), std::move(key.value),
                        std::move(key.unit), std::move(key.allowed), std::move(key.default_rule),
                        std::move(key.sentence)});
  }
  return out;
}

constexpr std::array kKinds{
    ListKind{"gpus", "gpu", "GPU kinds", true, list_gpus},
    ListKind{"nodes", "node", "node types, with the GPUs and NICs in them", true, list_nodes},
    ListKind{"models", "model", "language models", true, list_models},
    ListKind{"stacks", "stack", "training software", true, list_stacks},
    ListKind{"operators", "operator", "counts that stacks are composed from", true, list_operators},
    ListKind{"engines", "engine", "inference engines", true, list_engines},
    ListKind{"nvlinks", "nvlink", "collectives inside a node or NVLink domain", true, list_nvlinks},
    ListKind{"fabrics", "fabric", "networks between nodes", true, list_fabrics},
    ListKind{"fabric-kinds", "fabric-kind", "kinds of networks", false, list_fabric_kinds},
    ListKind{"routings", "routing", "ways of routing", false, list_routings},
    ListKind{"transports", "transport", "network transports as collectives see them", true,
             list_transports},
    ListKind{"reliability", "reliability", "failure rates of components, as they were counted",
             true, list_reliability},
    ListKind{"storages", "storage", "shared storage for checkpoints", true, list_storages},
    ListKind{"chassis", "chassis", "servers around GPUs, and what they draw", true, list_chassis},
    ListKind{"facilities", "facility", "sites around machines", true, list_facilities},
    ListKind{"clusters", "cluster", "clusters that were built", true, list_clusters},
    ListKind{"profiles", "profile", "kernels and collectives as they were timed", true,
             list_profiles},
    ListKind{"scenarios", "scenario", "scenarios that ship, by name", false, list_scenarios},
    ListKind{"collectives", "collective", "collective operations", false, list_collectives},
    ListKind{"algorithms", "algorithm", "algorithms of collectives", false, list_algorithms},
    ListKind{"schedules", "schedule", "pipeline schedules", false, list_schedules},
    ListKind{"fields", "field", "members of the JSON of `lockstep run` and of other commands",
             false, list_fields},
    ListKind{"keys", "key", "keys of scenarios, as files and `--set` have them", false, list_keys},
};

}  // namespace

std::span<const ListKind> list_kinds() { return kKinds; }

const ListKind& list_kind(std::string_view name) {
  std::vector<std::string> names;
  for (const ListKind& kind : kKinds) {
    if (name == kind.plural || name == kind.singular) return kind;
    names.emplace_back(kind.plural);
  }
  throw UsageError(fmt::format("unknown kind {}; allowed: {}{}", in_quotes(name),
                               fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace lockstep
