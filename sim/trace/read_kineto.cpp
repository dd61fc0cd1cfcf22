#include "sim/trace/read_kineto.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

class KinetoReader {
 public:
  KinetoReader(const KinetoRecording& recording, int rank)
      : recording_(recording), events_(recording.gpu), last_(recording.streams, kNone) {
    out_.file = recording.file;
    out_.rank = rank;
  }

  RankTrace read() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      ends_[events_[i].communicates() ? 1 : 0].emplace_back(events_[i].end, i);
    }
    for (auto& ends : ends_) std::ranges::sort(ends);
    for (std::size_t i = 0; i < events_.size(); ++i) add(i);
    return std::move(out_);
  }

 private:
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
    std::array<std::size_t, 2> before{last, kNone};
    const std::int64_t previous = last == kNone ? kBeforeAll : events_[last].end;
    std::int64_t free = previous;
    const std::int64_t after = event.communicates() ? kBeforeAll : previous;
    const auto other = ended(!event.communicates(), after, event.start, i);
    if (other) {
      before[1] = *other;
      free = std::max(free, events_[*other].end);
    }
    last = i;
    const bool delays = free != kBeforeAll && event.start > free;
    if (delays) {
      RankTrace::Node& delay = out_.add(2 * i, "host");
      delay.kind = TraceNodeKind::delay;
      delay.duration = picos(event.start - free);
      wait_for(before);
    }
    add_event(i);
    if (delays) {
      out_.depends_on(2 * i);
    } else {
      wait_for(before);
    }
  }

  void add_event(std::size_t i) {
    const KinetoRecording::GpuEvent& event = events_[i];
    const std::string& name = recording_.names[event.name];
    RankTrace::Node& node = out_.add(2 * i + 1, name);
    node.duration = picos(event.end - event.start);
    if (!event.communicates()) {
      node.kind = event.copies ? TraceNodeKind::memory : TraceNodeKind::compute;
      node.stream = event.stream;
      return;
    }
    set_call(node, read_nccl_call(recording_.file, name, recording_.calls[event.call]), out_);
  }

  void wait_for(const std::array<std::size_t, 2>& before) {
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
  std::array<std::vector<std::pair<std::int64_t, std::size_t>>, 2> ends_;  ///< computing, other
  std::vector<std::size_t> last_;                                          ///< event of each stream
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
  const KinetoRecording recording = read_kineto_recording(file, text, false);
  return trace_of_kineto(recording, kineto_rank(recording, rank));
}

}  // namespace lockstep
