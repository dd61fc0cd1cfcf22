#include "sim/scenario/read_traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/scenario/members.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr int kMaxRepeat = 1'000'000;
constexpr int kMaxChannels = 64;
constexpr std::size_t kMaxEntries = 10'000;
constexpr std::size_t kMaxPairs = 10'000'000;
constexpr double kMaxMessages = 3e7;         // that are simulated one by one: some GiB
constexpr double kMaxPathCount = 2e9;        // looked up for variables that stand for many
constexpr double kLongest = 1e7;             // seconds, half of what the clock lasts
constexpr Interval kMessageSize{1, 1e15};    // bytes
constexpr Interval kTrafficSeconds{0, 1e6};  // seconds
constexpr std::array<std::string_view, 2> kMemberNames{"gpus", "nics"};
constexpr std::array<std::string_view, 2> kSpreadNames{"consecutive", "strided"};
constexpr std::array<std::string_view, 2> kDirectionNames{"write", "read"};

int optional_integer(const JsonCursor& from, std::string_view key, int otherwise, int low,
                     int high) {
  const auto member = from.find(key);
  return member ? member->integer(low, high) : otherwise;
}

/// {"first": 4, "count": 2} or {"first": 4}, of what is numbered 0 to `all` - 1.
void read_nodes(const JsonCursor& from, int all, MemberSpec& out) {
  out.first_node = optional_integer(from, "first", 0, 0, all - 1);
  out.nodes = optional_integer(from, "count", all - out.first_node, 1, all - out.first_node);
  from.finish();
}

/// "gpus", "nics", or an object that picks some of them.
MemberSpec read_members(const std::optional<JsonCursor>& from, const Cluster& cluster) {
  MemberSpec out;
  out.nodes = cluster.nodes;
  const bool is_object = from && from->is_object();
  if (from && !is_object) {
    if (!from->is_string()) from->fail(R"("gpus", "nics", or an object that picks some of them)");
    out.nics = from->choice(kMemberNames) == 1;
  }
  if (is_object) {
    if (const auto of = from->find("of")) out.nics = of->choice(kMemberNames) == 1;
    if (const auto nodes = from->find("nodes")) read_nodes(*nodes, cluster.nodes, out);
  }
  const int all = out.nodes * (out.nics ? nic_ports(cluster.node).count : cluster.node.gpus);
  out.count = all;
  if (!is_object) return out;
  out.first = optional_integer(*from, "first", 0, 0, all - 1);
  out.stride = optional_integer(*from, "stride", 1, 1, all);
  const int most = (all - 1 - out.first) / out.stride + 1;
  out.count = optional_integer(*from, "count", most, 1, most);
  if (const auto seed = from->find("shuffle")) {
    out.shuffle_seed = static_cast<std::uint64_t>(seed->integer(0, 2'000'000'000));
  }
  from->finish();
  return out;
}

SizeSpec read_size(const JsonCursor& from) {
  SizeSpec out;
  if (!from.is_object()) {
    out.least = out.most = from.bytes(kMessageSize);
    return out;
  }
  out.least = from.at("from").bytes(kMessageSize);
  out.most = from.at("to").bytes({out.least.base_units(), kMessageSize.high});
  from.finish();
  return out;
}

/// 64, or {"count": 64, "spread": "strided"}.
GroupSpec read_groups(const std::optional<JsonCursor>& from, int members) {
  GroupSpec out;
  if (!from) return out;
  const JsonCursor count = from->is_object() ? from->at("count") : *from;
  out.count = count.integer(1, members);
  if (members % out.count != 0) {
    count.fail("a divisor of " + std::to_string(members) + " (members)");
  }
  if (!from->is_object()) return out;
  if (const auto spread = from->find("spread")) {
    out.spread = static_cast<GroupSpec::Spread>(spread->choice(kSpreadNames));
  }
  from->finish();
  return out;
}

std::vector<std::pair<int, int>> read_pairs(const JsonCursor& from, int members) {
  std::vector<std::pair<int, int>> out;
  for (const JsonCursor& element : from.elements(kMaxPairs)) {
    const std::vector<JsonCursor> ends = element.elements(2);
    if (ends.size() != 2) element.fail("[sender, receiver]");
    const int sender = ends[0].integer(0, members - 1);
    const int receiver = ends[1].integer(0, members - 1);
    if (sender == receiver) element.fail("a sender and another receiver");
    out.emplace_back(sender, receiver);
  }
  if (out.empty()) from.fail("at least one pair");
  return out;
}

/// Whether NCCL runs such an entry, of GPUs.
bool can_be_nccl(const TrafficEntry& entry) { return info(entry.kind).op && !entry.members.nics; }

/// Grains that the entry can have.
Grain read_grain(const JsonCursor& from, const TrafficEntry& entry) {
  const TrafficKind kind = entry.kind;
  std::vector<std::string_view> allowed;
  for (const std::string_view name : grain_names()) {
    const bool ring_only = name == "messages", pairs_only = name == "sources";
    const bool is_ring = info(kind).is_ring;
    if ((ring_only && !is_ring) || (pairs_only && is_ring)) continue;
    if (name == "nccl" && !can_be_nccl(entry)) continue;
    if (ring_only && info(kind).is_chain) continue;  // its pieces are not in the format
    allowed.push_back(name);
  }
  const std::string_view chosen = allowed[from.choice(allowed)];
  const auto names = grain_names();
  return static_cast<Grain>(std::ranges::find(names, chosen) - names.begin());
}

bool overlap(const MemberSpec& a, const MemberSpec& b) {
  return a.first_node < b.first_node + b.nodes && b.first_node < a.first_node + a.nodes;
}

/// What only some kinds have.
void read_pattern(const JsonCursor& from, const Cluster& cluster, TrafficEntry& out) {
  const int members = out.members.count / out.groups.count;
  switch (out.kind) {
    case TrafficKind::shift:
      out.by = optional_integer(from, "by", 1, 1, members - 1);
      break;
    case TrafficKind::incast:
    case TrafficKind::outcast:
    case TrafficKind::broadcast:
    case TrafficKind::reduce:
      out.root = optional_integer(from, "root", 0, 0, members - 1);
      break;
    case TrafficKind::pairs:
      out.pairs = read_pairs(from.at("pairs"), members);
      break;
    case TrafficKind::storage:
      out.servers = read_members(from.at("servers"), cluster);
      if (overlap(*out.servers, out.members)) {
        from.at("servers").fail("nodes that are not the members'");
      }
      if (const auto direction = from.find("direction")) {
        out.reads = direction->choice(kDirectionNames) == 1;
      }
      break;
    default:
      break;
  }
  if (info(out.kind).is_ring && out.grain != Grain::nccl) {
    out.channels = optional_integer(from, "channels", 1, 1, kMaxChannels);
  }
}

/// How many members each group needs, and that groups have them.
void check_members(const JsonCursor& from, const TrafficEntry& entry) {
  const int least = entry.kind == TrafficKind::storage ? 1 : 2;
  const int members = entry.members.count / entry.groups.count;
  if (members >= least) return;
  const auto groups = from.find("groups");
  const auto chosen = from.find("members");
  const std::string rule = "at least " + std::to_string(least) + " members in a group";
  if (groups && entry.groups.count > 1) groups->fail(rule);
  (chosen ? *chosen : from.at("kind")).fail(rule);
}

/// That the simulation stays within clock, and that its parts can be counted.
void check_extent(const JsonCursor& from, const TrafficScenario& scenario,
                  const TrafficEntry& entry) {
  const TrafficExtent extent = extent_of(entry);
  const double messages = extent.messages, paths = extent.paths;
  // Pairs are sorted by their senders.
  const double listed = entry.grain == Grain::sources ? paths : 0;
  if (std::max(messages, listed) > kMaxMessages || paths > kMaxPathCount) {
    const auto grain = from.find("as");
    (grain ? *grain : from)
        .fail("at most " + std::to_string(static_cast<int>(kMaxMessages)) +
              R"( messages; "as": "coupled" makes one of a pattern)");
  }
  // As if all of it crossed one link.
  const FabricSpec& fabric = scenario.cluster.fabric;
  BytesPerSecond slowest = nic_ports(scenario.cluster.node).bandwidth;
  if (fabric.link_bandwidth > BytesPerSecond{}) slowest = std::min(slowest, fabric.link_bandwidth);
  slowest = payload_bandwidth(slowest, scenario.efficiency);
  slowest *= 1 / (std::max(1.0, fabric.leaf_oversubscription) *
                  std::max(1.0, fabric.spine_oversubscription));
  const Seconds longest =
      entry.start + entry.repeat * (paths * entry.size.most / slowest + entry.gap);
  if (longest > Seconds{kLongest}) {
    from.at("size").fail(
        "less: up to " + std::to_string(static_cast<std::int64_t>(longest.base_units())) +
        " s of traffic are above " + std::to_string(static_cast<std::int64_t>(kLongest)) + " s");
  }
}

TrafficEntry read_entry(const JsonCursor& from, const TrafficScenario& scenario) {
  TrafficEntry out;
  std::vector<std::string_view> kinds;
  for (const TrafficKindInfo& row : traffic_kinds()) kinds.push_back(row.name);
  out.kind = static_cast<TrafficKind>(from.at("kind").choice(kinds));
  const auto name = from.find("name");
  out.name = name ? name->string() : std::string(info(out.kind).name);
  out.members = read_members(from.find("members"), scenario.cluster);
  out.groups = read_groups(from.find("groups"), out.members.count);
  check_members(from, out);
  out.size = read_size(from.at("size"));
  const auto grain = from.find("as");
  const bool nccl = !grain && can_be_nccl(out) && !out.size.varies() && !from.find("channels");
  out.grain = grain ? read_grain(*grain, out) : nccl ? Grain::nccl : info(out.kind).grain;
  if (out.size.varies() && out.grain != Grain::flows) {
    from.at("size").fail(R"(one size, unless "as" is "flows")");
  }
  if (const auto start = from.find("start")) out.start = start->seconds(kTrafficSeconds);
  out.repeat = optional_integer(from, "repeat", 1, 1, kMaxRepeat);
  if (const auto gap = from.find("gap")) out.gap = gap->seconds(kTrafficSeconds);
  if (const auto seed = from.find("seed")) {
    out.seed = static_cast<std::uint64_t>(seed->integer(0, 2'000'000'000));
  }
  read_pattern(from, scenario.cluster, out);
  from.finish();
  check_extent(from, scenario, out);
  return out;
}

TrafficExpectation read_traffic_expectation(const JsonCursor& from) {
  constexpr Interval kWithin{0, 10};
  TrafficExpectation out;
  if (const auto time = from.find("time")) out.time = time->seconds({0, kLongest, true});
  if (const auto within = from.find("within")) {
    out.within = within->quantity(Dimension::share, kWithin);
  }
  declare_claim({from, Extent::whole}, out.claim);
  if (!out.time && out.claim.empty()) from.fail(R"("time", or bounds in "that")");
  if (const auto source = from.find("source")) out.source = source->string();
  from.finish();
  return out;
}

}  // namespace

TrafficExtent extent_of(const TrafficEntry& entry) {
  const double members = entry.members.count;
  const double group = members / entry.groups.count;
  TrafficExtent out;
  out.paths = members * entry.channels;
  if (entry.kind == TrafficKind::all_to_all) out.paths *= group - 1;
  if (!entry.pairs.empty()) {
    out.paths = 1.0 * entry.groups.count * static_cast<double>(entry.pairs.size());
  }
  double each = entry.groups.count;
  if (entry.grain == Grain::flows) each = out.paths;
  if (entry.grain == Grain::sources) each = members;
  if (entry.grain == Grain::messages) each = out.paths * 2 * group;
  out.messages = each * entry.repeat;
  out.at_once = entry.grain == Grain::messages ? out.paths : each;
  return out;
}

namespace {

TrafficScenario traffic_of(const JsonCursor& root, const PresetStore& presets) {
  TrafficScenario out;
  out.file = root.file();
  (void)root.find("$schema");  // for editors
  if (const auto about = root.find("about")) out.about = about->string();
  out.cluster = read_cluster(root.at("cluster"), presets);
  out.assumptions = out.cluster.assumptions;
  out.efficiency = out.cluster.transport.efficiency;
  if (const auto efficiency = root.find("efficiency")) {
    out.efficiency = efficiency->quantity(Dimension::share, {0.01, 1});
  } else {
    out.assumptions.push_back("efficiency: " + std::to_string(out.efficiency).substr(0, 5) +
                              " of line rate (" + out.cluster.transport.name + ")");
  }
  std::set<std::string> names;
  const JsonCursor traffic = root.at("traffic");
  for (const JsonCursor& element : traffic.elements(kMaxEntries)) {
    out.entries.push_back(read_entry(element, out));
    if (!names.insert(out.entries.back().name).second) {
      const auto name = element.find("name");
      (name ? *name : element).fail("a \"name\" that no other entry has");
    }
  }
  if (out.entries.empty()) traffic.fail("at least one entry");
  if (const auto expect = root.find("expect")) out.expect = read_traffic_expectation(*expect);
  root.finish();
  root.tell_unitless_sets(out.assumptions);
  return out;
}

}  // namespace

TrafficScenario read_traffic(const JsonCursor& root, const PresetStore& presets) {
  return root.read_whole([&] { return traffic_of(root, presets); });
}

TrafficScenario read_traffic(const std::string& file, std::string_view text,
                             const PresetStore& presets) {
  return read_traffic(JsonCursor::parse(file, text), presets);
}

}  // namespace lockstep
