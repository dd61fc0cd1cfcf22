/// Reads Chakra execution traces, one file a rank. Source of the format:
/// github.com/mlcommons/chakra, schema/protobuf/et_def.proto; of what the attributes mean:
/// github.com/astra-sim/astra-sim, astra-sim/workload/Workload.cc, which runs them.
///
/// What a node takes: `duration_micros`; without it `num_ops` and `tensor_size` on the GPU's
/// roofline, and copies `tensor_size` over PCIe. `comm_size` is what one rank puts in; the group is
/// `pg_name`, whose ranks a "process_group:init" metadata node or the file of groups gives; a
/// collective without it is one of all ranks. Nodes that run on a `stream` run there in the order
/// in which they started: traces that PyTorch recorded lack these dependencies.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hardware.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// What readers take from the cluster and the command line.
struct TraceReadOptions {
  GpuSpec gpu;  ///< whose roofline nodes without a duration follow
  std::map<std::string, std::vector<int>> groups;  ///< ranks by name, for files that do not say
  int ranks = 0;  ///< of workloads that do not say how many; 0: nobody says
};

/// The protobuf form: GlobalMetadata, then nodes, each behind its length. Throws InputError, as the
/// others, with the node's number where there is one.
RankTrace read_chakra(const std::string& file, int rank, std::string_view bytes,
                      const TraceReadOptions& options);
/// The messages of the protobuf form in protobuf's JSON mapping: one after another
/// (chakra_jsonizer), in an array, or in the member "nodes" of an object; or in "workload_graph",
/// with the keys of 2023 ("Id", "Name", "NodeType", "runtime").
RankTrace read_chakra_json(const std::string& file, int rank, std::string_view text,
                           const TraceReadOptions& options);

/// ASTRA-sim's file of process groups: {"1": [0, 1], "2": [2, 3]}.
std::map<std::string, std::vector<int>> read_trace_groups(const std::string& file,
                                                          std::string_view text);

}  // namespace lockstep
