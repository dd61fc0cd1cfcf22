/// What options say of a trace that is replayed, and of the cluster that it is replayed on.
#pragma once

#include "sim/measured/trace_files.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// The words, --from, --groups, --step and --as-recorded.
TraceAsked trace_asked(const ParsedOptions& options);

/// --cluster, --node, --nodes and --fabric.
TraceClusterAsked trace_cluster_asked(const ParsedOptions& options);

}  // namespace lockstep
