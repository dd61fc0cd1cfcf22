#include "models/input/key_examples.hpp"

#include <array>

namespace lockstep {
namespace {

struct KeyExample {
  std::string_view key, value;
};
constexpr std::array kExamples{
    KeyExample{"model", R"("llama3_8b")"},
    KeyExample{"cluster", R"({"node": "dgx_h100", "nodes": 4})"},
    KeyExample{"node", R"("dgx_h100")"},
    KeyExample{"nodes", "4"},
    KeyExample{"batch", R"({"sequences": 256, "tokens": 4096})"},
    KeyExample{"sequences", "256"},
    KeyExample{"tokens", "4096"},
    KeyExample{"layers", "32"},
    KeyExample{"hidden", "4096"},
    KeyExample{"heads", "32"},
    KeyExample{"ffn", "14336"},
    KeyExample{"vocabulary", "128256"},
    KeyExample{"reliability", R"("llama3_54_days")"},
    KeyExample{"interval", R"("30 min")"},
    KeyExample{"bytes_per_token", "4"},
    KeyExample{"op", R"("all_reduce")"},
    KeyExample{"prompts", "512"},
    KeyExample{"generations", "8"},
    KeyExample{"prompt_tokens", "512"},
};

}  // namespace

std::string_view key_example(std::string_view key) {
  for (const KeyExample& example : kExamples) {
    if (example.key == key) return example.value;
  }
  return {};
}

}  // namespace lockstep
