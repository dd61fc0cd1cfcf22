#include "sim/referee/referee_case.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/channels.hpp"
#include "sim/core/random.hpp"
#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/connections.hpp"
#include "sim/packet/packet_control.hpp"

namespace lockstep {
namespace {

constexpr int kMaxPorts = 1024;
constexpr std::size_t kMaxCases = 1000;
constexpr std::size_t kMaxMessages = 100000;
constexpr int kMaxRounds = 1000;
constexpr double kMaxBytes = 1e12;
/// Packet hops of all messages together: about a minute.
constexpr double kMaxPackets = 1e8;

using Pairs = std::vector<std::pair<PortNumber, PortNumber>>;

int integer_or(const JsonCursor& object, std::string_view key, int low, int high, int otherwise) {
  const auto member = object.find(key);
  return member ? member->integer(low, high) : otherwise;
}
Seconds seconds_or(const JsonCursor& object, std::string_view key, Seconds otherwise) {
  const auto member = object.find(key);
  return member ? member->seconds({.low = 0, .high = 10}) : otherwise;
}

Pairs permutation(const JsonCursor& pattern, int ports) {
  const int seed = integer_or(pattern, "seed", 0, 1 << 30, 1);
  RandomStream random({.seed = static_cast<std::uint64_t>(seed)});
  std::vector<int> to(static_cast<std::size_t>(ports));
  std::iota(to.begin(), to.end(), 0);
  for (std::size_t i = to.size() - 1; i > 0; --i) {
    std::swap(to[i], to[random.below(static_cast<std::uint32_t>(i + 1))]);
  }
  Pairs pairs;
  for (int from = 0; from < ports; ++from) {
    if (to[static_cast<std::size_t>(from)] != from) {
      pairs.emplace_back(from, to[static_cast<std::size_t>(from)]);
    }
  }
  return pairs;
}

Pairs shift(const JsonCursor& pattern, int ports) {
  const int by = pattern.at("by").integer(1, ports - 1);
  Pairs pairs;
  for (int from = 0; from < ports; ++from) pairs.emplace_back(from, (from + by) % ports);
  return pairs;
}

Pairs incast(const JsonCursor& pattern, int ports) {
  const int senders = pattern.at("senders").integer(1, ports - 1);
  const int to = integer_or(pattern, "to", 0, ports - 1, 0);
  const int step = integer_or(pattern, "step", 1, (ports - 1) / senders, 1);
  Pairs pairs;
  for (int i = 1; i <= senders; ++i) pairs.emplace_back((to + i * step) % ports, to);
  return pairs;
}

Pairs rings(const JsonCursor& pattern, int ports) {
  const int members = pattern.at("members").integer(2, ports);
  const int count = integer_or(pattern, "count", 1, ports / members, 1);
  Pairs pairs;
  for (int ring = 0; ring < count; ++ring) {
    for (int i = 0; i < members; ++i) {
      pairs.emplace_back(ring + i * count, ring + (i + 1) % members * count);
    }
  }
  return pairs;
}

Pairs all_to_all(const JsonCursor& pattern, int ports) {
  const int members = integer_or(pattern, "ports", 2, ports, ports);
  Pairs pairs;
  for (int by = 1; by < members; ++by) {
    for (int from = 0; from < members; ++from) pairs.emplace_back(from, (from + by) % members);
  }
  return pairs;
}

Pairs listed_pairs(const JsonCursor& pattern, int ports) {
  Pairs pairs;
  for (const JsonCursor& pair : pattern.at("pairs").elements(kMaxMessages)) {
    const std::vector<JsonCursor> ends = pair.elements(2);
    if (ends.size() != 2) pair.fail("two port numbers");
    const int from = ends[0].integer(0, ports - 1), to = ends[1].integer(0, ports - 1);
    if (from == to) pair.fail("two different port numbers");
    pairs.emplace_back(from, to);
  }
  return pairs;
}

struct Pattern {
  std::string_view name;
  Pairs (*pairs)(const JsonCursor& pattern, int ports);
};
constexpr std::array kPatterns{
    Pattern{"permutation", permutation}, Pattern{"shift", shift},
    Pattern{"incast", incast},           Pattern{"ring", rings},
    Pattern{"all_to_all", all_to_all},   Pattern{"pairs", listed_pairs},
};

/// What messages can show: an algorithm whose members send to members, and no switch sums.
struct CollectiveRow {
  std::string_view op, algorithm;
  CollectiveOp which;
};
constexpr std::array kCollectives{
    CollectiveRow{"all_reduce", "ring", CollectiveOp::all_reduce},
    CollectiveRow{"all_reduce", "tree", CollectiveOp::all_reduce},
    CollectiveRow{"all_gather", "ring", CollectiveOp::all_gather},
    CollectiveRow{"reduce_scatter", "ring", CollectiveOp::reduce_scatter},
    CollectiveRow{"all_to_all", "pairwise", CollectiveOp::all_to_all},
    CollectiveRow{"all_to_all", "two_level", CollectiveOp::all_to_all},
};

const CollectiveRow& read_collective_row(const JsonCursor& traffic) {
  std::vector<std::string_view> ops, algorithms;
  for (const CollectiveRow& row : kCollectives) {
    if (ops.empty() || ops.back() != row.op) ops.push_back(row.op);
  }
  const std::string_view op = ops[traffic.at("op").choice(ops)];
  std::vector<const CollectiveRow*> rows;
  for (const CollectiveRow& row : kCollectives) {
    if (row.op != op) continue;
    rows.push_back(&row);
    algorithms.push_back(row.algorithm);
  }
  return *rows[traffic.at("algorithm").choice(algorithms)];
}

/// Numbers of nodes, each once, at least two.
std::vector<int> read_member_nodes(const JsonCursor& traffic, int nodes) {
  std::vector<int> out;
  if (const auto list = traffic.find("nodes")) {
    std::set<int> seen;
    for (const JsonCursor& number : list->elements(kMaxMessages)) {
      out.push_back(number.integer(0, nodes - 1));
      if (!seen.insert(out.back()).second) number.fail("a node that is not named before");
    }
    if (out.size() < 2) list->fail("at least two nodes");
  } else {
    out.resize(static_cast<std::size_t>(nodes));
    std::iota(out.begin(), out.end(), 0);
    if (nodes < 2) traffic.fail("a fabric of at least two nodes");
  }
  return out;
}

/// A member passes on what reaches it, one n-th of the payload later: it begins with the parts of
/// its node's members, and each of them goes on over its own rail. Source: NCCL
/// src/device/all_reduce.h (runRing): a step sends what the step before has received.
void pass_on(RefereeCase& read, const RefereeTransfer& ring, std::size_t members) {
  // By the member's port, its connections in turn.
  std::map<PortNumber, std::vector<std::uint32_t>> into;
  std::map<PortNumber, std::size_t> out;
  for (std::size_t i = ring.first; i < ring.first + ring.count; ++i) {
    into[read.messages[i].to].push_back(static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = ring.first; i < ring.first + ring.count; ++i) {
    RefereeMessage& message = read.messages[i];
    const std::vector<std::uint32_t>& before = into.at(message.from);
    message.after = before[out[message.from]++ % before.size()];
    message.lead = std::max<std::uint64_t>(1, ring.bytes / members / before.size());
  }
}

/// The members of a collective, and what tells its messages from others.
struct CollectiveTraffic {
  std::vector<FabricMember> members;
  std::string names;  ///< "nodes 0, 2"
  std::vector<NetworkEdge> edges;
  double size = 0;
  std::uint64_t seed = 1;
  Seconds start;
};

CollectiveTraffic read_collective_traffic(const JsonCursor& traffic, const CollectiveRow& row,
                                          const RefereeCase& read) {
  CollectiveTraffic out;
  out.size = traffic.at("size").bytes({.low = 1, .high = kMaxBytes}).base_units();
  for (const int node : read_member_nodes(traffic, read.nodes)) {
    out.names += fmt::format("{}{}", out.names.empty() ? "nodes " : ", ", node);
    for (int nic = 0; nic < read.nics; ++nic) out.members.push_back({{node, nic}, node, nic});
  }
  out.seed = static_cast<std::uint64_t>(integer_or(traffic, "seed", 1, 1 << 30, 1));
  out.start = seconds_or(traffic, "start", Seconds{});
  // Two on each rail is what NCCL runs over several nodes; trees alternate between two.
  const int channels = 2 * read.nics;
  const std::vector<GroupMember> places = places_of(out.members);
  const CollectiveShape shape =
      collective_shape(row.which, row.algorithm, places, channels,
                       peer_channels({}, static_cast<int>(out.members.size()), channels));
  out.edges = written_edges(shape, places);
  return out;
}

void add_round(const CollectiveTraffic& traffic, const CollectiveRow& row, RefereeCase& read) {
  RefereeTransfer transfer{.first = read.messages.size(),
                           .count = 0,
                           .bytes = static_cast<std::uint64_t>(traffic.size),
                           .members = traffic.names,
                           .name = fmt::format("{} of {}", row.op, traffic.names),
                           .op = row.which,
                           .algorithm = row.algorithm,
                           .gap = {}};
  const auto port = [&](int member) {
    const FabricMember& of = traffic.members[static_cast<std::size_t>(member)];
    return static_cast<PortNumber>(of.node * read.nics + of.nic);
  };
  for (const NetworkEdge& edge : traffic.edges) {
    // Only hashes tell connections apart.
    const int connections = read.spray ? 1 : edge.channels;
    const auto bytes =
        static_cast<std::uint64_t>(std::max(1.0, edge.bytes * traffic.size / connections));
    for (int c = 0; c < connections; ++c) {
      read.messages.push_back({port(edge.from), port(edge.to), bytes, traffic.start,
                               queue_pair_of_connection(traffic.seed * kFirstHashSeed, c)});
      ++transfer.count;
    }
  }
  if (row.algorithm == "ring") pass_on(read, transfer, traffic.members.size());
  read.transfers.push_back(std::move(transfer));
}

void read_collective(const JsonCursor& traffic, RefereeCase& read) {
  const CollectiveRow& row = read_collective_row(traffic);
  const CollectiveTraffic of = read_collective_traffic(traffic, row, read);
  const int rounds = integer_or(traffic, "rounds", 1, kMaxRounds, 1);
  const Seconds gap = seconds_or(traffic, "gap", Seconds{});
  for (int round = 0; round < rounds; ++round) {
    add_round(of, row, read);
    if (read.messages.size() > kMaxMessages) break;  // check_messages() says so
    if (round == 0) continue;
    read.transfers.back().after = read.transfers.size() - 2;
    read.transfers.back().gap = gap;
  }
}

void read_traffic(const JsonCursor& traffic, RefereeCase& read) {
  std::array<std::string_view, kPatterns.size() + 1> names{};
  std::ranges::transform(kPatterns, names.begin(), &Pattern::name);
  names.back() = "collective";
  const std::size_t choice = traffic.at("pattern").choice(names);
  if (choice == kPatterns.size()) {
    read_collective(traffic, read);
    return traffic.finish();
  }
  const Pairs pairs = kPatterns[choice].pairs(traffic, read.nodes * read.nics);
  std::vector<double> sizes;
  const JsonCursor list = traffic.at("sizes");
  for (const JsonCursor& size : list.elements(kMaxMessages)) {
    sizes.push_back(size.bytes({.low = 1, .high = kMaxBytes}).base_units());
  }
  if (sizes.empty()) list.fail("at least one size");
  const Seconds start = seconds_or(traffic, "start", Seconds{});
  const Seconds stagger = seconds_or(traffic, "stagger", Seconds{});
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto bytes = static_cast<std::uint64_t>(sizes[i % sizes.size()]);
    const std::size_t number = read.messages.size();
    read.messages.push_back(
        {pairs[i].first, pairs[i].second, bytes, start + static_cast<double>(i) * stagger, number});
    read.transfers.push_back(
        {.first = number, .bytes = bytes, .members = {}, .name = {}, .algorithm = {}, .gap = {}});
  }
  traffic.finish();
}

FabricKind read_kind(const JsonCursor& kind) {
  constexpr std::array<std::string_view, 3> kNames{"ideal", "fat_tree", "rail_optimised"};
  constexpr std::array kKinds{FabricKind::ideal, FabricKind::fat_tree, FabricKind::rail_optimised};
  return kKinds[kind.choice(kNames)];
}

void read_fabric(const JsonCursor& fabric, RefereeCase& out) {
  FabricSpec& spec = out.fabric;
  spec.kind = read_kind(fabric.at("kind"));
  out.nodes = fabric.at("nodes").integer(1, kMaxPorts);
  out.nics = integer_or(fabric, "nics", 1, kMaxPorts / out.nodes, 1);
  spec.levels = integer_or(fabric, "levels", 2, 3, 2);
  spec.leaf_ports_down = integer_or(fabric, "leaf_ports_down", 1, kMaxPorts, spec.leaf_ports_down);
  spec.pod_leaves = integer_or(fabric, "pod_leaves", 0, kMaxPorts, 0);
  const Interval ratio{.low = 0.01, .high = 100};
  if (const auto x = fabric.find("leaf_oversubscription")) {
    spec.leaf_oversubscription = x->number(ratio);
  }
  if (const auto x = fabric.find("spine_oversubscription")) {
    spec.spine_oversubscription = x->number(ratio);
  }
  constexpr std::array<std::string_view, 2> kRoutings{"ecmp", "spray"};
  out.spray = fabric.at("routing").choice(kRoutings) == 1;
  spec.routing = Routing::ecmp;
  if (const auto problem = check(spec, out.nodes, out.nics, out.nic_bandwidth)) {
    const JsonCursor place = fabric.find(problem->field).value_or(fabric);
    place.fail(fmt::format("{}: {}", problem->field, problem->allowed));
  }
}

LinkIndex read_link(const JsonCursor& name, const Fabric& fabric) {
  std::vector<std::string> names;
  if (name.is_missing()) {
    const std::string first = fabric.link_name(0);
    return static_cast<LinkIndex>(name.choice(std::array{std::string_view(first)}));
  }
  const std::string wanted = name.string();
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    names.push_back(fabric.link_name(link));
    if (names.back() == wanted) return link;
  }
  name.fail_name(names);
}

void read_faults(const JsonCursor& object, RefereeCase& out) {
  const Fabric fabric(out.fabric, out.nodes, out.nics, out.nic_bandwidth);
  if (const auto slow = object.find("slow")) {
    for (const JsonCursor& fault : slow->elements(kMaxMessages)) {
      const Interval share{.low = 0.001, .high = 1};
      out.faults.push_back({read_link(fault.at("link"), fabric), fault.at("share").number(share)});
      fault.finish();
    }
  }
  if (const auto dead = object.find("dead")) {
    for (const JsonCursor& name : dead->elements(kMaxMessages)) {
      out.faults.push_back({read_link(name, fabric), 0});
    }
  }
}

/// Every message has a way around the dead links, and the whole is small enough.
void check_messages(const JsonCursor& traffic, const RefereeCase& read) {
  const Fabric fabric(read.fabric, read.nodes, read.nics, read.nic_bandwidth);
  std::vector<LinkIndex> dead;
  for (const RefereeFault& fault : read.faults) {
    if (fault.rate_share == 0) dead.push_back(fault.link);
  }
  double packets = 0;
  for (const RefereeMessage& message : read.messages) {
    packets += static_cast<double>(message.bytes) / Framing{}.payload + 1;
    if (!dead.empty() && hashed_path(fabric, message.from, message.to, 0, dead).empty()) {
      traffic.fail(fmt::format("messages that do not need a dead link; port {} to port {} does",
                               message.from, message.to));
    }
  }
  if (read.messages.empty()) traffic.fail("at least one message");
  if (read.messages.size() > kMaxMessages || packets > kMaxPackets) {
    traffic.fail("at most 100,000 messages and 100 million packets of 4 KiB");
  }
}

std::vector<RefereeCase> cases_of(const JsonCursor& root) {
  if (const auto about = root.find("about")) static_cast<void>(about->string());
  const Seconds cable = root.at("cable_latency").seconds({.low = 0, .high = 1});
  const Seconds forwarding = root.at("switch_latency").seconds({.low = 0, .high = 1});
  const BytesPerSecond link = root.at("link").data_rate({.low = 1e6, .high = 1e13});
  std::vector<RefereeCase> cases;
  std::vector<JsonCursor> traffics;
  std::set<std::string> names;
  for (const JsonCursor& object : root.at("cases").elements(kMaxCases)) {
    RefereeCase& read = cases.emplace_back();
    read.name = object.at("name").string();
    if (!names.insert(read.name).second) object.at("name").fail("a name that no case before has");
    if (const auto about = object.find("about")) read.about = about->string();
    read.cable_latency = cable;
    read.nic_bandwidth = link;
    read.fabric.switch_latency = forwarding;
    const JsonCursor fabric = object.at("fabric");
    read_fabric(fabric, read);
    read_faults(fabric, read);
    fabric.finish();
    const JsonCursor traffic = object.at("traffic");
    read.place = traffic.file() + "#" + traffic.pointer();
    const int ports = read.nodes * read.nics;
    if (ports < 2) fabric.fail("at least two NIC ports");
    for (const JsonCursor& pattern : traffic.elements(kMaxMessages)) {
      read_traffic(pattern, read);
      if (read.messages.size() > kMaxMessages) break;  // check_messages() says so
    }
    object.finish();
    traffics.push_back(traffic);
  }
  root.finish();
  for (std::size_t i = 0; i < cases.size(); ++i) check_messages(traffics[i], cases[i]);
  return cases;
}

}  // namespace

double packet_hops(const RefereeCase& of) {
  double packets = 0;
  for (const RefereeMessage& message : of.messages) {
    packets += static_cast<double>(message.bytes) / Framing{}.payload + 1;
  }
  return packets * 2 * of.fabric.levels;
}

std::vector<RefereeCase> read_referee_cases(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] { return cases_of(root); });
}

}  // namespace lockstep
