// Attention and Mamba that read one input and whose results are added up (Falcon LLM Team 2025,
// Falcon-H1, arXiv:2507.22448, section 2).
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace {

constexpr Mixer kAttentionMamba{12};  // behind those that have names

/// Both as they are alone, with one exchange between tensor-parallel ranks before and one behind.
/// What one sum more takes than two blocks' is left out.
void add_attention_mamba(const TransformerShape& m, const KindShape& kind, Layer& out) {
  kMambaMixer.add(m, kind, out);
  kAttentionMixer.add(m, kind, out);
  join_exchanges(out);
}

std::vector<SharedParts> attention_mamba_parts(const TransformerShape& m, const KindShape& kind) {
  std::vector<SharedParts> parts = kAttentionMixer.shared(m, kind);
  for (const SharedParts& one : kMambaMixer.shared(m, kind)) parts.push_back(one);
  return parts;
}

}  // namespace

extern const MixerKind kAttentionMambaMixer;
/// Its Mamba has the numbers of the model's "mamba", its attention those of the kind.
constinit const MixerKind kAttentionMambaMixer{
    .mixer = kAttentionMamba,
    .name = "attention_and_mamba",
    .add = add_attention_mamba,
    .whole_sequence = "Mamba layers pass their state along the sequence",
    .shared = attention_mamba_parts,
    .capability = "mamba",
    .model_families = "falcon_h1",
    .read_model = hugging_face::read_falcon_h1,
    .numbers_of = &kMambaMixer};

}  // namespace lockstep
