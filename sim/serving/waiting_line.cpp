#include "sim/serving/waiting_line.hpp"

#include <algorithm>

namespace lockstep {

void WaitingLine::push(std::uint32_t request) {
  fresh_.push_back(request);
  states_[request].waits = true;
  states_[request].seen = false;
  ++size_;
}

void WaitingLine::push_front(std::uint32_t request) {
  states_[request].waits = true;
  states_[request].seen = true;
  ++size_;
  ++seen_;
  const std::int32_t adapter = adapter_of(request);
  std::deque<Entry>& of = line(adapter);
  if (several_ && !of.empty()) heads_.erase({of.front().place, adapter});
  of.push_front({--first_, request});
  if (several_) heads_.emplace(first_, adapter);
}

void WaitingLine::see(std::uint32_t request, std::int64_t place) {
  states_[request].seen = true;
  ++seen_;
  const std::int32_t adapter = adapter_of(request);
  std::deque<Entry>& of = line(adapter);
  if (several_ && of.empty()) heads_.emplace(place, adapter);
  of.push_back({place, request});
}

/// Drops those at the head of a line that have left it.
void WaitingLine::tidy(std::int32_t adapter) {
  std::deque<Entry>& of = line(adapter);
  if (!of.empty() && states_[of.front().request].waits) return;
  if (several_ && !of.empty()) heads_.erase({of.front().place, adapter});
  while (!of.empty() && !states_[of.front().request].waits) of.pop_front();
  if (!of.empty()) {
    if (several_) heads_.emplace(of.front().place, adapter);
  } else if (adapter >= 0) {
    lines_.erase(adapter);
  }
}

const WaitingLine::Entry* WaitingLine::head(std::int32_t adapter) {
  tidy(adapter);
  if (adapter < 0) return without_.empty() ? nullptr : &without_.front();
  const auto found = lines_.find(adapter);
  return found == lines_.end() ? nullptr : &found->second.front();
}

/// The first one of all lines.
const WaitingLine::Entry* WaitingLine::first() {
  if (!several_) return head(-1);
  while (!heads_.empty()) {
    const auto [place, adapter] = *heads_.begin();
    const Entry* const at = head(adapter);
    if (at != nullptr && at->place == place) return at;
  }
  return nullptr;
}

std::optional<std::uint32_t> WaitingLine::front() {
  if (const Entry* const seen = first()) return seen->request;
  while (!fresh_.empty() && !states_[fresh_.front()].waits) fresh_.pop_front();
  if (fresh_.empty()) return std::nullopt;
  return fresh_.front();
}

std::optional<std::uint32_t> WaitingLine::next(const AdapterSlots* slots) {
  const Entry* best = nullptr;
  if (slots == nullptr || slots->room()) {
    best = first();
  } else {
    const auto consider = [&](std::int32_t adapter) {
      const Entry* const at = head(adapter);
      if (at != nullptr && (best == nullptr || at->place < best->place)) best = at;
    };
    consider(-1);
    for (const std::int32_t adapter : slots->in_use()) consider(adapter);
  }
  if (best == nullptr) return std::nullopt;
  return best->request;
}

void WaitingLine::leave(std::uint32_t request) {
  states_[request].waits = false;
  --size_;
  if (!states_[request].seen) return;
  --seen_;
  tidy(adapter_of(request));
}

std::vector<std::uint32_t> WaitingLine::clear() {
  std::vector<Entry> seen;
  seen.insert(seen.end(), without_.begin(), without_.end());
  for (const auto& [adapter, line] : lines_) seen.insert(seen.end(), line.begin(), line.end());
  if (several_) std::ranges::sort(seen, {}, &Entry::place);
  std::vector<std::uint32_t> out;
  const auto take = [&](std::uint32_t request) {
    if (!states_[request].waits) return;
    states_[request].waits = false;
    out.push_back(request);
  };
  for (const Entry& entry : seen) take(entry.request);
  for (const std::uint32_t request : fresh_) take(request);
  fresh_.clear();
  without_.clear();
  lines_.clear();
  heads_.clear();
  size_ = seen_ = 0;
  return out;
}

}  // namespace lockstep
