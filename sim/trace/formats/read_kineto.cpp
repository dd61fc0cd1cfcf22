#include "sim/trace/formats/read_kineto.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <utility>
#include <vector>

#include "sim/trace/pytorch/profiler_steps.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

class KinetoReader {
 public:
  KinetoReader(const KinetoRecording& recording, int rank)
      : recording_(recording),
        events_(recording.gpu),
        ended_(recording.gpu.size()),
        last_(recording.streams, kNone),
        considered_(recording.streams, kBeforeAll) {
    out_.file = recording.file;
    out_.rank = rank;
    out_.world = std::max(1, recording.world.value_or(1));
    out_.begin = picos(recording.begin);
    out_.recorded = picos(recording.end - recording.begin);
    out_.device = recording.device;
  }

  RankTrace read() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      ends_[events_[i].communicates() ? 1 : 0].emplace_back(events_[i].end, i);
    }
    for (auto& ends : ends_) std::ranges::sort(ends);
    for (std::size_t i = 0; i < events_.size(); ++i) add(i);
    add_rest();
    return std::move(out_);
  }

 private:
  using Before = std::array<std::size_t, 3>;

  /// The last of the events of a kind that ended in (after, until] and come before event i.
  [[nodiscard]] std::optional<std::size_t> ended(bool communication, std::int64_t after,
                                                 std::int64_t until, std::size_t i) const {
    const auto& ends = ends_[communication ? 1 : 0];
    auto it = std::ranges::upper_bound(ends, std::pair(until, events_.size()));
    // Events without a duration may begin and end at that very time.
    while (it != ends.begin() && std::prev(it)->second >= i) --it;
    if (it == ends.begin() || std::prev(it)->first <= after) return std::nullopt;
    return std::prev(it)->second;
  }

  /// The node of event i has the number 2 i + 1; a delay before it has 2 i.
  void add(std::size_t i) {
    const KinetoRecording::GpuEvent& event = events_[i];
    std::size_t& last = last_[event.stream];
    Before before{last, kNone, kNone};
    // What waits for nothing waits for the host, from the start of the recording.
    std::int64_t free = last == kNone ? recording_.begin : ended_[last];
    const std::int64_t previous = last == kNone ? kBeforeAll : events_[last].end;
    const std::int64_t after = event.communicates() ? kBeforeAll : previous;
    if (const auto other = ended(!event.communicates(), after, event.start, i)) {
      before[1] = *other;
      free = std::max(free, ended_[*other]);
    }
    // What computes or copies on a stream of its own, and ended since the one before on this stream
    // did: the recording does not tell events between streams, and side by side they were not.
    if (!event.communicates()) {
      const auto other = ended(false, previous, event.start, i);
      if (other && ended_[*other] <= event.start) {
        before[2] = *other;
        free = std::max(free, ended_[*other]);
      }
    }
    note_possible_waits(i, before[1]);
    // A kernel may begin before the one before it has ended (programmatic dependent launch): it
    // counts from there.
    const std::int64_t start = last == kNone ? event.start : std::max(event.start, ended_[last]);
    ended_[i] = std::max(start, event.end);
    last = i;
    const bool delays = start > free;
    if (delays) {
      add_delay(2 * i, start - free);
      wait_for(before);
    }
    add_event(i, ended_[i] - start);
    if (delays) {
      out_.depends_on(2 * i);
    } else {
      wait_for(before);
    }
  }

  /// Communication that ended while the stream was busy, or that was not the last to end: the next
  /// kernel there may have needed it, and would wait where it takes longer.
  void note_possible_waits(std::size_t i, std::size_t waited_for) {
    const KinetoRecording::GpuEvent& event = events_[i];
    std::int64_t& considered = considered_[event.stream];
    const auto& ends = ends_[1];
    const std::pair until(event.start, events_.size());
    for (auto it = std::ranges::upper_bound(ends, std::pair(considered, events_.size()));
         it != ends.end() && *it < until; ++it) {
      const std::size_t other = it->second;
      if (other >= i || other == waited_for || events_[other].stream == event.stream) continue;
      out_.possible_waits.emplace_back(2 * i + 1, 2 * other + 1);
    }
    considered = std::max(considered, event.start);
  }
  void add_delay(std::uint64_t id, std::int64_t length) {
    RankTrace::Node& delay = out_.add(id, "host");
    delay.kind = TraceNodeKind::delay;
    delay.duration = picos(length);
  }

  void add_event(std::size_t i, std::int64_t length) {
    const KinetoRecording::GpuEvent& event = events_[i];
    const std::string& name = recording_.names[event.name];
    RankTrace::Node& node = out_.add(2 * i + 1, name);
    node.duration = picos(length);
    if (event.communicates()) return add_kernel_call(name, event.call);
    node.kind = event.copies ? TraceNodeKind::memory : TraceNodeKind::compute;
    node.stream = event.stream;
  }

  void add_kernel_call(const std::string& kernel, std::uint32_t call) {
    const auto& ranged = recording_.ranged_calls[call];
    if (ranged && !by_range_) {
      by_range_ = true;
      out_.notes.push_back(
          fmt::format("which collectives NCCL's kernels run is taken from the ranges around their "
                      "launches; the "
                      "recording does not say among which ranks, so all {} take part",
                      out_.world));
    }
    add_call(kernel, ranged ? *ranged : recording_.calls[call], out_);
  }

  /// What the host does in a step after its last kernel.
  void add_rest() {
    const auto last = std::ranges::max_element(ended_);
    if (recording_.end <= *last) return;
    const auto event = static_cast<std::size_t>(last - ended_.begin());
    add_delay(2 * events_.size(), recording_.end - *last);
    out_.depends_on(2 * event + 1);
  }

  void wait_for(const Before& before) {
    for (const std::size_t event : before) {
      if (event == kNone) continue;
      out_.depends_on(2 * event + 1);
      ++out_.repaired;
    }
  }
  static StepTime picos(std::int64_t value) { return {static_cast<std::uint64_t>(value)}; }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const KinetoRecording& recording_;
  const std::vector<KinetoRecording::GpuEvent>& events_;
  RankTrace out_;
  bool by_range_ = false;            ///< some calls are told by ranges
  std::vector<std::int64_t> ended_;  ///< by event, as it is replayed
  std::array<std::vector<std::pair<std::int64_t, std::size_t>>, 2> ends_;  ///< computing, other
  std::vector<std::size_t> last_;                                          ///< event of each stream
  std::vector<std::int64_t> considered_;  ///< by stream: the start of its last event
};

}  // namespace

int kineto_rank(const KinetoRecording& recording, std::optional<int> rank) {
  if (recording.rank) return *recording.rank;
  if (rank) return *rank;
  fail_trace(recording.file, "no \"distributedInfo\" with a rank",
             "a file whose trace or name says its rank, such as trace.0.json");
}

RankTrace trace_of_kineto(const KinetoRecording& recording, int rank) {
  return KinetoReader(recording, rank).read();
}

RankTrace read_kineto(const std::string& file, std::optional<int> rank, std::string_view text) {
  KinetoRecording recording = read_kineto_recording(file, text, false);
  const std::string note = cut_to_step({&recording, 1}, {});
  RankTrace out = trace_of_kineto(recording, kineto_rank(recording, rank));
  out.notes.push_back(note);
  return out;
}

}  // namespace lockstep
