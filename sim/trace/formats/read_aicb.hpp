/// Reads AICB's workloads for real clusters: a table of the calls that every rank of a pipeline
/// stage makes, one after the other.
///
///     [rank0 ~ rank127]
///     comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,...
///     CommType.all_reduce,CommGroup.tp_group,2,16777216,forward.MegatronEmbedding,None,...
///     CommType.epoch_end,None,None,0,...
///
/// A file has a line with ranks, a heading and rows for each stage. What stands behind the last
/// epoch_end but one is a step; what comes before prepares the run. Sizes are nccl-tests' bytes
/// (workload_applyer.py at 2dcbc799a3a5: an all-gather's is the gathered buffer). Groups are in
/// Megatron's order: tensor, context, expert, data, pipeline. A computation takes its
/// "_elapsed_time" (ns), or else what its product takes at the peaks of the card.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hardware.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// Whether the text begins as such a file does.
bool is_aicb(std::string_view text);

/// All ranks. Throws InputError with the row.
std::vector<RankTrace> read_aicb(const std::string& file, std::string_view text,
                                 const GpuSpec& gpu);

}  // namespace lockstep
