#include "sim/scenario/read_profile.hpp"

#include <fmt/format.h>
#include <memory>

#include "models/input/input_error.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostPoints = 100'000;
constexpr Interval kSize{1, 1e9};
constexpr Interval kPointTime{0, 1e4, true};
constexpr Interval kSpread{0, 10};
constexpr Interval kPointTraffic{1, 1e15};
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
  member.optional("spread", out.spread, kSpread);
}

GemmPoint read_gemm_point(const JsonCursor& from, const GpuSpec& gpu) {
  GemmPoint p;
  const MemberReader member(from, Extent::whole);
  member.required("m", p.shape.m, kSize);
  member.required("n", p.shape.n, kSize);
  member.required("k", p.shape.k, kSize);
  member.optional("count", p.shape.count, kSize);
  const JsonCursor precision = from.at("precision");
  p.precision = read_choice<Precision>(precision, precision_names());
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
  member.required("sequences", p.shape.sequences, kSize);
  member.required("tokens", p.shape.tokens, kSize);
  member.required("heads", p.shape.heads, kSize);
  p.shape.kv_heads = p.shape.heads;
  member.optional("kv_heads", p.shape.kv_heads, Interval{1, p.shape.heads});
  member.required("head_dim", p.shape.head_dim, kSize);
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

void read_strings(const JsonCursor& from) {
  for (const std::string& key : from.keys()) (void)from.at(key).string();
  from.finish();
}

}  // namespace

Profile read_profile(const std::string& file, std::string_view text, const PresetStore& presets) {
  const JsonCursor root = JsonCursor::parse(file, text);
  Profile out;
  out.file = file;
  if (const auto schema = root.find("$schema")) (void)schema->string();
  if (const auto about = root.find("about")) out.about = about->string();
  if (const auto source = root.find("source")) (void)source->string();
  if (const auto date = root.find("date")) (void)date->string();
  // For people: driver, clocks, power limit, library versions.
  if (const auto conditions = root.find("conditions")) read_strings(*conditions);
  out.gpu = read_preset_name(root.at("gpu"), "gpus", presets);
  const GpuSpec& gpu = presets.gpu(out.gpu);
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
  root.finish();
  if (out.gemm.empty() && out.attention.empty() && out.memory.empty()) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = "no points",
                      .allowed = "at least one in gemm, attention or memory",
                      .nearest = {}});
  }
  return out;
}

void apply_profile(const Profile& profile, GpuSpec& gpu) {
  if (profile.gpu != gpu.name) {
    throw InputError({.file = profile.file,
                      .pointer = "/gpu",
                      .found = in_quotes(profile.gpu),
                      .allowed = "the card of the scenario, " + gpu.name,
                      .nearest = {}});
  }
  gpu.profile = std::make_shared<const KernelProfile>(profile, gpu);
}

}  // namespace lockstep
