#include "sim/rl/rollout.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <queue>
#include <vector>

namespace lockstep {
namespace {

/// Share of the cache that stays free when a sequence joins (vLLM's watermark_blocks).
constexpr double kWatermark = 0.01;

struct Sequence {
  int length = 0;            ///< of the response
  int done = 0;              ///< tokens of it when it joined
  std::uint64_t joined = 0;  ///< step
  std::uint64_t visit = 0;   ///< how often it joined or left: an older end in the queue is void
  bool running = false;
};
struct End {
  std::uint64_t step;
  std::size_t sequence;
  std::uint64_t visit;
  bool operator>(const End& o) const {
    return step != o.step ? step > o.step : sequence > o.sequence;
  }
};

class ReplicaRun {
 public:
  ReplicaRun(ServingReplica& replica, const RolloutLoad& load) : replica_(replica), load_(load) {
    sequences_.resize(load.responses.size());
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      sequences_[i].length = load.responses[i];
      assert(load.prompt_tokens + load.responses[i] <= load.cache_tokens);
      out_.tokens += load.responses[i];
    }
  }

  Rollout run() {
    std::size_t left = sequences_.size();
    while (left > 0) {
      admit();
      decode_until(ends_.top().step);
      left -= finish();
      while (running_ > 1 && used_ + running_ > load_.cache_tokens) preempt();
    }
    out_.time = out_.prefill.total() + out_.decode.total();
    return out_;
  }

 private:
  [[nodiscard]] double context(const Sequence& s) const {
    return load_.prompt_tokens + s.done + static_cast<double>(step_ - s.joined);
  }

  /// Lets in what there is room for: first those that had to leave.
  void admit() {
    double prompts = 0;  // computed at once
    const double spare = std::max(kWatermark * load_.cache_tokens, running_ + 1.0);
    while (running_ < load_.most_sequences) {
      const bool again = !left_.empty();
      if (!again && next_ == sequences_.size()) break;
      const std::size_t index = again ? left_.back() : next_;
      Sequence& s = sequences_[index];
      s.joined = step_;
      if (running_ > 0 && used_ + context(s) + spare > load_.cache_tokens) break;
      if (again) {
        prompts += context(s) / load_.prompt_tokens;
        left_.pop_back();
      } else {
        prompts += load_.prefills;
        ++next_;
      }
      ++s.done;  // the prefill ends with a token
      ++s.visit;
      s.running = true;
      used_ += context(s);
      ++running_;
      order_.push_back(index);
      ends_.push({step_ + static_cast<std::uint64_t>(s.length - s.done), index, s.visit});
    }
    out_.most_sequences = std::max(out_.most_sequences, running_);
    if (prompts > 0) {
      const RolloutWork passes = prefill(prompts);
      out_.prefill += passes;
      if (load_.keep_stretches) {
        out_.stretches.push_back({.prefill = passes.total(),
                                  .decode = {},
                                  .prefill_drawn = passes.drawn,
                                  .decode_drawn = {}});
      }
    }
    while (!alive(ends_.top())) ends_.pop();
  }

  [[nodiscard]] bool alive(const End& end) const {
    const Sequence& s = sequences_[end.sequence];
    return s.running && s.visit == end.visit;
  }

  [[nodiscard]] RolloutWork work_of(const PassLoad& load) {
    const ServingPass time = replica_.pass(load);
    return {.time = time, .drawn = replica_.drawn_by_part(load, time.total())};
  }
  RolloutWork prefill(double prompts) {
    const int together = std::max(1, load_.pass_tokens / load_.prompt_tokens);
    const double full = std::floor(prompts / together), rest = prompts - full * together;
    RolloutWork time = full * pass(together);
    if (rest > 0) time += rest < 1 ? rest * pass(1) : pass(static_cast<int>(std::ceil(rest)));
    return time;
  }
  const RolloutWork& pass(int prompts) {
    const auto [known, is_new] = passes_.try_emplace(prompts);
    if (is_new) {
      const double tokens = 1.0 * prompts * load_.prompt_tokens;
      known->second = work_of({.prompts = prompts,
                               .prompt_tokens = tokens,
                               .prompt_pairs = tokens * (load_.prompt_tokens + 1) / 2});
    }
    return known->second;
  }

  /// Up to that step, or to the one at which the cache is full.
  void decode_until(std::uint64_t end) {
    const double room = std::floor((load_.cache_tokens - used_) / running_);
    const auto wanted = static_cast<double>(end - step_);
    const double steps = std::min(wanted, std::max(1.0, room));
    if (steps == 0) return;
    const double mean = used_ / running_ + (steps - 1) / 2;  // the token at hand is counted
    const RolloutWork passes = steps * work_of({.sequences = running_, .context = running_ * mean});
    out_.decode += passes;
    if (load_.keep_stretches) {
      out_.stretches.push_back({.prefill = {},
                                .decode = passes.total(),
                                .prefill_drawn = {},
                                .decode_drawn = passes.drawn});
    }
    out_.steps += steps;
    step_ += static_cast<std::uint64_t>(steps);
    used_ += steps * running_;
  }

  std::size_t finish() {
    std::size_t finished = 0;
    while (!ends_.empty() && (ends_.top().step <= step_ || !alive(ends_.top()))) {
      if (alive(ends_.top())) {
        Sequence& s = sequences_[ends_.top().sequence];
        used_ -= context(s);
        s.running = false;
        --running_;
        ++finished;
      }
      ends_.pop();
    }
    return finished;
  }

  /// The sequence that joined last leaves.
  void preempt() {
    while (!sequences_[order_.back()].running) order_.pop_back();
    Sequence& s = sequences_[order_.back()];
    used_ -= context(s);
    s.done += static_cast<int>(step_ - s.joined);
    s.running = false;
    ++s.visit;
    --running_;
    left_.push_back(order_.back());
    order_.pop_back();
    ++out_.preempted;
  }

  ServingReplica& replica_;
  const RolloutLoad& load_;
  std::vector<Sequence> sequences_;
  std::vector<std::size_t> left_;   ///< had to leave; the last one comes back first
  std::vector<std::size_t> order_;  ///< of joining; those that ended too
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::map<int, RolloutWork> passes_;
  std::size_t next_ = 0;
  std::uint64_t step_ = 0;
  int running_ = 0;
  double used_ = 0;  ///< tokens in the cache
  Rollout out_;
};

}  // namespace

RolloutWork& RolloutWork::operator+=(const RolloutWork& o) {
  time += o.time;
  for (std::size_t p = 0; p < kGpuParts; ++p) drawn[p] += o.drawn[p];
  return *this;
}
RolloutWork operator*(double k, const RolloutWork& work) {
  RolloutWork out{.time = k * work.time, .drawn = {}};
  for (std::size_t p = 0; p < kGpuParts; ++p) out.drawn[p] = k * work.drawn[p];
  return out;
}

Rollout roll_out(ServingReplica& replica, const RolloutLoad& load) {
  assert(!load.responses.empty() && load.prompt_tokens >= 1 && load.most_sequences >= 1);
  return ReplicaRun{replica, load}.run();
}

}  // namespace lockstep
