/// Requests that wait on a replica to be let in: those that its scheduler has seen, and those that
/// came since it last looked.
///
/// They go in the order in which they came; one that had to leave a full cache before all others.
/// Where requests have adapters, each adapter's stand in a line of their own, so that the first one
/// that may run is found without going through those that may not.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/scenario/served_request.hpp"
#include "sim/serving/adapter_slots.hpp"
#include "sim/serving/request_state.hpp"

namespace lockstep {

class WaitingLine {
 public:
  /// `adapters`: how many there are; 0: all stand in one line.
  WaitingLine(const std::vector<ServedRequest>& requests, std::vector<RequestState>& states,
              std::size_t adapters)
      : requests_(requests), states_(states), several_(adapters > 0) {}

  void push(std::uint32_t request);
  /// Before all others, and seen.
  void push_front(std::uint32_t request);
  /// All that came are seen; `each` is told of them in their order.
  template <typename Each>
  void look(Each&& each) {
    for (const std::uint32_t request : fresh_) {
      if (!states_[request].waits) continue;
      each(request);
      see(request, next_++);
    }
    fresh_.clear();
  }
  /// The first one, seen or not.
  [[nodiscard]] std::optional<std::uint32_t> front();
  /// The first of those seen that may run; none: no such. `slots` where requests have adapters.
  [[nodiscard]] std::optional<std::uint32_t> next(const AdapterSlots* slots);
  /// One of them is let in, or its user hangs up.
  void leave(std::uint32_t request);
  /// Whether the sum of `of` over those seen is at least `enough`.
  template <typename Of>
  [[nodiscard]] bool reaches(std::int64_t enough, Of&& of) const {
    const auto count = [&](const std::deque<Entry>& line) {
      for (const Entry& entry : line) {
        if (enough <= 0) return;
        if (states_[entry.request].waits) enough -= of(entry.request);
      }
    };
    count(without_);
    for (const auto& [adapter, line] : lines_) count(line);
    return enough <= 0;
  }
  /// Empties it; who waited, in their order.
  std::vector<std::uint32_t> clear();

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t seen() const { return seen_; }

 private:
  struct Entry {
    std::int64_t place;
    std::uint32_t request;
  };

  [[nodiscard]] std::int32_t adapter_of(std::uint32_t request) const {
    return several_ ? requests_[request].adapter : -1;
  }
  [[nodiscard]] std::deque<Entry>& line(std::int32_t adapter) {
    return adapter < 0 ? without_ : lines_[adapter];
  }
  void see(std::uint32_t request, std::int64_t place);
  void tidy(std::int32_t adapter);
  [[nodiscard]] const Entry* head(std::int32_t adapter);
  [[nodiscard]] const Entry* first();

  const std::vector<ServedRequest>& requests_;
  std::vector<RequestState>& states_;
  std::deque<std::uint32_t> fresh_;  ///< not seen, with some that have left
  std::deque<Entry> without_;        ///< seen, the same: with no adapter
  std::unordered_map<std::int32_t, std::deque<Entry>> lines_;  ///< and by adapter; none is empty
  /// Place and adapter of every line's first entry, of several lines.
  std::set<std::pair<std::int64_t, std::int32_t>> heads_;
  bool several_;
  std::int64_t first_ = 0, next_ = 0;  ///< places: one past is free on either side
  std::int64_t size_ = 0, seen_ = 0;   ///< that wait
};

}  // namespace lockstep
