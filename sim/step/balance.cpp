#include "sim/scenario/balance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "models/layer/memory.hpp"
#include "models/pipeline/schedule.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/scenario/scenario_rules.hpp"
#include "sim/scenario/unequal_rules.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/stage_times.hpp"

namespace lockstep {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// What the layers of a stage cost, and how many it can hold.
class StageSplit {
 public:
  explicit StageSplit(const Scenario& s) : scenario_(s), times_(s) {
    const Placement placement{placement_spec(s)};
    const auto stages = static_cast<std::size_t>(s.job.parallelism.pipeline);
    pools_.resize(stages);
    for (const ReplicaVariant& variant : replica_variants(s, placement).list) {
      for (std::size_t i = 0; i < stages; ++i) pools_[i].insert(variant.pools[i]);
    }
    slow_.assign(stages, 1.0);
    for (const Straggler& straggler : s.stragglers) {
      double& slow = slow_[static_cast<std::size_t>(placement.coordinates(straggler.gpu).pipeline)];
      slow = std::max(slow, straggler.slowdown);
    }
    for (int i = 1; i < s.job.model.layers; ++i) {
      alike_ = alike_ && s.job.kind(i) == s.job.kind(0);
    }
  }

  /// Of the slowest replica.
  [[nodiscard]] double seconds(std::size_t stage, int first, int end) const {
    double slowest = 0;
    for (const std::uint32_t pool : pools_[stage]) {
      slowest = std::max(slowest,
                         times_.seconds(pool, first, end, stage == 0, stage + 1 == pools_.size()));
    }
    return slow_[stage] * slowest;
  }

  /// The last of the layers from `first` on that fit; below `first`: not even none do.
  [[nodiscard]] int last_that_fits(std::size_t stage, int first) {
    if (!alike_) return first + layers_that_fit(stage, first);
    const auto [it, is_new] = known_.try_emplace(stage, 0);
    if (is_new) it->second = layers_that_fit(stage, stage == 0 ? 0 : first);
    return std::min(first + it->second, scenario_.job.model.layers);
  }

 private:
  [[nodiscard]] int layers_that_fit(std::size_t stage, int first) const {
    int fit = -1, too_many = scenario_.job.model.layers - first + 1;
    while (too_many - fit > 1) {
      const int middle = (fit + too_many) / 2;
      (fits(stage, first, middle) ? fit : too_many) = middle;
    }
    return fit;
  }
  [[nodiscard]] bool fits(std::size_t stage, int first, int layers) const {
    TrainingJob job = scenario_.job;
    std::vector<int>& split = job.parallelism.layers_per_stage;
    split.assign(pools_.size(), 0);
    const int rest = job.model.layers - first - layers;
    split[stage] = layers;
    (stage == 0 ? split.back() : split.front()) += stage == 0 ? rest : first;
    if (stage > 0 && stage + 1 < split.size()) split.back() += rest;
    const Bytes needed = peak_memory(job, scenario_.stack, static_cast<int>(stage)).needed();
    return std::ranges::all_of(pools_[stage], [&](std::uint32_t pool) {
      return needed <= usable_memory(scenario_.node_of(pool).gpu, scenario_.stack);
    });
  }

  const Scenario& scenario_;
  StageTimes times_;
  std::vector<std::set<std::uint32_t>> pools_;  ///< by stage
  std::vector<double> slow_;                    ///< by stage: of its slowest GPU
  bool alike_ = true;                           ///< all layers are of one kind
  std::map<std::size_t, int> known_;            ///< by stage, where they are
};

/// Cuts the layers into stages so that `join` of the stages' costs, from 0 on, is least. Empty:
/// nothing fits.
template <class Cost, class Join>
std::vector<int> cut_layers(int layers, std::size_t stages, int least, const Cost& cost,
                            const Join& join, double& total) {
  const auto width = static_cast<std::size_t>(layers) + 1;
  std::vector<double> before(width, kImpossible);
  before[0] = 0;
  std::vector<std::vector<int>> from(stages, std::vector<int>(width, -1));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::vector<double> after(width, kImpossible);
    for (int first = 0; first <= layers; ++first) {
      const double so_far = before[static_cast<std::size_t>(first)];
      if (so_far == kImpossible) continue;
      for (int end = first + least; end <= layers; ++end) {
        const double here = cost(stage, first, end);
        if (here == kImpossible) break;
        const double sum = join(so_far, here);
        if (sum >= after[static_cast<std::size_t>(end)]) continue;
        after[static_cast<std::size_t>(end)] = sum;
        from[stage][static_cast<std::size_t>(end)] = first;
      }
    }
    before = std::move(after);
  }
  total = before.back();
  if (total == kImpossible) return {};
  std::vector<int> split(stages);
  int end = layers;
  for (std::size_t stage = stages; stage-- > 0;) {
    const int first = from[stage][static_cast<std::size_t>(end)];
    split[stage] = end - first;
    end = first;
  }
  return split;
}

/// Replicas that take equally long.
struct Pace {
  double slowest = 0;  ///< stage, a micro batch
  double others = 0;   ///< stages together
  friend auto operator<=>(const Pace&, const Pace&) = default;
};

/// Of each group of `span` replicas: that of its slowest.
std::vector<Pace> paces(const Scenario& s, int span) {
  const Placement placement{placement_spec(s)};
  const auto stages = static_cast<std::size_t>(s.job.parallelism.pipeline);
  const StageTimes times(s);
  const ReplicaVariants variants = replica_variants(s, placement);
  std::map<int, std::vector<double>> slow;
  for (const Straggler& straggler : s.stragglers) {
    const RankCoordinates at = placement.coordinates(straggler.gpu);
    double& stage =
        slow.try_emplace(at.data, stages, 1.0).first->second[static_cast<std::size_t>(at.pipeline)];
    stage = std::max(stage, straggler.slowdown);
  }
  std::vector<Pace> out(static_cast<std::size_t>(s.job.parallelism.data / span));
  for (int replica = 0; replica < s.job.parallelism.data; ++replica) {
    const auto number = static_cast<std::size_t>(replica);
    const ReplicaVariant& variant = variants.list[variants.of.empty() ? 0 : variants.of[number]];
    const auto slowed = slow.find(replica);
    Pace pace;
    double sum = 0;
    for (std::size_t i = 0; i < stages; ++i) {
      const double factor = slowed == slow.end() ? 1.0 : slowed->second[i];
      const double time = factor * times.seconds(variant.pools[i], static_cast<int>(i));
      pace.slowest = std::max(pace.slowest, time);
      sum += time;
    }
    pace.others = sum - pace.slowest;
    Pace& group = out[number / static_cast<std::size_t>(span)];
    group = std::max(group, pace);
  }
  return out;
}

/// Shares out `units` of equal size over groups, at least `least` to each.
std::vector<std::int64_t> share_out(const std::vector<Pace>& groups, double unit,
                                    std::int64_t units, std::int64_t least) {
  std::map<Pace, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < groups.size(); ++i) alike[groups[i]].push_back(i);
  const auto done_by = [&](const Pace& pace, double end) {
    const double whole = std::floor((end - pace.others) / (unit * pace.slowest));
    return std::max(least, static_cast<std::int64_t>(std::min(whole, static_cast<double>(units))));
  };
  double early = 0, late = 0;
  for (const auto& [pace, members] : alike) {
    late = std::max(late, pace.others + static_cast<double>(units + 1) * unit * pace.slowest);
  }
  constexpr int kHalvings = 100;  // beyond the digits of a double
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (early + late) / 2;
    std::int64_t sum = 0;
    for (const auto& [pace, members] : alike) {
      sum += done_by(pace, middle) * static_cast<std::int64_t>(members.size());
    }
    (sum <= units ? early : late) = middle;
  }
  std::vector<std::int64_t> out(groups.size());
  std::int64_t left = units;
  std::vector<std::pair<double, std::size_t>> next;  // when a group would have done one more
  for (const auto& [pace, members] : alike) {
    const std::int64_t count = done_by(pace, early);
    for (const std::size_t member : members) {
      out[member] = count;
      left -= count;
      next.emplace_back(pace.others + static_cast<double>(count + 1) * unit * pace.slowest, member);
    }
  }
  std::ranges::sort(next);
  for (std::size_t i = 0; left > 0; ++i, --left) ++out[next[i % next.size()].second];
  return out;
}

/// "20 x 2, 12": runs of equal numbers.
std::string in_runs(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    out += (out.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end - i > 1) out += " x " + std::to_string(end - i);
    i = end;
  }
  return out;
}

}  // namespace

std::vector<int> balanced_layers(const Scenario& s) {
  const int layers = s.job.model.layers;
  const auto stages = static_cast<std::size_t>(s.job.parallelism.pipeline);
  const int least = layers >= s.job.parallelism.pipeline ? 1 : 0;
  StageSplit split(s);
  for (const bool within_memory : {true, false}) {
    double limit = kImpossible;
    const auto cost = [&](std::size_t stage, int first, int end) {
      if (within_memory && end > split.last_that_fits(stage, first)) return kImpossible;
      const double time = split.seconds(stage, first, end);
      return time <= limit ? time : kImpossible;
    };
    const auto slowest = [](double a, double b) { return std::max(a, b); };
    double total = 0;
    if (cut_layers(layers, stages, least, cost, slowest, total).empty()) continue;
    constexpr double kRounding = 1e-12;  // of sums
    limit = total * (1 + kRounding);
    const auto squares = [](double a, double b) { return a + b * b; };
    return cut_layers(layers, stages, least, cost, squares, total);
  }
  return {};
}

std::vector<int> balanced_micro_batches(const Scenario& s) {
  const Parallelism& cut = s.job.parallelism;
  const int span = std::max(1, cut.expert * cut.expert_tensor / (cut.tensor * cut.context));
  const auto [multiple, least] = info(cut.schedule).micro_batches(cut.pipeline);
  const std::int64_t all = s.job.batch.sequences / s.job.batch.micro_sequences;
  const std::int64_t unit = std::int64_t{multiple} * span;
  const std::int64_t least_units = (std::max(1, least) + multiple - 1) / multiple;
  if (all % unit != 0 || all / unit < least_units * (cut.data / span)) return {};
  const std::vector<std::int64_t> shares =
      share_out(paces(s, span), multiple, all / unit, least_units);
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(cut.data));
  for (int replica = 0; replica < cut.data; ++replica) {
    out.push_back(static_cast<int>(shares[static_cast<std::size_t>(replica / span)] * multiple));
  }
  return out;
}

void balance(const ScenarioDraft& draft, Scenario& out) {
  if (draft.balanced_layers) {
    out.job.parallelism.layers_per_stage = balanced_layers(out);
    out.assumptions.push_back("layers_per_stage: " + in_runs(out.job.parallelism.layers_per_stage) +
                              " (balanced)");
  }
  if (draft.balanced_batch) {
    out.micro_batches = balanced_micro_batches(out);
    if (out.micro_batches.empty()) {
      const Parallelism& cut = out.job.parallelism;
      const int multiple = info(cut.schedule).micro_batches(cut.pipeline).multiple;
      refuse(draft, "/batch/sequences", std::to_string(out.job.batch.sequences),
             "a multiple of " +
                 std::to_string(std::int64_t{out.job.batch.micro_sequences} * multiple) +
                 " that leaves each of " + std::to_string(cut.data) + " replicas a micro batch");
    }
    out.assumptions.push_back("micro_batches: " + in_runs(out.micro_batches) + " (balanced)");
  }
  if (!draft.balanced_layers && !draft.balanced_batch) return;
  check_unequal(draft, out);
  check_extent(draft, out);
}

}  // namespace lockstep
