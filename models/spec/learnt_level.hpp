/// What somebody's own measured steps say about a stack (lockstep learn), kind of job by kind.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// The level of a stack's kernels as steps of one kind of job show it. Kinds are learnt apart: rows
/// pooled over them would teach a level that belongs to none.
struct LearntLevel {
  // The kind.
  std::string gpu;        ///< name of the preset
  bool experts = false;   ///< mixture of experts
  bool adapters = false;  ///< LoRA and its kin
  // What was learnt.
  double log_level = 0;    ///< natural logarithm of the factor on StackSpec::level
  double deviation = 0.1;  ///< standard deviation of that, after the steps
  double prior = 0.1;      ///< the same before
  int steps = 0;           ///< distinct jobs
  // What they were of, from which distance is measured.
  std::vector<std::string> models;
  int fewest_gpus = 1, most_gpus = 1;
};

/// The part of what was learnt that holds for the job at hand.
struct LevelInForce {
  double deviation = 0;  ///< of the logarithm of the level, distance included
  int steps = 0;
  int distance = 0;  ///< things that differ from every job that was measured
};

}  // namespace lockstep
