/// Launch files of every kind, read to the point where each of their keys has a meaning or none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/job_sketch.hpp"
#include "sim/launch/key_table.hpp"

namespace lockstep {

enum class LaunchKind : std::uint8_t {
  megatron,    ///< Megatron-LM's arguments
  nemo,        ///< NeMo 1 YAML
  bridge,      ///< Megatron-Bridge YAML
  torchtitan,  ///< TOML, or its command line
  deepspeed,   ///< JSON
  accelerate,  ///< YAML
  trainer,     ///< arguments of Hugging Face's Trainer, YAML or JSON of them
  maxtext,     ///< YAML, or its command line
  neox,        ///< GPT-NeoX YAML
  nanotron,    ///< YAML
  torchtune,   ///< YAML, and what its command line changes
  foundry,     ///< LLM Foundry YAML
  levanter,    ///< YAML
  colossal,    ///< arguments behind `colossalai run`
  model,       ///< a Hugging Face config.json beside the others
};
/// "Megatron-LM arguments"
std::string_view title_of(LaunchKind kind);

/// A file, or the part of one that is of another kind: the DeepSpeed JSON in a script.
struct LaunchPart {
  std::string file;
  LaunchKind kind = LaunchKind::megatron;
  std::vector<Setting> launcher, settings;
};

struct LaunchFiles {
  std::vector<LaunchPart> parts;  ///< configurations first, then command lines
  std::vector<std::string> remarks;
  std::vector<std::string> scenario;  ///< of `set`, what is a path of the scenario
  std::string texts;                  ///< all of them, for hints
  std::string node_variable;          ///< the variable of a script that has the number of nodes
};

/// Reads the files in turn. `set`: "NAME=VALUE" gives a variable of a script a value, or replaces
/// that of a key; "cluster.nodes=4" is a path of the scenario. Throws InputError for what is no
/// launch file.
LaunchFiles read_launch_files(const std::vector<std::string>& files,
                              const std::vector<std::string>& set);

/// What the parts say together, and of each key what became of it.
struct SketchedJob {
  JobSketch job;
  std::vector<KeyFinding> keys;
  std::vector<std::string> open;  ///< variables that nobody knows, of keys that matter
};
SketchedJob sketch_job(const LaunchFiles& files);

}  // namespace lockstep
