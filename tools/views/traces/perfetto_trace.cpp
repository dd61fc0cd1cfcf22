#include "tools/views/traces/perfetto_trace.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kPerfettoStreams{
    "compute", "send to next", "send to previous", "data parallel", "host copies"};
constexpr std::uint8_t kComputeStream = 0, kNextStream = 1, kPreviousStream = 2;
constexpr std::uint64_t kPsPerNs = 1000, kSequence = 1, kCriticalTrack = 1, kProcessTracks = 1000;
constexpr std::uint64_t kStreamTracks = 8;  ///< uuids of a process

/// A message of protobuf as it is built: each field its number, its wire type, its value.
class ProtoText {
 public:
  void number(unsigned field, std::uint64_t value) {
    varint(field << 3U);
    varint(value);
  }
  void fixed(unsigned field, std::uint64_t value) {
    varint((field << 3U) | 1U);
    for (unsigned i = 0; i < 64; i += 8) bytes_ += static_cast<char>((value >> i) & 0xFFU);
  }
  void real(unsigned field, double value) { fixed(field, std::bit_cast<std::uint64_t>(value)); }
  void text(unsigned field, std::string_view value) {
    varint((field << 3U) | 2U);
    varint(value.size());
    bytes_ += value;
  }
  void part(unsigned field, const ProtoText& value) { text(field, value.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80U) {
      bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
      value >>= 7U;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

/// Fields of Perfetto's messages by number, and its kinds of events.
namespace perfetto {
constexpr unsigned kPacket = 1;  // of Trace
constexpr unsigned kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kTrackDescriptor = 60;
constexpr unsigned kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
constexpr unsigned kPid = 1, kProcessName = 6, kTid = 2, kThreadName = 5;
constexpr unsigned kAnnotations = 4, kType = 9, kTrackUuid = 11, kCategories = 22, kEventName = 23,
                   kRealCounter = 44, kFlows = 47, kEndedFlows = 48;
constexpr unsigned kIntValue = 4, kAnnotationName = 10;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounterValue = 4;
}  // namespace perfetto

std::uint64_t process_track(std::size_t actor) {
  return kProcessTracks + kStreamTracks * static_cast<std::uint64_t>(actor);
}
std::uint64_t stream_track(std::size_t actor, std::uint8_t stream) {
  return process_track(actor) + 1 + stream;
}

std::string actor_name(const ActorReport& actor, bool folded) {
  std::string out = fmt::format("stage {}", actor.stage);
  if (!folded || actor.replica > 0) out += fmt::format(" replica {}", actor.replica);
  if (actor.copies > 1) out += fmt::format(" ({} replicas alike)", actor.copies);
  return out;
}

/// An event of the trace: at one instant ends come before counters and begins.
struct PerfettoEvent {
  std::uint64_t ns;
  int rank;  ///< 0: an end, 1: else
  ProtoText event;
};

class PerfettoWriter {
 public:
  explicit PerfettoWriter(const RunResult& result) : result_(result) {}

  std::string text() {
    describe_actors();
    add_slices();
    add_critical_path();
    add_memory();
    add_link_rates();
    if (result_.power) {
      add_power("power of the GPUs in W", result_.power->gpus);
      add_power("power of a node in W", result_.power->node);
      add_power("power of the facility in W", result_.power->facility);
    }
    std::ranges::stable_sort(events_, [](const PerfettoEvent& a, const PerfettoEvent& b) {
      return std::pair(a.ns, a.rank) < std::pair(b.ns, b.rank);
    });
    for (const PerfettoEvent& event : events_) {
      ProtoText packet;
      packet.number(perfetto::kTimestamp, event.ns);
      packet.number(perfetto::kSequenceId, kSequence);
      packet.part(perfetto::kTrackEvent, event.event);
      add(packet);
    }
    return std::move(out_);
  }

 private:
  void add(const ProtoText& packet) {
    ProtoText trace;
    trace.part(perfetto::kPacket, packet);
    out_ += trace.bytes();
  }
  void describe(const ProtoText& of) {
    ProtoText packet;
    packet.number(perfetto::kSequenceId, kSequence);
    packet.part(perfetto::kTrackDescriptor, of);
    add(packet);
  }

  void describe_actors() {
    const StepReport& report = result_.report;
    std::set<std::pair<std::uint32_t, std::uint8_t>> streams;
    for (const TimelineSlice& slice : report.timeline) streams.emplace(slice.actor, slice.stream);
    for (std::size_t a = 0; a < report.actors.size(); ++a) {
      ProtoText own, track;
      own.number(perfetto::kPid, a + 1);
      own.text(perfetto::kProcessName, actor_name(report.actors[a], report.folded));
      track.number(perfetto::kUuid, process_track(a));
      track.part(perfetto::kProcess, own);
      describe(track);
    }
    for (const auto& [actor, stream] : streams) {
      ProtoText own, track;
      own.number(perfetto::kPid, actor + 1U);
      own.number(perfetto::kTid, stream_track(actor, stream));
      own.text(perfetto::kThreadName, kPerfettoStreams[stream]);
      track.number(perfetto::kUuid, stream_track(actor, stream));
      track.part(perfetto::kThread, own);
      describe(track);
    }
  }

  void add_slices() {
    const StepReport& report = result_.report;
    std::map<std::size_t, std::uint64_t> begun, ended;
    std::uint64_t flow = 0;
    for (const MessageFlow& each : message_flows(report)) {
      begun[each.message] = ended[each.pass] = ++flow;
    }
    for (std::size_t i = 0; i < report.timeline.size(); ++i) {
      const TimelineSlice& slice = report.timeline[i];
      const std::uint64_t from = slice.start.ps / kPsPerNs, to = slice.end.ps / kPsPerNs;
      if (to == from) continue;
      ProtoText begin, end;
      begin.number(perfetto::kType, perfetto::kSliceBegin);
      begin.number(perfetto::kTrackUuid, stream_track(slice.actor, slice.stream));
      begin.text(perfetto::kCategories, kPerfettoStreams[slice.stream]);
      begin.text(perfetto::kEventName, slice_kinds()[slice.kind].name);
      annotate(begin, "micro batch", slice.micro_batch);
      annotate(begin, "chunk", slice.chunk);
      if (const auto at = begun.find(i); at != begun.end())
        begin.fixed(perfetto::kFlows, at->second);
      if (const auto at = ended.find(i); at != ended.end())
        begin.fixed(perfetto::kEndedFlows, at->second);
      end.number(perfetto::kType, perfetto::kSliceEnd);
      end.number(perfetto::kTrackUuid, stream_track(slice.actor, slice.stream));
      events_.push_back({from, 1, std::move(begin)});
      events_.push_back({to, 0, std::move(end)});
    }
  }

  static void annotate(ProtoText& event, std::string_view name_of_it, std::int32_t value) {
    if (value < 0) return;
    ProtoText annotation;
    annotation.number(perfetto::kIntValue, static_cast<std::uint64_t>(value));
    annotation.text(perfetto::kAnnotationName, name_of_it);
    event.part(perfetto::kAnnotations, annotation);
  }

  /// The passes that the end of the step waited for, one after the other.
  void add_critical_path() {
    ProtoText of;
    of.number(perfetto::kUuid, kCriticalTrack);
    of.text(perfetto::kName, "critical path");
    describe(of);
    for (const TimelineSlice& slice : result_.report.timeline) {
      const std::uint64_t from = slice.start.ps / kPsPerNs, to = slice.end.ps / kPsPerNs;
      if (!slice.critical || from == to) continue;
      const ActorReport& actor = result_.report.actors[slice.actor];
      ProtoText begin, end;
      begin.number(perfetto::kType, perfetto::kSliceBegin);
      begin.number(perfetto::kTrackUuid, kCriticalTrack);
      begin.text(perfetto::kCategories, "critical path");
      begin.text(perfetto::kEventName, fmt::format("{}, {}", slice_kinds()[slice.kind].name,
                                                   actor_name(actor, result_.report.folded)));
      annotate(begin, "micro batch", slice.micro_batch);
      annotate(begin, "chunk", slice.chunk);
      end.number(perfetto::kType, perfetto::kSliceEnd);
      end.number(perfetto::kTrackUuid, kCriticalTrack);
      events_.push_back({from, 1, std::move(begin)});
      events_.push_back({to, 0, std::move(end)});
    }
  }

  void add_memory() {
    const StepReport& report = result_.report;
    for (std::size_t a = 0; a < report.actors.size(); ++a) {
      const SteppedCounter memory = memory_over_time(report, a);
      if (memory.at.empty()) continue;
      begin_counter("memory of a GPU in GiB", process_track(a));
      for (std::size_t i = 0; i < memory.at.size(); ++i) {
        add_value(memory.at[i], memory.value[i] / static_cast<double>(1ULL << 30U));
      }
    }
  }

  void add_link_rates() {
    for (const LinkRates& rates : result_.report.link_rates) {
      begin_counter(fmt::format("{} in GB/s, of {} that are simulated", rates.links,
                                significant(rates.capacity.base_units() / 1e9)));
      for (std::size_t i = 0; i < rates.at.size(); ++i) {
        add_value(rates.at[i], rates.bytes_per_s[i] / 1e9);
      }
    }
  }

  void add_power(std::string_view title, const PowerSeries& series) {
    if (series.size() == 0) return;
    begin_counter(title);
    for (std::size_t i = 0; i < series.size(); ++i) {
      add_value(to_step_time(series.start[i]), series.power[i].base_units());
    }
  }

  /// Values that are added from here on are its; `process`: the track that it stands below.
  void begin_counter(std::string_view title, std::uint64_t process = 0) {
    // Those of processes and their streams come before it.
    counter_ = counter_ == 0 ? counter_tracks() : counter_ + 1;
    ProtoText own, of;
    of.number(perfetto::kUuid, counter_);
    of.text(perfetto::kName, title);
    if (process > 0) of.number(perfetto::kParent, process);
    of.part(perfetto::kCounter, own);
    describe(of);
  }
  [[nodiscard]] std::uint64_t counter_tracks() const {
    return process_track(result_.report.actors.size());
  }
  void add_value(StepTime at, double value) {
    ProtoText event;
    event.number(perfetto::kType, perfetto::kCounterValue);
    event.number(perfetto::kTrackUuid, counter_);
    event.real(perfetto::kRealCounter, value);
    events_.push_back({at.ps / kPsPerNs, 1, std::move(event)});
  }

  const RunResult& result_;
  std::vector<PerfettoEvent> events_;
  std::string out_;
  std::uint64_t counter_ = 0;  ///< the track of the counter that is being added
};

}  // namespace

SteppedCounter memory_over_time(const StepReport& report, std::size_t actor) {
  /// Chunks that are held more or fewer from a time on.
  std::map<StepTime, int> changes;
  const auto own = std::ranges::equal_range(report.timeline, static_cast<std::uint32_t>(actor), {},
                                            &TimelineSlice::actor);
  for (const TimelineSlice& slice : own) {
    if (slice.stream != kComputeStream) continue;
    const std::string_view kind = slice_kinds()[slice.kind].name;
    if (kind == "forward") ++changes[slice.start];
    if (kind == "backward" || kind == "weight gradients") --changes[slice.end];
  }
  int held = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, held += change);
  if (most == 0) return {};
  const MemoryBreakdown& peak =
      report.stages[static_cast<std::size_t>(report.actors[actor].stage)].memory;
  const auto needed = [&](int chunks) {
    const double waiting = static_cast<double>(most - chunks) / most;
    return (peak.needed() - waiting * peak.activations).base_units();
  };
  SteppedCounter out{.at = {StepTime{}}, .value = {needed(0)}};
  held = 0;
  for (const auto& [at, change] : changes) {
    held += change;
    out.at.push_back(at);
    out.value.push_back(needed(held));
  }
  return out;
}

std::vector<MessageFlow> message_flows(const StepReport& report) {
  const std::size_t stages = report.stages.size();
  if (stages < 2) return {};
  /// By actor, whether it is a forward pass, chunk, and micro batch.
  std::map<std::tuple<std::size_t, bool, std::int32_t, std::int32_t>, std::size_t> passes;
  for (std::size_t i = 0; i < report.timeline.size(); ++i) {
    const TimelineSlice& slice = report.timeline[i];
    const std::string_view kind = slice_kinds()[slice.kind].name;
    const bool forward = kind == "forward";
    // Of a backward pass in two the first takes the message.
    if (!forward && kind != "backward" && kind != "input gradients") continue;
    passes[{slice.actor, forward, slice.chunk, slice.micro_batch}] = i;
  }
  std::vector<MessageFlow> out;
  for (std::size_t i = 0; i < report.timeline.size(); ++i) {
    const TimelineSlice& slice = report.timeline[i];
    if (slice.stream != kNextStream && slice.stream != kPreviousStream) continue;
    const std::size_t stage = slice.actor % stages, first = slice.actor - stage;
    const std::size_t hop = slice.stream == kNextStream ? 1 : stages - 1;
    const bool forward = slice_kinds()[slice.kind].name == "forward message";
    out.push_back(
        {i, passes.at({first + (stage + hop) % stages, forward, slice.chunk, slice.micro_batch})});
  }
  return out;
}

void write_perfetto(OutputFile& file, const RunResult& result) {
  file.write(PerfettoWriter(result).text());
}

}  // namespace lockstep
