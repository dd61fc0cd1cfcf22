#include "sim/trace/pytorch/host_pieces.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint32_t kNoPiece = HostPiece::kNone;
constexpr std::int64_t kThreadGap = 1'000'000'000;  // picoseconds: 1 ms

/// Where a thread's time is cut.
struct HostCut {
  enum class What : std::uint8_t { launch, sync, gap } what = What::launch;
  std::int64_t start = 0, end = 0;
  std::uint32_t subject = 0;  ///< event of the GPU, or call of the runtime
};

class HostCutter {
 public:
  HostCutter(const KinetoRecording& recording, const KernelLinks& links,
             const LaunchTimes& launches)
      : recording_(recording), links_(links), launches_(launches), cuts_(recording.threads) {
    out_.launch.resize(recording.gpu.size(), kNoPiece);
  }

  HostPieces cut() {
    collect_cuts();
    collect_gaps();
    for (std::uint32_t thread = 0; thread < cuts_.size(); ++thread) cut_thread(thread);
    join_threads();
    return std::move(out_);
  }

 private:
  struct Busy {
    std::int64_t start = 0, end = 0;
  };

  void collect_cuts() {
    for (const std::uint32_t event : launches_.order()) {
      const std::uint32_t call = links_.call[event];
      if (call == KernelLinks::kNone) continue;
      const KinetoRecording::RuntimeCall& own = recording_.runtime[call];
      cuts_[own.thread].push_back({HostCut::What::launch, own.start, own.start, event});
    }
    for (std::uint32_t i = 0; i < recording_.runtime.size(); ++i) {
      const KinetoRecording::RuntimeCall& own = recording_.runtime[i];
      if (own.what == KinetoRecording::Call::other) continue;
      cuts_[own.thread].push_back({HostCut::What::sync, own.start, own.end, i});
    }
    for (const KinetoRecording::Sync& sync : recording_.syncs) {
      if (!sync.stream_waits) syncs_.try_emplace(sync.correlation, &sync);
    }
    for (const KinetoRecording::RuntimeCall& call : recording_.runtime) {
      call_times_.try_emplace(call.correlation, call.start);
    }
  }

  /// Ranges that people mark span what a thread does not do, and count for nothing.
  void collect_gaps() {
    std::vector<std::vector<Busy>> busy(recording_.threads);
    for (const KinetoRecording::Operator& own : recording_.operators) {
      if (!own.is_range) busy[own.thread].push_back({own.start, own.end});
    }
    for (const KinetoRecording::RuntimeCall& call : recording_.runtime) {
      busy[call.thread].push_back({call.start, call.end});
    }
    bounds_.resize(busy.size());
    for (std::uint32_t thread = 0; thread < busy.size(); ++thread) {
      std::ranges::sort(busy[thread], {}, &Busy::start);
      for (const Busy& now : busy[thread]) {
        std::optional<Busy>& bounds = bounds_[thread];
        if (!bounds) {
          bounds = now;
        } else if (now.start - bounds->end > kThreadGap) {
          cuts_[thread].push_back({HostCut::What::gap, bounds->end, now.start, 0});
        }
        bounds->end = std::max(bounds->end, now.end);
      }
      std::ranges::stable_sort(cuts_[thread], {}, &HostCut::start);
    }
  }

  void cut_thread(std::uint32_t thread) {
    if (!bounds_[thread]) return;
    cursor_ = bounds_[thread]->start;
    last_ = kNoPiece;
    last_stream_.reset();
    resumes_ = true;
    for (const HostCut& cut : cuts_[thread]) {
      // A synchronisation inside of another one, as of a library's own, has nothing left to do.
      if (cut.start < cursor_ && cut.what != HostCut::What::launch) continue;
      if (cut.what == HostCut::What::launch) add_launch(cut);
      if (cut.what == HostCut::What::sync) add_sync(cut);
      if (cut.what == HostCut::What::gap) {
        add_until(cut.start);
        cursor_ = cut.end;
        resumes_ = true;
      }
    }
    add_until(bounds_[thread]->end);
    thread_of_.resize(out_.list.size(), thread);
  }

  HostPiece& add(std::int64_t start, std::int64_t end) {
    HostPiece& piece = out_.list.emplace_back();
    piece.start = start;
    piece.end = end;
    piece.previous = last_;
    last_ = static_cast<std::uint32_t>(out_.list.size() - 1);
    if (std::exchange(resumes_, false)) resumed_.push_back(last_);
    return piece;
  }
  /// The thread's time up to `end`; nothing where that has passed.
  void add_until(std::int64_t end) {
    if (end <= cursor_) return;
    add(cursor_, end);
    cursor_ = end;
  }

  void add_launch(const HostCut& cut) {
    const std::size_t before = out_.list.size();
    add_until(cut.start);
    if (out_.list.size() > before) {
      const std::uint32_t call = links_.call[cut.subject];
      out_.list.back().node = links_.node[cut.subject];
      out_.list.back().name = recording_.runtime[call].name;
    }
    last_stream_ = recording_.gpu[cut.subject].stream;
    // In a call that began before this piece did, as of a graph, there may be none yet.
    out_.launch[cut.subject] = last_;
  }

  void add_sync(const HostCut& cut) {
    add_until(cut.start);
    std::vector<std::uint32_t> waits = waited(recording_.runtime[cut.subject], cut);
    std::erase_if(waits, [&](std::uint32_t event) {
      return event == KernelLinks::kNone || recording_.gpu[event].end > cut.end;
    });
    std::int64_t start = cut.start;
    for (const std::uint32_t event : waits) start = std::max(start, recording_.gpu[event].end);
    HostPiece& piece = add(start, cut.end);
    piece.name = recording_.runtime[cut.subject].name;
    piece.gpu = std::move(waits);
    cursor_ = cut.end;
  }

  [[nodiscard]] std::vector<std::uint32_t> waited(const KinetoRecording::RuntimeCall& call,
                                                  const HostCut& cut) const {
    std::vector<std::uint32_t> out;
    const auto known = syncs_.find(call.correlation);
    const KinetoRecording::Sync* const sync = known == syncs_.end() ? nullptr : known->second;
    if (call.what == KinetoRecording::Call::device_sync) {
      for (std::size_t s = 0; s < recording_.streams; ++s) {
        out.push_back(launches_.last_before(s, cut.start));
      }
    } else if (call.what == KinetoRecording::Call::stream_sync) {
      std::optional<std::size_t> stream = last_stream_;
      if (sync != nullptr && sync->stream >= 0) stream = static_cast<std::size_t>(sync->stream);
      if (stream) out.push_back(launches_.last_before(*stream, cut.start));
    } else {
      const auto record =
          sync == nullptr ? call_times_.end() : call_times_.find(sync->record_correlation);
      if (record != call_times_.end() && sync->wait_on >= 0) {
        out.push_back(
            launches_.last_before(static_cast<std::size_t>(sync->wait_on), record->second));
      } else {
        out.push_back(ended_last_in(cut));
      }
    }
    return out;
  }

  /// The event of the GPU that ended last while the host waited.
  [[nodiscard]] std::uint32_t ended_last_in(const HostCut& cut) const {
    std::uint32_t last = KernelLinks::kNone;
    for (std::size_t s = 0; s < recording_.streams; ++s) {
      const std::uint32_t event = launches_.last_before(s, cut.start);
      if (event == KernelLinks::kNone) continue;
      const std::int64_t end = recording_.gpu[event].end;
      if (end <= cut.start || end > cut.end) continue;
      if (last == KernelLinks::kNone || end > recording_.gpu[last].end) last = event;
    }
    return last;
  }

  /// Lets threads that begin or go on wait for the piece of another one that ended last before.
  void join_threads() {
    std::vector<std::pair<std::int64_t, std::uint32_t>> ends;
    ends.reserve(out_.list.size());
    for (std::uint32_t i = 0; i < out_.list.size(); ++i) ends.emplace_back(out_.list[i].end, i);
    std::ranges::sort(ends);
    for (const std::uint32_t piece : resumed_) {
      HostPiece& own = out_.list[piece];
      auto at = std::ranges::upper_bound(ends, std::pair(own.start, kNoPiece));
      while (at != ends.begin() && thread_of_[std::prev(at)->second] == thread_of_[piece]) {
        --at;
        // Nothing happened elsewhere since this thread stopped.
        if (at->second == own.previous) break;
      }
      if (at == ends.begin() || at->second == own.previous) continue;
      own.other = std::prev(at)->second;
    }
  }

  const KinetoRecording& recording_;
  const KernelLinks& links_;
  const LaunchTimes& launches_;
  std::vector<std::vector<HostCut>> cuts_;  ///< by thread
  std::vector<std::optional<Busy>> bounds_;
  std::unordered_map<std::int64_t, const KinetoRecording::Sync*> syncs_;
  std::unordered_map<std::int64_t, std::int64_t> call_times_;
  HostPieces out_;
  std::vector<std::uint32_t> thread_of_;  ///< by piece: its thread
  std::vector<std::uint32_t> resumed_;    ///< pieces that begin a thread or end a gap
  std::int64_t cursor_ = 0;
  std::uint32_t last_ = kNoPiece;
  std::optional<std::size_t> last_stream_;
  bool resumes_ = false;
};

}  // namespace

HostPieces host_pieces(const KinetoRecording& recording, const KernelLinks& links,
                       const LaunchTimes& launches) {
  return HostCutter(recording, links, launches).cut();
}

}  // namespace lockstep
