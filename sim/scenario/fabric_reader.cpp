// Reads the network between nodes.
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/import.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

constexpr Interval kOversubscription{0.01, 1000};
constexpr int kMaxPorts = 65536;
constexpr int kMaxParallel = 4096;

/// A file that the fabric names; its path starts from the folder of the file that says so.
std::string file_beside(const JsonCursor& from) {
  namespace fs = std::filesystem;
  const std::string written = from.string();
  if (written.empty() || written.find('\0') != std::string::npos) from.fail("a file name");
  return (fs::path(from.file()).parent_path() / written).string();
}

/// Keys of a fabric that its file may tell; `fabric` is the object that names the file and may say
/// otherwise.
/// Returns what is left open.
std::vector<std::string> take_carriage(const JsonCursor& fabric, const FabricCarriage& told,
                                       const PresetStore& presets, FabricSpec& out) {
  if (told.routing) out.routing = *told.routing;
  if (told.hash_seed) out.hash_seed = *told.hash_seed;
  if (told.hash_draw) out.hash_draw = *told.hash_draw;
  if (told.queue_pairs) out.queue_pairs = *told.queue_pairs;
  if (told.pxn) out.pxn = *told.pxn;
  if (told.nonminimal_share) out.nonminimal_share = told.nonminimal_share;
  if (told.switch_latency) out.switch_latency = *told.switch_latency;
  if (!told.transport.empty()) {
    const std::vector<std::string> known = presets.names("transports");
    if (!presets.has("transports", told.transport)) {
      throw InputError({out.file, "/transport", in_quotes(told.transport), listed(known),
                        nearest_name(told.transport, known)});
    }
    out.transport = told.transport;
  }
  std::vector<std::string> open;
  const auto untold = [&](bool known, std::string_view key, std::string taken) {
    if (known || fabric.find(key)) return;
    open.push_back(fmt::format("{}: {} ({} does not tell)", key, std::move(taken),
                               std::filesystem::path(out.file).filename().string()));
  };
  untold(told.routing.has_value(), "routing", std::string(name_of(out.routing)));
  untold(told.switch_latency.has_value(), "switch_latency", "none");
  untold(!told.transport.empty(), "transport", "the node's");
  return open;
}

void read_drawing(const JsonCursor& fabric, const JsonCursor& from, const PresetStore& presets,
                  FabricSpec& out) {
  if (out.kind != FabricKind::file) from.fail(R"(no such key, unless "kind" is "file")");
  out.file = file_beside(from);
  const std::string text = read_text_file(out.file, kFabricFileLimit);
  Import drawing = import_text(out.file, text, recognise(out.file, text), {});
  if (!std::holds_alternative<DrawnFabric>(drawing)) {
    from.fail("a file that describes a network, not the inside of a server");
  }
  auto& drawn = std::get<DrawnFabric>(drawing);
  drawn.graph.set_untold(take_carriage(fabric, drawn.carriage, presets, out));
  out.graph = std::make_shared<const ClusterGraph>(std::move(drawn.graph));
}

void read_tables(const JsonCursor& from, FabricSpec& out) {
  if (out.routing != Routing::tables) from.fail(R"(no such key, unless "routing" is "tables")");
  out.tables = file_beside(from);
  out.tables_text =
      std::make_shared<const std::string>(read_text_file(out.tables, kFabricFileLimit));
}

/// Both ends of a cable: "leaf 0 to spine 1", or ["leaf 0", "spine 1"].
void read_ends(const JsonCursor& from, FabricFault& out) {
  constexpr std::string_view kBetween = " to ";
  constexpr std::string_view kRule =
      R"(the names of both ends, "leaf 0 to spine 1" or ["leaf 0", "spine 1"])";
  if (from.is_array()) {
    const std::vector<JsonCursor> ends = from.elements(2);
    if (ends.size() != 2) from.fail(std::string(kRule));
    out.from = ends[0].string();
    out.to = ends[1].string();
    return;
  }
  const std::string text = from.is_string() ? from.string() : std::string{};
  const std::size_t at = text.find(kBetween);
  if (at == std::string::npos) from.fail(std::string(kRule));
  out.from = text.substr(0, at);
  out.to = text.substr(at + kBetween.size());
}

/// What is left of a capacity: "down", or a share of it.
double read_rate(const JsonCursor& from) {
  constexpr std::string_view kDown = "down";
  if (!from.is_string()) return from.number(kShare);
  if (from.string() != kDown) from.fail("\"down\", or a number from 0 to 1");
  return 0;
}

FabricFault read_fault(const JsonCursor& from) {
  constexpr int kMaxMissing = 1 << 24;
  FabricFault out;
  int parts = 0;
  const auto part = [&](std::string_view key, FabricFault::Part kind, auto read) {
    const std::optional<JsonCursor> member = from.find(key);
    if (!member) return false;
    out.part = kind;
    ++parts;
    read(*member);
    return true;
  };
  const auto read_name = [&](const JsonCursor& at) { out.from = at.string(); };
  const bool cable =
      part("cable", FabricFault::Part::cable, [&](const JsonCursor& at) { read_ends(at, out); });
  part("switch", FabricFault::Part::box, read_name);
  part("nic", FabricFault::Part::nic, read_name);
  const bool some = part("cables_missing", FabricFault::Part::some_cables,
                         [&](const JsonCursor& at) { out.count = at.integer(0, kMaxMissing); });
  const auto index = from.find("index");
  if (index) out.index = index->integer(0, kMaxParallel - 1);
  const auto seed = from.find("seed");
  if (seed) out.seed = static_cast<std::uint64_t>(seed->integer(0, kMaxMissing));
  const auto rate = from.find("rate");
  if (rate) out.rate = read_rate(*rate);
  const auto bandwidth = from.find("bandwidth");
  if (bandwidth) out.bandwidth = bandwidth->data_rate(kRateOrNone);
  from.finish();
  if (parts != 1) from.fail("one of cable, switch, nic, cables_missing");
  if (index && !cable) index->fail("no such key, unless there is \"cable\"");
  if (seed && !some) seed->fail("no such key, unless there is \"cables_missing\"");
  if (rate && bandwidth) bandwidth->fail(R"(either "rate" or "bandwidth")");
  return out;
}

std::vector<FabricFault> read_faults(const JsonCursor& from) {
  constexpr std::size_t kMostFaults = 100'000;
  std::vector<FabricFault> out;
  for (const JsonCursor& element : from.elements(kMostFaults)) out.push_back(read_fault(element));
  return out;
}

std::vector<int> read_sides(const JsonCursor& from) {
  constexpr int kMaxSide = 1024;
  std::vector<int> sides;
  for (const JsonCursor& side : from.elements(3)) sides.push_back(side.integer(1, kMaxSide));
  if (sides.size() < 2) from.fail("the sides of two or three dimensions");
  return sides;
}

void read_tree(const MemberReader& member, FabricSpec& out) {
  member.optional("levels", out.levels, 2, 3);
  member.optional("leaf_ports_down", out.leaf_ports_down, 1, kMaxPorts);
  member.optional("pod_leaves", out.pod_leaves, 0, kMaxPorts);
  member.optional("switch_ports", out.switch_ports, 0, kMaxPorts);
  member.optional("leaf_oversubscription", out.leaf_oversubscription, kOversubscription);
  member.optional("spine_oversubscription", out.spine_oversubscription, kOversubscription);
}

void read_other_shapes(const MemberReader& member, FabricSpec& out) {
  member.optional("planes", out.planes, 1, 16);
  member.optional("groups", out.groups, 0, kMaxPorts);
  member.optional("group_switches", out.group_switches, 0, kMaxPorts);
  member.optional("group_spines", out.group_spines, 0, kMaxPorts);
  member.optional("local_cables", out.local_cables, 1, kMaxParallel);
  member.optional("global_cables", out.global_cables, 1, kMaxParallel);
  member.optional("torus", [&](const JsonCursor& at) { out.torus = read_sides(at); });
  member.optional("faults", [&](const JsonCursor& at) { out.faults = read_faults(at); });
}

void read_routing(const MemberReader& member, FabricSpec& out) {
  member.optional("routing", [&](const JsonCursor& at) {
    out.routing = read_choice<Routing>(at, routing_names());
  });
  member.optional("hash_seed", [&](const JsonCursor& at) {
    out.hash_seed = read_choice<HashSeed>(at, hash_seed_names());
  });
  member.optional("hash_draw", out.hash_draw, 1, kMostHashDraw);
  member.optional("queue_pairs", out.queue_pairs, 1, 1024);
  member.optional("pxn", out.pxn);
  member.optional("nonminimal_share",
                  [&](const JsonCursor& at) { out.nonminimal_share = at.number(kShare); });
  member.optional("tables", [&](const JsonCursor& at) { read_tables(at, out); });
}

}  // namespace

void read_fabric(const JsonCursor& from, Extent extent, const PresetStore& presets,
                 FabricSpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", out.about);
  member.required("kind", [&](const JsonCursor& at) {
    out.kind = read_choice<FabricKind>(at, fabric_kind_names());
  });
  // What the file tells of its fabric comes first: the keys behind it say otherwise.
  member.optional("file", [&](const JsonCursor& at) { read_drawing(from, at, presets, out); });
  read_routing(member, out);
  read_tree(member, out);
  read_other_shapes(member, out);
  member.optional("link_bandwidth", out.link_bandwidth, kRateOrNone);
  member.optional("upper_bandwidth", out.upper_bandwidth, kRateOrNone);
  member.optional("switch_latency", out.switch_latency, Interval{0, 1});
  member.optional("transport", [&](const JsonCursor& at) {
    read_transport_choice(at, presets, out.transport, out.own_transport);
  });
}

FabricFault read_fabric_fault(const JsonCursor& from) { return read_fault(from); }

}  // namespace lockstep
