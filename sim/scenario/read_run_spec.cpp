#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <span>
#include <utility>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

/// Spares of a run that says nothing about them: more than can ever be broken.
constexpr int kAlwaysAtHand = 1'000'001;  // more than anybody can write

constexpr std::array<std::string_view, 3> kTargets{"storage", "local", "peers"};
constexpr std::array<std::string_view, 2> kModes{"synchronous", "asynchronous"};

constexpr Interval kRunSeconds{0, 1e9};
constexpr Interval kTimeAboveZero{0, 1e9, true};
constexpr Interval kCheckpointInterval{1e-6, 1e9};
constexpr Interval kStorageRate{1e6, 1e16, true};
constexpr Interval kClientRate{1e6, 1e16, false, true};
constexpr std::size_t kMostTiers = 8;
constexpr Interval kDatasetBytes{1, 1e24};
constexpr Interval kDataUsd{0, 1e3};
constexpr int kMostNodes = 1'000'000;
constexpr int kMostServers = 1'000'000;
constexpr int kMostSeed = 2'000'000'000;
constexpr int kMostRunSteps = 2'000'000'000;

/// Servers or their sum: whichever the object gives, but not both.
void check_storage(const JsonCursor& from, Extent extent, StorageSpec& out) {
  if (out.network == StorageNetwork::local) {
    for (const std::string_view key : {"servers", "server_link", "client_write", "client_read"}) {
      if (const auto excess = from.find(key)) excess->fail(R"(nothing beside "network": "local")");
    }
    if (out.servers > 0) from.at("network").fail("own, training: it has servers that nodes share");
  }
  if (out.servers == 0) {
    for (const std::string_view key : {"server_write", "server_read", "server_link"}) {
      if (const auto excess = from.find(key)) excess->fail("only beside \"servers\"");
    }
    if (extent == Extent::changes) return;
    out.write = from.at("write").data_rate(kStorageRate);
    out.read = from.at("read").data_rate(kStorageRate);
    return;
  }
  for (const std::string_view key : {"write", "read"}) {
    if (const auto total = from.find(key)) {
      total->fail("nothing beside \"servers\", which add up to it");
    }
  }
  if (out.server_write <= BytesPerSecond{}) {
    out.server_write = from.at("server_write").data_rate(kStorageRate);
  }
  if (out.server_read <= BytesPerSecond{}) {
    out.server_read = from.at("server_read").data_rate(kStorageRate);
  }
  add_up_servers(out);
}

/// A preset's name, a preset with changes, or a storage of its own.
StorageSpec read_storage_choice(const JsonCursor& from, const PresetStore& presets) {
  StorageSpec storage;
  storage.name = "storage of the scenario";
  if (!from.is_object() || from.find("preset")) {
    storage = presets.storage(read_preset_name(from, "storages", presets));
    if (from.is_object()) declare_storage({from, Extent::changes}, storage);
  } else {
    declare_storage({from, Extent::whole}, storage);
  }
  if (from.is_object()) from.finish();
  return storage;
}

/// A node's drives: how fast they are, or a storage that each node has.
StorageSpec read_drives(const JsonCursor& from, const PresetStore& presets) {
  if (const auto storage = from.find("storage")) {
    if (const auto drive = from.find("drive")) drive->fail("nothing beside \"storage\"");
    const StorageSpec drives = read_storage_choice(*storage, presets);
    if (drives.network != StorageNetwork::local) {
      storage->fail(R"(drives of each node: a storage with "network": "local")");
    }
    return drives;
  }
  StorageSpec drives;
  drives.name = "drives of the nodes";
  drives.network = StorageNetwork::local;
  drives.write = drives.read = from.at("drive").data_rate(kStorageRate);
  return drives;
}

CheckpointSpec read_checkpoint(const JsonCursor& from, const PresetStore& presets) {
  CheckpointSpec spec;
  declare_checkpoint({from, Extent::whole}, spec);
  spec.name = kTargets[static_cast<std::size_t>(spec.target)];
  const bool measured = spec.blocks && spec.finishes && spec.restores;
  if (spec.target == CheckpointTarget::storage) {
    if (const auto storage = from.find("storage")) {
      spec.storage = read_storage_choice(*storage, presets);
      if (spec.storage->network == StorageNetwork::local) {
        storage->fail(R"(one that outlives a node; drives of the nodes are for "to": "local")");
      }
    } else if (!measured) {
      spec.storage = read_storage_choice(from.at("storage"), presets);
    }
  }
  if (spec.target == CheckpointTarget::local) spec.storage = read_drives(from, presets);
  for (const std::string_view key : {"storage", "drive"}) {
    const bool used = spec.target == CheckpointTarget::local ||
                      (key == "storage" && spec.target == CheckpointTarget::storage);
    if (const auto excess = from.find(key); excess && !used) {
      excess->fail(fmt::format(R"(nothing beside "to": "{}")", spec.name));
    }
  }
  from.finish();
  return spec;
}

/// One kind of checkpoint, or several.
void read_tiers(const JsonCursor& from, const PresetStore& presets, RunSpec& out) {
  const auto add = [&](const JsonCursor& tier, const std::string& place) {
    out.checkpoints.push_back(read_checkpoint(tier, presets));
    if (tier.find("storage_share")) return;
    out.assumptions.push_back(fmt::format(
        "{}.storage_share: an advised interval writes at most {:g} % of what {} (not given)", place,
        100 * out.checkpoints.back().storage_share,
        out.checkpoints.back().target == CheckpointTarget::peers ? "the nodes' NICs sustain"
                                                                 : "the storage sustains"));
  };
  if (!from.is_array()) return add(from, "run.checkpoint");
  int number = 0;
  for (const JsonCursor& tier : from.elements(kMostTiers)) {
    add(tier, fmt::format("run.checkpoint[{}]", number++));
  }
}

/// The storage of the training data: that of the checkpoints where they name none.
StorageSpec read_data_storage(const JsonCursor& from, const RunSpec& run,
                              const PresetStore& presets) {
  if (const auto storage = from.find("storage")) return read_storage_choice(*storage, presets);
  const auto shared = std::ranges::find_if(run.checkpoints, [](const CheckpointSpec& spec) {
    return spec.target == CheckpointTarget::storage && spec.storage;
  });
  if (shared != run.checkpoints.end()) return *shared->storage;
  return read_storage_choice(from.at("storage"), presets);
}

void declare_tier(const DeclaredMembers& member, DataTier& out) {
  member.required("name", out.name, "What answers call it");
  member.required("read", out.read, kStorageRate, "All clients together");
  member.optional("write", out.write, kStorageRate,
                  "All clients together; required of all but the first");
  member.optional("first_byte", out.first_byte, kRunSeconds,
                  "Until it reads at its rate, such as an archive's retrieval; default: 0");
  member.optional("usd_per_gb_month", out.usd_per_gb_month, kDataUsd,
                  "For 1e9 bytes, until the run is done; default: 0");
  member.optional("usd_per_gb_read", out.usd_per_gb_read, kDataUsd,
                  "For 1e9 bytes that leave it; default: 0");
}

void read_data_tiers(const JsonCursor& list, DataSpec& out) {
  for (const JsonCursor& at : list.elements(kMostTiers)) {
    DataTier tier;
    declare_tier({at, Extent::whole}, tier);
    if (!out.tiers.empty()) tier.write = at.at("write").data_rate(kStorageRate);
    at.finish();
    const auto same = std::ranges::find(out.tiers, tier.name, &DataTier::name);
    if (same != out.tiers.end()) at.at("name").fail("a name that no other tier has");
    out.tiers.push_back(std::move(tier));
  }
}

void declare_node_cache(const DeclaredMembers& member, NodeCacheSpec& out) {
  member.required("per_node", out.per_node, kDatasetBytes, "That a node's drives hold");
  member.required("read", out.read, kStorageRate, "Of one node");
  member.required("write", out.write, kStorageRate, "Of one node");
}

void declare_loader(const DeclaredMembers& member, LoaderSpec& out) {
  member.required("cores_per_node", out.cores_per_node, 1, 100'000, "That decode and pack");
  member.required("tokens_per_core_s", out.tokens_per_core_s, Interval{0, 1e12, true},
                  "That each core makes ready in a second");
}

void declare_staging(const DeclaredMembers& member, DataSpec& out) {
  member.optional("dataset", out.dataset, kDatasetBytes,
                  "All of it; required beside tiers, cache and usd_per_gb_month; default: as much "
                  "as the run reads, once");
  member.optional(
      "tiers", kMostTiers, "", "Where it lies at first and what it passes on its way to storage",
      [](const DeclaredMembers& one) {
        DataTier tier;
        declare_tier(one, tier);
      },
      [&](const JsonCursor& list) { read_data_tiers(list, out); });
  member.optional("staging", out.staging, kDataStagings,
                  "before: the job begins when all of it is in storage; during: with the first of "
                  "it; default: before");
  member.optional("usd_per_gb_month", out.usd_per_gb_month, kDataUsd,
                  "Of storage, for 1e9 bytes; default: 0");
}

void declare_data(const DeclaredMembers& member, DataSpec& out) {
  member.required("bytes_per_token", out.bytes_per_token, Interval{0, 1e9, true},
                  "Text: 2 to 4, the width of a token's number");
  member.optional("storage", shared_type("storage"), "Default: that of the checkpoints",
                  [](const JsonCursor&) {});  // read_data_storage(): it depends on these
  declare_staging(member, out);
  member.optional("cache", out.cache, "Drives of the nodes that keep what was read once",
                  declare_node_cache);
  member.optional("loader", out.loader,
                  "CPUs that make batches of what is read; default: as many "
                  "as it takes",
                  declare_loader);
  const JsonCursor* const from = member.object();
  if (from != nullptr && (out.cache || !out.tiers.empty() || from->find("usd_per_gb_month"))) {
    out.dataset = from->at("dataset").bytes(kDatasetBytes);
  }
}

void declare_recovery(const DeclaredMembers& member, RunSpec& run) {
  RecoverySpec& out = run.recovery;
  member.optional("detects_crash", out.detects_crash, kRunSeconds, "Until a crash is noticed");
  member.optional("detects_hang", out.detects_hang, kRunSeconds, "Until a watchdog ends a hang");
  member.optional("diagnoses", out.diagnoses, kRunSeconds, "To find the broken node");
  member.optional("misdiagnosed", out.misdiagnosed, Interval{0, 0.99},
                  "How likely the bad node stays in, and fails again after the restart");
  member.optional("restarts", out.restarts, kRunSeconds, "Scheduler, processes, warm-up");
  member.optional("restarts_per_thousand_ranks", run.restarts_per_thousand_ranks, kRunSeconds,
                  "Of communicators, beside \"restarts\"");
}

void declare_spares(const DeclaredMembers& member, RunSpec& run) {
  SpareSpec& out = run.spares;
  member.optional("hot", out.hot, 0, kMostNodes, "Idle and at hand; repaired nodes join them");
  member.optional("warm", out.warm, 0, kMostNodes, "In other use");
  member.optional("warm_takes", out.warm_takes, kRunSeconds, "To get a warm spare");
  member.optional("repair", out.repair, kRunSeconds, "Mean, exponential");
  member.optional("crews", out.crews, 0, kMostNodes,
                  "That repair one node each at a time; 0: as many as needed");
  member.optional("elastic", run.elastic, 0, 1000,
                  "Replicas that the job goes on without when no spare is left");
}

/// A key that a scenario may leave out, and what its default says.
struct DefaultWords {
  std::string_view key, words;
};
/// Those of the keys that `from` (or nothing at all) leaves out; empty: none.
std::string left_out(const std::optional<JsonCursor>& from, std::span<const DefaultWords> keys) {
  std::vector<std::string_view> words;
  for (const DefaultWords& of : keys) {
    if (!from || !from->find(of.key)) words.push_back(of.words);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}
void assume(std::string_view place, const std::string& words, RunSpec& out) {
  if (!words.empty()) out.assumptions.push_back(fmt::format("{}: {} (not given)", place, words));
}

constexpr std::array<DefaultWords, 6> kRecoveryDefaults{
    {{"detects_crash", "30 s to detect a crash"},
     {"detects_hang", "10 min to detect a hang"},
     {"diagnoses", "2 min to diagnose"},
     {"misdiagnosed", "never the wrong node"},
     {"restarts", "3 min to restart"},
     {"restarts_per_thousand_ranks", "3 s more to restart for each 1,000 ranks"}}};
constexpr std::array<DefaultWords, 1> kHotDefault{{{"hot", "none"}}};
constexpr std::array<DefaultWords, 2> kSpareDefaults{
    {{"repair", "1 d to repair a node"},
     {"crews", "as many repairs at a time as there are broken nodes"}}};

/// Throws for a mode that needs the size of a domain which nobody gave.
void check_domains(const JsonCursor& from, RunSpec& out) {
  bool racks = false;
  for (const ReliabilityMode& of : out.reliability.modes) {
    const auto uses = [&](FailingComponent component, FailureScope scope) {
      return of.component == component || of.mode.scope == scope;
    };
    racks = racks || uses(FailingComponent::rack, FailureScope::rack);
    if (out.domains.switch_nodes == 0 &&
        uses(FailingComponent::switch_nodes, FailureScope::switch_nodes)) {
      out.domains.switch_nodes = from.at("nodes_per_switch").integer(1, kMostNodes);
    }
    if (out.domains.feed == 0 && uses(FailingComponent::feed, FailureScope::feed)) {
      out.domains.feed = from.at("nodes_per_feed").integer(1, kMostNodes);
    }
  }
  if (racks && !from.find("nodes_per_rack")) {
    assume("run.nodes_per_rack", std::to_string(out.domains.rack), out);
  }
}

/// How often what fails: the scenario's own rates, a preset's, or those that its cluster has.
void read_rates(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site,
                RunSpec& spec) {
  if (!from.find("reliability") && !site.reliability.empty()) {
    spec.reliability = presets.reliability(site.reliability);
    spec.assumptions.push_back(
        fmt::format("run.reliability: {} (of the cluster preset {})", site.reliability, site.name));
    return;
  }
  const JsonCursor reliability = from.at("reliability");
  if (!reliability.is_object()) {
    spec.reliability = presets.reliability(read_preset_name(reliability, "reliability", presets));
    return;
  }
  spec.reliability.name = "rates of the scenario";
  spec.reliability.own = true;
  declare_reliability({reliability, Extent::whole}, spec.reliability);
  reliability.finish();
}

}  // namespace

void declare_storage(const DeclaredMembers& member, StorageSpec& out) {
  member.optional("about", out.about, "");
  member.optional("network", out.network, kStorageNetworks,
                  "own: gradients do not meet it; training: over the NICs that carry gradients; "
                  "local: none, each node has such a storage; default: own");
  member.optional("write", out.write, kStorageRate, "All servers together; local: of one node");
  member.optional("read", out.read, kStorageRate, "All servers together; local: of one node");
  member.optional("servers", out.servers, 1, kMostServers, "Instead of write and read");
  member.optional("server_write", out.server_write, kStorageRate, "Of one server's drives");
  member.optional("server_read", out.server_read, kStorageRate, "Of one server's drives");
  member.optional("server_link", out.server_link, kClientRate,
                  "Of one server, each way; default: no limit");
  member.optional("client_write", out.client_write, kClientRate, "Of one node; default: its NICs");
  member.optional("client_read", out.client_read, kClientRate, "Of one node; default: its NICs");
  member.optional("metadata", out.metadata, kRunSeconds, "To open and close all files");
  if (member.object() != nullptr) check_storage(*member.object(), member.extent(), out);
}

void declare_checkpoint(const DeclaredMembers& member, CheckpointSpec& out) {
  const auto later = [](const JsonCursor&) {};  // read_checkpoint(): it depends on "to"
  member.optional("to", out.target, kTargets, "Default: storage");
  member.optional("mode", choice_type(kModes), "Default: asynchronous",
                  [&](const JsonCursor& at) { out.asynchronous = at.choice(kModes) == 1; });
  member.required("interval", out.interval, kCheckpointInterval,
                  "From one to the next while the job runs");
  member.optional(
      "rule", choice_type(checkpoint_rule_names()),
      "When the next one is due; default: fixed, after \"interval\"; others are added by "
      "programs that link the library, and are told the interval",
      [&](const JsonCursor& at) {
        out.rule = {.place = at.choice(checkpoint_rule_names()), .pointer = at.pointer()};
      });
  member.optional("storage", shared_type("storage"),
                  "Shared by all nodes; for \"local\": what each node has", later);
  member.optional("drive", quantity_type(Dimension::data_rate, kStorageRate),
                  R"(Of a node's drives, for "local" without "storage")", later);
  member.optional("blocks", out.blocks, kRunSeconds, "Measured: the job waits");
  member.optional("finishes", out.finishes, kRunSeconds,
                  "Measured: after that, until it can be read");
  member.optional("restores", out.restores, kRunSeconds, "Measured: reading it back");
  member.optional("drag", out.drag, kShare,
                  "Measured: share of the job's speed that it takes while it finishes");
  member.optional("corrupt", out.corrupt, kShare, "How likely it turns out to be unreadable");
  member.optional("storage_share", out.storage_share, Dimension::share, Interval{0, 1, true},
                  "Of what the storage sustains: the most that an advised interval writes while "
                  "steps run; default: 10 %");
}

void declare_run(const DeclaredMembers& member, RunSpec& out) {
  // Read by read_run_spec(), as each depends on what else is there.
  const auto later = [](const JsonCursor&) {};
  member.optional("duration", out.duration, kTimeAboveZero,
                  "Wall time; default: until training.tokens are done");
  member.optional("steps", out.steps, 1, kMostRunSteps,
                  "Steps to be done, in place of training.tokens; with \"rl\" iterations");
  member.optional("reliability", written_type(R"({"anyOf": [
                    {"description": "Name of a preset: lockstep list reliability",
                     "type": "string"},
                    {"$ref": "#/$defs/reliability"}]})"),
                  "How often what fails; required, unless the cluster's preset has failure rates, "
                  "which are the default then",
                  later);
  member.optional("checkpoint", written_type(R"({"anyOf": [
                    {"$ref": "#/$defs/checkpoint"},
                    {"type": "array", "maxItems": 8, "items": {"$ref": "#/$defs/checkpoint"}}]})"),
                  "Where checkpoints go; several: tiers with intervals of their own", later);
  member.optional("data", out.data, "What training reads", declare_data);
  member.optional("recovery", out, "How a stopped job gets going again", declare_recovery);
  member.optional("spares", out, "Nodes that wait to take a broken one's place, and its way back",
                  declare_spares);
  member.optional("nodes_per_rack", out.domains.rack, 1, kMostNodes,
                  "That fail together with their rack; default: 4");
  member.optional("nodes_per_switch", out.domains.switch_nodes, 1, kMostNodes,
                  "That fail together with their leaf switch; required where a mode has it");
  member.optional("nodes_per_feed", out.domains.feed, 1, kMostNodes,
                  "That fail together with their power feed; required where a mode has it");
  member.optional("purchase", out.purchase,
                  "How the machines come, and for what money; default: all are there",
                  declare_purchase);
  member.optional("site", out.site, "What surrounds the racks, hour by hour; needs \"power\"",
                  declare_site);
  member.optional("trajectories", out.trajectories, 1, 1'000'000,
                  "Runs drawn at random; default: 100");
  member.optional("within", out.within, Dimension::share, kShare,
                  "Adds trajectories until the 95 % interval of goodput is +- this");
  member.optional("seed", integer_type(0, kMostSeed), "Of all random numbers; default: 1",
                  [&](const JsonCursor& at) {
                    out.seed = static_cast<std::uint64_t>(at.integer(0, kMostSeed));
                  });
}

namespace {

/// The nodes of lots that are of another kind than the scenario's.
void read_lot_kinds(const JsonCursor& lots, const PresetStore& presets, PurchaseSpec& out) {
  const std::vector<JsonCursor> list = lots.elements(out.lots.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto node = list[i].find("node");
    if (!node) continue;
    const std::string& name = out.lots[i].node;
    if (name.ends_with(".json") || name.find('/') != std::string::npos) {
      node->fail(
          "a name that `lockstep list nodes` has: lots are of presets, and --presets adds a folder "
          "of one's own");
    }
    out.lots[i].kind =
        std::make_shared<const NodeSpec>(presets.node(read_preset_name(*node, "nodes", presets)));
  }
}

}  // namespace

int reserved_nodes(const SpareSpec& spares) { return spares.hot == kAlwaysAtHand ? 0 : spares.hot; }

RunSpec read_run_spec(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site) {
  RunSpec spec;
  // Nobody publishes these; a scenario that knows better says so.
  spec.recovery = {.detects_crash = Seconds{30},
                   .detects_hang = Seconds{600},
                   .diagnoses = Seconds{120},
                   .misdiagnosed = 0,
                   .restarts = Seconds{180}};
  spec.restarts_per_thousand_ranks = Seconds{3};
  declare_run({from, Extent::whole}, spec);
  if (spec.duration && spec.steps) {
    from.at("steps").fail(R"(no such key beside "duration": a run ends by one of them)");
  }
  read_rates(from, presets, site, spec);
  if (const auto checkpoint = from.find("checkpoint")) read_tiers(*checkpoint, presets, spec);
  if (spec.data) spec.data->storage = read_data_storage(from.at("data"), spec, presets);
  spec.assumptions.insert(spec.assumptions.end(), spec.reliability.assumptions.begin(),
                          spec.reliability.assumptions.end());
  if (spec.checkpoints.empty()) {
    assume("run.checkpoint", "none, so that every failure starts the run again", spec);
  }
  assume("run.recovery", left_out(from.find("recovery"), kRecoveryDefaults), spec);
  if (const auto spares = from.find("spares")) {
    assume("run.spares.hot", left_out(spares, kHotDefault), spec);
    assume("run.spares", left_out(spares, kSpareDefaults), spec);
  } else {
    spec.spares.hot = kAlwaysAtHand;
    spec.assumptions.emplace_back("run.spares: always one at hand, paid for by others (not given)");
  }
  check_domains(from, spec);
  if (spec.purchase) {
    read_lot_kinds(from.at("purchase").at("lots"), presets, *spec.purchase);
  }
  if (spec.site) {
    spec.assumptions.insert(spec.assumptions.end(), spec.site->assumptions.begin(),
                            spec.site->assumptions.end());
  }
  from.finish();
  return spec;
}

JobFile read_job_file(const std::string& file, std::string_view text, const PresetStore& presets,
                      const std::vector<std::string>& set) {
  return read_job_file(JsonCursor::parse(file, text, JsonStyle::plain, set), presets);
}

namespace {

/// Where each hour has its temperature, the one of "power" is of a step's own power alone.
void tell_whose_weather(const SiteSpec& site, std::vector<std::string>& assumptions) {
  const bool every_hour = std::ranges::all_of(
      site.hours, [](const SiteHour& hour) { return hour.outside_celsius.has_value(); });
  if (!every_hour) return;
  constexpr std::string_view kLine = "power.outside_celsius: ", kEnd = " (not given)";
  for (std::string& line : assumptions) {
    if (!line.starts_with(kLine) || !line.ends_with(kEnd)) continue;
    line.insert(line.size() - kEnd.size(),
                " for a step's own power; the run has the site's, hour by hour");
  }
}

/// A run that is said in no more than a word or two lacks its end beside its failures: both are
/// told at once. One that lacks nothing else may be of a command that gives it an end.
void require_an_end(const JsonCursor& root, const JsonCursor& run, const RunSpec& spec,
                    bool has_rates) {
  if (spec.duration || spec.steps || run.find("reliability") || has_rates) return;
  const auto training = root.find("training");
  if (!training || !training->find("tokens")) (void)run.at("duration");
}

}  // namespace

std::optional<RunSpec> read_run_of(const JsonCursor& root, const PresetStore& presets,
                                   const ClusterSite& site) {
  const auto run = root.find("run");
  if (!run) return std::nullopt;
  RunSpec out = read_run_spec(*run, presets, site);
  require_an_end(root, *run, out, !site.reliability.empty());
  return out;
}

JobFile read_job_file(const JsonCursor& root, const PresetStore& presets) {
  return root.read_whole([&] {
    JobFile out{.draft = read_draft(root, presets), .run = {}};
    out.run = read_run_of(root, presets, out.draft.site);
    if (out.run && out.run->site) tell_whose_weather(*out.run->site, out.draft.assumptions);
    root.tell_unitless_sets(out.draft.assumptions);
    return out;
  });
}

}  // namespace lockstep
