/// The timeline of a step in Perfetto's own format, which ui.perfetto.dev opens.
///
/// A process per stage (and replica), a thread per stream, as trace_writer.hpp has them; beside it
/// flows from each pipeline message to the pass that takes it, and counters of power. Field numbers
/// are those of protos/perfetto/trace in github.com/google/perfetto (trace_packet.proto,
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

/// The pass that takes a message: indices into StepReport::timeline.
struct MessageFlow {
  std::size_t message, pass;
};
/// Messages and passes of a channel meet in their order. Channels whose messages do not all arrive
/// before the passes that would take them (schedules that turn round within a stage) have none.
std::vector<MessageFlow> message_flows(const StepReport& report);

}  // namespace lockstep
