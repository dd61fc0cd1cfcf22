#include "sim/search/size_serving.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>

namespace lockstep {
namespace {

using Pools = std::vector<ServingPool>;

/// Whether `a` serves with fewer GPUs, or as many and faster.
bool is_better(const ServingTrial& a, const ServingTrial& b) {
  if (a.gpus() != b.gpus()) return a.gpus() < b.gpus();
  return a.report.figures.e2e_s.mean < b.report.figures.e2e_s.mean;
}

/// Looks for the least replicas of one pool after the other layout, beside pools that stay.
class PoolSizer {
 public:
  /// What was `found` before stays unless a layout takes less.
  PoolSizer(const ServingTrials& trials, Pools beside, SizedService found = {})
      : trials_(trials), beside_(std::move(beside)), out_(std::move(found)) {
    for (const ServingPool& pool : beside_) taken_ += pool.replicas * pool.gpus();
  }

  void look_at(const ServingPool& layout) {
    ++out_.layouts;
    const int most_gpus = out_.possible ? out_.best.gpus() : trials_.base().cluster.gpus();
    const int most = (most_gpus - taken_) / layout.gpus();
    std::map<int, ServingTrial> tried;
    const auto keeps = [&](int replicas) {
      const auto known = tried.find(replicas);
      if (known != tried.end()) return known->second.kept;
      Pools pools = beside_;
      pools.push_back(layout);
      pools.back().replicas = replicas;
      ++out_.trials;
      return tried.emplace(replicas, trials_.run_steady(pools)).first->second.kept;
    };
    const int least = least_that_keeps(most, out_.possible, keeps);
    if (least == 0) return;
    ServingTrial& found = tried.at(least);
    if (out_.possible && !is_better(found, out_.best)) return;
    out_.possible = true;
    out_.best = std::move(found);
  }

  [[nodiscard]] SizedService take() {
    out_.interrupted = trials_.stopped();
    return std::move(out_);
  }

 private:
  const ServingTrials& trials_;
  Pools beside_;
  int taken_ = 0;
  SizedService out_;
};

Pools named(Pools layouts, std::string_view name) {
  for (ServingPool& pool : layouts) pool.name = name;
  return layouts;
}

/// The load as the pool for prompts sees it: each request ends with its first token, which must be
/// there in time.
void end_with_first_tokens(ServingSpec& spec) {
  for (ServedRequest& r : spec.requests) r.output = 1;
}
ServingSpec prompts_alone(ServingSpec spec) {
  end_with_first_tokens(spec);
  ServingObjectives& o = spec.objectives;
  const auto at = [](ServedTime time) {
    return static_cast<std::size_t>(time) * kLimitedPercents.size();
  };
  bool first = o.ttft.has_value();
  for (std::size_t p = 0; p < kLimitedPercents.size(); ++p) {
    first = first || o.quantiles[at(ServedTime::ttft) + p];
  }
  if (!first) o.ttft = o.e2e;
  for (std::size_t p = 0; p < kLimitedPercents.size(); ++p) {
    auto& ttft = o.quantiles[at(ServedTime::ttft) + p];
    if (!first) ttft = o.quantiles[at(ServedTime::e2e) + p];
    for (const ServedTime time : {ServedTime::tpot, ServedTime::itl, ServedTime::e2e}) {
      o.quantiles[at(time) + p].reset();
    }
  }
  o.tpot.reset();
  o.e2e.reset();
  return spec;
}

}  // namespace

SizedService size_one_pool(const ServingTrials& trials, const Pools& layouts) {
  PoolSizer sizer(trials, {});
  for (const ServingPool& layout : named(layouts, "both")) {
    if (trials.stopped()) break;
    sizer.look_at(layout);
  }
  return sizer.take();
}

namespace {

/// Decoding beside the pool for prompts, which has up to four replicas more than its own limit
/// takes: what is asked of whole requests may need prompts to be done sooner, and where they are,
/// decoding may take less. What was found before stays unless this takes less.
void size_beside(const ServingTrials& trials, const ServingPool& prompts, const Pools& layouts,
                 SizedService& found) {
  for (const int more : {0, 1, 2, 4}) {
    if (found.interrupted) return;
    Pools beside = named({prompts}, "prefill");
    beside[0].replicas += more;
    PoolSizer sizer(trials, beside, std::move(found));
    for (const ServingPool& layout : named(layouts, "decode")) {
      if (trials.stopped()) break;
      sizer.look_at(layout);
    }
    found = sizer.take();
  }
}

/// The least replicas of each layout that keep what prompts alone are asked for, those with the
/// least GPUs first.
Pools sized_prompts(const ServingTrials& trials, const Pools& layouts, int& count) {
  const ServingSpec alone = prompts_alone(trials.base());
  const ServingTrials prompts(alone, [&] { return trials.stopped(); }, end_with_first_tokens);
  Pools out;
  for (const ServingPool& layout : layouts) {
    const SizedService sized = size_one_pool(prompts, {layout});
    count += sized.trials;
    if (sized.possible) out.push_back(sized.best.pools.front());
  }
  std::ranges::stable_sort(out, {},
                           [](const ServingPool& pool) { return pool.replicas * pool.gpus(); });
  return out;
}

}  // namespace

SizedService size_two_pools(const ServingTrials& trials, const Pools& layouts) {
  SizedService out;
  int prompts = 0;
  // The layout that takes least for prompts may leave decoding too little, in time or GPUs.
  for (const ServingPool& first : sized_prompts(trials, layouts, prompts)) {
    if (trials.stopped()) break;
    size_beside(trials, first, layouts, out);
  }
  out.layouts = static_cast<int>(layouts.size());
  out.trials += prompts;
  out.interrupted = trials.stopped();
  return out;
}

double share_up(const ServingPool& pool, int spares, const ServingFailures& failures) {
  const double down = failures.repair /
                      (failures.repair + failures.gpu_mean_time / static_cast<double>(pool.gpus()));
  const int all = pool.replicas + spares;
  // Of a binomial law, term by term.
  double term = std::pow(1 - down, all), up = term;
  for (int k = 1; k <= spares; ++k) {
    term *= down / (1 - down) * (all - k + 1) / k;
    up += term;
  }
  return up;
}

namespace {

constexpr int kMostSpares = 10'000;

/// The least with which the pool has enough replicas up in the share.
int least_spares(const ServingPool& pool, double share, const ServingFailures& failures) {
  int spares = 0;
  while (spares < kMostSpares && share_up(pool, spares, failures) < share) ++spares;
  return spares;
}

}  // namespace

std::vector<int> spare_replicas(const std::vector<ServingPool>& pools,
                                const ServingFailures& failures) {
  assert(pools.size() == 1 || pools.size() == 2);
  const int least = least_spares(pools[0], failures.share, failures);
  if (pools.size() == 1) return {least};
  // The more spares the first has, the more of the time is left for the second to be short in.
  std::vector<int> best{least, kMostSpares};
  int best_gpus = best[0] * pools[0].gpus() + best[1] * pools[1].gpus();
  for (int first = least; first <= kMostSpares; ++first) {
    if (first * pools[0].gpus() >= best_gpus) break;
    const double left = failures.share / share_up(pools[0], first, failures);
    if (left >= 1) continue;
    const int second = least_spares(pools[1], left, failures);
    if (second == kMostSpares) break;  // it is hardly ever up, whatever the first has
    const int gpus = first * pools[0].gpus() + second * pools[1].gpus();
    if (gpus >= best_gpus) continue;
    best = {first, second};
    best_gpus = gpus;
  }
  return best;
}

}  // namespace lockstep
