// Gated memory units (Ren et al. 2025, SambaY, arXiv:2507.06607, section 2): what the recurrence of
// an earlier Mamba layer gave, gated by a product of the stream, in place of a mixer of its own.
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kMemoryIn{"memory_in", "memory_in.input_gradient",
                                 "memory_in.weight_gradient"};
constexpr ProductNames kMemoryOut{"memory_out", "memory_out.input_gradient",
                                  "memory_out.weight_gradient"};

constexpr Mixer kGatedMemory{14};  // behind those that have names

/// Its memory is saved where it is made, and its gradient added up there for nothing.
void add_gated_memory(const TransformerShape& m, const KindShape&, Layer& out) {
  constexpr double kHalfWord = 2;
  const double h = m.hidden, columns = m.mamba.inner();
  out.rows.emplace_back(Product{.names = kMemoryIn,
                                .in = {.whole = h},
                                .out = {.shared = columns},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(Kernel{.name = "memory_gate",
                               .columns = {.shared = columns},
                               .bytes = 3 * kHalfWord,
                               .backward = 5.0 / 3});
  out.rows.emplace_back(Product{.names = kMemoryOut,
                                .in = {.shared = columns},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kMemoryIn, kMemoryOut});
  out.saved.push_back({.columns = columns});
  out.saved.push_back(
      {.columns = columns, .keep = Keep::operand, .product = AdapterModule::projection});
}

}  // namespace

extern const MixerKind kGatedMemoryMixer;
constinit const MixerKind kGatedMemoryMixer{
    .mixer = kGatedMemory,
    .name = "gated_memory",
    .add = add_gated_memory,
    .operations = "memory_*",
    .one_stage = "layers gate what the recurrence of an earlier one gave",
    .shared = [](const TransformerShape& m,
                 const KindShape& kind) { return kMambaMixer.shared(m, kind); },
    .model_families = "phi4flash",
    .read_model = hugging_face::read_sambay,
    .numbers_of = &kMambaMixer};

}  // namespace lockstep
