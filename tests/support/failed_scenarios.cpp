#include "tests/support/failed_scenarios.hpp"

#include <array>

namespace lockstep::test {
namespace {

constexpr std::array kFailed{
    FailedScenario{
        .law = "work",
        .why = "without sequence parallelism every tensor-parallel rank did all of the product "
               "that a further predicted token has",
        .text =
            R"({"model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000,
                  "predicted_tokens": 1},
                "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
                "parallelism": {"tensor": 8, "sequence": false},
                "batch": {"sequences": 4, "micro": 2, "tokens": 2048},
                "recompute": "none", "stack": "megatron_core"})"},
    FailedScenario{
        .law = "work",
        .why = "norms of a further predicted token counted as useful FLOP",
        .text =
            R"({"model": {"layers": 1, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000,
                  "predicted_tokens": 1},
                "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
                "parallelism": {"data": 8},
                "batch": {"sequences": 8, "tokens": 2048},
                "recompute": "none", "stack": "megatron_core"})"},
};

}  // namespace

std::span<const FailedScenario> failed_scenarios() { return kFailed; }

}  // namespace lockstep::test
