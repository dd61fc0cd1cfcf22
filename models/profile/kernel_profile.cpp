#include "models/profile/kernel_profile.hpp"

#include <cmath>

#include "models/kernels/memory_bound.hpp"

namespace lockstep {
namespace {

std::array<int, 3> attention_kind(const AttentionShape& shape, AttentionKernel kernel) {
  return {static_cast<int>(kernel), static_cast<int>(shape.direction), shape.causal ? 1 : 0};
}

template <class Key>
const RatioField* find(const std::map<Key, RatioField>& fields, const Key& key) {
  const auto found = fields.find(key);
  return found == fields.end() ? nullptr : &found->second;
}

}  // namespace

RatioPlace place_of(const GemmShape& shape) {
  return {std::log2(shape.m), std::log2(shape.n), std::log2(shape.k), std::log2(shape.count)};
}
RatioPlace place_of(const AttentionShape& shape) {
  return {std::log2(shape.sequences * shape.heads), std::log2(shape.tokens),
          std::log2(shape.head_dim), std::log2(shape.heads / shape.kv_heads)};
}
RatioPlace place_of_traffic(Bytes traffic) { return {std::log2(traffic.base_units()), 0, 0, 0}; }

KernelProfile::KernelProfile(const Profile& profile, const GpuSpec& gpu) {
  for (const GemmPoint& p : profile.gemm) {
    gemm_[{p.precision, p.load}].add(place_of(p.shape),
                                     p.time / gemm_time(p.shape, p.precision, gpu, p.load));
  }
  for (const AttentionPoint& p : profile.attention) {
    attention_[attention_kind(p.shape, p.kernel)].add(
        place_of(p.shape), p.time / attention_time(p.shape, p.kernel, gpu, ElementwiseTraffic{}));
  }
  for (const MemoryPoint& p : profile.memory) {
    memory_[p.kernel].add(place_of_traffic(p.traffic), p.time / memory_bound_time(p.traffic, gpu));
  }
  for (auto& [kind, field] : gemm_) field.finish();
  for (auto& [kind, field] : attention_) field.finish();
  for (auto& [kind, field] : memory_) field.finish();
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
  for (const auto& [kernel, field] : memory_) logs += std::log(field.at(place_of_traffic(traffic)));
  return std::exp(logs / static_cast<double>(memory_.size()));
}

}  // namespace lockstep
