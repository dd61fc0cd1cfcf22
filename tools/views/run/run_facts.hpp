/// What a step's answer says in one line each, for the table and for the page.
#pragma once

#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "sim/rl/rl_step.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {

/// A line of an answer: "Step time", "4.52 s", " ...".
struct Fact {
  std::string label;
  std::string strong;  ///< the beginning, which stands out
  std::string text;    ///< what follows it
};

/// What makes the answer one of a job that cannot run as it is: memory that does not suffice, a
/// power limit that is exceeded. It stands before everything else.
std::vector<Fact> step_warnings(const RunResult& result);
/// What was simulated: model, layout, batch, software, fabric.
std::vector<Fact> job_facts(const RunResult& result);
/// Step time and its interval, MFU, throughput, memory, the whole training.
std::vector<Fact> answer_facts(const RunResult& result);

/// Mean power of a step and its extremes, energy and money.
std::vector<Fact> power_facts(const PoweredStep& step);
/// Requires result.power.
std::vector<Fact> power_facts(const RunResult& result);
/// "1.23 kWh", "45 kJ".
std::string energy_text(Joules energy);

/// Whether causal masks leave any of the model's attention out, so that MFU with attention in full
/// is another number than with causal attention.
bool has_causal_attention(const StepReport& report);

/// Of distillation, whose phase before training is the teacher's and scores nothing.
bool has_teacher(const RlReport& report);

/// Of a bucket in the step: those of all buckets add up to 1.
double bucket_share(const StepReport& report, const BucketInfo& bucket);

/// "61.3 GiB"; "<0.001 GiB" of what is there but is less than a mebibyte or so.
std::string gib_text(Bytes bytes);

}  // namespace lockstep
