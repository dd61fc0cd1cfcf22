/// Requests on one replica: who waits, whose prompt is worked on, who runs, and what the cache
/// holds, pass by pass.
///
/// A pass moves every running sequence one token ahead and takes in pieces of prompts, up to the
/// tokens that the engine allows. A prompt's blocks are taken when it is let in. Where the next
/// tokens of the running sequences do not fit, the one that came last leaves and is computed again
/// later, or swapped to host memory where there is such (cache_tiers.hpp), before all that wait
/// (Kwon et al. 2023, arXiv:2309.06180, section 4.5); nobody is let in then. A pass costs O(1),
/// whoever joins or ends O(log n): sums of contexts and of blocks are kept, not lists (a block
/// begins for those sequences whose length has the pass's remainder). Beginnings that prompts share
/// are kept once, and after their last user until their room is needed (prefix_cache.hpp): a
/// prompt's work begins behind what is held of it. What slower memory holds is loaded back into
/// blocks that are taken when the request is let in (cache_tiers.hpp).
#pragma once

#include <deque>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "models/generation/serving_engine.hpp"
#include "models/generation/serving_pass.hpp"
#include "sim/scenario/served_request.hpp"
#include "sim/serving/cache_tiers.hpp"
#include "sim/serving/interval_histogram.hpp"
#include "sim/serving/prefix_cache.hpp"
#include "sim/serving/waiting_line.hpp"

namespace lockstep {

struct ReplicaRules {
  PassOrder order = PassOrder::mixed;
  std::int64_t pass_tokens = 8192;
  std::int64_t most_sequences = 1024;
  int block = 16;
  double reserved = 0;         ///< share of an answer that must fit when its request is let in
  double cache_tokens = 1e9;   ///< that the cache holds
  int poll = 1;                ///< passes from one look for new requests to the next
  int attention_ranks = 1;     ///< that share the running sequences evenly
  int balance_wait = 0;        ///< passes that prompts wait at most until each rank has one
  int batch_wait = 0;          ///< passes that prompts wait at most until they are enough
  std::int64_t enough = 0;     ///< tokens of a pass, running sequences' too, that are
  double tokens_per_pass = 1;  ///< of a running sequence; above 1: drafts that are right
  bool decodes = true;         ///< else a request leaves with its first token
  /// What prompts share; null: their keys and values are not kept for others.
  const std::vector<PrefixNode>* prefixes = nullptr;
  /// Where they stay when the cache has let go of them; null: nowhere. Both or none.
  const TierPlan* tiers = nullptr;
  RemotePool* remote = nullptr;
  std::size_t replica = 0;                 ///< of its pool: whose NICs it loads through
  const AdapterRules* adapters = nullptr;  ///< of its requests; null: the model alone answers
};

class ReplicaQueue {
 public:
  /// A prompt that is worked on.
  struct Piece {
    std::uint32_t request;
    std::int32_t done;     ///< tokens of the prompt
    std::int32_t target;   ///< all of them, with those computed again
    std::int32_t now = 0;  ///< of this pass
  };

  ReplicaQueue(const ReplicaRules& rules, PassClock& clock, std::vector<ServedRequest>& requests,
               std::vector<RequestState>& states);

  void submit(std::uint32_t request) {
    waiting_.push(request);
    waiting_tokens_ += tokens_of(request);
  }
  /// Takes a request that waits out of the line.
  void abandon(std::uint32_t request);
  [[nodiscard]] bool busy() const { return busy_; }
  /// Whether a request of that length can be served at all.
  [[nodiscard]] bool fits(const ServedRequest& request) const;

  /// Begins a pass where there is work; its end, or below 0.
  RunTime start(RunTime now);
  /// Ends it: requests whose last token came, and those that leave with their first one.
  void end(RunTime now, std::vector<std::uint32_t>& ended, std::vector<std::uint32_t>& leaving);

  /// Dies: all that it had, in the order running, worked on, waiting; its cache is lost, and the
  /// pass under way ends nothing.
  std::vector<std::uint32_t> fail();
  /// Starts anew: what it held for others is lost. Requires that it has no requests.
  void forget();

  /// The pass that began last, and all of them together.
  [[nodiscard]] const ServingPass& last_pass() const { return pass_; }
  /// Of it: what it waited for keys and values to be loaded.
  [[nodiscard]] RunTime stall() const { return stall_; }
  /// When the first of so many layers is done, of the pass from `begin` to `end`, which began last.
  [[nodiscard]] RunTime first_layer(RunTime begin, RunTime end, int layers) const;
  /// When the first of those come that requests wait for beside passes; below 0: never.
  [[nodiscard]] RunTime next_loaded() const;
  /// What slower memory held and got.
  [[nodiscard]] TierAccount tiers() const { return tiers_ ? tiers_->account() : TierAccount{}; }
  [[nodiscard]] const ServingPass& account() const { return account_; }
  [[nodiscard]] const IntervalHistogram& intervals() const { return intervals_; }
  /// Whether its GPUs hold the adapter.
  [[nodiscard]] bool has_adapter(std::int32_t adapter) const {
    return adapters_ && adapters_->on_gpu(adapter);
  }
  /// What its adapters came to; null: its requests have none.
  [[nodiscard]] const AdapterSlots* adapters() const { return adapters_ ? &*adapters_ : nullptr; }
  [[nodiscard]] std::int64_t passes() const { return passes_; }
  [[nodiscard]] std::int64_t preempted() const { return preempted_; }
  [[nodiscard]] double fullest() const { return fullest_; }  ///< share of the cache
  /// In the order in which they were let in.
  [[nodiscard]] const std::deque<Piece>& pieces() const { return partial_; }
  /// Tokens of the prompt that it holds already, on its GPUs or in its part of host memory.
  [[nodiscard]] std::int64_t found_of(const ServedRequest& request) const;
  /// Of requests that are not let in yet: prompts, and what of answers is computed again.
  [[nodiscard]] std::int64_t waiting_tokens() const { return waiting_tokens_; }
  /// Requests that are not let in yet.
  [[nodiscard]] std::int64_t waiting() const { return waiting_.size(); }
  /// Share of the cache that requests use.
  [[nodiscard]] double cache_share() const {
    return static_cast<double>(used_ + prefixes_.used()) / static_cast<double>(capacity_);
  }
  /// Of those that are: what their blocks hold, shared ones once.
  [[nodiscard]] std::int64_t held_tokens() const {
    return (used_ + prefixes_.used()) * rules_.block;
  }

 private:
  struct End {
    std::int64_t step;
    std::uint32_t request;
    std::int32_t visit;
    bool operator>(const End& o) const {
      return step != o.step ? step > o.step : request > o.request;
    }
  };

  /// A prompt whose keys and values are loaded beside passes of others.
  struct Loading {
    RunTime there;
    Piece piece;
    HeldPrompt held;
    bool whole = false;  ///< nothing of it is worked on: it was swapped
  };

  [[nodiscard]] std::int64_t blocks(double tokens) const;
  [[nodiscard]] std::int64_t tokens_of(std::uint32_t request) const {
    return requests_[request].input + states_[request].generated;
  }
  [[nodiscard]] HeldPrompt on_gpus(const ServedRequest& request) const;
  [[nodiscard]] Seconds time_of_prompt(std::int64_t done, std::int64_t tokens);
  [[nodiscard]] HeldPrompt chosen_of(const ServedRequest& request, std::int32_t target,
                                     RunTime now);
  RunTime take_held(const HeldPrompt& held, RunTime now);
  void begin_work(std::uint32_t request, const HeldPrompt& held, RunTime now);
  void take_loaded(RunTime now);
  void wait_for_loads();
  void trim();
  [[nodiscard]] std::size_t remainder(const RequestState& s) const;
  void look();
  void assign(std::uint32_t request);
  void leave_rank(std::uint32_t request, bool with_prompt);
  [[nodiscard]] bool balanced();
  [[nodiscard]] bool gathered();
  bool admit(std::uint32_t id, std::int64_t& budget, RunTime now);
  void leave_adapter(std::uint32_t request);
  void add_adapters();
  void work_on(Piece& piece, std::int64_t& budget);
  bool make_room(RunTime now);
  void preempt_last(RunTime now);
  void swap_out(std::uint32_t request, std::int64_t length, std::int64_t shared, RunTime now);
  RunTime swap_in(std::uint32_t request, std::int64_t shared, RunTime now);
  void step_on();
  void join(std::uint32_t request, std::int32_t context, RunTime now);
  void release(std::uint32_t request);
  void share(std::uint32_t request);
  void give_back(std::uint32_t request);
  void keep_whole(const ServedRequest& request);
  void end_prompts(RunTime now, std::vector<std::uint32_t>& ended,
                   std::vector<std::uint32_t>& leaving);
  void end_decode(RunTime now, std::vector<std::uint32_t>& ended);
  [[nodiscard]] bool alive(const End& end) const;

  ReplicaRules rules_;
  PassClock& clock_;
  std::vector<ServedRequest>& requests_;
  std::vector<RequestState>& states_;
  WaitingLine waiting_;
  std::optional<AdapterSlots> adapters_;
  std::deque<Piece> partial_;     ///< prompts that are worked on
  std::vector<Loading> loading_;  ///< in the order in which they were let in
  std::vector<End> order_;        ///< of joining; those that left too
  std::vector<RunTime> fresh_;    ///< when those joined that no decoding pass has moved yet
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<std::int64_t> remainders_;  ///< running sequences by (length - step) mod block
  PrefixCache prefixes_;
  std::optional<ReplicaTiers> tiers_;
  std::vector<PrefixPiece> let_go_;
  std::int64_t capacity_ = 0, used_ = 0, promised_ = 0;  ///< blocks, but for shared ones
  std::int64_t waiting_tokens_ = 0;
  std::int64_t running_ = 0, step_ = 0, context_ = 0;
  std::int64_t adapted_ = 0;  ///< of the running ones: with an adapter
  std::int64_t passes_ = 0, preempted_ = 0;
  double ahead_ = 0;    ///< tokens that drafts have brought, not yet counted
  int unseen_ = 0;      ///< passes since the last look
  int ungathered_ = 0;  ///< passes that prompts have waited for more of them
  int unbalanced_ = 0;  ///< passes since prompts came in
  /// Of an attention rank: requests, and those of them whose prompt is not done.
  struct RankLoad {
    std::int64_t requests = 0, prompts = 0;
  };
  std::vector<RankLoad> ranks_;  ///< empty: prompts do not wait for each other
  RunTime moved_ = 0;            ///< end of the last decoding pass
  // Of a pass: for what it waits, how long in all, and how long before its first layer.
  RunTime awaited_ = 0, stall_ = 0, first_stall_ = 0;
  RunTime adapter_wait_ = 0;  ///< of a pass: for adapters
  bool busy_ = false, decoding_ = false;
  double fullest_ = 0;
  ServingPass pass_, account_;
  IntervalHistogram intervals_;
};

}  // namespace lockstep
