#include "sim/scenario/read_profile.hpp"

#include <cassert>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/declared_members.hpp"
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
/// Bytes, or a text with a unit.
constexpr ValueType kBytesType = written_type(R"({"type": ["number", "string"]})");
constexpr std::array<std::string_view, 2> kLoads{"burst", "sustained"};
constexpr std::array<std::string_view, 2> kDirections{"forward", "backward"};

std::vector<std::string_view> fused_kernel_names() {
  std::vector<std::string_view> names;
  for (const AttentionKernelKind& kind : attention_kernels()) names.push_back(kind.name);
  // The unfused one is products and a softmax, which have points of their own.
  names.erase(names.begin());
  return names;
}

void declare_point(const DeclaredMembers& member, ProfilePoint& out) {
  member.required("time", shared_type("time"), "",
                  [&](const JsonCursor& at) { out.time = at.seconds(kPointTime); });
  member.optional("spread", shared_type("spread"), "",
                  [&](const JsonCursor& at) { out.spread = at.number(kPointSpread); });
}

auto size_into(double& out) {
  return [&out](const JsonCursor& at) { out = at.number(kProfiledSize); };
}

/// Products are timed in formats, too, that no job trains in.
const std::vector<std::string_view>& product_formats() {
  static const std::vector<std::string_view> formats = [] {
    std::vector<std::string_view> names;
    for (const PrecisionInfo& row : precisions()) names.push_back(row.name);
    return names;
  }();
  return formats;
}

void declare_gemm_point(const DeclaredMembers& member, GemmPoint& out) {
  constexpr ValueType kSize = shared_type("size");
  member.required("m", kSize, "", size_into(out.shape.m));
  member.required("n", kSize, "", size_into(out.shape.n));
  member.required("k", kSize, "", size_into(out.shape.k));
  member.optional("count", kSize, "Products of one batched launch; default: 1",
                  size_into(out.shape.count));
  member.required("precision", out.precision, product_formats(), "Of the operands");
  member.optional("load", out.load, kLoads,
                  "A few repeats on an idle card, or minutes at the power limit; default: burst");
  declare_point(member, out);
}

void declare_attention_point(const DeclaredMembers& member, AttentionPoint& out) {
  static const std::vector<std::string_view> kernels = fused_kernel_names();
  constexpr ValueType kSize = shared_type("size");
  member.required("kernel", choice_type(kernels), "", [&](const JsonCursor& at) {
    out.kernel = static_cast<AttentionKernel>(at.choice(kernels) + 1);
  });
  member.required("direction", out.shape.direction, kDirections, "");
  member.optional("causal", out.shape.causal, "Default: true");
  member.required("sequences", kSize, "", size_into(out.shape.sequences));
  member.required("tokens", kSize, "Of a sequence", size_into(out.shape.tokens));
  member.required("heads", kSize, "Of the queries", size_into(out.shape.heads));
  out.shape.kv_heads = out.shape.heads;
  member.optional(
      "kv_heads", kSize, "Of keys and values; default: as many",
      [&](const JsonCursor& at) { out.shape.kv_heads = at.number(Interval{1, out.shape.heads}); });
  member.required("head_dim", kSize, "", size_into(out.shape.head_dim));
  declare_point(member, out);
}

void declare_memory_point(const DeclaredMembers& member, MemoryPoint& out) {
  member.required("kernel", out.kernel, "What it is called: rms_norm, copy");
  member.required("traffic", kBytesType, "Read and written: bytes, or a text with a unit",
                  [&](const JsonCursor& at) { out.traffic = at.bytes(kPointTraffic); });
  declare_point(member, out);
}

void declare_collective_point(const DeclaredMembers& member, CollectivePoint& out) {
  member.required("op", out.op, kNcclTestsNames, "nccl-tests' names");
  member.optional("nodes", out.nodes, 1, kMostMembers, "NVLink domains with members; default: 1");
  member.required("gpus_per_node", out.gpus_per_node, 1, kMostMembers,
                  "Members in each of them; at least two in all");
  member.required("size", kBytesType,
                  "nccl-tests' size column, bytes or a text with a unit: the gathered buffer of an "
                  "all-gather, the input of a reduce-scatter, what one rank sends in all of an "
                  "all-to-all",
                  [&](const JsonCursor& at) { out.size = at.bytes(kPointTraffic); });
  declare_point(member, out);
  if (member.object() == nullptr) return;
  const auto per_node = [&] { return member.object()->at("gpus_per_node"); };
  (void)per_node().integer(1, kMostMembers / out.nodes);
  if (out.nodes * out.gpus_per_node < 2) per_node().fail("at least two GPUs in all");
}

/// The points of one kind; `check` is called with each, and with what it was read from.
template <class Point, class Check>
void declare_points(const DeclaredMembers& member, std::string_view key, std::string_view sentence,
                    void (*declare)(const DeclaredMembers&, Point&), std::vector<Point>& out,
                    const Check& check) {
  member.optional(
      key, kMostPoints, "", sentence,
      [declare](const DeclaredMembers& one) {
        Point point;
        declare(one, point);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& from : list.elements(kMostPoints)) {
          Point point;
          declare({from, Extent::whole}, point);
          check(from, point);
          from.finish();
          out.push_back(std::move(point));
        }
      });
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
  return fmt::format("{} with {} Gb/s for each GPU", network.transport.name,
                     plain_number(network.nic_bandwidth / gigabits_per_second(1), 4));
}

/// `gpu` is the card, whose formats products have; null where a schema is written.
void declare_all_points(const DeclaredMembers& member, const GpuSpec* gpu, Profile& out) {
  const auto any = [](const JsonCursor&, const auto&) {};
  declare_points(member, "gemm", "Matrix products C[m x n] = A[m x k] B[k x n]", declare_gemm_point,
                 out.gemm, [gpu](const JsonCursor& from, const GemmPoint& p) {
                   if (gpu->peak(p.precision) > FlopsPerSecond{}) return;
                   from.at("precision").fail("a format that " + gpu->name + " has");
                 });
  declare_points(member, "attention", "The attention core: scores, softmax, values",
                 declare_attention_point, out.attention, any);
  declare_points(member, "memory",
                 "Kernels that only move bytes: norms, activations, copies, the optimiser",
                 declare_memory_point, out.memory, any);
  declare_points(member, "collectives", "Collectives by themselves, as nccl-tests times them",
                 declare_collective_point, out.collectives, any);
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
  declare_all_points({root, Extent::whole}, &gpu, out);
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

nlohmann::ordered_json profile_points_schema() {
  nlohmann::ordered_json schema = nlohmann::ordered_json::object();
  Profile profile;
  declare_all_points(DeclaredMembers(schema, Extent::whole), nullptr, profile);
  return schema;
}

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
          fmt::format("{}: as {} measured them ({} {}), between those by the laws", what,
                      profile.file, points, points == 1 ? "point" : "points"));
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
    if (node.gpu.nvlink_scale == 0 && !profile.collectives.empty()) {
      throw InputError({.file = profile.file,
                        .pointer = "/collectives",
                        .found = "times over NVLink",
                        .allowed = "none, as the scenario takes the card's NVLinks away "
                                   "(nvlink_bandwidth is 0)",
                        .nearest = {}});
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
  GpuSpec card = profile.power_limit ? capped(spec, *profile.power_limit) : spec;
  if (card.nvlink_scale > 0 && card.nvlink_scale != 1) {
    const BytesPerSecond changed = card.nvlink_bandwidth;
    card.nvlink_bandwidth = 1 / card.nvlink_scale * changed;
    follow_nvlink(card, changed);
  }
  return card;
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
