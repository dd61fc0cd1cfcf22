/// Which sizes of a job could be laid out, where the one that was asked for cannot.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario/scenario.hpp"
#include "sim/search/tune.hpp"

namespace lockstep {

/// The nearest counts with a layout that keeps all rules and that the stack can run; memory is not
/// looked at. Nothing: none within twice the size.
struct DividingCounts {
  std::optional<int> fewer_nodes, more_nodes;          ///< with the sequences as they are
  std::optional<int> fewer_sequences, more_sequences;  ///< with the nodes as they are
};

DividingCounts dividing_counts(const Scenario& base, const TuneSpace& space);

/// "1024 or 2048 nodes (8192 or 16384 GPUs), or 2000 or 2240 sequences"; empty: none.
std::string words_of(const DividingCounts& counts, int gpus_per_node);

}  // namespace lockstep
