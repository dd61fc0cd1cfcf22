#include "models/kernels/kernel_profile.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/kernels/memory_bound.hpp"

namespace lockstep {
namespace {

std::array<int, 3> attention_kind(const AttentionShape& shape, AttentionKernel kernel) {
  return {static_cast<int>(kernel), static_cast<int>(shape.direction), shape.causal ? 1 : 0};
}

std::array<int, 3> collective_kind(CollectiveOp op, int nodes, int per_node) {
  return {static_cast<int>(op), nodes, per_node};
}

template <class Key>
const RatioField* find(const std::map<Key, RatioField>& fields, const Key& key) {
  const auto found = fields.find(key);
  return found == fields.end() ? nullptr : &found->second;
}

/// Tensor cores are fed 16 bytes at a time where rows begin at multiples of that. Where they do not
/// (a vocabulary of 30,522 words), a product takes two to five times as long, which says nothing of
/// its neighbours.
RatioField::Reach reach_of(const GemmPoint& p) {
  // Scale factors, which lie elsewhere, are a few per cent of an operand's bytes.
  const double elements =
      std::exp2(std::round(std::log2(16 / info(p.precision).bytes_per_element)));
  const auto even = [&](double size) { return std::fmod(size, elements) == 0; };
  // m is a number of tokens, which lie in any row, or the width of a weight whose gradient it is.
  constexpr double kFewRows = 512;  // as a server decodes them
  const bool rows = p.shape.m <= kFewRows || even(p.shape.m);
  return rows && even(p.shape.n) && even(p.shape.k) ? RatioField::Reach::around
                                                    : RatioField::Reach::place;
}

}  // namespace

RatioPlace place_of(const GemmShape& shape) {
  return {std::log2(shape.m), std::log2(shape.n), std::log2(shape.k), std::log2(shape.count)};
}
RatioPlace place_of(const AttentionShape& shape) {
  return {std::log2(shape.sequences * shape.heads), std::log2(shape.tokens),
          std::log2(shape.head_dim), std::log2(shape.heads / shape.kv_heads)};
}
RatioPlace place_of_bytes(Bytes bytes) { return {std::log2(bytes.base_units()), 0, 0, 0}; }

bool Profile::spans_nodes() const {
  return std::ranges::any_of(collectives, [](const CollectivePoint& p) { return p.nodes > 1; });
}

KernelProfile::KernelProfile(std::span<const Profile> profiles, std::span<const GpuSpec> cards,
                             const std::optional<NodeNetwork>& network) {
  assert(profiles.size() == cards.size());
  // Inside one node no law reads the network.
  const NodeNetwork net = network.value_or(NodeNetwork{{}, gigabits_per_second(1)});
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const Profile& profile = profiles[i];
    const GpuSpec& gpu = cards[i];
    assert(!gpu.profile && "measured times are divided by the law alone");
    for (const GemmPoint& p : profile.gemm) {
      gemm_[{p.precision, p.load}].add(
          place_of(p.shape), p.time / gemm_time(p.shape, p.precision, gpu, p.load), reach_of(p));
    }
    for (const AttentionPoint& p : profile.attention) {
      attention_[attention_kind(p.shape, p.kernel)].add(
          place_of(p.shape), p.time / attention_time(p.shape, p.kernel, gpu, ElementwiseTraffic{}));
    }
    for (const MemoryPoint& p : profile.memory) {
      memory_[p.kernel].add(place_of_bytes(p.traffic), p.time / memory_bound_time(p.traffic, gpu));
    }
    for (const CollectivePoint& p : profile.collectives) {
      if (p.nodes > 1 && !network) continue;
      collectives_[collective_kind(p.op, p.nodes, p.gpus_per_node)].add(
          place_of_bytes(p.size),
          p.time / collective_time(p.call(), gpu, net.transport, net.nic_bandwidth));
    }
  }
  for (auto& [kind, field] : gemm_) field.finish();
  for (auto& [kind, field] : attention_) field.finish();
  for (auto& [kind, field] : memory_) field.finish();
  for (auto& [kind, field] : collectives_) field.finish();
}

const RatioField* KernelProfile::gemm_field(Precision precision, Load load) const {
  return find(gemm_, {precision, load});
}
const RatioField* KernelProfile::attention_field(const AttentionShape& shape,
                                                 AttentionKernel kernel) const {
  return find(attention_, attention_kind(shape, kernel));
}

const RatioField* KernelProfile::memory_field(const std::string& kernel) const {
  return find(memory_, kernel);
}

const RatioField* KernelProfile::collective_field(const CollectivePoint& point) const {
  return find(collectives_, collective_kind(point.op, point.nodes, point.gpus_per_node));
}

double KernelProfile::gemm(const GemmShape& shape, Precision precision, Load load) const {
  const RatioField* field = gemm_field(precision, load);
  if (field == nullptr) field = gemm_field(precision, Load::burst);
  return field == nullptr ? 1 : field->at(place_of(shape));
}

double KernelProfile::attention(const AttentionShape& shape, AttentionKernel kernel) const {
  const RatioField* field = attention_field(shape, kernel);
  return field == nullptr ? 1 : field->at(place_of(shape));
}

double KernelProfile::memory(Bytes traffic) const {
  if (memory_.empty() || traffic <= Bytes{}) return 1;
  double logs = 0;
  for (const auto& [kernel, field] : memory_) logs += std::log(field.at(place_of_bytes(traffic)));
  return std::exp(logs / static_cast<double>(memory_.size()));
}

double KernelProfile::collective(const CollectiveCall& call) const {
  const int g = call.ranks_per_node;
  const int k = call.nodes > 0 ? call.nodes : (call.ranks + g - 1) / g;
  if (g * k != call.ranks || call.payload < Bytes{1}) return 1;
  const RatioField* field = find(collectives_, collective_kind(call.op, k, g));
  if (field == nullptr && call.op == CollectiveOp::send_receive) {
    // The smallest group in one node, or over several.
    const auto other = collectives_.lower_bound(collective_kind(call.op, std::min(k, 2), 0));
    const bool fits = other != collectives_.end() && other->first[0] == static_cast<int>(call.op) &&
                      (other->first[1] == 1) == (k == 1);
    if (fits) field = &other->second;
  }
  return field == nullptr ? 1 : field->at(place_of_bytes(call.payload));
}

double measured_ratio(const KernelProfile& profile, const CollectiveCall& call) {
  return profile.collective(call);
}

}  // namespace lockstep
