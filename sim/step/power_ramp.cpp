#include "sim/step/power_ramp.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "sim/step/slice_energy.hpp"

namespace lockstep {
namespace {

constexpr int kClocks = 13;

/// A pass under a cap: how much longer its kernels take, and what they spend above `active`.
struct CappedPass {
  Watts cap;
  Seconds longer;
  Joules above;
};

/// A scenario whose cards are capped so that the clock of products goes so much of the way from
/// full to the lowest.
struct CappedStep {
  Scenario scenario;
  StepPlan plan;
  std::deque<SliceEnergy> energies;  ///< by pool

  CappedStep(const Scenario& of, double share) : scenario(capped_to(of, share)) {
    plan = plan_step(scenario);
    for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
      energies.emplace_back(scenario, plan, std::span<const TimelineSlice>{}, 0, pool);
    }
  }

 private:
  static Scenario capped_to(Scenario scenario, double share) {
    const auto cap = [share](GpuSpec& gpu) {
      const GpuPowerConstants& c = *gpu.power;
      const double clock = 1 - share * (1 - c.lowest_clock);
      const Watts above = std::pow(clock, c.clock_exponent) * (product_power(gpu) - c.active);
      gpu = capped(gpu, std::min(gpu.power_limit, std::max(lowest_cap(gpu), c.active + above)));
    };
    cap(scenario.node.gpu);
    for (NodePool& pool : scenario.pools) cap(pool.node.gpu);
    return scenario;
  }
};

/// Kernels of the first such pass of a stage.
StepTime kernel_time(const StagePlan& stage, Pass pass, int chunk) {
  StepTime sum;
  const auto item = std::ranges::find_if(stage.items, [&](const ProgramItem& i) {
    return i.work.pass == pass && i.work.chunk == chunk;
  });
  if (item == stage.items.end()) return sum;
  for (std::uint32_t i = 0; i < item->segments; ++i) {
    sum += stage.segments[item->first_segment + i].compute;
  }
  return sum;
}

/// What passes cost under caps, each looked up once.
class CappedPasses {
 public:
  CappedPasses(const Scenario& scenario, const StepPlan& plan) : scenario_(scenario), plan_(plan) {
    for (int i = 1; i < kClocks; ++i) {
      steps_.emplace_back(scenario, static_cast<double>(i) / (kClocks - 1));
    }
  }

  /// From the highest cap down.
  const std::vector<CappedPass>& of(const TimelineSlice& s, int replica, const StagePlan& stage) {
    const auto [at, is_new] =
        known_.try_emplace(std::tuple(plan_.variant(replica), stage.stage, s.kind, s.chunk));
    if (!is_new) return at->second;
    const auto pass = static_cast<Pass>(s.kind);
    const StepTime alone = kernel_time(stage, pass, s.chunk);
    for (const CappedStep& step : steps_) {
      const StagePlan& there = step.plan.place(replica, stage.stage);
      const StepTime takes = kernel_time(there, pass, s.chunk);
      at->second.push_back({.cap = step.scenario.node_of(stage.pool).gpu.power_limit,
                            .longer = to_seconds(takes > alone ? takes - alone : StepTime{}),
                            .above = sum(step.energies[stage.pool].pass(pass, s.chunk, there))});
    }
    return at->second;
  }

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }

 private:
  const Scenario& scenario_;
  const StepPlan& plan_;
  std::deque<CappedStep> steps_;
  std::map<std::tuple<std::uint32_t, int, std::uint8_t, std::int32_t>, std::vector<CappedPass>>
      known_;
};

/// What a GPU asks for while some slices of its actor go on.
struct CardDemand {
  ByGpuPart<Watts> rates{};  ///< at full pace, within the card's limit
  double target = 0;         ///< W: what it goes to; a floor where that is more
  RampLaw law;
};

class CardDemands {
 public:
  CardDemands(const Scenario& scenario, const StepPlan& plan, const StepReport& report,
              std::span<const TimelineSlice> timeline)
      : floor_(scenario.power->smoothing.floor), passes_(scenario, plan) {
    for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
      energies_.emplace_back(scenario, plan, timeline, report.actors.size(), pool);
    }
  }

  CardDemand of(const std::vector<const TimelineSlice*>& slices, int replica,
                const StagePlan& stage) {
    const GpuSpec& gpu = passes_.scenario().node_of(stage.pool).gpu;
    CardDemand out;
    out.rates[0] = gpu.power->active;
    const TimelineSlice* pass = nullptr;
    Watts beside, kernels;  // above `active`, of what is no pass, and of the pass
    for (const TimelineSlice* s : slices) {
      const ByGpuPart<Joules> spent = energies_[stage.pool].of(*s, stage);
      const Seconds length{SliceEnergy::length(*s)};
      for (std::size_t p = 1; p < kGpuParts; ++p) out.rates[p] += spent[p] / length;
      const bool kernel = SliceEnergy::is_pass(*s) && pass == nullptr;
      if (kernel) pass = s;
      (kernel ? kernels : beside) += sum(spent) / length;
    }
    out.rates = clipped(out.rates, gpu.power_limit);
    const double asks = sum(out.rates).base_units();
    out.target = std::max(asks, floor_.base_units());
    const double standing = gpu.power->active.base_units();
    if (asks <= standing) return out;
    out.law.push_back({asks, 1});
    if (pass != nullptr) {
      const Seconds length{SliceEnergy::length(*pass)};
      for (const CappedPass& c : passes_.of(*pass, replica, stage)) {
        const Seconds takes = length + c.longer;
        const double pace = length / takes;
        const Watts power = std::min(c.cap, gpu.power->active + c.above / takes + pace * beside);
        const PacePower& faster = out.law.back();
        if (pace >= faster.pace || power.base_units() <= standing) continue;
        out.law.push_back({std::min(power.base_units(), faster.watts), pace});
      }
    }
    out.law.push_back({standing, 0});
    std::ranges::reverse(out.law);
    return out;
  }

 private:
  Watts floor_;
  std::deque<SliceEnergy> energies_;
  CappedPasses passes_;
};

/// The piece of a law that begins at that power or below it; a step up in pace is taken at once.
std::size_t ramp_piece(const RampLaw& law, double watts) {
  std::size_t i = 0;
  while (i + 2 < law.size() && law[i + 1].watts <= watts) ++i;
  return i;
}

struct RampPace {
  double now = 1;
  double gain = 0;   ///< per W
  double until = 0;  ///< W: the end of the piece
};
RampPace ramp_pace(const RampLaw& law, double watts) {
  const std::size_t i = ramp_piece(law, watts);
  const PacePower &low = law[i], &high = law[i + 1];
  const double width = high.watts - low.watts;
  if (width <= 0) return {high.pace, 0, high.watts};
  const double gain = (high.pace - low.pace) / width;
  return {low.pace + gain * std::max(0.0, watts - low.watts), gain, high.watts};
}

/// Goes through the step again and again until it repeats.
class RampWalk {
 public:
  RampWalk(const Scenario& scenario, const StepPlan& plan, const StepReport& report,
           std::span<const TimelineSlice> timeline)
      : plan_(plan),
        report_(report),
        slope_(scenario.power->smoothing.ramp_w_per_s),
        end_(to_step_time(Seconds{report.step_s})),
        demands_(scenario, plan, report, timeline),
        cards_(report.actors.size()) {
    for (const TimelineSlice& s : timeline) {
      if (s.end <= s.start) continue;
      changes_.push_back({s.start, &s, true});
      changes_.push_back({s.end, &s, false});
    }
    std::ranges::stable_sort(changes_, [](const Change& a, const Change& b) {
      return std::tuple(a.at.ps, a.slice->actor) < std::tuple(b.at.ps, b.slice->actor);
    });
  }

  HeldRamps run() {
    begin_at_mean();
    constexpr int kMostSteps = 2000;
    for (int i = 0; i < kMostSteps; ++i) {
      const std::vector<double> before = powers();
      step();
      if (same(before, powers())) break;
    }
    recording_ = true;
    step();
    return close();
  }

 private:
  struct Change {
    StepTime at;
    const TimelineSlice* slice;
    bool begins;
  };
  struct Card {
    std::vector<const TimelineSlice*> slices;
    CardDemand demand;
    double watts = 0;        ///< at `since`
    double since = 0;        ///< s, of the held step
    double asked_since = 0;  ///< s, of the step as asked
    HeldCard sums;
  };
  struct Bend {
    double s, slope;  ///< W/s by which the line of all GPUs gets steeper there
  };

  [[nodiscard]] double power_of(const Card& card) const {
    const double moved = slope_ * (now_ - card.since);
    return card.watts < card.demand.target ? std::min(card.demand.target, card.watts + moved)
                                           : std::max(card.demand.target, card.watts - moved);
  }
  [[nodiscard]] std::vector<double> powers() const {
    std::vector<double> out;
    for (const Card& card : cards_) out.push_back(power_of(card));
    return out;
  }
  static bool same(const std::vector<double>& a, const std::vector<double>& b) {
    constexpr double kSame = 1e-12;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::abs(a[i] - b[i]) > kSame * a[i]) return false;
    }
    return true;
  }
  [[nodiscard]] const StagePlan& stage_of(std::size_t actor) const {
    return plan_.place(report_.actors[actor].replica, report_.actors[actor].stage);
  }
  [[nodiscard]] double gpus_of(std::size_t actor) const {
    return static_cast<double>(report_.actors[actor].copies) * plan_.placement.tensor;
  }

  /// Of what each would draw at full pace.
  void begin_at_mean() {
    std::vector<double> joules(cards_.size()), since(cards_.size());
    const auto settle = [&](std::size_t a, double until) {
      joules[a] += cards_[a].demand.target * (until - since[a]);
      since[a] = until;
    };
    for (std::size_t a = 0; a < cards_.size(); ++a) demand_again(a);
    each_change([&](std::size_t a, StepTime at) { settle(a, to_seconds(at).base_units()); },
                [](StepTime) {});
    for (std::size_t a = 0; a < cards_.size(); ++a) {
      settle(a, report_.step_s);
      cards_[a].watts = joules[a] / report_.step_s;
    }
  }
  void demand_again(std::size_t a) {
    cards_[a].demand = demands_.of(cards_[a].slices, report_.actors[a].replica, stage_of(a));
  }
  /// Calls `before(actor, at)` before what an actor does changes, `advance(at)` before any does.
  template <class Before, class Advance>
  void each_change(Before before, Advance advance) {
    for (std::size_t i = 0; i < changes_.size();) {
      const StepTime at = changes_[i].at;
      advance(at);
      while (i < changes_.size() && changes_[i].at == at) {
        const std::uint32_t a = changes_[i].slice->actor;
        before(a, at);
        for (; i < changes_.size() && changes_[i].at == at && changes_[i].slice->actor == a; ++i) {
          if (changes_[i].begins)
            cards_[a].slices.push_back(changes_[i].slice);
          else
            std::erase(cards_[a].slices, changes_[i].slice);
        }
        demand_again(a);
      }
    }
  }

  void step() {
    for (Card& card : cards_) {
      card.watts = power_of(card);
      card.since = card.asked_since = 0;
      card.sums = {};
      card.sums.peak = card.sums.trough = Watts{card.watts};
    }
    now_ = late_ = asked_ = 0;
    times_ = {{StepTime{}, 0}};
    bends_.clear();
    first_watts_ = 0;
    for (std::size_t a = 0; a < cards_.size(); ++a) first_watts_ += gpus_of(a) * cards_[a].watts;
    each_change([&](std::size_t a, StepTime) { settle(a); }, [&](StepTime at) { advance(at); });
    advance(end_);
    for (std::size_t a = 0; a < cards_.size(); ++a) settle(a);
  }

  /// All go on to that time of the step as asked.
  void advance(StepTime to) {
    const double until = to_seconds(to).base_units();
    double left = until - asked_;
    if (left <= 0) return;
    std::vector<const Card*> rising;
    for (const Card& card : cards_) {
      if (!card.demand.law.empty() && power_of(card) < card.demand.law.back().watts) {
        rising.push_back(&card);
      }
    }
    while (left > 0 && !rising.empty()) left = advance_piece(left, rising);
    asked_ = until;
    now_ = until + late_;
    times_.push_back({to, late_});
  }

  /// Of them the slowest sets the pace until another does, or its law bends. Returns what is left.
  double advance_piece(double left, std::vector<const Card*>& rising) {
    constexpr double kShortest = 1e-13;  // s: what rounding may leave before a bend
    constexpr double kNear = 1e-13;
    struct Seen {
      double pace, gain;
    };
    std::vector<Seen> seen;
    Seen slowest{1, 0};
    double next = std::numeric_limits<double>::infinity();
    std::erase_if(rising, [&](const Card* card) {
      const double watts = power_of(*card);
      const RampLaw& law = card->demand.law;
      if (watts >= law.back().watts * (1 - kNear)) return true;
      const RampPace pace = ramp_pace(law, watts * (1 + kNear));
      const Seen one{std::min(1.0, pace.now), pace.gain * slope_};
      seen.push_back(one);
      next = std::min(next, (pace.until - watts) / slope_);
      if (std::tuple(one.pace, one.gain) < std::tuple(slowest.pace, slowest.gain)) slowest = one;
      return false;
    });
    if (rising.empty()) return left;
    for (const Seen& other : seen) {
      if (other.gain < slowest.gain && other.pace > slowest.pace) {
        next = std::min(next, (other.pace - slowest.pace) / (slowest.gain - other.gain));
      }
    }
    // pace t + gain t^2 / 2 = left
    const double root = std::sqrt(slowest.pace * slowest.pace + 2 * slowest.gain * left);
    const double finish = 2 * left / (slowest.pace + root);
    next = std::max(next, kShortest);
    const double takes = std::min(finish, next);
    // Where a step of rounding is longer than the piece, work is no faster than at full pace.
    const double most = takes * (slowest.pace + slowest.gain * takes / 2);
    const double done = finish <= next ? left : std::min(takes, most);
    late_ += std::max(0.0, takes - done);
    asked_ += done;
    now_ += takes;
    return finish <= next ? 0 : left - done;
  }

  /// What a card has drawn since its demand changed.
  void settle(std::size_t a) {
    Card& card = cards_[a];
    const double target = card.demand.target, from = card.watts, to = power_of(card);
    const double time = now_ - card.since;
    const double moves = std::min(time, std::abs(target - from) / slope_);
    const Joules spent{moves * (from + to) / 2 + (time - moves) * to};
    card.sums.energy += spent;
    card.sums.peak = std::max(card.sums.peak, Watts{to});
    card.sums.trough = std::min(card.sums.trough, Watts{to});
    share_out(card, spent, Seconds{time}, Seconds{asked_ - card.asked_since});
    if (recording_ && moves > 0 && from != target) {
      const double slope = gpus_of(a) * (target > from ? slope_ : -slope_);
      bends_.push_back({card.since, slope});
      bends_.push_back({card.since + moves, -slope});
    }
    card.watts = to;
    card.since = now_;
    card.asked_since = asked_;
  }
  /// Work spends what it does at full pace, less where there is less, as voltage is lower at a
  /// lower clock; what is left is burnt.
  static void share_out(Card& card, Joules spent, Seconds time, Seconds asked) {
    const ByGpuPart<Watts>& rates = card.demand.rates;
    const Joules fixed = std::min(spent, rates[0] * time);
    Joules work;
    for (std::size_t p = 1; p < kGpuParts; ++p) work += rates[p] * asked;
    const Joules left = spent - fixed;
    const double share = work > left ? left.base_units() / work.base_units() : 1.0;
    card.sums.parts[0] += fixed;
    for (std::size_t p = 1; p < kGpuParts; ++p) card.sums.parts[p] += share * (rates[p] * asked);
    card.sums.parts[kGpuParts - 1] += left - share * work;
  }

  HeldRamps close() {
    HeldRamps out{.late_s = late_, .times = times_, .cards = {}, .series = {}};
    for (const Card& card : cards_) out.cards.push_back(card.sums);
    std::ranges::stable_sort(bends_, {}, &Bend::s);
    double slope = 0;
    PowerCorner at{0, first_watts_};
    out.series.push_back(at);
    for (std::size_t i = 0; i < bends_.size();) {
      const double s = std::min(bends_[i].s, now_);
      if (s > at.s) {
        at = {s, at.watts + slope * (s - at.s)};
        out.series.push_back(at);
      }
      for (; i < bends_.size() && std::min(bends_[i].s, now_) == s; ++i) slope += bends_[i].slope;
    }
    double last = 0;
    for (std::size_t a = 0; a < cards_.size(); ++a) last += gpus_of(a) * cards_[a].watts;
    if (now_ > at.s) out.series.push_back({now_, last});
    return out;
  }

  const StepPlan& plan_;
  const StepReport& report_;
  double slope_;  ///< W/s
  StepTime end_;
  CardDemands demands_;
  std::vector<Card> cards_;  ///< by actor
  std::vector<Change> changes_;
  double now_ = 0, late_ = 0, asked_ = 0;  ///< s: of the held step; behind; of the step as asked
  bool recording_ = false;
  std::vector<HeldTime> times_;
  std::vector<Bend> bends_;
  double first_watts_ = 0;
};

}  // namespace

double pace_at(const RampLaw& law, double watts) {
  if (law.empty() || watts >= law.back().watts) return 1;
  return std::min(1.0, ramp_pace(law, watts).now);
}

StepTime HeldRamps::when(StepTime asked) const {
  const auto after = std::ranges::upper_bound(times, asked, {}, &HeldTime::asked);
  assert(after != times.begin());
  const HeldTime& from = *std::prev(after);
  double late = from.late_s;
  if (after != times.end()) {
    const double share = to_seconds(asked - from.asked) / to_seconds(after->asked - from.asked);
    late += share * (after->late_s - from.late_s);
  }
  return asked + to_step_time(Seconds{late});
}

HeldRamps hold_ramps(const Scenario& scenario, const StepPlan& plan, const StepReport& report,
                     std::span<const TimelineSlice> timeline) {
  assert(scenario.power && scenario.power->smoothing.ramp_w_per_s > 0);
  assert(!report.actors.empty() && !timeline.empty());
  return RampWalk(scenario, plan, report, timeline).run();
}

}  // namespace lockstep
