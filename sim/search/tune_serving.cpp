#include "sim/search/tune_serving.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <utility>

#include "models/generation/serving_replica.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/scenario/serving_replica_spec.hpp"

namespace lockstep {
namespace {

using Pools = std::vector<ServingPool>;

constexpr std::size_t kServingRound = 16;
constexpr std::size_t kRefined = 3;   // best ways that are tried with other passes
constexpr double kLeastSpeed = 0.02;  // of the load: a way that does not take that is no way
constexpr std::array kPromptShares{0.125, 0.25, 0.375, 0.5, 0.625, 0.75};
constexpr std::array kPassTokens{1024, 2048, 4096, 8192, 16384};
constexpr std::array kSequences{32, 64, 128, 256, 512, 1024};

/// What tells ways apart.
std::vector<int> key_of(const Pools& pools) {
  std::vector<int> out;
  for (const ServingPool& p : pools) {
    const ServingEngine& e = *p.engine.serving;
    out.insert(out.end(), {p.replicas, p.tensor, p.pipeline, p.attention_data, p.expert,
                           e.pass_tokens, e.most_sequences, static_cast<int>(p.cluster_pool)});
  }
  return out;
}

class ServingTuner {
 public:
  ServingTuner(const ServingSpec& base, const ServingTuneOptions& options)
      : base_(base),
        options_(options),
        trials_(base, options.interrupted),
        rate_(arrival_rate(base)),
        arena_(options.threads > 0 ? options.threads : tbb::task_arena::automatic) {}

  ServingTune run() {
    out_.gpus = gpus_on(base_.pools.front().cluster_pool);
    if (unlike()) {
      out_.gpus += gpus_on(base_.pools.back().cluster_pool);
      look_on_both_kinds();
    } else {
      out_.layouts = serving_layouts(base_, base_.pools.front(), options_.space);
    }
    try_own();
    try_all(first_ways());
    try_all(refined_ways());
    out_.trials = trials_.count();
    out_.interrupted = trials_.stopped();
    std::erase_if(out_.best, [](const TunedService& s) { return s.score <= 0; });
    if (out_.best.size() > options_.keep) out_.best.resize(options_.keep);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool scales() const {
    return options_.goal == ServingGoal::goodput && base_.clients == 0;
  }

  /// Whether its pools are on nodes of two kinds.
  [[nodiscard]] bool unlike() const {
    return base_.pools.front().cluster_pool != base_.pools.back().cluster_pool;
  }

  /// GPUs that the scenario's pools have of a kind of node, at most all of them.
  [[nodiscard]] int gpus_on(std::size_t kind) const {
    const Cluster& cluster = base_.cluster;
    int sum = 0;
    for (const ServingPool& pool : base_.pools) {
      if (pool.cluster_pool == kind) sum += pool.replicas * pool.gpus();
    }
    const int most =
        cluster.pools.empty() ? cluster.gpus() : cluster.pools[kind].nodes * cluster.node.gpus;
    return std::min(sum, most);
  }

  /// Layouts of either pool, with its engine, on either kind.
  void look_on_both_kinds() {
    for (const std::size_t role : {0UL, 1UL}) {
      for (const std::size_t on : {0UL, 1UL}) {
        ServingPool like = base_.pools[role];
        like.cluster_pool = base_.pools[on].cluster_pool;
        FoundLayouts found = serving_layouts(base_, like, options_.space);
        out_.layouts.looked_at += found.looked_at;
        out_.layouts.refused += found.refused;
        out_.layouts.over_memory += found.over_memory;
        std::ranges::copy(found.pools, std::back_inserter(out_.layouts.pools));
        on_kinds_[role][on] = std::move(found.pools);
      }
    }
  }

  /// Where a score that is not above `floor` need not be exact.
  [[nodiscard]] TunedService score_of(const Pools& pools, double floor) const {
    TunedService out;
    if (!scales()) {
      out.trial = trials_.run(pools);
      out.score = options_.goal == ServingGoal::throughput ? out.trial.report.figures.output_per_s
                                                           : out.trial.report.goodput;
      return out;
    }
    const double least = std::max(kLeastSpeed, floor / rate_);
    const double speed = greatest_that_keeps(least, floor > 0 ? least : guess_, [&](double at) {
      ServingTrial trial = trials_.run_steady(pools, at);
      const bool kept = trial.kept;
      if (kept) out.trial = std::move(trial);
      return kept;
    });
    out.score = speed * rate_;
    if (speed == 0) out.trial.pools = pools;
    return out;
  }

  void try_own() {
    for (const ServingPool& pool : base_.pools) {
      if (layout_problem(pool, base_.model)) return;
      if (ServingReplica(replica_spec(pool, base_)).cache_tokens() < 1) return;
    }
    out_.by_own.push_back(score_of(base_.pools, 0));
    if (out_.by_own.back().score > 0 && rate_ > 0) guess_ = out_.by_own.back().score / rate_;
  }

  /// What a way has to exceed to be among the best.
  [[nodiscard]] double bar() const {
    const std::size_t keep = std::max(options_.keep, kRefined);
    return out_.best.size() < keep ? 0 : out_.best[keep - 1].score;
  }

  void try_all(const std::vector<Pools>& ways) {
    for (std::size_t begin = 0; begin < ways.size() && !trials_.stopped(); begin += kServingRound) {
      const std::size_t count = std::min(kServingRound, ways.size() - begin);
      std::vector<TunedService> round(count);
      const double floor = bar();
      arena_.execute([&] {
        tbb::parallel_for(std::size_t{0}, count,
                          [&](std::size_t i) { round[i] = score_of(ways[begin + i], floor); });
      });
      out_.ways += count;
      for (TunedService& service : round) out_.best.push_back(std::move(service));
      std::ranges::stable_sort(out_.best, [](const TunedService& a, const TunedService& b) {
        return a.score > b.score;
      });
      const std::size_t keep = std::max(options_.keep, kRefined);
      if (out_.best.size() > keep) out_.best.resize(keep);
      if (options_.progress) options_.progress(begin + count, ways.size());
    }
  }

  void add(Pools pools, std::vector<Pools>& out) {
    if (seen_.insert(key_of(pools)).second) out.push_back(std::move(pools));
  }

  /// Two pools of these layouts with so many replicas.
  void add_two(ServingPool prompts, int of_prompts, ServingPool decode, int of_decode,
               std::vector<Pools>& out) {
    if (of_prompts < 1 || of_decode < 1) return;
    prompts.name = "prefill";
    prompts.replicas = of_prompts;
    decode.name = "decode";
    decode.replicas = of_decode;
    add({std::move(prompts), std::move(decode)}, out);
  }

  /// With so many replicas for prompts, and the other pool on the rest.
  void add_split(const ServingPool& prompts, const ServingPool& decode, int replicas,
                 std::vector<Pools>& out) {
    const int left = (out_.gpus - replicas * prompts.gpus()) / decode.gpus();
    add_two(prompts, replicas, decode, left, out);
  }

  /// Prompts on one kind and decoding on the other, either way round, each on all of its GPUs.
  [[nodiscard]] std::vector<Pools> ways_on_two_kinds() {
    std::vector<Pools> out;
    const auto replicas = [&](const ServingPool& of) {
      return gpus_on(of.cluster_pool) / of.gpus();
    };
    for (const std::size_t on : {0UL, 1UL}) {
      for (const ServingPool& prompts : on_kinds_[0][on]) {
        for (const ServingPool& decode : on_kinds_[1][1 - on]) {
          add_two(prompts, replicas(prompts), decode, replicas(decode), out);
        }
      }
    }
    return out;
  }

  [[nodiscard]] std::vector<Pools> first_ways() {
    if (unlike()) return ways_on_two_kinds();
    std::vector<Pools> out;
    const Pools& layouts = out_.layouts.pools;
    const bool one_pool = options_.one_pool && base_.cluster.pools.empty();
    for (ServingPool pool : layouts) {
      if (!one_pool || pool.gpus() > out_.gpus) continue;
      pool.name = "both";
      pool.replicas = out_.gpus / pool.gpus();
      add({std::move(pool)}, out);
    }
    if (!options_.two_pools) return out;
    for (const double share : kPromptShares) {
      for (const ServingPool& prompts : layouts) {
        for (const ServingPool& decode : layouts) {
          add_split(prompts, decode, static_cast<int>(share * out_.gpus / prompts.gpus()), out);
        }
      }
    }
    return out;
  }

  [[nodiscard]] std::vector<Pools> refined_ways() {
    std::vector<Pools> out;
    for (std::size_t b = 0; b < std::min(kRefined, out_.best.size()); ++b) {
      const Pools pools = out_.best[b].trial.pools;
      if (pools.size() == 2 && !unlike()) {
        for (const int more : {-1, 1}) {
          add_split(pools[0], pools[1], pools[0].replicas + more, out);
        }
      }
      const auto with = [&](int ServingEngine::* of, int value) {
        Pools changed = pools;
        for (ServingPool& pool : changed) (*pool.engine.serving).*of = value;
        add(std::move(changed), out);
      };
      if (options_.space.pass_tokens.empty()) {
        for (const int tokens : kPassTokens) with(&ServingEngine::pass_tokens, tokens);
      }
      if (options_.space.most_sequences.empty()) {
        for (const int most : kSequences) with(&ServingEngine::most_sequences, most);
      }
    }
    return out;
  }

  const ServingSpec& base_;
  const ServingTuneOptions& options_;
  ServingTrials trials_;
  double rate_;
  double guess_ = 1;  ///< of the speed that a way keeps
  tbb::task_arena arena_;
  std::set<std::vector<int>> seen_;
  std::array<std::array<Pools, 2>, 2> on_kinds_;  ///< layouts by pool, and by whose kind of node
  ServingTune out_;
};

}  // namespace

double arrival_rate(const ServingSpec& spec) {
  if (spec.clients > 0 || spec.requests.size() < 2) return 0;
  const std::size_t coming = spec.coming > 0 ? spec.coming : spec.requests.size();
  const Seconds span =
      to_seconds(spec.requests[coming - 1].arrival - spec.requests.front().arrival);
  if (span <= Seconds{}) return 0;
  if (spec.drawn != nullptr) return spec.drawn->rate;
  const double turns = static_cast<double>(spec.requests.size()) / static_cast<double>(coming);
  return turns * static_cast<double>(coming - 1) / span.base_units();
}

ServingTune tune_serving(const ServingSpec& base, const ServingTuneOptions& options) {
  return ServingTuner(base, options).run();
}

}  // namespace lockstep
