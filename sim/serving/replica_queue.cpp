#include "sim/serving/replica_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {

ReplicaQueue::ReplicaQueue(const ReplicaRules& rules, PassClock& clock,
                           std::vector<ServedRequest>& requests, std::vector<RequestState>& states)
    : rules_(rules),
      clock_(clock),
      requests_(requests),
      states_(states),
      remainders_(static_cast<std::size_t>(rules.block), 0),
      capacity_(static_cast<std::int64_t>(std::min(rules.cache_tokens / rules.block, 1e15))) {
  assert(rules.block >= 1 && rules.pass_tokens >= 1 && rules.most_sequences >= 1);
}

std::int64_t ReplicaQueue::blocks(double tokens) const {
  return static_cast<std::int64_t>(std::ceil(tokens / rules_.block));
}

bool ReplicaQueue::fits(const ServedRequest& request) const {
  const double answer = rules_.decodes ? request.output : 1;
  return blocks(request.input + answer) <= capacity_;
}

std::size_t ReplicaQueue::remainder(const RequestState& s) const {
  const std::int64_t block = rules_.block;
  return static_cast<std::size_t>(((s.context - s.joined) % block + block) % block);
}

bool ReplicaQueue::alive(const End& end) const {
  const RequestState& s = states_[end.request];
  return s.running && s.visit == end.visit;
}

void ReplicaQueue::work_on(Piece& piece, std::int64_t& budget) {
  piece.now = static_cast<std::int32_t>(std::min<std::int64_t>(piece.target - piece.done, budget));
  budget -= piece.now;
}

/// Lets in the first that waits, where its prompt and what it may ask for later fit.
bool ReplicaQueue::admit_one(std::int64_t& budget, RunTime now) {
  const std::uint32_t id = waiting_.front();
  RequestState& s = states_[id];
  ServedRequest& r = requests_[id];
  const std::int32_t target = r.input + s.generated;
  const double later = rules_.decodes ? rules_.reserved * (r.output - s.generated) : 0;
  const std::int64_t asked = blocks(target + std::max(1.0, later));
  const bool alone = running_ == 0 && partial_.empty();
  if (!alone && std::max(used_, promised_) + asked > capacity_) return false;
  waiting_.pop_front();
  s.promised = static_cast<std::int32_t>(asked);
  promised_ += asked;
  used_ += blocks(target + 1);
  if (r.scheduled < 0) r.scheduled = now;
  if (s.cached && s.visit == 0) {
    join(id, target, now);  // keys and values are there
    return true;
  }
  partial_.push_back({.request = id, .done = 0, .target = target});
  work_on(partial_.back(), budget);
  return true;
}

void ReplicaQueue::join(std::uint32_t id, std::int32_t context, RunTime now) {
  RequestState& s = states_[id];
  s.running = true;
  ++s.visit;
  s.joined = step_;
  s.context = context;
  ++running_;
  context_ += context;
  ++remainders_[remainder(s)];
  const End end{
      .step = step_ + requests_[id].output - s.generated, .request = id, .visit = s.visit};
  ends_.push(end);
  order_.push_back(end);
  fresh_.push_back(now);
}

void ReplicaQueue::release(std::uint32_t id) {
  RequestState& s = states_[id];
  const std::int64_t length = s.context + step_ - s.joined;
  used_ -= blocks(static_cast<double>(length));
  promised_ -= s.promised;
  context_ -= length;
  --remainders_[remainder(s)];
  --running_;
  s.running = false;
}

void ReplicaQueue::preempt_last() {
  while (!alive(order_.back())) order_.pop_back();
  const std::uint32_t id = order_.back().request;
  order_.pop_back();
  release(id);
  RequestState& s = states_[id];
  s.generated += static_cast<std::int32_t>(step_ - s.joined);
  ++requests_[id].preempted;
  ++preempted_;
  waiting_.push_front(id);
}

/// Whether all that runs has room for its next tokens without anybody leaving.
bool ReplicaQueue::make_room() {
  const std::int64_t before = preempted_;
  while (running_ > 1 && used_ > capacity_) preempt_last();
  return preempted_ == before;
}

RunTime ReplicaQueue::start(RunTime now) {
  assert(!busy_);
  const bool roomy = make_room();
  const bool mixed = rules_.order == PassOrder::mixed;
  std::int64_t budget = rules_.pass_tokens - (mixed ? running_ : 0);
  for (Piece& piece : partial_) work_on(piece, budget);
  const bool looks = ++unseen_ >= rules_.poll || (running_ == 0 && partial_.empty());
  if (looks) unseen_ = 0;
  while (roomy && looks && budget > 0 && !waiting_.empty() &&
         running_ + static_cast<std::int64_t>(partial_.size()) < rules_.most_sequences) {
    if (!admit_one(budget, now)) break;
  }
  PassLoad load;
  for (const Piece& piece : partial_) {
    if (piece.now == 0) continue;
    ++load.prompts;
    load.prompt_tokens += piece.now;
    load.prompt_pairs += piece.now * (piece.done + 0.5 * (piece.now + 1));
  }
  decoding_ = running_ > 0 && (mixed || load.prompts == 0);
  if (decoding_) {
    load.sequences = static_cast<int>(running_);
    load.context = static_cast<double>(context_);
  }
  if (load.sequences == 0 && load.prompts == 0) return -1;
  pass_ = clock_.pass(load);
  account_ += pass_;
  ++passes_;
  busy_ = true;
  fullest_ = std::max(fullest_, static_cast<double>(used_) / static_cast<double>(capacity_));
  return now + to_run_time(pass_.total());
}

/// Every running sequence is a token longer.
void ReplicaQueue::step_on() {
  // A sequence that has filled its block takes another one.
  const std::int64_t block = rules_.block;
  const auto full = static_cast<std::size_t>(((-step_) % block + block) % block);
  used_ += remainders_[full];
  ++step_;
  context_ += running_;
}

void ReplicaQueue::end_decode(RunTime now, std::vector<std::uint32_t>& ended) {
  const auto fresh = static_cast<std::int64_t>(fresh_.size());
  intervals_.add(now - moved_, std::max<std::int64_t>(0, running_ - fresh));
  for (const RunTime joined : fresh_) intervals_.add(now - joined, 1);
  fresh_.clear();
  moved_ = now;
  ahead_ += rules_.tokens_per_pass;
  const auto tokens = static_cast<std::int64_t>(ahead_);
  ahead_ -= static_cast<double>(tokens);
  intervals_.add(0, (tokens - 1) * running_);  // those of right drafts come together
  for (std::int64_t t = 0; t < tokens; ++t) step_on();
  while (!ends_.empty() && (ends_.top().step <= step_ || !alive(ends_.top()))) {
    const End end = ends_.top();
    ends_.pop();
    if (!alive(end)) continue;
    release(end.request);
    requests_[end.request].last = now;
    ended.push_back(end.request);
  }
  if (order_.size() > 2 * static_cast<std::size_t>(running_) + 64) {
    std::erase_if(order_, [&](const End& end) { return !alive(end); });
  }
}

void ReplicaQueue::end_prompts(RunTime now, std::vector<std::uint32_t>& ended,
                               std::vector<std::uint32_t>& leaving) {
  for (Piece& piece : partial_) {
    piece.done += piece.now;
    piece.now = 0;
    if (piece.done < piece.target) continue;
    const std::uint32_t id = piece.request;
    RequestState& s = states_[id];
    ServedRequest& r = requests_[id];
    if (r.first < 0) r.first = now;
    ++s.generated;
    const bool over = s.generated >= r.output;
    if (!over && rules_.decodes) {
      join(id, piece.target + 1, now);
      continue;
    }
    used_ -= blocks(piece.target + 1.0);
    promised_ -= s.promised;
    if (over) r.last = now;
    (over ? ended : leaving).push_back(id);
  }
  std::erase_if(partial_, [](const Piece& piece) { return piece.done >= piece.target; });
}

void ReplicaQueue::end(RunTime now, std::vector<std::uint32_t>& ended,
                       std::vector<std::uint32_t>& leaving) {
  assert(busy_);
  busy_ = false;
  if (decoding_) end_decode(now, ended);
  end_prompts(now, ended, leaving);
}

}  // namespace lockstep
