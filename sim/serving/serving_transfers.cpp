// Keys and values of a service on their way from one pool to the other.
#include <algorithm>

#include "sim/serving/serving_run.hpp"

namespace lockstep {

/// Keys and values of all computed tokens; the last token of the answer is not computed yet.
Bytes ServingRun::cache_of(std::uint32_t request) const {
  const double tokens = requests_[request].input + std::max(0, states_[request].generated - 1);
  return tokens * plan_.transfer.per_token;
}

/// The time that a transfer with links of its own goes on after the prompt: that of `rest`, which
/// cannot be sent earlier, or of all that did not fit beside the work on the prompt.
Seconds ServingRun::alone_time(std::uint32_t request, Bytes bytes, Bytes rest, BytesPerSecond rate,
                               RunTime now) const {
  const TransferPlan& t = plan_.transfer;
  if (rate <= BytesPerSecond{}) return t.latency;
  const double before = t.layers > 0 ? (t.layers - 1.0) / t.layers : 0;
  const Seconds worked = to_seconds(now - std::max<RunTime>(0, requests_[request].scheduled));
  return std::max(rest / rate, bytes / rate - before * worked) + t.latency;
}

/// Sends a request without flows: a replica sends one after the other.
void ServingRun::send_closed(std::uint32_t from, std::uint32_t request, RunTime now) {
  const TransferPlan& t = plan_.transfer;
  const Bytes bytes = cache_of(request);
  const double last = t.layers > 0 ? 1.0 / t.layers : 1;
  const Seconds alone = alone_time(request, bytes, last * bytes, t.rate, now);
  const RunTime begins = std::max(now, sent_until_[from]);
  sent_until_[from] = begins + to_run_time(alone - t.latency);
  const RunTime at = sent_until_[from] + to_run_time(t.latency);
  result_.transferring += at - now;
  result_.transferring_alone += to_run_time(alone);
  result_.transferred += bytes;
  push(at + plan_.handover, EventKind::transfer_end, request);
}

std::uint32_t ServingRun::next_group(std::uint32_t replica) {
  const bool decodes = replica >= prompt_replicas();
  return groups_[replica]++ % static_cast<std::uint32_t>(flows_->cut(decodes ? 1 : 0).groups);
}

/// The transfer of a request, which begins now if there is none; below 0: no replica decodes now.
std::int32_t ServingRun::sending_of(std::uint32_t request) {
  RequestState& s = states_[request];
  if (s.sending >= 0) return s.sending;
  const std::span<const std::uint32_t> up = lives_->up(true);
  if (up.empty()) return -1;
  const auto from = static_cast<std::uint32_t>(requests_[request].replica);
  const std::uint32_t to = router_.choose(requests_[request], true, up, loads_, replicas_);
  ++loads_[to];
  s.sending =
      flows_->open(request, {from, next_group(from)}, {to - prompt_replicas(), next_group(to)});
  return s.sending;
}

/// Sends what this pass computes of prompts, and what was held of them before, without the last
/// layer.
void ServingRun::send_layers(std::uint32_t replica, RunTime now) {
  for (const ReplicaQueue::Piece& piece : replicas_[replica].pieces()) {
    if (piece.now == 0) continue;
    const bool last = states_[piece.request].generated + 1 >= requests_[piece.request].output;
    if (last) continue;  // its first token is its last: no replica decodes it
    const std::int32_t sending = sending_of(piece.request);
    if (sending < 0) continue;
    const double tokens =
        piece.done + piece.now * (plan_.transfer.layers - 1.0) / plan_.transfer.layers;
    flows_->push(sending, tokens * plan_.transfer.per_token, to_ticks(now));
  }
}

/// Sends the rest of a computed prompt.
void ServingRun::send_rest(std::uint32_t request, RunTime now) {
  const std::int32_t sending = sending_of(request);
  if (sending < 0) {
    stranded_.push_back(request);
    return;
  }
  const Bytes bytes = cache_of(request);
  KvSending& s = flows_->of(sending);
  s.since = now;
  const Seconds alone = alone_time(request, bytes, bytes - Bytes{s.queued}, s.channel.alone, now);
  result_.transferring_alone += to_run_time(alone);
  result_.transferred += bytes;
  if (flows_->push_whole(sending, bytes, to_ticks(now))) arrived({&sending, 1}, now);
}

void ServingRun::arrived(std::span<const std::int32_t> sendings, RunTime at) {
  for (const std::int32_t sending : sendings) {
    const KvSending& s = flows_->of(sending);
    const RunTime ends = at + to_run_time(plan_.transfer.latency);
    result_.transferring += ends - s.since;
    push(ends + plan_.handover, EventKind::transfer_end, static_cast<std::uint32_t>(sending),
         s.serial);
  }
}

/// The decoding replica has received all of a transfer and takes the request over.
void ServingRun::take_over(std::uint32_t sending, std::uint32_t serial) {
  const auto place = static_cast<std::int32_t>(sending);
  const KvSending& s = flows_->of(place);
  if (s.serial != serial) return;  // it was lost meanwhile
  const std::uint32_t request = s.request, to = prompt_replicas() + s.to.replica;
  states_[request].sending = -1;
  flows_->close(place);
  submit(request, to);
}

/// A replica has failed, and the transfers from and to it are lost. A prompt that is still being
/// computed is sent anew; a finished one is recomputed.
void ServingRun::lose_sendings(std::uint32_t replica, RunTime now) {
  for (std::int32_t place = 0; place < flows_->places(); ++place) {
    const KvSending s = flows_->of(place);
    const std::uint32_t to = prompt_replicas() + s.to.replica;
    if (!s.open || s.dropped || (s.from.replica != replica && to != replica)) continue;
    states_[s.request].sending = -1;
    flows_->drop(place);
    if (to != replica && --loads_[to] == 0) (void)lives_->emptied(to, now);
    if (!s.whole) continue;
    states_[s.request].cached = false;
    ++result_.retried;
    push(now + plan_.detect, EventKind::retry, s.request);
  }
}

}  // namespace lockstep
