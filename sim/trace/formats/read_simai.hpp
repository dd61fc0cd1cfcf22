/// Reads the text workloads of SimAI and of ASTRA-sim before Chakra, which AICB writes: what each
/// layer computes and exchanges in a step.
///
///     HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 64 ...
///     2
///     attention  -1  539986 ALLREDUCE 16777216  592000 NONE 0  592000 NONE 0  100
///
/// A line has the layer's name, a dependency that nobody reads, then time in ns, collective and
/// bytes of the forward pass, of the input's gradients and of the weights' gradients, and the ns of
/// an update after the last of these collectives. Sizes are nccl-tests': an all-gather's is the
/// gathered buffer.
///
/// The order is that of ASTRA-sim 1.0 (Workload.cc, iterate_hybrid_parallel_Transformer): forward
/// through all layers, each waiting for its collective; backward from the last, where the input's
/// collective runs beside the weights' gradients and the weights' collective beside all that
/// follows. Layers that `checkpoint_initiates` names first repeat the forward passes from the
/// checkpoint before them.
///
/// Collectives of the first two are among the tensor-parallel group, without one (ZeRO) among all
/// ranks of the stage; those of weights among the data-parallel group; `_EP` is the expert-parallel
/// group, `_DP_EP` the ranks that share its experts. Ranks are in Megatron's order: tensor, expert,
/// data, pipeline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// Whether the text begins as such a file does.
bool is_simai(std::string_view text);

/// All ranks. `ranks`: how many, where the file does not say; 0: nobody does. Throws InputError
/// with the line.
std::vector<RankTrace> read_simai(const std::string& file, std::string_view text, int ranks);

}  // namespace lockstep
