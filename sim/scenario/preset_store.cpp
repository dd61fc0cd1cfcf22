#include "sim/scenario/preset_store.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/preset_files.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 14> kKinds{
    "gpus",        "nodes",    "models",  "stacks",     "fabrics",  "transports", "nvlinks",
    "reliability", "storages", "chassis", "facilities", "clusters", "profiles",   "engines"};

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

/// Reads the stack and what the release changes of it.
StackPreset read_stack_preset(const JsonCursor& root, const std::string& name,
                              const std::string& release) {
  StackPreset preset;
  declare_stack({root, Extent::whole}, preset.spec);
  read_stack_capabilities(root, Extent::whole, preset.spec);
  preset.spec.name = name;
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
  std::map<std::pair<std::string, std::string>, StackPreset> stacks;  ///< by name and release
  std::map<std::string, std::string, std::less<>> aliases;  ///< of stacks, once one was asked for

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
  if (std::string found = canonical_preset(state_->folders, kind, written); !found.empty()) {
    return found;
  }
  if (kind != "stacks") return {};
  const std::lock_guard lock(state_->mutex);
  if (state_->aliases.empty()) state_->aliases = read_aliases(*this);
  const auto found = state_->aliases.find(as_preset_name(written));
  return found == state_->aliases.end() ? std::string() : found->second;
}

std::string PresetStore::path(std::string_view kind, std::string_view name) const {
  const std::string found = meant(kind, name);
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

const StackPreset& PresetStore::stack(std::string_view name, std::string_view release) const {
  const std::lock_guard lock(state_->mutex);
  const std::string known = meant("stacks", name);
  const std::pair<std::string, std::string> key(known.empty() ? name : known, release);
  if (const auto found = state_->stacks.find(key); found != state_->stacks.end()) {
    return found->second;
  }
  const JsonCursor root = parse_preset(path("stacks", key.first));
  StackPreset preset =
      root.read_whole([&] { return read_stack_preset(root, key.first, key.second); });
  return state_->stacks.emplace(key, std::move(preset)).first->second;
}

std::vector<PresetRow> PresetStore::show(std::string_view kind, std::string_view name) const {
  return preset_rows(parse_preset(path(kind, name)));
}

}  // namespace lockstep
