#include "sim/trace/pytorch/gpu_order.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint32_t kNoEvent = KernelLinks::kNone;

/// Storages that one kernel touches.
struct Touched {
  std::vector<std::uint64_t> reads, writes;
  [[nodiscard]] bool empty() const { return reads.empty() && writes.empty(); }
};

class GpuOrderFinder {
 public:
  GpuOrderFinder(const ExecutionTrace& trace, const KinetoRecording& recording,
                 const KernelLinks& links, const LaunchTimes& launches)
      : trace_(trace),
        recording_(recording),
        links_(links),
        launches_(launches),
        has_tensors_(recording.gpu.size()),
        waits_(recording.gpu.size()) {}

  GpuOrder find() {
    add_events();
    for (const std::uint32_t event : launches_.order()) add_storages(event);
    add_by_times();
    std::ranges::sort(out_.list, {},
                      [](const GpuDependency& d) { return std::pair(d.event, d.before); });
    const auto twice = std::ranges::unique(
        out_.list, {}, [](const GpuDependency& d) { return std::pair(d.event, d.before); });
    out_.list.erase(twice.begin(), twice.end());
    return std::move(out_);
  }

 private:
  struct Storage {
    std::uint32_t writer = kNoEvent;
    std::vector<std::uint32_t> readers;  ///< since, the last of each stream
  };

  [[nodiscard]] const KinetoRecording::GpuEvent& gpu(std::uint32_t event) const {
    return recording_.gpu[event];
  }
  /// Only where the recording agrees: what was found may be older than the storage's use.
  bool add(std::uint32_t event, std::uint32_t before) {
    if (before == kNoEvent || gpu(before).stream == gpu(event).stream ||
        gpu(before).end > gpu(event).start) {
      return false;
    }
    out_.list.push_back({event, before});
    waits_[event] = true;
    return true;
  }

  void add_events() {
    std::unordered_map<std::int64_t, std::int64_t> call_times;
    for (const KinetoRecording::RuntimeCall& call : recording_.runtime) {
      call_times.try_emplace(call.correlation, call.start);
    }
    for (const KinetoRecording::Sync& sync : recording_.syncs) {
      const auto wait = call_times.find(sync.correlation);
      const auto record = call_times.find(sync.record_correlation);
      if (!sync.stream_waits || sync.stream < 0 || sync.wait_on < 0 || wait == call_times.end() ||
          record == call_times.end()) {
        continue;
      }
      const std::uint32_t event =
          launches_.first_from(static_cast<std::size_t>(sync.stream), wait->second);
      const std::uint32_t before =
          launches_.last_before(static_cast<std::size_t>(sync.wait_on), record->second);
      if (event != kNoEvent) add(event, before);
    }
  }

  [[nodiscard]] Touched touched(std::uint32_t event) const {
    constexpr int kFarthest = 4;  // the operator that a kernel's operator is a part of
    const bool communicates = gpu(event).communicates();
    Touched out;
    const std::uint32_t node = links_.node[event];
    const ExecutionTrace::Operator* at = node == kNoEvent ? nullptr : &trace_.operators[node];
    for (int up = 0; at != nullptr && up < kFarthest; ++up) {
      out.reads.insert(out.reads.end(), at->reads.begin(), at->reads.end());
      out.writes.insert(out.writes.end(), at->writes.begin(), at->writes.end());
      const bool whole = at->name.starts_with("c10d::");
      if (communicates ? whole : !out.empty()) break;
      at = at->parent == at->id ? nullptr : trace_.find(at->parent);
    }
    if (communicates) {
      out.writes.insert(out.writes.end(), out.reads.begin(), out.reads.end());
      std::ranges::sort(out.writes);
      const auto twice = std::ranges::unique(out.writes);
      out.writes.erase(twice.begin(), twice.end());
      out.reads.clear();
    }
    return out;
  }

  void add_storages(std::uint32_t event) {
    const Touched touches = touched(event);
    has_tensors_[event] = !touches.empty();
    for (const std::uint64_t id : touches.reads) {
      Storage& storage = storages_[id];
      add(event, storage.writer);
      const auto same = std::ranges::find(storage.readers, gpu(event).stream,
                                          [&](std::uint32_t r) { return gpu(r).stream; });
      if (same == storage.readers.end()) {
        storage.readers.push_back(event);
      } else {
        *same = event;
      }
    }
    for (const std::uint64_t id : touches.writes) {
      Storage& storage = storages_[id];
      add(event, storage.writer);
      for (const std::uint32_t reader : storage.readers) add(event, reader);
      storage.writer = event;
      storage.readers.clear();
    }
  }

  void add_by_times() {
    std::array<std::vector<std::pair<std::int64_t, std::uint32_t>>, 2> ends;  // computing, other
    for (std::uint32_t i = 0; i < recording_.gpu.size(); ++i) {
      ends[gpu(i).communicates() ? 1 : 0].emplace_back(gpu(i).end, i);
    }
    for (auto& of_kind : ends) std::ranges::sort(of_kind);
    std::vector<std::int64_t> previous(recording_.streams,
                                       std::numeric_limits<std::int64_t>::min());
    for (std::uint32_t i = 0; i < recording_.gpu.size(); ++i) {
      const KinetoRecording::GpuEvent& event = gpu(i);
      std::int64_t& since = previous[event.stream];
      const bool asks = event.communicates() ? !waits_[i] : !has_tensors_[i];
      if (asks) {
        const auto& others = ends[event.communicates() ? 0 : 1];
        auto at = std::ranges::upper_bound(others, std::pair(event.start, kNoEvent));
        while (at != others.begin() && std::prev(at)->second >= i) --at;
        const bool found =
            at != others.begin() && (event.communicates() || std::prev(at)->first > since);
        if (found && add(i, std::prev(at)->second)) ++out_.inferred;
      }
      since = event.end;
    }
  }

  const ExecutionTrace& trace_;
  const KinetoRecording& recording_;
  const KernelLinks& links_;
  const LaunchTimes& launches_;
  std::vector<bool> has_tensors_, waits_;  ///< by event of the GPU
  std::unordered_map<std::uint64_t, Storage> storages_;
  GpuOrder out_;
};

}  // namespace

LaunchTimes::LaunchTimes(const KinetoRecording& recording, const KernelLinks& links)
    : order_(recording.gpu.size()), of_stream_(recording.streams) {
  for (std::uint32_t i = 0; i < recording.gpu.size(); ++i) {
    const std::uint32_t call = links.call[i];
    times_.push_back(call == kNoEvent ? recording.gpu[i].start : recording.runtime[call].start);
  }
  std::iota(order_.begin(), order_.end(), 0U);
  std::ranges::stable_sort(order_, {}, [&](std::uint32_t i) { return times_[i]; });
  for (const std::uint32_t i : order_) of_stream_[recording.gpu[i].stream].push_back(i);
}

std::uint32_t LaunchTimes::last_before(std::size_t stream, std::int64_t time) const {
  const auto& own = of_stream_[stream];
  const auto at = std::ranges::lower_bound(own, time, {}, [&](std::uint32_t i) { return of(i); });
  return at == own.begin() ? kNoEvent : *std::prev(at);
}

std::uint32_t LaunchTimes::first_from(std::size_t stream, std::int64_t time) const {
  const auto& own = of_stream_[stream];
  const auto at = std::ranges::lower_bound(own, time, {}, [&](std::uint32_t i) { return of(i); });
  return at == own.end() ? kNoEvent : *at;
}

GpuOrder gpu_order(const ExecutionTrace& trace, const KinetoRecording& recording,
                   const KernelLinks& links, const LaunchTimes& launches) {
  return GpuOrderFinder(trace, recording, links, launches).find();
}

}  // namespace lockstep
