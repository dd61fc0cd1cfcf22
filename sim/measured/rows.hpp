/// Rows of training measurements: scenarios with what was measured, and what sources printed about
/// runs in words of their own. tests/reference/README.md describes both; any file of either works
/// with `lockstep validate --rows FILE`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/precision.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

/// One row as the file has it. A value that the file leaves open is nothing here, not a guess.
struct ReferenceRow {
  std::string id;
  std::string source;     ///< the id up to its first '-'
  std::string published;  ///< where, in words: an address and a table
  std::string gpu;        ///< "H100-SXM5-80GB"
  std::string stack;      ///< "megatron-bridge"
  std::string release;
  std::string sharding_framework;  ///< whose ZeRO it is: "deepspeed", "megatron"; empty: nobody's
  std::string transport;           ///< "infiniband", "omni-path", ...; empty: not known
  /// Why no scenario can be made of it: "mixture of experts"; empty: one can.
  std::string obstacle;
  /// A row in the scenario's own words: its scenario as JSON, and where that stands in which file.
  std::string scenario, file, place;
  std::vector<std::string> assumed;  ///< what of such a scenario its source does not say
  std::string pointer;               ///< of the row itself, in its file
  bool unmeasured = false;           ///< it says nothing that a prediction could be held against
  /// What the row's own scenario expects: a step time, and how near a prediction has to be.
  std::optional<double> expected_step_s;
  double within = 0;
  bool expected_to_fit = true;

  TransformerShape model;
  int gpus = 0;
  int gpus_per_node = 0;
  std::optional<int> nvlink_domain;
  std::optional<double> gbps_per_node;  ///< all compute NICs of a node together, Gb/s
  int tensor = 1, context = 1, pipeline = 1, data = 1, expert = 1;
  int shard_group = 0;  ///< ranks that hold a copy of the weights together; 0: all
  std::optional<int> expert_tensor;
  std::vector<int> layers_per_stage;  ///< of every virtual stage, where the source writes them out
  std::optional<int> virtual_stages;
  std::optional<bool> sequence;
  Sharding sharding = Sharding::none;
  std::optional<bool> reshard;  ///< of zero3: weights are let go after the forward pass
  Batch batch;
  std::optional<Recompute> recompute;
  RecomputeModules modules;
  Adapters adapters;
  Precision precision = Precision::bf16;

  // Facts about the software that a few sources state.
  std::optional<bool> overlaps_tensor_parallel;
  std::optional<TensorOverlap> tensor_overlap;
  HostOffload offload;
  std::optional<bool> cuda_graph;
  std::optional<bool> compiled;  ///< by torch.compile
  bool partial_graph = false;    ///< parts of a layer run as CUDA graphs
  bool two_level_dispatch = false;
  bool expert_overlap = false;
  std::optional<double> gradient_bytes;  ///< per parameter, as reduced
  /// Bus bandwidth measured over all GPUs of the run, and within its nodes.
  std::optional<double> all_gather_gb_per_s, all_gather_in_node_gb_per_s;

  /// Keys of a scenario that say more than the row's own (sim/scenario/change_job.hpp), as JSON;
  /// empty: none.
  std::string changes;

  /// Predicted with its stack composed from what that does, without what was fitted to runs of it.
  bool composed = false;
  bool unnamed = false;  ///< predicted as if nobody had said which software ran
  bool complete = true;  ///< by the file's own word; and not suspect
  bool dense = false;    ///< no MoE, MLA, CP, FSDP, ZeRO-2/3, FP4, and complete
  bool ran_out_of_memory = false;
  std::optional<double> measured_step_s;
  std::optional<double> measured_memory_gib;   ///< peak within a step
  std::optional<double> measured_gpu_power_w;  ///< of a GPU, mean over steps
};

/// Whether the row's job is dense as the accuracy figures mean it.
bool is_dense(const ReferenceRow& row);

/// Reads an array of rows, or an object that has one under "rows". Throws InputError for a file
/// that is no JSON or has no rows; a row that lacks something has an obstacle instead.
///
/// A row may be in the scenario's own words too: {"row": its name, "scenario": {...}, "measured":
/// {"step_time": "12.5 s"}, "source": "..."}. Such a row is checked like a scenario: a mistake
/// throws. load_rows() fills in the rest of it.
std::vector<ReferenceRow> parse_rows(const std::string& file, std::string_view text);

/// Throws InputError where no row says anything to be judged by: neither "measured" nor "derived",
/// nor that it ran out of memory, nor that it is not to be simulated.
void require_measured(const std::string& file, const std::vector<ReferenceRow>& rows);

}  // namespace lockstep
