#include "sim/search/tune.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <utility>

#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/search/bounds.hpp"
#include "sim/search/layouts.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

/// Layouts that are looked at side by side before the bar is set anew: a number of its own, so that
/// the same are replayed on any number of threads.
constexpr std::size_t kRound = 16;
constexpr double kNever = std::numeric_limits<double>::infinity();
/// A rough bound below this share of the bar: the close one would hardly rule the layout out, and
/// costs a third of a replay.
constexpr double kFarBelow = 0.5;

/// What is known of a layout that fits.
struct Candidate {
  std::size_t layout = 0;  ///< its number among all: the plainer first
  double bound_s = 0;
  enum class State : std::uint8_t { computed, planned, replayed } state = State::computed;
  double step_s = kNever, mfu = 0;
  std::uint64_t events = 0;  ///< that its replay took
  StepMethod method = StepMethod::exact;
  std::optional<StepBand> band{};
  BucketTimes seconds{};
  bool close = false;  ///< in memory, known where it was replayed
};

struct Later {
  const std::vector<Candidate>& all;
  bool operator()(std::size_t a, std::size_t b) const {
    return std::pair(all[a].bound_s, a) > std::pair(all[b].bound_s, b);
  }
};

/// What ends a replay that nobody waits for any more.
struct SearchStopped {};

void replay_into(const Scenario& scenario, Candidate& candidate, const StepProgress& watch) {
  const StepReport report = simulate_step(scenario, {.progress = watch});
  candidate.step_s = report.step_s;
  candidate.mfu = report.mfu_full;
  candidate.events = report.events;
  candidate.method = report.method;
  candidate.band = report.band;
  candidate.seconds = report.seconds;
  candidate.close = memory_band(scenario.job, scenario.stack, scenario.node.gpu).close();
  candidate.state = Candidate::State::replayed;
}

TunedLayout as_tuned(Scenario scenario, const Candidate& candidate) {
  TunedLayout out;
  out.peak = fullest_stage(scenario.job, scenario.stack);
  out.usable = usable_memory(scenario.node.gpu, scenario.stack);
  out.memory = memory_band(scenario.job, scenario.stack, scenario.node.gpu);
  out.scenario = std::move(scenario);
  out.step_s = candidate.step_s;
  out.mfu = candidate.mfu;
  out.method = candidate.method;
  out.band = candidate.band;
  out.bound_s = candidate.bound_s;
  out.seconds = candidate.seconds;
  return out;
}

class Search {
 public:
  Search(const Scenario& base, const TuneOptions& options)
      : base_(base), options_(options), blank_(base), arena_(threads(options)) {
    if (options.interrupted) {
      watch_ = [this](std::uint64_t, std::uint64_t) {
        if (stops()) throw SearchStopped();
      };
    }
    // What only the scenario as it is has.
    blank_.job.parallelism.order = nullptr;
    blank_.job.parallelism.layers_per_stage.clear();
    blank_.expect.reset();
    blank_.assumptions.clear();
  }

  TuneResult run() {
    look_at_own();
    list_candidates();
    replay_best_first();
    collect();
    return std::move(result_);
  }

 private:
  static int threads(const TuneOptions& options) {
    return options.threads > 0 ? options.threads : tbb::task_arena::automatic;
  }
  [[nodiscard]] bool stops() const { return options_.interrupted && options_.interrupted(); }
  /// False where the search was stopped before its end: the candidate is as it was.
  bool replays(const Scenario& scenario, Candidate& candidate) const {
    try {
      replay_into(scenario, candidate, watch_);
      return true;
    } catch (const SearchStopped&) {
      return false;
    }
  }
  [[nodiscard]] Scenario scenario_of(const Candidate& candidate) const {
    Scenario scenario = blank_;
    apply(layouts_[candidate.layout], scenario);
    return scenario;
  }

  void look_at_own() {
    result_.own_problem = options_.own_problem;
    if (!result_.own_problem.empty()) return;
    const BrokenRule rule = RuleCheck(base_).broken(base_);
    if (!rule.problem.empty()) {
      result_.own_problem = rule.pointer + ": " + rule.problem;
      return;
    }
    Candidate own;
    own.bound_s = ComputeBound(base_)(base_).base_units();
    if (!replays(base_, own)) {
      result_.own_problem = "the search was interrupted before its step was simulated";
      return;
    }
    own_s_ = own.step_s;
    result_.own = as_tuned(base_, own);
    result_.own_fits = result_.own->peak.needed() <= result_.own->usable;
  }

  /// Of those that keep the rules and fit, with a first bound.
  void list_candidates() {
    layouts_ = all_layouts(base_, options_.space);
    result_.considered = layouts_.size();
    RuleCheck rules(base_);
    ComputeBound bound(blank_);
    const Bytes usable = usable_memory(base_.node.gpu, base_.stack);
    std::map<std::string, std::size_t> refused, beyond_stack;
    Scenario scenario = blank_;
    bool zero1_fits = false;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      constexpr std::size_t kBetweenLooks = 64;
      if (i % kBetweenLooks == 0 && stops()) {
        unlisted_ = layouts_.size() - i;
        break;
      }
      apply(layouts_[i], scenario);
      const Sharding sharding = layouts_[i].cut.sharding;
      const bool doubles = sharding == Sharding::zero2 && zero1_fits;
      zero1_fits = false;
      if (const BrokenRule rule = rules.broken(scenario); !rule.problem.empty()) {
        ++refused[rule.pointer];
      } else if (!can_run(scenario.stack, scenario.job)) {
        ++beyond_stack[name_of(beyond(scenario.job, scenario.stack).front())];
      } else if (doubles) {
        ++result_.same_as_zero1;
      } else if (!fits(scenario.job, scenario.stack, usable)) {
        ++result_.over_memory;
      } else {
        zero1_fits = sharding == Sharding::zero1;
        candidates_.push_back({.layout = i, .bound_s = bound(scenario).base_units()});
      }
    }
    result_.refused = most_first(refused);
    result_.beyond_stack = most_first(beyond_stack);
  }
  static std::vector<TuneCount> most_first(const std::map<std::string, std::size_t>& counts) {
    std::vector<TuneCount> out;
    out.reserve(counts.size());
    for (const auto& [reason, count] : counts) out.push_back({reason, count});
    std::ranges::sort(out, [](const TuneCount& a, const TuneCount& b) {
      return a.layouts != b.layouts ? a.layouts > b.layouts : a.reason < b.reason;
    });
    return out;
  }

  /// Layouts above this time are of no interest any more.
  [[nodiscard]] double bar() const {
    if (options_.exhaustive) return kNever;
    const double last = best_.size() < options_.keep
                            ? kNever
                            : std::max(candidates_[best_.back()].step_s, first_s());
    const bool ranks = options_.rank_own && result_.own && events_ < options_.most_events_for_rank;
    return ranks ? std::max(last, own_s_) : last;
  }
  /// The slowest step that ties with the fastest so far.
  [[nodiscard]] double tie_s() const {
    return best_.empty() ? kNever : (1 + kTie) * candidates_[best_.front()].step_s;
  }
  /// The slowest step that may come first: one that ties with the fastest that surely fits, if that
  /// is near enough to the fastest of all.
  [[nodiscard]] double first_s() const {
    if (best_.empty()) return kNever;
    const double most = (1 + kSafer) * candidates_[best_.front()].step_s;
    return safest_ ? std::min(most, (1 + kTie) * candidates_[*safest_].step_s) : most;
  }
  void keep(std::size_t number) {
    const auto faster = [&](std::size_t a, std::size_t b) {
      return std::pair(candidates_[a].step_s, a) < std::pair(candidates_[b].step_s, b);
    };
    if (!candidates_[number].close && (!safest_ || faster(number, *safest_))) safest_ = number;
    best_.insert(std::ranges::upper_bound(best_, number, faster), number);
    if (best_.size() > options_.keep) best_.pop_back();
  }

  /// Takes the layouts with the smallest bounds, a round at a time: those with a rough bound get
  /// the close one and go back, the others, and those far below the bar, are replayed.
  void replay_best_first() {
    std::priority_queue<std::size_t, std::vector<std::size_t>, Later> queue(Later{candidates_});
    for (std::size_t i = 0; i < candidates_.size(); ++i) queue.push(i);
    result_.interrupted = unlisted_ > 0;
    while (!queue.empty() && candidates_[queue.top()].bound_s <= bar()) {
      if (stops()) result_.interrupted = true;
      if (result_.interrupted) break;
      std::vector<std::size_t> round;
      while (round.size() < kRound && !queue.empty() && candidates_[queue.top()].bound_s <= bar()) {
        round.push_back(queue.top());
        queue.pop();
      }
      const double far = bar() < kNever ? kFarBelow * bar() : 0;
      arena_.execute([&] {
        tbb::parallel_for(std::size_t{0}, round.size(),
                          [&](std::size_t i) { look_closer(candidates_[round[i]], far); });
      });
      for (const std::size_t number : round) {
        if (candidates_[number].state == Candidate::State::replayed) {
          ++result_.replayed;
          events_ += candidates_[number].events;
          keep(number);
        } else {
          queue.push(number);
        }
      }
      if (options_.progress) options_.progress(result_.replayed, at_most());
    }
    result_.pruned = candidates_.size() + unlisted_ - result_.replayed;
  }
  /// How many will be replayed if no bar falls any more.
  [[nodiscard]] std::size_t at_most() const {
    const double now = bar();
    return static_cast<std::size_t>(std::ranges::count_if(candidates_, [&](const Candidate& c) {
      return c.state == Candidate::State::replayed || c.bound_s <= now;
    }));
  }
  void look_closer(Candidate& candidate, double far) const {
    if (stops()) return;
    const Scenario scenario = scenario_of(candidate);
    if (candidate.state == Candidate::State::planned || options_.exhaustive ||
        candidate.bound_s < far) {
      (void)replays(scenario, candidate);
      return;
    }
    const double bound = uncontended_step(scenario).base_units();
    candidate.bound_s = std::max(candidate.bound_s, bound);
    candidate.state = Candidate::State::planned;
  }

  /// Moves the plainest of those that tie with the fastest to the front: with the fastest that
  /// surely fits, where that is near enough to the fastest of all.
  void prefer_plain() {
    if (best_.empty()) return;
    result_.fastest_s = candidates_[best_.front()].step_s;
    slowest_tie_s_ = tie_s();
    const bool safe = safest_ && candidates_[*safest_].step_s <= (1 + kSafer) * result_.fastest_s;
    const double slowest = safe ? first_s() : slowest_tie_s_;
    std::size_t plainest = safe ? *safest_ : best_.front();
    std::vector<std::size_t> eligible;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& c = candidates_[i];
      if (c.state != Candidate::State::replayed) continue;
      if (c.step_s <= slowest_tie_s_) ++result_.ties;
      if (c.step_s > slowest || (safe && c.close)) continue;
      eligible.push_back(i);
      if (plainer(layouts_[c.layout], layouts_[candidates_[plainest].layout])) plainest = i;
    }
    if (options_.slow_end) {
      const std::size_t surest = surer(eligible, plainest);
      result_.surer = surest != plainest;
      plainest = surest;
    }
    const auto at = std::ranges::find(best_, plainest);
    if (at == best_.end()) {
      best_.insert(best_.begin(), plainest);
      best_.pop_back();
    } else {
      std::rotate(best_.begin(), at, at + 1);
    }
  }
  /// The plainest of those whose slow end ties with the nearest, where that is much nearer than the
  /// slow end of `plainest`; else that one.
  [[nodiscard]] std::size_t surer(const std::vector<std::size_t>& eligible,
                                  std::size_t plainest) const {
    std::vector<double> ends;
    double nearest = kNever, of_plainest = 0;
    for (const std::size_t i : eligible) {
      ends.push_back(candidates_[i].step_s * options_.slow_end(scenario_of(candidates_[i])));
      nearest = std::min(nearest, ends.back());
      if (i == plainest) of_plainest = ends.back();
    }
    if (!(nearest < (1 - kSurer) * of_plainest)) return plainest;
    std::optional<std::size_t> out;
    for (std::size_t i = 0; i < eligible.size(); ++i) {
      if (ends[i] > (1 + kTie) * nearest) continue;
      const Layout& layout = layouts_[candidates_[eligible[i]].layout];
      if (!out || plainer(layout, layouts_[candidates_[*out].layout])) out = eligible[i];
    }
    return *out;
  }
  void collect() {
    prefer_plain();
    for (const std::size_t number : best_) {
      result_.best.push_back(as_tuned(scenario_of(candidates_[number]), candidates_[number]));
      result_.best.back().ties = candidates_[number].step_s <= slowest_tie_s_;
    }
    if (!result_.own) return;
    result_.own->ties = own_s_ <= slowest_tie_s_;
    rank_own();
  }
  /// In the order of `best`: the layout that is put first comes before faster ones.
  void rank_own() {
    result_.own_rank_first = result_.own_rank_last = 1;
    const double first_s = best_.empty() ? kNever : candidates_[best_.front()].step_s;
    if (first_s == own_s_) return;
    std::size_t before = !best_.empty() && first_s > own_s_ ? 1 : 0, unknown = 0;
    for (const Candidate& c : candidates_) {
      if (c.state == Candidate::State::replayed) {
        before += c.step_s < own_s_ ? 1 : 0;
      } else {
        unknown += c.bound_s < own_s_ ? 1 : 0;
      }
    }
    result_.own_rank_first = before + 1;
    result_.own_rank_last = before + unknown + 1;
  }

  const Scenario& base_;
  const TuneOptions& options_;
  Scenario blank_;
  tbb::task_arena arena_;
  StepProgress watch_{};  ///< ends a replay under way when the search is to stop
  double own_s_ = kNever;
  std::uint64_t events_ = 0;  ///< of all replays
  double slowest_tie_s_ = kNever;
  std::vector<Layout> layouts_;
  std::size_t unlisted_ = 0;  ///< of these, not looked at before the search was to stop
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> best_;        ///< numbers of candidates, the fastest first
  std::optional<std::size_t> safest_{};  ///< the fastest that is not close in memory
  TuneResult result_;
};

}  // namespace

TuneResult tune(const Scenario& base, const TuneOptions& options) {
  assert(options.keep >= 1);
  require_equal(base, "lockstep tune");
  return Search(base, options).run();
}

}  // namespace lockstep
