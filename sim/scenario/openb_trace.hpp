/// Reads nodes and pods as Alibaba published those of a production cluster (openb, 2023; used by
/// Weng et al. 2023, USENIX ATC).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/filling_spec.hpp"

namespace lockstep {

/// Adds the nodes of a CSV text, a row each: cpu_milli, memory_mib, gpus (or gpu), gpu_model (or
/// model); other columns are passed over. Shapes are not put together. Throws InputError, which
/// calls the text `file`.
void read_openb_nodes(const std::string& file, std::string_view text, std::vector<NodeShape>& out);

/// Reads pods: cpu_milli, memory_mib, gpus (or num_gpu), gpu_milli, gpu_models (or gpu_spec;
/// maybe missing), names between "|". Whether and when a pod ran is passed over.
void read_openb_pods(const std::string& file, std::string_view text, std::vector<PodShape>& out);

/// Sorts the shapes and merges equal ones; the counts of equal shapes are added.
void unite_shapes(std::vector<NodeShape>& shapes);
void unite_shapes(std::vector<PodShape>& shapes);

}  // namespace lockstep
