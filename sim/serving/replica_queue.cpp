#include "sim/serving/replica_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

namespace lockstep {

ReplicaQueue::ReplicaQueue(const ReplicaRules& rules, PassClock& clock,
                           std::vector<ServedRequest>& requests, std::vector<RequestState>& states)
    : rules_(rules),
      clock_(clock),
      requests_(requests),
      states_(states),
      waiting_(requests, states, rules.adapters != nullptr ? 1 : 0),
      remainders_(static_cast<std::size_t>(rules.block), 0),
      prefixes_(rules.prefixes, rules.block),
      capacity_(static_cast<std::int64_t>(std::min(rules.cache_tokens / rules.block, 1e15))) {
  assert(rules.block >= 1 && rules.pass_tokens >= 1 && rules.most_sequences >= 1);
  if (rules.balance_wait > 0 && rules.attention_ranks > 1) {
    ranks_.resize(static_cast<std::size_t>(rules.attention_ranks));
  }
  if (rules.adapters != nullptr) adapters_.emplace(*rules.adapters);
  if (rules.tiers == nullptr) return;
  tiers_.emplace(*rules.tiers, rules.replica, rules.block, *rules.remote);
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

/// The last token of a prompt is always computed, because it yields the first token of the answer.
HeldPrompt ReplicaQueue::on_gpus(const ServedRequest& r) const {
  if (rules_.prefixes == nullptr) return {};
  const std::int32_t node = prefixes_.longest(r.prefix, r.input - 1);
  return {.node = node, .gpu = prefixes_.blocks(node)};
}

/// The time that `tokens` of a prompt, after `done` of them, add to a pass.
Seconds ReplicaQueue::time_of_prompt(std::int64_t done, std::int64_t tokens) {
  PassLoad load;
  if (rules_.order == PassOrder::mixed && running_ > 0) {
    load.sequences = static_cast<int>(running_);
    load.context = static_cast<double>(context_);
  }
  const Seconds without = load.sequences > 0 ? clock_.pass(load).total() : Seconds{};
  load.prompts = 1;
  load.prompt_tokens = static_cast<double>(tokens);
  load.prompt_pairs =
      load.prompt_tokens * (static_cast<double>(done) + 0.5 * (load.prompt_tokens + 1));
  return clock_.pass(load).total() - without;
}

/// The beginning of a prompt that is not computed: all that is held of it, or only the part that is
/// worth loading, whichever is done sooner. The estimate counts loads under way and running
/// sequences.
HeldPrompt ReplicaQueue::chosen_of(const ServedRequest& r, std::int32_t target, RunTime now) {
  if (!tiers_ || rules_.prefixes == nullptr) return on_gpus(r);
  const TierPlan& plan = tiers_->plan();
  const std::vector<HeldPrompt> cuts = tiers_->find(prefixes_, r.prefix, r.input - 1);
  std::size_t best = plan.reuse == CacheReuse::recompute ? 0 : cuts.size() - 1;
  if (plan.reuse == CacheReuse::fastest && cuts.size() > 1) {
    const auto ends = [&](const HeldPrompt& held) {
      const std::int64_t done = prefixes_.blocks(held.node) * rules_.block;
      const Seconds work = time_of_prompt(done, target - done);
      return work + plan.added(tiers_->load_time(held, now), work);
    };
    Seconds least = ends(cuts[best]);
    for (std::size_t shorter = cuts.size() - 1; shorter-- > 0;) {
      const Seconds time = ends(cuts[shorter]);
      if (time >= least) continue;
      least = time;
      best = shorter;
    }
  }
  HeldPrompt out = cuts[best];
  out.recomputed = cuts.back().behind() - out.behind();
  return out;
}

std::int64_t ReplicaQueue::found_of(const ServedRequest& r) const {
  if (!tiers_ || rules_.prefixes == nullptr) return on_gpus(r).gpu * rules_.block;
  const HeldPrompt held = tiers_->find(prefixes_, r.prefix, r.input - 1).back();
  return (held.gpu + held.host) * rules_.block;
}

/// Marks the blocks as used from now on; returns when their contents are on the GPUs.
RunTime ReplicaQueue::take_held(const HeldPrompt& held, RunTime now) {
  if (!tiers_) {
    prefixes_.take(held.node);
    return now;
  }
  prefixes_.take(held.node, tiers_->load(held, now));
  return std::max(now, prefixes_.ready(held.node));
}

void ReplicaQueue::begin_work(std::uint32_t request, const HeldPrompt& held, RunTime now) {
  ServedRequest& r = requests_[request];
  if (r.scheduled >= 0) return;
  r.scheduled = now;
  r.found = static_cast<std::int32_t>(prefixes_.blocks(held.node) * rules_.block);
  r.loaded = static_cast<std::int32_t>(held.behind() * rules_.block);
  if (tiers_) tiers_->count(held);
}

RunTime ReplicaQueue::next_loaded() const {
  RunTime first = -1;
  for (const Loading& each : loading_) {
    if (first < 0 || each.there < first) first = each.there;
  }
  return first;
}

/// Moves requests whose keys and values have arrived to the prompts that passes work on.
void ReplicaQueue::take_loaded(RunTime now) {
  for (const Loading& each : loading_) {
    if (each.there > now) continue;
    if (each.whole) {
      join(each.piece.request, each.piece.target, now);
      continue;
    }
    begin_work(each.piece.request, each.held, now);
    partial_.push_back(each.piece);
  }
  std::erase_if(loading_, [&](const Loading& each) { return each.there <= now; });
}

/// Delays the pass until the keys and values that it reads have arrived and swapped ones have left
/// their blocks.
void ReplicaQueue::wait_for_loads() {
  const TierPlan& plan = tiers_->plan();
  const double parts = plan.load == CacheLoad::by_layer ? plan.layers : 1;
  const Seconds load = to_seconds(awaited_);
  const Seconds longer = plan.added(load, pass_.total());
  stall_ = to_run_time(longer);
  first_stall_ = to_run_time(load / parts);
  pass_.host += longer;
  tiers_->stall(stall_);
}

RunTime ReplicaQueue::first_layer(RunTime begin, RunTime end, int layers) const {
  return begin + first_stall_ + (end - begin - stall_) / layers;
}

void ReplicaQueue::trim() {
  prefixes_.shrink(std::max<std::int64_t>(0, capacity_ - used_ - prefixes_.used()),
                   tiers_ ? &let_go_ : nullptr);
  if (tiers_) tiers_->write(let_go_);
}

/// Holds the shareable part of a computed prompt for later requests.
void ReplicaQueue::share(std::uint32_t request) {
  RequestState& s = states_[request];
  const std::int32_t prefix = requests_[request].prefix;
  if (rules_.prefixes == nullptr || prefix < 0 || prefix == s.held) return;
  prefixes_.take(prefix);
  prefixes_.give(s.held);
  const auto shared = static_cast<std::int32_t>(prefixes_.blocks(prefix));
  used_ -= shared - s.shared;
  const std::int32_t kept = std::max(0, s.promised - (shared - s.shared));
  promised_ -= s.promised - kept;
  s.promised = kept;
  s.shared = shared;
  s.held = prefix;
}

/// Releases the blocks of a request. Shared blocks stay held until their room is needed.
void ReplicaQueue::give_back(std::uint32_t request) {
  RequestState& s = states_[request];
  prefixes_.give(s.held);
  s.held = -1;
  s.shared = 0;
}

void ReplicaQueue::abandon(std::uint32_t request) {
  waiting_.leave(request);
  waiting_tokens_ -= tokens_of(request);
  leave_rank(request, true);
}

void ReplicaQueue::leave_adapter(std::uint32_t request) {
  if (adapters_) adapters_->leave(requests_[request].adapter);
}

/// Admits a waiting request if its prompt and what it may ask for later fit.
bool ReplicaQueue::admit(std::uint32_t id, std::int64_t& budget, RunTime now) {
  RequestState& s = states_[id];
  const ServedRequest& r = requests_[id];
  const std::int32_t target = r.input + s.generated;
  const double later = rules_.decodes ? rules_.reserved * (r.output - s.generated) : 0;
  const bool swapped = s.swapped, sent = s.cached && s.visit == 0;
  const bool comes_whole = swapped || sent;
  const HeldPrompt held = swapped ? on_gpus(r) : sent ? HeldPrompt{} : chosen_of(r, target, now);
  const std::int64_t shared = prefixes_.blocks(held.node);
  const std::int64_t asked = blocks(target + std::max(1.0, later)) - shared;
  const std::int64_t taken =
      asked + prefixes_.unused_of(held.node) + held.behind() + prefixes_.used();
  const bool alone = running_ == 0 && partial_.empty() && loading_.empty();
  if (!alone && std::max(used_, promised_) + taken > capacity_) return false;
  waiting_.leave(id);
  waiting_tokens_ -= target;
  if (adapters_) adapter_wait_ += adapters_->join(r.adapter);
  RunTime there = take_held(held, now);
  if (swapped) there = std::max(there, swap_in(id, shared, now));
  s.held = held.node;
  s.shared = static_cast<std::int32_t>(shared);
  s.promised = static_cast<std::int32_t>(asked);
  promised_ += asked;
  // A request whose keys and values arrive whole holds its last token already; others need a block
  // for the next token.
  used_ += blocks(target + (comes_whole ? 0 : 1)) - shared;
  const Piece piece{
      .request = id, .done = static_cast<std::int32_t>(shared * rules_.block), .target = target};
  if (there > now && tiers_->plan().load == CacheLoad::asynchronous) {
    loading_.push_back({there, piece, held, comes_whole});
    return true;
  }
  awaited_ = std::max(awaited_, there - now);
  begin_work(id, held, now);
  if (comes_whole) {
    join(id, target, now);  // its keys and values have arrived
    return true;
  }
  partial_.push_back(piece);
  work_on(partial_.back(), budget);
  return true;
}

void ReplicaQueue::join(std::uint32_t request, std::int32_t context, RunTime now) {
  RequestState& s = states_[request];
  s.running = true;
  // A prompt's pool only computes the first token: whoever waits sees it from the pool that
  // decodes.
  if (requests_[request].first < 0) requests_[request].first = now;
  if (s.rank >= 0) --ranks_[static_cast<std::size_t>(s.rank)].prompts;
  ++s.visit;
  s.joined = step_;
  s.context = context;
  ++running_;
  if (requests_[request].adapter >= 0) ++adapted_;
  context_ += context;
  ++remainders_[remainder(s)];
  const End end{.step = step_ + requests_[request].output - s.generated,
                .request = request,
                .visit = s.visit};
  ends_.push(end);
  order_.push_back(end);
  fresh_.push_back(now);
}

/// Holds prompt and answer for a later prompt that begins with both.
void ReplicaQueue::keep_whole(const ServedRequest& r) {
  if (rules_.prefixes == nullptr || r.whole < 0) return;
  prefixes_.take(r.whole);
  prefixes_.give(r.whole);
}

void ReplicaQueue::release(std::uint32_t request) {
  RequestState& s = states_[request];
  const std::int64_t length = s.context + step_ - s.joined;
  used_ -= blocks(static_cast<double>(length)) - s.shared;
  promised_ -= s.promised;
  give_back(request);
  context_ -= length;
  --remainders_[remainder(s)];
  --running_;
  if (requests_[request].adapter >= 0) --adapted_;
  s.running = false;
}

void ReplicaQueue::preempt_last(RunTime now) {
  while (!alive(order_.back())) order_.pop_back();
  const std::uint32_t id = order_.back().request;
  order_.pop_back();
  RequestState& s = states_[id];
  const std::int64_t length = s.context + step_ - s.joined, shared = s.shared;
  release(id);
  s.generated += static_cast<std::int32_t>(step_ - s.joined);
  ++requests_[id].preempted;
  ++preempted_;
  leave_adapter(id);
  waiting_.push_front(id);
  waiting_tokens_ += tokens_of(id);
  if (s.rank >= 0) ++ranks_[static_cast<std::size_t>(s.rank)].prompts;
  if (tiers_) swap_out(id, length, shared, now);
}

/// Swaps a sequence to host memory if there is room and, unless the mode forces it, if swapping is
/// faster than recomputation. The pass that needs the blocks waits until they are copied.
void ReplicaQueue::swap_out(std::uint32_t request, std::int64_t length, std::int64_t shared,
                            RunTime now) {
  const CachePreemption how = tiers_->plan().preemption;
  if (how == CachePreemption::recompute) return;
  const std::int64_t all = blocks(static_cast<double>(length)), done = shared * rules_.block;
  if (how == CachePreemption::fastest &&
      tiers_->swap_time(all, now) >= time_of_prompt(done, length - done)) {
    return;
  }
  const RunTime there = tiers_->swap_out(all, now);
  if (there < 0) return;
  states_[request].swapped = true;
  awaited_ = std::max(awaited_, there - now);
}

/// When a swapped sequence is back on the GPUs, which still hold its shared blocks.
RunTime ReplicaQueue::swap_in(std::uint32_t request, std::int64_t shared, RunTime now) {
  RequestState& s = states_[request];
  s.swapped = false;
  return tiers_->swap_in(blocks(requests_[request].input + s.generated), shared, now);
}

/// Whether all running sequences have room for their next tokens without a preemption.
bool ReplicaQueue::make_room(RunTime now) {
  const std::int64_t before = preempted_;
  while (running_ > 1 && used_ + prefixes_.used() > capacity_) preempt_last(now);
  trim();
  return preempted_ == before;
}

/// The scheduler takes in requests every `poll` passes, and after each pass with prompts. An idle
/// engine takes them in at once.
void ReplicaQueue::look() {
  const bool idle = running_ == 0 && partial_.empty();
  if (++unseen_ < rules_.poll && !idle) return;
  unseen_ = 0;
  waiting_.look([&](std::uint32_t request) {
    if (!ranks_.empty()) assign(request);
  });
}

/// Assigns a request to the attention rank with the fewest requests.
void ReplicaQueue::assign(std::uint32_t request) {
  const auto least = std::ranges::min_element(ranks_, {}, &RankLoad::requests);
  ++least->requests;
  ++least->prompts;
  states_[request].rank = static_cast<std::int16_t>(least - ranks_.begin());
}

void ReplicaQueue::leave_rank(std::uint32_t request, bool with_prompt) {
  RequestState& s = states_[request];
  if (s.rank < 0) return;
  RankLoad& rank = ranks_[static_cast<std::size_t>(s.rank)];
  --rank.requests;
  if (with_prompt) --rank.prompts;
  s.rank = -1;
}

/// Whether a pass may work on prompts: each rank has one, or a rank has nothing to decode
/// meanwhile, or the prompts have waited for long.
bool ReplicaQueue::balanced() {
  if (ranks_.empty()) return true;
  if (const auto first = waiting_.front(); first && states_[*first].cached) return true;
  const auto has_prompt = [](const RankLoad& rank) { return rank.prompts > 0; };
  const auto decodes = [](const RankLoad& rank) { return rank.requests > rank.prompts; };
  if (std::ranges::all_of(ranks_, has_prompt) || !std::ranges::all_of(ranks_, decodes) ||
      ++unbalanced_ >= rules_.balance_wait) {
    unbalanced_ = 0;
    return true;
  }
  return false;
}

/// Whether a pass may work on prompts: they and the running sequences fill enough of it, or nothing
/// runs meanwhile, or they have waited for long.
bool ReplicaQueue::gathered() {
  const bool waits = waiting_.seen() > 0 || !partial_.empty();
  if (rules_.batch_wait == 0 || rules_.attention_ranks > 1 || !waits) return true;
  const std::optional<std::uint32_t> first = waiting_.front();
  const bool cached = first && states_[*first].cached;
  if (running_ == 0 || cached) {
    ungathered_ = 0;
    return true;
  }
  std::int64_t tokens = running_;
  for (const Piece& piece : partial_) tokens += piece.target - piece.done;
  const bool enough = waiting_.reaches(rules_.enough - tokens,
                                       [&](std::uint32_t request) { return tokens_of(request); });
  if (!enough && ungathered_ < rules_.batch_wait) {
    ++ungathered_;
    return false;
  }
  ungathered_ = 0;
  return true;
}

/// What adapters add to a pass: kernels of their own beside the products, and loads that it waits
/// for. The GPU draws what it does on average beside them.
void ReplicaQueue::add_adapters() {
  std::set<std::int32_t> of_prompts;
  double tokens = 0;
  for (const Piece& piece : partial_) {
    const std::int32_t adapter = requests_[piece.request].adapter;
    if (piece.now == 0 || adapter < 0) continue;
    of_prompts.insert(adapter);
    tokens += piece.now;
  }
  const Seconds before = pass_.total();
  const bool decodes = decoding_ && adapted_ > 0;
  const std::size_t different = decodes ? adapters_->in_use().size() : of_prompts.size();
  const double rows = decodes ? static_cast<double>(adapted_) : 0;
  if (decodes) pass_.products += adapters_->longer(different, rows);
  const Seconds all = adapters_->longer(different, rows + tokens);
  pass_.prompts += decodes ? all - adapters_->longer(different, rows) : all;
  adapters_->spent(all);
  pass_.drawn *= pass_.total() / before;
  pass_.host += to_seconds(adapter_wait_);
}

RunTime ReplicaQueue::start(RunTime now) {
  assert(!busy_);
  awaited_ = stall_ = first_stall_ = adapter_wait_ = 0;
  const bool roomy = make_room(now);
  if (!loading_.empty()) take_loaded(now);
  const bool mixed = rules_.order == PassOrder::mixed;
  std::int64_t budget = rules_.pass_tokens - (mixed ? running_ : 0);
  look();
  if (!balanced() || !gathered()) budget = 0;
  for (Piece& piece : partial_) work_on(piece, budget);
  while (roomy && budget > 0 && waiting_.seen() > 0 &&
         running_ + static_cast<std::int64_t>(partial_.size() + loading_.size()) <
             rules_.most_sequences) {
    const std::optional<std::uint32_t> next = waiting_.next(adapters());
    if (!next || !admit(*next, budget, now)) break;
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
  if (load.prompts > 0) unseen_ = rules_.poll;
  pass_ = clock_.pass(load);
  if (adapters_) add_adapters();
  if (awaited_ > 0) wait_for_loads();
  account_ += pass_;
  ++passes_;
  busy_ = true;
  trim();
  fullest_ = std::max(
      fullest_, static_cast<double>(used_ + prefixes_.used()) / static_cast<double>(capacity_));
  return now + to_run_time(pass_.total());
}

/// Adds a token to every running sequence.
void ReplicaQueue::step_on() {
  // A sequence that has filled its last block takes a new one.
  const std::int64_t block = rules_.block;
  const auto full = static_cast<std::size_t>(((-step_) % block + block) % block);
  used_ += remainders_[full];
  ++step_;
  context_ += running_;
}

std::vector<std::uint32_t> ReplicaQueue::fail() {
  std::vector<std::uint32_t> out;
  for (const End& end : order_) {
    if (!alive(end)) continue;
    RequestState& s = states_[end.request];
    release(end.request);
    leave_adapter(end.request);
    s.generated += static_cast<std::int32_t>(step_ - s.joined);
    out.push_back(end.request);
  }
  const auto lose = [&](const Piece& piece, int next) {
    used_ -= blocks(piece.target + next) - states_[piece.request].shared;
    promised_ -= states_[piece.request].promised;
    give_back(piece.request);
    leave_adapter(piece.request);
    out.push_back(piece.request);
  };
  for (const Piece& piece : partial_) lose(piece, 1);
  for (const Loading& each : loading_) lose(each.piece, each.whole ? 0 : 1);
  const std::vector<std::uint32_t> waited = waiting_.clear();
  out.insert(out.end(), waited.begin(), waited.end());
  for (const std::uint32_t id : out) {
    states_[id].cached = false;
    states_[id].swapped = false;
    states_[id].rank = -1;
  }
  std::ranges::fill(ranks_, RankLoad{});
  order_.clear();
  partial_.clear();
  loading_.clear();
  waiting_tokens_ = 0;
  unseen_ = unbalanced_ = ungathered_ = 0;
  fresh_.clear();
  ends_ = {};
  forget();
  busy_ = false;
  decoding_ = false;
  assert(used_ == 0 && promised_ == 0 && running_ == 0 && context_ == 0);
  return out;
}

void ReplicaQueue::forget() {
  prefixes_.clear();
  if (adapters_) adapters_->clear();
  if (tiers_) tiers_->lose();
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
  intervals_.add(0, (tokens - 1) * running_);  // tokens of accepted drafts arrive together
  for (std::int64_t t = 0; t < tokens; ++t) step_on();
  while (!ends_.empty() && (ends_.top().step <= step_ || !alive(ends_.top()))) {
    const End end = ends_.top();
    ends_.pop();
    if (!alive(end)) continue;
    release(end.request);
    leave_adapter(end.request);
    leave_rank(end.request, false);
    keep_whole(requests_[end.request]);
    requests_[end.request].last = now;
    ended.push_back(end.request);
  }
  if (order_.size() > 2 * static_cast<std::size_t>(running_) + 64) {
    std::erase_if(order_, [&](const End& end) { return !alive(end); });
  }
}

void ReplicaQueue::end_prompts(RunTime now, std::vector<std::uint32_t>& ended,
                               std::vector<std::uint32_t>& leaving) {
  if (partial_.empty()) return;
  for (Piece& piece : partial_) {
    piece.done += piece.now;
    piece.now = 0;
    if (piece.done < piece.target) continue;
    const std::uint32_t id = piece.request;
    RequestState& s = states_[id];
    ServedRequest& r = requests_[id];
    share(id);
    ++s.generated;
    const bool over = s.generated >= r.output;
    if (!over && rules_.decodes) {
      join(id, piece.target + 1, now);
      continue;
    }
    used_ -= blocks(piece.target + 1.0) - s.shared;
    promised_ -= s.promised;
    give_back(id);
    leave_adapter(id);
    leave_rank(id, true);
    if (over) {
      keep_whole(r);
      if (r.first < 0) r.first = now;
      r.last = now;
    }
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
