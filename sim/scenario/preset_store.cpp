#include "sim/scenario/preset_store.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/preset_changes.hpp"
#include "sim/scenario/preset_files.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/stack_choice.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 15> kKinds{
    "gpus",       "nodes",    "models",      "stacks",   "fabrics",
    "transports", "nvlinks",  "reliability", "storages", "chassis",
    "facilities", "clusters", "profiles",    "engines",  "operators"};

JsonCursor parse_preset(const std::string& path) {
  return JsonCursor::parse(path, read_text_file(path), JsonStyle::sourced);
}

/// Other names of stacks, and whose they are.
std::map<std::string, std::string, std::less<>> read_aliases(const PresetStore& presets) {
  std::map<std::string, std::string, std::less<>> out;
  constexpr std::size_t kMostAliases = 100;
  for (const std::string& stack : presets.names("stacks")) {
    const JsonCursor root = parse_preset(presets.path("stacks", stack));
    const auto aliases = root.find("aliases");
    if (!aliases) continue;
    for (const JsonCursor& alias : aliases->elements(kMostAliases)) {
      out.emplace(as_preset_name(alias.string()), stack);
    }
  }
  return out;
}

/// What the stack can run, where the preset says it. A scenario has no such key: it says what it
/// allows beyond that.
void read_stack_capabilities(const JsonCursor& root, Extent extent, StackSpec& out) {
  const auto from = root.find("capabilities");
  if (!from) return;
  if (!out.capabilities) out.capabilities.emplace();
  read_capabilities(*from, extent, *out.capabilities);
}

/// A preset of one's own, by the path of its file.
bool is_file(std::string_view name) { return name.ends_with(".json"); }

/// The machine and the job of which a composed preset's numbers are; choose_stack() makes them
/// those of the job at hand.
constexpr ComposedFor kAnyJob{};

/// What the stack does, where the preset says it, and the numbers that follow from it where it is
/// composed.
void read_features(const JsonCursor& root, Extent extent, const PresetStore& presets,
                   StackSpec& out) {
  StackSwitches switches = out.switches.value_or(StackSwitches{});
  const StackSwitches start = switches;
  const auto features = root.find("features");
  if (features) {
    declare_switches({*features, extent}, switches);
    features->finish();
    out.switches = switches;
  }
  // What a composed stack has beside its switches stays where another one starts from it.
  if (features && extent == Extent::changes && out.composed && root.find("framework")) {
    StackSpec old, changed;
    compose(start, presets.operator_costs(), kAnyJob, old);
    compose(switches, presets.operator_costs(), kAnyJob, changed);
    return shift(old, changed, out);
  }
  // As scenarios write them: what lockstep learn was given is what it gives back.
  const StackSwitches before = switches;
  declare_switches({root, Extent::changes}, switches);
  if (switches != before) {
    if (!out.switches) root.fail("a stack that starts from one that says what it does");
    if (!out.composed) {
      StackSpec old, changed;
      compose(before, presets.operator_costs(), kAnyJob, old);
      compose(switches, presets.operator_costs(), kAnyJob, changed);
      shift(old, changed, out);
      out.switches = switches;
      out.composed = true;
      return;
    }
  }
  const auto composed = root.find("composed");
  if (composed && composed->boolean()) out.composed = true;
  if (!out.composed) return;
  out.switches = switches;
  compose(switches, presets.operator_costs(), kAnyJob, out);
}

/// Where a preset starts: from nothing, from another one as it is, or from what another one does.
StackSpec stack_to_start_from(const JsonCursor& root, const PresetStore& presets) {
  const auto framework = root.find("framework"), preset = root.find("preset");
  if (framework && preset) framework->fail(R"(either "framework" or "preset")");
  if (!framework && !preset) return {};
  const JsonCursor& name = framework ? *framework : *preset;
  const auto release = root.find("release");
  StackSpec out = presets
                      .stack(read_bare_preset_name(name, "stacks", presets),
                             release ? release->string() : std::string())
                      .spec;
  if (!framework) {
    out.starts_from = out.name;
    return out;
  }
  if (!out.switches) name.fail("a stack that says what it does");
  if (!out.composed) compose(*out.switches, presets.operator_costs(), kAnyJob, out);
  out.composed = true;
  out.constants_at_bounds.clear();
  return out;
}

/// Reads the stack and what the release changes of it.
StackPreset read_stack_preset(const JsonCursor& root, const std::string& name,
                              const std::string& release, const PresetStore& presets) {
  StackPreset preset;
  preset.spec = stack_to_start_from(root, presets);
  const bool whole = preset.spec.name.empty();
  const Extent extent = whole ? Extent::whole : Extent::changes;
  read_features(root, extent, presets, preset.spec);
  const StackSpec before = preset.spec;
  declare_stack({root, extent}, preset.spec);
  read_stack_capabilities(root, extent, preset.spec);
  if (const auto allow = root.find("allow")) preset.spec.allowed = read_allowed(*allow);
  declare_learnt({root, Extent::changes}, preset.spec.learnt);
  // Steps that taught a stack were run with what its file changes.
  if (!whole && !preset.spec.composed && preset.spec.learnt.empty()) {
    preset.spec.changed = changed_constants(before, preset.spec);
  }
  // Software that nobody named is refused nothing, whatever it learnt, and neither is what was
  // composed from a framework and taught by steps.
  const auto framework = root.find("framework");
  const bool unnamed = preset.spec.starts_from == kDefaultStack ||
                       (framework && framework->string() == kDefaultStack);
  if (unnamed || (framework && !preset.spec.learnt.empty())) {
    preset.spec.capabilities.reset();
  }
  preset.spec.name = is_file(name) ? std::filesystem::path(name).stem().string() : name;
  const std::optional<JsonCursor> releases = root.find("releases");
  (void)root.find("aliases");                                            // read_aliases()
  if (const auto shared = root.find("public")) (void)shared->boolean();  // is_public()
  root.finish();
  if (release.empty()) return preset;
  const std::vector<std::string> known = releases ? releases->keys() : std::vector<std::string>{};
  if (known.empty()) {
    preset.spec.release = release;
    preset.assumption = "release " + release + ": taken as any other, for " + name + " knows none";
    return preset;
  }
  preset.spec.release = nearest_release(release, known);
  if (preset.spec.release != release) {
    preset.spec.release_stands_in = true;
    preset.assumption = "release " + release + ": taken as " + preset.spec.release +
                        ", the nearest that " + name + " knows";
  }
  const JsonCursor changes = releases->at(preset.spec.release);
  declare_stack({changes, Extent::changes}, preset.spec);
  read_stack_capabilities(changes, Extent::changes, preset.spec);
  changes.finish();
  return preset;
}

}  // namespace

struct PresetStore::State {
  std::vector<std::string> folders;
  // Specs that were read, by name. A node reads its GPU, which reads its NVLink.
  std::recursive_mutex mutex;
  std::map<std::string, GpuSpec, std::less<>> gpus;
  std::map<std::string, NodeSpec, std::less<>> nodes;
  std::map<std::string, TransformerShape, std::less<>> models;
  std::map<std::string, FabricSpec, std::less<>> fabrics;
  std::map<std::string, TransportSpec, std::less<>> transports;
  std::map<std::string, IntraNodeCollectives, std::less<>> nvlinks;
  std::map<std::string, ReliabilitySpec, std::less<>> reliability;
  std::map<std::string, StorageSpec, std::less<>> storages;
  std::map<std::string, ChassisSpec, std::less<>> chassis;
  std::map<std::string, FacilitySpec, std::less<>> facilities;
  std::map<std::string, ClusterPreset, std::less<>> clusters;
  std::map<std::string, OperatorCosts, std::less<>> operators;
  std::map<std::pair<std::string, std::string>, StackPreset> stacks;  ///< by name and release
  std::set<std::string> stacks_begun;  ///< that are being read: one may start from another
  std::map<std::string, std::string, std::less<>> aliases;  ///< of stacks, once one was asked for
  using Names = std::map<std::string, std::string, std::less<>>;
  std::map<std::string, Names, std::less<>>
      meant;  ///< by kind, of names that were found in folders

  /// The spec of that name; `read(root, spec)` makes it when it is asked for the first time.
  template <class Spec, class Read>
  const Spec& get(std::map<std::string, Spec, std::less<>>& cache, const PresetStore& store,
                  std::string_view kind, std::string_view name, Read read) {
    const std::lock_guard lock(mutex);
    if (const auto found = cache.find(name); found != cache.end()) return found->second;
    const JsonCursor root = parse_preset(store.path(kind, name));
    Spec whole = root.read_whole([&] {
      Spec spec;
      read(root, spec);
      root.finish();
      return spec;
    });
    return cache.emplace(std::string(name), std::move(whole)).first->second;
  }
};

PresetStore::PresetStore(std::vector<std::string> folders) : state_(std::make_unique<State>()) {
  state_->folders = preset_folders(std::move(folders), {.beside_program = LOCKSTEP_BESIDE_PRESETS,
                                                        .source_tree = LOCKSTEP_SOURCE_PRESETS,
                                                        .installed = LOCKSTEP_INSTALL_PRESETS});
}
PresetStore::~PresetStore() = default;

std::span<const std::string_view> PresetStore::kinds() { return kKinds; }

std::vector<std::string> PresetStore::names(std::string_view kind) const {
  if (std::ranges::find(kKinds, kind) == kKinds.end()) {
    const std::vector<std::string> known(kKinds.begin(), kKinds.end());
    throw InputError(
        {"presets", "", "the kind " + in_quotes(kind), listed(known), nearest_name(kind, known)});
  }
  std::vector<std::string> found = preset_names(state_->folders, kind);
  if (found.empty()) throw no_presets(kind, state_->folders);
  return found;
}

bool PresetStore::has(std::string_view kind, std::string_view name) const {
  return !meant(kind, name).empty();
}

std::string PresetStore::meant(std::string_view kind, std::string_view written) const {
  const std::lock_guard lock(state_->mutex);
  // Every point of a sweep asks for the same few, and each time would look into all folders.
  const auto of_kind = state_->meant.find(kind);
  if (of_kind != state_->meant.end()) {
    if (const auto known = of_kind->second.find(written); known != of_kind->second.end()) {
      return known->second;
    }
  }
  if (std::string found = canonical_preset(state_->folders, kind, written); !found.empty()) {
    state_->meant[std::string(kind)].emplace(written, found);
    return found;
  }
  if (kind != "stacks") return {};
  if (is_file(written) && std::filesystem::exists(written)) return std::string(written);
  if (state_->aliases.empty()) state_->aliases = read_aliases(*this);
  const auto found = state_->aliases.find(as_preset_name(written));
  return found == state_->aliases.end() ? std::string() : found->second;
}

std::string PresetStore::path(std::string_view kind, std::string_view name) const {
  std::string found = meant(kind, name);
  if (is_file(found)) return found;
  if (!found.empty()) return find_preset_file(state_->folders, kind, found);
  const std::vector<std::string> known = names(kind);
  throw InputError({"presets of " + std::string(kind), "", in_quotes(name), listed(known),
                    nearest_name(name, known)});
}

const GpuSpec& PresetStore::gpu(std::string_view name) const {
  return state_->get(state_->gpus, *this, "gpus", name, [&](const JsonCursor& root, GpuSpec& spec) {
    declare_gpu({root, Extent::whole}, *this, spec);
    spec.name = name;
  });
}

const NodeSpec& PresetStore::node(std::string_view name) const {
  return state_->get(state_->nodes, *this, "nodes", name,
                     [&](const JsonCursor& root, NodeSpec& spec) {
                       declare_node({root, Extent::whole}, *this, spec);
                       spec.name = name;
                     });
}

const TransformerShape& PresetStore::model(std::string_view name) const {
  return state_->get(state_->models, *this, "models", name,
                     [&](const JsonCursor& root, TransformerShape& spec) {
                       declare_model({root, Extent::whole}, spec);
                       spec.name = name;
                     });
}

const FabricSpec& PresetStore::fabric(std::string_view name) const {
  return state_->get(state_->fabrics, *this, "fabrics", name,
                     [&](const JsonCursor& root, FabricSpec& spec) {
                       declare_fabric({root, Extent::whole}, *this, spec);
                       spec.name = name;
                     });
}

const TransportSpec& PresetStore::transport(std::string_view name) const {
  return state_->get(state_->transports, *this, "transports", name,
                     [&](const JsonCursor& root, TransportSpec& spec) {
                       declare_transport({root, Extent::whole}, spec);
                       spec.name = meant("transports", name);
                     });
}

const IntraNodeCollectives& PresetStore::nvlink(std::string_view name) const {
  return state_->get(state_->nvlinks, *this, "nvlinks", name,
                     [](const JsonCursor& root, IntraNodeCollectives& spec) {
                       declare_collectives({root, Extent::whole}, spec);
                     });
}

const ReliabilitySpec& PresetStore::reliability(std::string_view name) const {
  return state_->get(state_->reliability, *this, "reliability", name,
                     [&](const JsonCursor& root, ReliabilitySpec& spec) {
                       declare_reliability({root, Extent::whole}, spec);
                       spec.name = name;
                     });
}

const ChassisSpec& PresetStore::chassis(std::string_view name) const {
  return state_->get(state_->chassis, *this, "chassis", name,
                     [&](const JsonCursor& root, ChassisSpec& spec) {
                       declare_chassis({root, Extent::whole}, spec);
                       spec.name = name;
                     });
}

const StorageSpec& PresetStore::storage(std::string_view name) const {
  return state_->get(state_->storages, *this, "storages", name,
                     [&](const JsonCursor& root, StorageSpec& spec) {
                       declare_storage({root, Extent::whole}, spec);
                       spec.name = name;
                     });
}

const FacilitySpec& PresetStore::facility(std::string_view name) const {
  return state_->get(state_->facilities, *this, "facilities", name,
                     [&](const JsonCursor& root, FacilitySpec& spec) {
                       declare_facility({root, Extent::whole}, spec);
                       spec.name = name;
                     });
}

const ClusterPreset& PresetStore::cluster(std::string_view name) const {
  return state_->get(state_->clusters, *this, "clusters", name,
                     [&](const JsonCursor& root, ClusterPreset& spec) {
                       declare_cluster_preset({root, Extent::whole}, *this, spec);
                       spec.name = name;
                     });
}

const OperatorCosts& PresetStore::operator_costs() const {
  return state_->get(state_->operators, *this, "operators", "counted",
                     [](const JsonCursor& root, OperatorCosts& spec) {
                       declare_operator_costs({root, Extent::whole}, spec);
                     });
}

const StackPreset& PresetStore::stack(std::string_view name, std::string_view release) const {
  const std::lock_guard lock(state_->mutex);
  const std::string known = meant("stacks", name);
  const std::pair<std::string, std::string> key(known.empty() ? name : known, release);
  if (const auto found = state_->stacks.find(key); found != state_->stacks.end()) {
    return found->second;
  }
  const JsonCursor root = parse_preset(path("stacks", key.first));
  const auto [place, is_new] = state_->stacks_begun.insert(key.first);
  if (!is_new) root.fail("a stack that does not start from itself");
  const auto ended = [&](std::set<std::string>* begun) { begun->erase(key.first); };
  const std::unique_ptr<std::set<std::string>, decltype(ended)> begun(&state_->stacks_begun, ended);
  StackPreset preset =
      root.read_whole([&] { return read_stack_preset(root, key.first, key.second, *this); });
  return state_->stacks.emplace(key, std::move(preset)).first->second;
}

std::vector<PresetRow> PresetStore::show(std::string_view kind, std::string_view name) const {
  return preset_rows(parse_preset(path(kind, name)));
}

}  // namespace lockstep
