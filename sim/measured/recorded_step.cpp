#include "sim/measured/recorded_step.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

constexpr double kSecondsPerPico = 1e-12;
constexpr std::string_view kNotTold = "not told";

/// A kernel begins or ends.
struct Edge {
  std::int64_t at = 0;
  bool begins = false;
  std::uint32_t event = 0;
};

/// Goes through the edges and counts what runs.
class InstantCounter {
 public:
  InstantCounter(const KinetoRecording& recording, RecordedRank& out)
      : recording_(recording), out_(out) {}

  void count() {
    out_.event_seconds.resize(recording_.gpu.size());
    for (std::uint32_t e = 0; e < recording_.gpu.size(); ++e) {
      const KinetoRecording::GpuEvent& event = recording_.gpu[e];
      parts_.push_back(recorded_part(recording_, event));
      const std::int64_t start = std::max<std::int64_t>(event.start, 0);
      const std::int64_t end = std::min(event.end, recording_.end);
      if (start >= end) continue;
      edges_.push_back({start, true, e});
      edges_.push_back({end, false, e});
    }
    std::ranges::sort(
        edges_, {}, [](const Edge& edge) { return std::tuple(edge.at, edge.begins, edge.event); });
    std::int64_t last = 0;
    for (const Edge& edge : edges_) {
      book(edge.at - last);
      last = edge.at;
      change(edge);
    }
    book(recording_.end - last);
  }

 private:
  void change(const Edge& edge) {
    std::vector<std::uint32_t>& running = running_[static_cast<std::size_t>(parts_[edge.event])];
    if (edge.begins) {
      running.push_back(edge.event);
    } else {
      running.erase(std::ranges::find(running, edge.event));
    }
  }

  void book(std::int64_t picos) {
    if (picos <= 0) return;
    const double seconds = static_cast<double>(picos) * kSecondsPerPico;
    const auto first = std::ranges::find_if(running_, [](const auto& own) { return !own.empty(); });
    const auto part = static_cast<std::size_t>(first - running_.begin());
    out_.seconds[std::min(part, kRecordedParts - 1)] += seconds;
    if (first == running_.end()) return;
    const std::uint32_t event = first->front();  // of several at once the one that began first
    out_.event_seconds[event] += seconds;
    if (part == static_cast<std::size_t>(RecordedPart::exchange)) {
      out_.exposed_by_call[std::string(name_of_call(event))] += seconds;
    }
  }

  [[nodiscard]] std::string_view name_of_call(std::uint32_t event) const {
    const NcclCallText* const call = recorded_call(recording_, recording_.gpu[event]);
    return call == nullptr ? kNotTold : call_name(*call);
  }

  const KinetoRecording& recording_;
  RecordedRank& out_;
  std::vector<RecordedPart> parts_;  ///< by event
  std::vector<Edge> edges_;
  /// By part: events that run, in the order in which they began.
  std::array<std::vector<std::uint32_t>, kRecordedParts - 1> running_;
};

}  // namespace

RecordedPart recorded_part(const KinetoRecording& recording,
                           const KinetoRecording::GpuEvent& event) {
  const KernelKind kind = kernel_kind(recording.names[event.name]);
  if (event.communicates() || kind == KernelKind::collective) return RecordedPart::exchange;
  if (event.copies || kind == KernelKind::copy) return RecordedPart::copy;
  const bool product = kind == KernelKind::product || kind == KernelKind::attention;
  return product ? RecordedPart::product : RecordedPart::memory;
}

const NcclCallText* recorded_call(const KinetoRecording& recording,
                                  const KinetoRecording::GpuEvent& event) {
  if (!event.communicates()) return nullptr;
  const auto& ranged = recording.ranged_calls[event.call];
  return ranged ? &*ranged : &recording.calls[event.call];
}

std::string_view call_name(const NcclCallText& call) {
  struct Word {
    std::string_view text, name;
  };
  constexpr std::array kWords{Word{"allreduce", "all-reduce"},
                              Word{"allgather", "all-gather"},
                              Word{"reducescatter", "reduce-scatter"},
                              Word{"alltoall", "all-to-all"},
                              Word{"broadcast", "broadcast"},
                              Word{"barrier", "barrier"},
                              Word{"reduce", "reduce"},
                              Word{"send", "send and receive"},
                              Word{"recv", "send and receive"}};
  std::string text = lowered(call.collective);
  std::erase(text, '_');
  const auto* const word = std::ranges::find_if(
      kWords, [&](const Word& each) { return text.find(each.text) != std::string::npos; });
  return word == kWords.end() ? kNotTold : word->name;
}

RecordedRank recorded_rank(const KinetoRecording& recording, int rank) {
  RecordedRank out;
  out.rank = rank;
  out.step_s = static_cast<double>(recording.end) * kSecondsPerPico;
  out.kernels = recording.gpu.size();
  InstantCounter(recording, out).count();
  return out;
}

}  // namespace lockstep
