#include "tools/lockstep/replay/trace_asked.hpp"

namespace lockstep {

TraceAsked trace_asked(const ParsedOptions& options) {
  return {.words = options.positionals,
          .from = options.given("from"),
          .groups = options.given("groups"),
          .step = options.given("step"),
          .as_recorded = options.has("as-recorded")};
}

TraceClusterAsked trace_cluster_asked(const ParsedOptions& options) {
  return {.cluster = options.given("cluster"),
          .node = options.given("node"),
          .nodes = options.given("nodes"),
          .fabric = options.given("fabric")};
}

}  // namespace lockstep
