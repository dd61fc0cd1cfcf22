#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <span>
#include <utility>

#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

/// Spares of a run that says nothing about them: more than can ever be broken.
constexpr int kAlwaysAtHand = 1'000'000;

constexpr std::array<std::string_view, 3> kTargets{"storage", "local", "peers"};
constexpr std::array<std::string_view, 2> kModes{"synchronous", "asynchronous"};

constexpr Interval kRunSeconds{0, 1e9};
constexpr Interval kTimeAboveZero{0, 1e9, true};
constexpr Interval kCheckpointInterval{1e-6, 1e9};
constexpr Interval kChance{0, 1};
constexpr Interval kStorageRate{1e6, 1e16, true};
constexpr Interval kClientRate{1e6, 1e16, false, true};
constexpr std::size_t kMostTiers = 8;
constexpr int kMostNodes = 1'000'000;
constexpr int kMostServers = 1'000'000;

std::optional<Seconds> optional_time(const JsonCursor& from, std::string_view key) {
  const auto member = from.find(key);
  if (!member) return std::nullopt;
  return member->seconds(kRunSeconds);
}

/// Servers or their sum: whichever the object gives, but not both.
void read_storage_members(const JsonCursor& from, Extent extent, StorageSpec& out) {
  const MemberReader member(from, extent);
  const MemberReader given(from, Extent::changes);
  given.optional("about", out.about);
  given.optional("network", [&](const JsonCursor& c) {
    out.network = read_choice<StorageNetwork>(c, kStorageNetworks);
  });
  given.optional("servers", out.servers, 1, kMostServers);
  given.optional("server_write", out.server_write, kStorageRate);
  given.optional("server_read", out.server_read, kStorageRate);
  given.optional("server_link", out.server_link, kClientRate);
  const std::array totals{from.find("write"), from.find("read")};
  given.optional("client_write", out.client_write, kClientRate);
  given.optional("client_read", out.client_read, kClientRate);
  given.optional("metadata", out.metadata, kRunSeconds);
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
    member.required("write", out.write, kStorageRate);
    member.required("read", out.read, kStorageRate);
    return;
  }
  for (const auto& total : totals) {
    if (total) total->fail("nothing beside \"servers\", which add up to it");
  }
  const MemberReader needed(from, Extent::whole);
  if (out.server_write <= BytesPerSecond{})
    needed.required("server_write", out.server_write, kStorageRate);
  if (out.server_read <= BytesPerSecond{})
    needed.required("server_read", out.server_read, kStorageRate);
  add_up_servers(out);
}

/// A preset's name, a preset with changes, or a storage of its own.
StorageSpec read_storage_choice(const JsonCursor& from, const PresetStore& presets) {
  StorageSpec storage;
  storage.name = "storage of the scenario";
  if (!from.is_object() || from.find("preset")) {
    storage = presets.storage(read_preset_name(from, "storages", presets));
    if (from.is_object()) read_storage_members(from, Extent::changes, storage);
  } else {
    read_storage_members(from, Extent::whole, storage);
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
  const MemberReader member(from, Extent::whole);
  member.optional(
      "to", [&](const JsonCursor& c) { spec.target = read_choice<CheckpointTarget>(c, kTargets); });
  spec.name = kTargets[static_cast<std::size_t>(spec.target)];
  member.optional("mode", [&](const JsonCursor& c) { spec.asynchronous = c.choice(kModes) == 1; });
  member.required("interval", spec.interval, kCheckpointInterval);
  spec.blocks = optional_time(from, "blocks");
  spec.finishes = optional_time(from, "finishes");
  spec.restores = optional_time(from, "restores");
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
  member.optional("drag", [&](const JsonCursor& c) { spec.drag = c.number(kChance); });
  member.optional("corrupt", spec.corrupt, kChance);
  member.optional("storage_share", [&](const JsonCursor& c) {
    spec.storage_share = c.quantity(Dimension::share, Interval{0, 1, true});
  });
  from.finish();
  return spec;
}

/// One kind of checkpoint, or several.
void read_tiers(const JsonCursor& from, const PresetStore& presets, RunSpec& out) {
  const auto add = [&](const JsonCursor& tier, const std::string& place) {
    out.checkpoints.push_back(read_checkpoint(tier, presets));
    if (tier.find("storage_share")) return;
    out.assumptions.push_back(fmt::format(
        "{}.storage_share: an advised interval writes at most {:g} % of what the storage sustains "
        "(not given)",
        place, 100 * out.checkpoints.back().storage_share));
  };
  if (!from.is_array()) return add(from, "run.checkpoint");
  int number = 0;
  for (const JsonCursor& tier : from.elements(kMostTiers)) {
    add(tier, fmt::format("run.checkpoint[{}]", number++));
  }
}

/// Beside the checkpoints, whose storage it is where it names none.
DataSpec read_data(const JsonCursor& from, const RunSpec& run, const PresetStore& presets) {
  constexpr Interval kBytesPerToken{0, 1e9, true};
  DataSpec data;
  const MemberReader member(from, Extent::whole);
  member.required("bytes_per_token", data.bytes_per_token, kBytesPerToken);
  if (const auto storage = from.find("storage")) {
    data.storage = read_storage_choice(*storage, presets);
  } else {
    const auto shared = std::ranges::find_if(run.checkpoints, [](const CheckpointSpec& spec) {
      return spec.target == CheckpointTarget::storage && spec.storage;
    });
    data.storage = shared == run.checkpoints.end()
                       ? read_storage_choice(from.at("storage"), presets)
                       : *shared->storage;
  }
  from.finish();
  return data;
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

void read_recovery(const JsonCursor& from, RunSpec& out) {
  const MemberReader member(from, Extent::changes);
  member.optional("detects_crash", out.recovery.detects_crash, kRunSeconds);
  member.optional("detects_hang", out.recovery.detects_hang, kRunSeconds);
  member.optional("diagnoses", out.recovery.diagnoses, kRunSeconds);
  member.optional("misdiagnosed", out.recovery.misdiagnosed, Interval{0, 0.99});
  member.optional("restarts", out.recovery.restarts, kRunSeconds);
  member.optional("restarts_per_thousand_ranks", out.restarts_per_thousand_ranks, kRunSeconds);
  from.finish();
}

void read_spares(const JsonCursor& from, RunSpec& out) {
  const MemberReader member(from, Extent::changes);
  member.optional("hot", out.spares.hot, 0, kMostNodes);
  member.optional("warm", out.spares.warm, 0, kMostNodes);
  member.optional("warm_takes", out.spares.warm_takes, kRunSeconds);
  member.optional("repair", out.spares.repair, kRunSeconds);
  member.optional("crews", out.spares.crews, 0, kMostNodes);
  member.optional("elastic", out.elastic, 0, 1000);
  from.finish();
}

/// Throws for a mode that needs the size of a domain which nobody gave.
void read_domains(const JsonCursor& from, RunSpec& out) {
  const MemberReader member(from, Extent::whole);
  member.optional("nodes_per_rack", out.domains.rack, 1, kMostNodes);
  member.optional("nodes_per_switch", out.domains.switch_nodes, 1, kMostNodes);
  member.optional("nodes_per_feed", out.domains.feed, 1, kMostNodes);
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
  read_reliability(reliability, spec.reliability);
  reliability.finish();
}

}  // namespace

bool has_run(const JsonCursor& root) { return root.is_object() && root.find("run").has_value(); }

void read_storage(const JsonCursor& from, StorageSpec& out) {
  read_storage_members(from, Extent::whole, out);
}

int reserved_nodes(const RunSpec& run) {
  return run.spares.hot == kAlwaysAtHand ? 0 : run.spares.hot;
}

RunSpec read_run_spec(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site) {
  RunSpec spec;
  // Nobody publishes these; a scenario that knows better says so.
  spec.recovery = {.detects_crash = Seconds{30},
                   .detects_hang = Seconds{600},
                   .diagnoses = Seconds{120},
                   .misdiagnosed = 0,
                   .restarts = Seconds{180}};
  spec.restarts_per_thousand_ranks = Seconds{3};
  const MemberReader member(from, Extent::whole);
  member.optional("duration",
                  [&](const JsonCursor& c) { spec.duration = c.seconds(kTimeAboveZero); });
  read_rates(from, presets, site, spec);
  if (const auto checkpoint = from.find("checkpoint")) read_tiers(*checkpoint, presets, spec);
  if (const auto data = from.find("data")) spec.data = read_data(*data, spec, presets);
  spec.assumptions.insert(spec.assumptions.end(), spec.reliability.assumptions.begin(),
                          spec.reliability.assumptions.end());
  if (spec.checkpoints.empty()) {
    assume("run.checkpoint", "none, so that every failure starts the run again", spec);
  }
  const auto recovery = from.find("recovery");
  if (recovery) read_recovery(*recovery, spec);
  assume("run.recovery", left_out(recovery, kRecoveryDefaults), spec);
  if (const auto spares = from.find("spares")) {
    read_spares(*spares, spec);
    assume("run.spares.hot", left_out(spares, kHotDefault), spec);
    assume("run.spares", left_out(spares, kSpareDefaults), spec);
  } else {
    spec.spares.hot = kAlwaysAtHand;
    spec.assumptions.emplace_back("run.spares: always one at hand (not given)");
  }
  read_domains(from, spec);
  member.optional("trajectories", spec.trajectories, 1, 1'000'000);
  member.optional("within", [&](const JsonCursor& c) {
    spec.within = c.quantity(Dimension::share, Interval{0, 1});
  });
  member.optional("seed", [&](const JsonCursor& c) {
    spec.seed = static_cast<std::uint64_t>(c.integer(0, 2'000'000'000));
  });
  from.finish();
  return spec;
}

JobFile read_job_file(const std::string& file, std::string_view text, const PresetStore& presets,
                      const std::vector<std::string>& set) {
  return read_job_file(JsonCursor::parse(file, text, JsonStyle::plain, set), presets);
}

JobFile read_job_file(const JsonCursor& root, const PresetStore& presets) {
  return root.read_whole([&] {
    JobFile out{.draft = read_draft(root, presets), .run = {}};
    if (has_run(root)) out.run = read_run_spec(root.at("run"), presets, out.draft.site);
    root.tell_unitless_sets(out.draft.assumptions);
    return out;
  });
}

}  // namespace lockstep
