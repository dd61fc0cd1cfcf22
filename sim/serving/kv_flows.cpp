#include "sim/serving/kv_flows.hpp"

#include <cassert>

namespace lockstep {

std::int32_t KvFlows::open(std::uint32_t request, const KvEnd& from, const KvEnd& to) {
  if (free_.empty()) {
    free_.push_back(places());
    sendings_.emplace_back();
  }
  const std::int32_t place = free_.back();
  free_.pop_back();
  const KvChannel channel = network_.take(from, to);
  of(place) = {.request = request,
               .from = from,
               .to = to,
               .channel = channel,
               .serial = ++serial_,
               .open = true};
  if (of_flow_.size() <= channel.flow) of_flow_.resize(channel.flow + 1, -1);
  of_flow_[channel.flow] = place;
  return place;
}

void KvFlows::start(std::int32_t sending, StepTime now) {
  KvSending& s = of(sending);
  if (s.moving || s.queued <= s.started) return;
  network().start(s.channel.flow, Bytes{s.channel.unit * (s.queued - s.started)}, now);
  s.started = s.queued;
  s.moving = true;
  ++moving_;
}

void KvFlows::push(std::int32_t sending, Bytes of_it, StepTime now) {
  of(sending).queued = of_it.base_units();
  start(sending, now);
}

bool KvFlows::push_whole(std::int32_t sending, Bytes all, StepTime now) {
  push(sending, all, now);
  of(sending).whole = true;
  return !of(sending).moving;
}

void KvFlows::drop(std::int32_t sending) {
  of(sending).dropped = true;
  if (!of(sending).moving) free(sending);
}

void KvFlows::free(std::int32_t sending) {
  assert(of(sending).open && !of(sending).moving);
  network_.give(of(sending).channel);
  of(sending) = {};
  free_.push_back(sending);
}

void KvFlows::ended(std::span<const FlowIndex> flows, StepTime now,
                    std::vector<std::int32_t>& arrived) {
  for (const FlowIndex flow : flows) {
    const std::int32_t sending = of_flow_[flow];
    KvSending& s = of(sending);
    s.moving = false;
    --moving_;
    if (s.dropped) {
      free(sending);
      continue;
    }
    start(sending, now);
    if (!s.moving && s.whole) arrived.push_back(sending);
  }
}

}  // namespace lockstep
