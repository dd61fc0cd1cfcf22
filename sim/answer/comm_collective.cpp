#include "sim/answer/comm_collective.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>

#include "sim/answer/study_fabric.hpp"
#include "sim/core/random.hpp"
#include "sim/fabric/summed_streams.hpp"
#include "sim/scenario/read_profile.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr Interval kSize{1, 1e15};  // bytes
constexpr Interval kFactor{1.01, 1e6};
constexpr std::size_t kMostSizes = 1000;
constexpr int kMostRanks = 1'000'000;
constexpr int kMostChannels = 64;
constexpr int kMostTrees = 100'000;
constexpr std::array<std::string_view, 3> kPlacementNames{"consecutive", "strided", "random"};
enum class GroupPlacement : std::uint8_t { consecutive, strided, random };

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  for (const CollectiveKind& kind : collective_kinds()) names.push_back(kind.name);
  return names;
}

CollectiveOp read_op(const JsonCursor& from) {
  return collective_kinds()[from.choice(op_names())].op;
}

std::vector<CollectiveOp> read_ops(const JsonCursor& from) {
  std::vector<CollectiveOp> ops;
  if (!from.is_array()) return {read_op(from)};
  for (const JsonCursor& one : from.elements(collective_kinds().size())) {
    ops.push_back(read_op(one));
  }
  if (ops.empty()) from.fail("at least one operation");
  return ops;
}

/// A list, or {"from": "8 B", "to": "8 GiB", "factor": 2} as nccl-tests' -b, -e and -f.
std::vector<Bytes> read_sizes(const std::optional<JsonCursor>& from) {
  std::vector<Bytes> sizes;
  if (from && from->is_array()) {
    for (const JsonCursor& one : from->elements(kMostSizes)) sizes.push_back(one.bytes(kSize));
    if (sizes.empty()) from->fail("at least one size");
    return sizes;
  }
  Bytes size{8}, last = gibibytes(8);
  double factor = 2;
  if (from) {
    if (const auto first = from->find("from")) size = first->bytes(kSize);
    if (const auto to = from->find("to")) last = to->bytes(kSize);
    if (const auto by = from->find("factor")) factor = by->number(kFactor);
    from->finish();
    if (last < size) from->fail(R"("to" at least "from")");
    if (std::log(last / size) / std::log(factor) > kMostSizes - 1) {
      from->fail(fmt::format("at most {} sizes", kMostSizes));
    }
  }
  for (; size <= last; size = Bytes{std::round(factor * size.base_units())}) {
    sizes.push_back(size);
    if (factor * size.base_units() < size.base_units() + 1) break;  // too small to grow by a byte
  }
  return sizes;
}

void read_filter(const JsonCursor& from, std::span<const std::string_view> names, NameFilter& out) {
  if (const auto unknown = parse_name_filter(from.string(), names, out)) {
    from.fail(
        fmt::format("names with commas, all but those after '^', of {}", fmt::join(names, ", ")));
  }
}

/// false, a generation of switches, or {"generation": ..., "busy_trees": ...}.
std::optional<SharpFabric> read_sharp(const JsonCursor& from) {
  if (!from.is_object() && !from.is_string()) {
    if (from.is_number() || from.is_array() || from.is_null() || from.boolean()) {
      from.fail("false, or the generation of the switches");
    }
    return std::nullopt;
  }
  std::vector<std::string_view> names;
  for (const SharpGeneration& row : sharp_generations()) names.push_back(row.name);
  const JsonCursor name = from.is_object() ? from.at("generation") : from;
  SharpFabric sharp{&sharp_generations()[name.choice(names)], 0};
  if (!from.is_object()) return sharp;
  if (const auto busy = from.find("busy_trees")) sharp.busy_trees = busy->integer(0, kMostTrees);
  from.finish();
  return sharp;
}

/// "2.27": major and minor.
NcclRelease read_release(const JsonCursor& from) {
  const std::string text = from.string();
  NcclRelease release;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, release.major);
  if (wrong == std::errc{} && dot != end && *dot == '.') {
    const auto [rest, bad] = std::from_chars(dot + 1, end, release.minor);
    const bool patch = rest == end || *rest == '.';
    if (bad == std::errc{} && patch && release.major >= 2 && release.minor >= 0) return release;
  }
  from.fail("a release of NCCL from 2.0 on, such as \"2.27\"");
}

CollectiveOptions read_options(const JsonCursor& from) {
  CollectiveOptions options;
  std::vector<std::string_view> algorithms;
  for (const CollectiveAlgorithm& row : collective_algorithms()) algorithms.push_back(row.name);
  if (const auto at = from.find("algorithm")) read_filter(*at, algorithms, options.algorithms);
  if (const auto at = from.find("protocol")) read_filter(*at, kProtocols, options.protocols);
  if (const auto at = from.find("sharp")) options.sharp = read_sharp(*at);
  if (const auto at = from.find("pxn")) options.pxn = at->boolean();
  if (const auto at = from.find("max_channels")) {
    options.max_channels = at->integer(1, kMostChannels);
  }
  if (const auto at = from.find("nccl")) options.nccl = read_release(*at);
  return options;
}

/// The first `ranks` GPUs of a shuffled cluster.
std::vector<int> shuffled(int gpus, int ranks, int seed) {
  constexpr std::uint32_t kPurpose = 0x636F6C6C;  // this draw's own
  RandomStream stream({.seed = static_cast<std::uint64_t>(seed), .purpose = kPurpose});
  std::vector<int> all(static_cast<std::size_t>(gpus));
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(ranks); ++i) {
    const auto left = static_cast<std::uint32_t>(all.size() - i);
    std::swap(all[i], all[i + stream.below(left)]);
  }
  all.resize(static_cast<std::size_t>(ranks));
  return all;
}

DomainSpread spread_of(const NodeSpec& node, const std::vector<int>& gpus) {
  std::map<int, int> by_domain;
  for (const int gpu : gpus) ++by_domain[fabric_member(node, gpu).place.node];
  const auto [least, most] = std::ranges::minmax(by_domain | std::views::values);
  return {least, static_cast<int>(by_domain.size()), most};
}

/// Counts the members of every domain, and how many of all groups share a NIC.
void measure(const Cluster& cluster, CollectiveGroup& group) {
  std::map<int, int> by_nic;
  const NodeSpec& node = cluster.node;
  const NicPorts ports = nic_ports(node);
  const auto add_nics = [&](const std::vector<int>& gpus) {
    for (const int gpu : gpus) {
      const FabricMember member = fabric_member(node, gpu);
      ++by_nic[member.node * ports.count + member.nic];
    }
  };
  const auto add = [&](const std::vector<int>& gpus) {
    add_nics(gpus);
    const DomainSpread way = spread_of(node, gpus);
    const auto at = std::ranges::find(group.ways, way) - group.ways.begin();
    if (at == std::ssize(group.ways)) {
      group.ways.push_back(way);
      group.groups_of_way.push_back(0);
    }
    ++group.groups_of_way[static_cast<std::size_t>(at)];
  };
  add(group.gpus);
  std::ranges::for_each(group.others, add);
  const DomainSpread& own = group.ways.front();
  group.nodes = own.domains;
  group.least = own.per_domain;
  group.most = own.per_domain_max;
  const int sharing = std::ranges::max(by_nic | std::views::values);
  group.port_bandwidth = nic_rates(cluster.fabric, cluster.nodes, ports.bandwidth).least;
  group.nic_bandwidth = group.port_bandwidth / sharing;
}

CollectiveGroup read_group(const JsonCursor& from, const Cluster& cluster) {
  CollectiveGroup group;
  const int all = cluster.gpus();
  const auto placement_at = from.find("placement");
  const auto placement = placement_at
                             ? static_cast<GroupPlacement>(placement_at->choice(kPlacementNames))
                             : GroupPlacement::consecutive;
  int per_node = cluster.node.gpus;
  const auto per_node_at = from.find("ranks_per_node");
  if (per_node_at) {
    per_node = per_node_at->integer(1, cluster.node.gpus);
    if (placement != GroupPlacement::consecutive) {
      per_node_at->fail("no such key with this placement, which decides it");
    }
  }
  const int room = cluster.nodes * per_node;
  const auto ranks_at = from.find("ranks");
  const int ranks = ranks_at ? ranks_at->integer(2, std::min(room, kMostRanks)) : room;
  if (ranks < 2) from.fail("a group of at least two GPUs");
  const auto seed_at = from.find("seed");
  if (seed_at && placement != GroupPlacement::random) {
    seed_at->fail("no such key unless placement is random");
  }
  const int most_groups = (placement == GroupPlacement::consecutive ? room : all) / ranks;
  const auto groups_at = from.find("groups");
  const int groups = groups_at ? groups_at->integer(1, most_groups) : 1;
  constexpr int kMostSeed = 1'000'000'000;
  const std::vector<int> drawn =
      placement == GroupPlacement::random
          ? shuffled(all, groups * ranks, seed_at ? seed_at->integer(0, kMostSeed) : 1)
          : std::vector<int>{};
  const int stride = all / ranks;
  const auto gpu_of = [&](int number, int rank) {
    const int place = number * ranks + rank;
    if (!drawn.empty()) return drawn[static_cast<std::size_t>(place)];
    if (placement == GroupPlacement::strided) return rank * stride + number;
    return place / per_node * cluster.node.gpus + place % per_node;
  };
  for (int number = 0; number < groups; ++number) {
    std::vector<int>& gpus = number == 0 ? group.gpus : group.others.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) gpus.push_back(gpu_of(number, rank));
  }
  measure(cluster, group);
  return group;
}

/// 1 without a profile.
double measured_over_law(const CollectiveCall& call, const CollectiveStudy& study) {
  GpuSpec gpu = study.cluster.node.gpu;
  if (!gpu.profile) return 1;
  const auto time = [&] {
    return collective_time(call, gpu, study.cluster.transport, study.group.nic());
  };
  const Seconds measured = time();
  gpu.profile.reset();
  return measured / time();
}

CollectiveCall call_of(CollectiveOp op, Bytes size, const CollectiveGroup& group,
                       const DomainSpread& way) {
  return placed({.op = op, .payload = size, .ranks = static_cast<int>(group.gpus.size())}, way);
}

/// The choice's time, or what slow NICs and the fabric make of it.
void limit_by_fabric(const CollectiveCall& call, StudyFabric& fabric, CollectiveRow& row) {
  row.full_time = row.time = row.choice.time;
  row.slowest_link.clear();
  if (call.nodes == 1) return;
  const auto take = [&row](Seconds moving, const std::string& link) {
    const Seconds limited = row.choice.cost->latency + moving;
    if (limited <= row.time) return;
    row.time = limited;
    row.slowest_link = link;
  };
  const StudyFabric::Limits& limits = fabric.limits(call, *row.choice.cost);
  take(call.payload * limits.nics.per_byte, limits.nics.link);
  row.full_time = row.time;
  if (fabric.starts_slowly()) {
    const StudyFabric::Slowed slowed = fabric.slowed(call, *row.choice.cost);
    if (!slowed.link.empty()) take(slowed.moving, slowed.link);
    return;
  }
  take(call.payload * limits.switches.per_byte, limits.switches.link);
}

/// Of the groups that lie so.
CollectiveRow predict(const CollectiveCall& call, const CollectiveStudy& study,
                      StudyFabric& fabric) {
  CollectiveRow row{
      .op = call.op,
      .size = call.payload,
      .choice = choose_collective(call, study.cluster.node.gpu, study.cluster.transport,
                                  study.group.nic(), study.options)};
  if (!row.choice.cost) return row;
  row.choice.time = measured_over_law(call, study) * row.choice.time;
  limit_by_fabric(call, fabric, row);
  row.algbw_bytes_per_s = (call.payload / row.time).base_units();
  row.busbw_bytes_per_s = bus_factor(call.op, call.ranks) * row.algbw_bytes_per_s;
  return row;
}

/// Of the groups that end last, or of those that cannot run.
CollectiveRow predict_slowest(CollectiveOp op, Bytes size, const CollectiveStudy& study,
                              StudyFabric& fabric) {
  std::optional<CollectiveRow> slowest;
  for (std::size_t way = 0; way < study.group.ways.size(); ++way) {
    const CollectiveCall call = call_of(op, size, study.group, study.group.ways[way]);
    CollectiveRow row = predict(call, study, fabric);
    row.way = way;
    if (!row.choice.cost) return row;
    if (!slowest || row.time > slowest->time) slowest = std::move(row);
  }
  return std::move(slowest).value();
}

/// Takes SHARP off where a rail of the group has no tree, and says so.
void check_trees(CollectiveStudy& study) {
  const Cluster& cluster = study.cluster;
  if (!study.options.sharp || !is_drawn(cluster.fabric) || !study.group.leaves_domains()) return;
  const NicPorts ports = nic_ports(cluster.node);
  const Fabric fabric(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth);
  const auto has_trees = [&](const std::vector<int>& gpus) {
    std::vector<FabricMember> members;
    for (const int gpu : gpus) members.push_back(fabric_member(cluster.node, gpu));
    return has_sum_trees(fabric, members);
  };
  if (has_trees(study.group.gpus) && std::ranges::all_of(study.group.others, has_trees)) return;
  study.options.sharp.reset();
  study.notes.emplace_back(
      "A rail has no switch above all of its leaves: NCCL gets no SHARP when it starts, and sums "
      "in GPUs.");
}

void take_profiles(const JsonCursor& at, std::span<const std::string> names,
                   const PresetStore& presets, Cluster& cluster) {
  for (const char* key : {"algorithm", "protocol", "sharp", "pxn", "max_channels", "nccl"}) {
    if (const auto forced = at.find(key)) {
      forced->fail("no such key with --measured: what was measured is NCCL's own choice");
    }
  }
  lay_card(cluster.node, cluster.transport, load_profiles(names, presets, cluster.assumptions),
           std::nullopt);
}

/// A study without its rows, and what they are of.
struct StudyRequest {
  CollectiveStudy study;
  std::vector<CollectiveOp> ops;
  std::vector<Bytes> sizes;
};

StudyRequest request_of(const JsonCursor& root, const PresetStore& presets,
                        std::span<const std::string> profiles) {
  StudyRequest out;
  CollectiveStudy& study = out.study;
  study.file = root.file();
  (void)root.find("$schema");  // for editors
  if (const auto about = root.find("about")) study.about = about->string();
  study.cluster = read_cluster(root.at("cluster"), presets);
  const JsonCursor at = root.at("collective");
  out.ops = read_ops(at.at("op"));
  out.sizes = read_sizes(at.find("sizes"));
  study.group = read_group(at, study.cluster);
  study.options = read_options(at);
  if (!profiles.empty()) take_profiles(at, profiles, presets, study.cluster);
  at.finish();
  root.finish();
  root.tell_unitless_sets(study.cluster.assumptions);
  return out;
}

}  // namespace

std::vector<double> times_with_draw(const CollectiveStudy& study, int draw) {
  CollectiveStudy drawn = study;
  drawn.cluster.fabric.hash_draw = draw;
  StudyFabric fabric(drawn);
  std::vector<double> times;
  for (const CollectiveRow& row : study.rows) {
    times.push_back(predict_slowest(row.op, row.size, drawn, fabric).time.base_units());
  }
  return times;
}

CollectiveStudy run_collective_study(const JsonCursor& root, const PresetStore& presets,
                                     std::span<const std::string> profiles) {
  StudyRequest request = root.read_whole([&] { return request_of(root, presets, profiles); });
  CollectiveStudy study = std::move(request.study);
  check_trees(study);
  if (study.group.ways.size() > 1) {
    study.notes.emplace_back(
        "Some groups lie over NVLink domains in another way than the first: each time is that of "
        "the groups that end last.");
  }
  StudyFabric fabric(study);
  for (const CollectiveOp op : request.ops) {
    for (const Bytes size : request.sizes) {
      study.rows.push_back(predict_slowest(op, size, study, fabric));
      if (study.rows.back().choice.cost) continue;
      root.at("collective")
          .fail("an algorithm and protocol that can run here; " + study.rows.back().choice.reason);
    }
  }
  return study;
}

}  // namespace lockstep
