#include "sim/scenario/read_profile.hpp"

#include <cassert>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <system_error>

#include "models/base/input_error.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostPoints = 100'000;
constexpr Interval kProfiledSize{1, 1e9};
constexpr Interval kPointTime{1e-9, 1e4};
constexpr Interval kPointSpread{0, 10};
constexpr Interval kNicRate{1e7, 1e13};
constexpr Interval kPointTraffic{1, 1e15};
constexpr int kMostMembers = 1'000'000;  // of nodes, and of GPUs in one
constexpr std::array<std::string_view, 2> kLoads{"burst", "sustained"};
constexpr std::array<std::string_view, 2> kDirections{"forward", "backward"};

std::vector<std::string_view> fused_kernel_names() {
  std::vector<std::string_view> names;
  for (const AttentionKernelKind& kind : attention_kernels()) names.push_back(kind.name);
  // The unfused one is products and a softmax, which have points of their own.
  names.erase(names.begin());
  return names;
}

void read_point(const JsonCursor& from, ProfilePoint& out) {
  const MemberReader member(from, Extent::whole);
  member.required("time", out.time, kPointTime);
  member.optional("spread", out.spread, kPointSpread);
}

/// Products are timed in formats, too, that no job trains in.
std::vector<std::string_view> product_formats() {
  std::vector<std::string_view> names;
  for (const PrecisionInfo& row : precisions()) names.push_back(row.name);
  return names;
}

GemmPoint read_gemm_point(const JsonCursor& from, const GpuSpec& gpu) {
  GemmPoint p;
  const MemberReader member(from, Extent::whole);
  member.required("m", p.shape.m, kProfiledSize);
  member.required("n", p.shape.n, kProfiledSize);
  member.required("k", p.shape.k, kProfiledSize);
  member.optional("count", p.shape.count, kProfiledSize);
  const JsonCursor precision = from.at("precision");
  p.precision = read_choice<Precision>(precision, product_formats());
  if (gpu.peak(p.precision) <= FlopsPerSecond{}) {
    precision.fail("a format that " + gpu.name + " has");
  }
  member.optional("load", [&](const JsonCursor& c) { p.load = read_choice<Load>(c, kLoads); });
  read_point(from, p);
  from.finish();
  return p;
}

AttentionPoint read_attention_point(const JsonCursor& from) {
  static const std::vector<std::string_view> kernels = fused_kernel_names();
  AttentionPoint p;
  const MemberReader member(from, Extent::whole);
  p.kernel = static_cast<AttentionKernel>(from.at("kernel").choice(kernels) + 1);
  member.required("sequences", p.shape.sequences, kProfiledSize);
  member.required("tokens", p.shape.tokens, kProfiledSize);
  member.required("heads", p.shape.heads, kProfiledSize);
  p.shape.kv_heads = p.shape.heads;
  member.optional("kv_heads", p.shape.kv_heads, Interval{1, p.shape.heads});
  member.required("head_dim", p.shape.head_dim, kProfiledSize);
  member.optional("causal", p.shape.causal);
  p.shape.direction = read_choice<Direction>(from.at("direction"), kDirections);
  read_point(from, p);
  from.finish();
  return p;
}

MemoryPoint read_memory_point(const JsonCursor& from) {
  MemoryPoint p;
  const MemberReader member(from, Extent::whole);
  member.required("kernel", p.kernel);
  member.required("traffic", p.traffic, kPointTraffic);
  read_point(from, p);
  from.finish();
  return p;
}

CollectivePoint read_collective_point(const JsonCursor& from) {
  CollectivePoint p;
  const MemberReader member(from, Extent::whole);
  p.op = read_choice<CollectiveOp>(from.at("op"), kNcclTestsNames);
  member.optional("nodes", p.nodes, 1, kMostMembers);
  const JsonCursor per_node = from.at("gpus_per_node");
  p.gpus_per_node = per_node.integer(1, kMostMembers / p.nodes);
  if (p.nodes * p.gpus_per_node < 2) per_node.fail("at least two GPUs in all");
  member.required("size", p.size, kPointTraffic);
  read_point(from, p);
  from.finish();
  return p;
}

NodeNetwork read_network(const JsonCursor& from, const GpuSpec& gpu, const PresetStore& presets) {
  NodeNetwork out;
  if (from.find("node")) {
    const JsonCursor at = from.at("node");
    const NodeSpec& node = presets.node(read_preset_name(at, "nodes", presets));
    if (node.gpu.name != gpu.name) at.fail("a node with " + gpu.name);
    if (node.nics == 0) at.fail("a node with NICs");
    out = network_of(node, transport_of(node, FabricSpec{}, presets));
  } else {
    out.transport =
        presets.transport(read_preset_name(from.at("transport"), "transports", presets));
    out.nic_bandwidth = from.at("nic_bandwidth").data_rate(kNicRate);
  }
  from.finish();
  return out;
}

std::string watts_text(Watts w) { return format_quantity(w.base_units(), Dimension::power); }

/// What a card can be held to, where `limit` is not that; empty: it is.
std::string broken_limit_rule(Watts limit, const GpuSpec& gpu) {
  if (!gpu.power) return "no such key for a card without power data (\"power\" of its preset)";
  if (limit >= lowest_cap(gpu) && limit <= gpu.power_limit) return {};
  return "from " + watts_text(lowest_cap(gpu)) + ", at the lowest clock, to " +
         watts_text(gpu.power_limit) + ", the limit of " + gpu.name;
}

Watts read_limit(const JsonCursor& from, const GpuSpec& gpu) {
  const Watts limit = from.watts(Interval{1, 1e5});
  const std::string rule = broken_limit_rule(limit, gpu);
  if (!rule.empty()) from.fail(rule);
  return limit;
}

void read_strings(const JsonCursor& from) {
  for (const std::string& key : from.keys()) (void)from.at(key).string();
  from.finish();
}

/// Rates within this are the same one, written differently.
constexpr double kSameRate = 0.01;

bool same_network(const NodeNetwork& a, const NodeNetwork& b) {
  return a.transport.name == b.transport.name &&
         std::abs(a.nic_bandwidth / b.nic_bandwidth - 1) < kSameRate;
}

std::string in_words(const NodeNetwork& network) {
  return fmt::format("{} with {:.4g} Gb/s for each GPU", network.transport.name,
                     network.nic_bandwidth / gigabits_per_second(1));
}

Profile profile_of(const JsonCursor& root, const PresetStore& presets) {
  Profile out;
  out.file = root.file();
  if (const auto schema = root.find("$schema")) (void)schema->string();
  if (const auto about = root.find("about")) out.about = about->string();
  if (const auto source = root.find("source")) (void)source->string();
  if (const auto date = root.find("date")) out.date = date->string();
  // For people: driver, clocks, library versions.
  if (const auto conditions = root.find("conditions")) read_strings(*conditions);
  out.gpu = read_preset_name(root.at("gpu"), "gpus", presets);
  const GpuSpec& gpu = presets.gpu(out.gpu);
  if (const auto limit = root.find("power_limit")) out.power_limit = read_limit(*limit, gpu);
  if (const auto points = root.find("gemm")) {
    for (const JsonCursor& p : points->elements(kMostPoints)) {
      out.gemm.push_back(read_gemm_point(p, gpu));
    }
  }
  if (const auto points = root.find("attention")) {
    for (const JsonCursor& p : points->elements(kMostPoints)) {
      out.attention.push_back(read_attention_point(p));
    }
  }
  if (const auto points = root.find("memory")) {
    for (const JsonCursor& p : points->elements(kMostPoints)) {
      out.memory.push_back(read_memory_point(p));
    }
  }
  if (const auto points = root.find("collectives")) {
    for (const JsonCursor& p : points->elements(kMostPoints)) {
      out.collectives.push_back(read_collective_point(p));
    }
  }
  if (const auto network = root.find("network")) out.network = read_network(*network, gpu, presets);
  root.finish();
  if (out.points() == 0) {
    throw InputError({.file = root.file(),
                      .pointer = {},
                      .found = "no points",
                      .allowed = "at least one in gemm, attention, memory or collectives",
                      .nearest = {}});
  }
  return out;
}

}  // namespace

Profile read_profile(const std::string& file, std::string_view text, const PresetStore& presets) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] { return profile_of(root, presets); });
}

Profile load_profile(const std::string& name, const PresetStore& presets) {
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) {
    return read_profile(name, read_text_file(name), presets);
  }
  if (!presets.has("profiles", name)) {
    const std::vector<std::string> known = presets.names("profiles");
    throw InputError({.file = name,
                      .pointer = {},
                      .found = "no such file",
                      .allowed = "the file of a profile, or one of " + listed(known),
                      .nearest = nearest_name(name, known)});
  }
  return read_profile(name, read_text_file(presets.path("profiles", name)), presets);
}

std::vector<Profile> load_profiles(std::span<const std::string> names, const PresetStore& presets,
                                   std::vector<std::string>& assumptions) {
  std::vector<Profile> profiles;
  for (const std::string& name : names) {
    profiles.push_back(load_profile(name, presets));
    const Profile& profile = profiles.back();
    const std::size_t collectives = profile.collectives.size();
    const auto assume = [&](std::string_view what, std::size_t points) {
      if (points == 0) return;
      assumptions.push_back(
          fmt::format("{}: as {} measured them ({} points), between those by the laws", what,
                      profile.file, points));
    };
    assume("kernels", profile.points() - collectives);
    assume("collectives", collectives);
  }
  return profiles;
}

NodeNetwork network_of(const NodeSpec& node, const TransportSpec& transport) {
  return {transport, static_cast<double>(node.nics) / node.gpus * node.nic_bandwidth};
}

namespace {

void check_profiles(std::span<const Profile> profiles, const NodeSpec& node,
                    const TransportSpec& transport) {
  const NodeNetwork network = network_of(node, transport);
  for (const Profile& profile : profiles) {
    if (profile.gpu != node.gpu.name) {
      throw InputError({.file = profile.file,
                        .pointer = "/gpu",
                        .found = in_quotes(profile.gpu),
                        .allowed = "the card of the scenario, " + node.gpu.name,
                        .nearest = {}});
    }
    if (profile.power_limit) {
      // A scenario can change the card that its preset has.
      const std::string rule = broken_limit_rule(*profile.power_limit, node.gpu);
      if (!rule.empty()) {
        throw InputError({.file = profile.file,
                          .pointer = "/power_limit",
                          .found = in_quotes(watts_text(*profile.power_limit)),
                          .allowed = rule,
                          .nearest = {}});
      }
    }
    if (!profile.spans_nodes() || !profile.network || same_network(*profile.network, network)) {
      continue;
    }
    throw InputError({.file = profile.file,
                      .pointer = "/network",
                      .found = in_words(*profile.network),
                      .allowed = "the network of the scenario, " + in_words(network),
                      .nearest = {}});
  }
}

/// The correction that measured times make, each held against the card at its own power limit.
std::shared_ptr<const KernelProfile> measured_layer(std::span<const Profile> profiles,
                                                    const GpuSpec& spec,
                                                    const NodeNetwork& network) {
  std::vector<GpuSpec> cards;
  for (const Profile& profile : profiles) {
    cards.push_back(measured_card(profile, spec));
  }
  const bool joined = network.nic_bandwidth > BytesPerSecond{};
  return std::make_shared<const KernelProfile>(profiles, cards,
                                               joined ? std::optional(network) : std::nullopt);
}

}  // namespace

GpuSpec measured_card(const Profile& profile, const GpuSpec& spec) {
  return profile.power_limit ? capped(spec, *profile.power_limit) : spec;
}

void lay_card(NodeSpec& node, const TransportSpec& transport, std::span<const Profile> profiles,
              std::optional<Watts> cap) {
  assert(!node.gpu.profile && "a card is made of its layers once");
  if (profiles.empty() && !cap) return;
  check_profiles(profiles, node, transport);
  const GpuSpec spec = std::move(node.gpu);
  node.gpu = cap ? capped(spec, *cap) : spec;
  if (!profiles.empty()) {
    node.gpu.profile = measured_layer(profiles, spec, network_of(node, transport));
  }
}

}  // namespace lockstep
