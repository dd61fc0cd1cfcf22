/// The timeline of a step in Perfetto's own format, which ui.perfetto.dev opens.
///
/// A process per stage (and replica), a thread per stream, as trace_writer.hpp has them; beside it
/// flows from each pipeline message to the pass that takes it, the critical path as a track of its
/// own, and counters: memory of each stage, what classes of links carry, power. Field numbers are
/// those of protos/perfetto/trace in github.com/google/perfetto (trace_packet.proto,
/// track_event/*.proto). Times are whole nanoseconds.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/answer/step_answer.hpp"

namespace lockstep {

class OutputFile;

/// Requires a report that recorded its timeline and kept its actors. Throws InputError where the
/// file cannot be written.
void write_perfetto(OutputFile& file, const RunResult& result);

/// A value that holds until the next one.
struct SteppedCounter {
  std::vector<StepTime> at;
  std::vector<double> value;
};
/// Bytes that a GPU of an actor needs over the step: its stage's peak, less the activations of the
/// micro batches that are not under way. A pass over a chunk holds its part from the start of the
/// forward pass to the end of the backward pass, or of that for the weights where these are two.
/// Chunks count as alike, and all activations as held by them: exact are the peak and what is there
/// without any. Empty where nothing is kept for backward passes.
SteppedCounter memory_over_time(const StepReport& report, std::size_t actor);

/// The pass that takes a message: indices into StepReport::timeline.
struct MessageFlow {
  std::size_t message, pass;
};
/// Each message of the timeline, with the pass that takes it.
std::vector<MessageFlow> message_flows(const StepReport& report);

}  // namespace lockstep
