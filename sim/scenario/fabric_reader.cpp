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
#include "sim/scenario/declared_members.hpp"
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
constexpr int kMaxSide = 1024;  // switches along a side of a torus
constexpr std::size_t kMostSides = 3;
constexpr std::size_t kMostFaults = 100'000;

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

/// Which parts of a fabric the object names are counted in `parts`.
void declare_fault(const DeclaredMembers& member, FabricFault& out, int& parts) {
  constexpr int kMaxMissing = 1 << 24;
  const auto part = [&](std::string_view key, const ValueType& type, FabricFault::Part kind,
                        std::string_view sentence, auto read) {
    member.optional(key, type, sentence, [&, kind](const JsonCursor& at) {
      out.part = kind;
      ++parts;
      read(at);
    });
  };
  const auto read_name = [&](const JsonCursor& at) { out.from = at.string(); };
  part("cable", written_type(R"({"anyOf": [{"type": "string"}, {"type": "array",
         "items": {"type": "string"}, "minItems": 2, "maxItems": 2}]})"),
       FabricFault::Part::cable, R"(Both ends, "leaf 0 to spine 1")",
       [&](const JsonCursor& at) { read_ends(at, out); });
  part("switch", text_type(), FabricFault::Part::box, "All cables of a switch", read_name);
  part("nic", text_type(), FabricFault::Part::nic, R"(All cables of a NIC, "node 3 nic 1")",
       read_name);
  part("cables_missing", integer_type(0, kMaxMissing), FabricFault::Part::some_cables,
       "That many cables between switches, drawn at random",
       [&](const JsonCursor& at) { out.count = at.integer(0, kMaxMissing); });
  member.optional("index", out.index, 0, kMaxParallel - 1,
                  "Which of parallel cables, from 0; default: all");
  member.optional("seed", integer_type(0, kMaxMissing), "Of the draw", [&](const JsonCursor& at) {
    out.seed = static_cast<std::uint64_t>(at.integer(0, kMaxMissing));
  });
  member.optional("rate", written_type(R"({"anyOf": [{"const": "down"},
                    {"type": "number", "minimum": 0, "maximum": 1}]})"),
                  "What is left of the capacity; default: down",
                  [&](const JsonCursor& at) { out.rate = read_rate(at); });
  member.optional("bandwidth", out.bandwidth, kRateOrNone, "The capacity instead");
}

}  // namespace

FabricFault read_fabric_fault(const JsonCursor& from) {
  FabricFault out;
  int parts = 0;
  declare_fault({from, Extent::whole}, out, parts);
  from.finish();
  if (parts != 1) from.fail("one of cable, switch, nic, cables_missing");
  const auto index = from.find("index"), seed = from.find("seed");
  const auto rate = from.find("rate"), bandwidth = from.find("bandwidth");
  if (index && !from.find("cable")) index->fail("no such key, unless there is \"cable\"");
  if (seed && !from.find("cables_missing")) {
    seed->fail("no such key, unless there is \"cables_missing\"");
  }
  if (rate && bandwidth) bandwidth->fail(R"(either "rate" or "bandwidth")");
  return out;
}

namespace {

std::vector<FabricFault> read_faults(const JsonCursor& from) {
  std::vector<FabricFault> out;
  for (const JsonCursor& element : from.elements(kMostFaults))
    out.push_back(read_fabric_fault(element));
  return out;
}

std::vector<int> read_sides(const JsonCursor& from) {
  std::vector<int> sides;
  for (const JsonCursor& side : from.elements(kMostSides))
    sides.push_back(side.integer(1, kMaxSide));
  if (sides.size() < 2) from.fail("the sides of two or three dimensions");
  return sides;
}

void declare_tree(const DeclaredMembers& member, FabricSpec& out) {
  member.optional("levels", out.levels, 2, 3, "Switch layers: 2 leaf/spine, 3 leaf/spine/core");
  member.optional("leaf_ports_down", out.leaf_ports_down, 1, kMaxPorts,
                  "NIC ports of a leaf switch, or of a dragonfly's switch");
  member.optional("pod_leaves", out.pod_leaves, 0, kMaxPorts,
                  "Leaves under one set of spines (3 levels); 0: as many as fit");
  member.optional("switch_ports", out.switch_ports, 0, kMaxPorts,
                  "Ports of a spine or core switch; 0: as many as needed");
  member.optional("leaf_oversubscription", out.leaf_oversubscription, kOversubscription,
                  "Capacity down over capacity up at the leaf");
  member.optional("spine_oversubscription", out.spine_oversubscription, kOversubscription,
                  "The same at the spine (3 levels)");
}

/// Of a fabric that is described and not read.
void describe_faults(const DeclaredMembers& member) {
  FabricFault fault;
  int parts = 0;
  declare_fault(member, fault, parts);
}

void declare_other_shapes(const DeclaredMembers& member, FabricSpec& out) {
  member.optional("planes", out.planes, 1, 16,
                  "Copies of the fabric side by side; each NIC port splits its bandwidth");
  member.optional("groups", out.groups, 0, kMaxPorts,
                  "Dragonfly groups; 0: as many as the nodes need");
  member.optional("group_switches", out.group_switches, 0, kMaxPorts,
                  "Switches of a dragonfly group, leaves of a dragonfly+ group; 0: balanced");
  member.optional("group_spines", out.group_spines, 0, kMaxPorts,
                  "Spines of a dragonfly+ group; 0: as many as leaves");
  member.optional("local_cables", out.local_cables, 1, kMaxParallel,
                  "Cables between two switches of a group, or two neighbours of a torus");
  member.optional("global_cables", out.global_cables, 1, kMaxParallel, "Cables between two groups");
  constexpr ValueType kSide = integer_type(1, kMaxSide);
  member.optional("torus", list_type(kSide, kMostSides, 2),
                  "Switches along each of two or three dimensions",
                  [&](const JsonCursor& at) { out.torus = read_sides(at); });
  member.optional("faults", kMostFaults, "One of cable, switch, nic, cables_missing",
                  "What is broken, slow or faster than the rest", describe_faults,
                  [&](const JsonCursor& at) { out.faults = read_faults(at); });
}

void declare_routing(const DeclaredMembers& member, FabricSpec& out) {
  member.optional("routing", out.routing, routing_names(), "How messages find their ways");
  member.optional("hash_seed", out.hash_seed, hash_seed_names(),
                  "Whether switches hash with a seed each; shared seeds polarise");
  member.optional(
      "hash_draw", out.hash_draw, 1, kMostHashDraw,
      "Which draw of all ECMP hashes; run and comm --hash-seeds N take N of them from here on");
  member.optional("queue_pairs", out.queue_pairs, 1, 1024,
                  "Of a connection (NCCL_IB_QPS_PER_CONNECTION): ECMP hashes each by itself. They "
                  "share a message evenly, as with NCCL_IB_SPLIT_DATA_ON_QPS=1; a long transfer "
                  "that takes them in turn comes to the same");
  member.optional("pxn", out.pxn, "A message changes to its destination's rail over NVLink first");
  member.optional("nonminimal_share", out.nonminimal_share, kShare,
                  "Of adaptive traffic between dragonfly groups that goes through a third one");
  member.optional("tables", text_type(), "Routing tables: a dump of opensm, beside this file",
                  [&](const JsonCursor& at) { read_tables(at, out); });
}

}  // namespace

void declare_fabric(const DeclaredMembers& member, const PresetStore& presets, FabricSpec& out) {
  member.optional("about", out.about, "What it is");
  member.required("kind", out.kind, fabric_kind_names(), "How nodes are wired");
  // What the file tells of its fabric comes first: the keys behind it say otherwise.
  member.optional("file", text_type(),
                  "Kind file: fabric.json or another drawing, beside this file; what it tells of "
                  "routing, switch latency and transport holds unless said here",
                  [&](const JsonCursor& at) { read_drawing(*member.object(), at, presets, out); });
  declare_routing(member, out);
  declare_tree(member, out);
  declare_other_shapes(member, out);
  member.optional("link_bandwidth", out.link_bandwidth, kRateOrNone,
                  "Of a link between switches; 0: the NIC's. Trees keep their oversubscription: "
                  "of thinner links there are more");
  member.optional(
      "upper_bandwidth", out.upper_bandwidth, kRateOrNone,
      "Of a link between spine and core, or between dragonfly groups; 0: link_bandwidth");
  member.optional("switch_latency", out.switch_latency, Interval{0, 1}, "Per switch crossed");
  const std::vector<std::string_view> sharps = sharp_names();
  member.optional(
      "sharp", choice_type(sharps),
      "Which SHARP its switches have; a stack whose communication.sharp is true uses it",
      [&](const JsonCursor& at) { out.sharp = sharps[at.choice(sharps)]; });
  member.optional("transport", shared_type("transport"), "Transport instead of the node's",
                  [&](const JsonCursor& at) {
                    read_transport_choice(at, presets, out.transport, out.own_transport);
                  });
}

}  // namespace lockstep
