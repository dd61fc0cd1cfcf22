#include "sim/search/layouts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include "models/base/input_error.hpp"
#include "models/pipeline/schedule.hpp"
#include "sim/scenario/scenario_rules.hpp"

namespace lockstep {
namespace {

std::vector<int> divisors(int n, int most) {
  std::vector<int> out;
  for (int i = 1; i <= std::min(n, most); ++i) {
    if (n % i == 0) out.push_back(i);
  }
  return out;
}

template <class Value>
void add_once(std::vector<Value>& values, Value value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

/// Runs through the axes one inside another.
class Enumerator {
 public:
  Enumerator(const Scenario& base, const TuneSpace& space)
      : base_(base), space_(space), model_(base.job.model), gpus_(base.gpus()) {
    schedules_ = space.schedules;
    if (!schedules_.empty()) return;
    schedules_ = {Schedule::one_f_one_b, Schedule::interleaved};
    const Schedule own = base.job.parallelism.schedule;
    if (own != Schedule::fixed) add_once(schedules_, own);
  }

  std::vector<Layout> all() {
    for (const int tensor : tensor_ways()) {
      if (gpus_ % tensor != 0) continue;
      for (const int context : context_ways()) {
        if (gpus_ / tensor % context != 0) continue;
        for (const int pipeline : pipeline_ways(gpus_ / tensor / context)) {
          if (gpus_ / tensor / context % pipeline == 0) add_widths(tensor, context, pipeline);
        }
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::vector<int> tensor_ways() const {
    if (!space_.tensor.empty()) return space_.tensor;
    std::vector<int> ways = divisors(model_.heads, base_.node.nvlink_domain);
    add_once(ways, base_.job.parallelism.tensor);
    return ways;
  }
  [[nodiscard]] std::vector<int> context_ways() const {
    if (!space_.context.empty()) return space_.context;
    const int tokens = base_.job.batch.tokens;
    std::vector<int> ways = divisors(tokens, std::max(1, tokens / kMinContextTokens));
    add_once(ways, base_.job.parallelism.context);
    return ways;
  }
  [[nodiscard]] std::vector<int> pipeline_ways(int gpus) const {
    return space_.pipeline.empty() ? divisors(gpus, model_.layers + 2) : space_.pipeline;
  }
  [[nodiscard]] std::vector<int> virtual_ways(int pipeline) const {
    if (pipeline == 1) return {1};
    if (!space_.virtual_stages.empty()) return space_.virtual_stages;
    const int layers = model_.layers;
    std::vector<int> ways{1};
    for (int v = 2; v * pipeline <= layers; ++v) {
      const int stages = v * pipeline;
      if (layers % stages == 0 || (layers + 1) % stages == 0 || (layers + 2) % stages == 0)
        ways.push_back(v);
    }
    add_once(ways, base_.job.parallelism.virtual_stages);
    return ways;
  }
  [[nodiscard]] std::vector<Schedule> schedules_of(const Parallelism& cut) const {
    if (cut.pipeline == 1) return {Schedule::one_f_one_b};
    std::vector<Schedule> out;
    for (const Schedule schedule : schedules_) {
      const ScheduleKind& kind = info(schedule);
      const int v = cut.virtual_stages;
      if (v >= kind.virtual_min && v <= kind.virtual_max) out.push_back(schedule);
    }
    return out;
  }
  [[nodiscard]] std::vector<int> expert_ways() const {
    if (!space_.expert.empty()) return space_.expert;
    const int count = model_.experts.count;
    return count == 0 ? std::vector<int>{1} : divisors(count, count);
  }
  [[nodiscard]] std::vector<int> expert_tensor_ways() const {
    if (!space_.expert_tensor.empty()) return space_.expert_tensor;
    std::vector<int> ways{1};
    if (model_.experts.count > 0) add_once(ways, base_.job.parallelism.expert_tensor);
    return ways;
  }
  [[nodiscard]] std::vector<Sharding> shardings(const Parallelism& cut) const {
    if (!space_.sharding.empty()) return space_.sharding;
    if (cut.replicas() == 1) return {Sharding::none};
    return {Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  }
  [[nodiscard]] std::vector<Recompute> recomputes() const {
    if (!space_.recompute.empty()) return space_.recompute;
    if (!selective_saves()) return {Recompute::none, Recompute::full};
    return {Recompute::none, Recompute::selective, Recompute::full};
  }
  /// Fused attention keeps no scores that could be made again.
  [[nodiscard]] bool selective_saves() const {
    TrainingJob none = base_.job, selective = base_.job;
    none.recompute = Recompute::none;
    selective.recompute = Recompute::selective;
    for (const bool experts : {false, true}) {
      const LayerKind kind{.experts = experts};
      if (saved_per_layer(selective, base_.stack, kind) < saved_per_layer(none, base_.stack, kind))
        return true;
    }
    return false;
  }
  [[nodiscard]] std::vector<int> micro_ways(const Parallelism& cut) const {
    if (!space_.micro_sequences.empty()) return space_.micro_sequences;
    const int sequences = std::max(1, base_.job.batch.sequences / cut.data);
    return divisors(sequences, sequences);
  }

  void add_widths(int tensor, int context, int pipeline) {
    Parallelism cut = base_.job.parallelism;
    cut.tensor = tensor;
    cut.context = context;
    cut.pipeline = pipeline;
    cut.data = gpus_ / tensor / context / pipeline;
    cut.order = nullptr;
    cut.layers_per_stage.clear();
    if (base_.job.parallelism.tensor == 1) {
      cut.sequence = base_.stack.communication.sequence_parallel_default;
    }
    cut.sequence = cut.sequence && tensor > 1;
    for (const int expert : expert_ways()) {
      for (const int ranks : expert_tensor_ways()) {
        cut.expert = expert;
        cut.expert_tensor = ranks;
        add_schedules(cut);
      }
    }
  }
  void add_schedules(Parallelism cut) {
    for (const int v : virtual_ways(cut.pipeline)) {
      cut.virtual_stages = v;
      for (const Schedule schedule : schedules_of(cut)) {
        cut.schedule = schedule;
        for (const Recompute recompute : recomputes()) {
          for (const int micro : micro_ways(cut)) add_shardings({cut, micro, recompute});
        }
      }
    }
  }
  void add_shardings(Layout layout) {
    const Parallelism& own = base_.job.parallelism;
    Parallelism& cut = layout.cut;
    for (const Sharding sharding : shardings(cut)) {
      const bool alike = own.sharding == Sharding::zero3 && sharding == Sharding::zero3;
      const bool as_usual = own.reshard == (own.pipeline == 1);
      cut.sharding = sharding;
      cut.shard_group = alike ? own.shard_group : 0;
      cut.reshard = alike && !as_usual ? own.reshard : cut.pipeline == 1;
      out_.push_back(layout);
    }
  }

  const Scenario& base_;
  const TuneSpace& space_;
  const TransformerShape& model_;
  int gpus_;
  std::vector<Schedule> schedules_;
  std::vector<Layout> out_;
};

}  // namespace

std::vector<Layout> all_layouts(const Scenario& base, const TuneSpace& space) {
  return Enumerator(base, space).all();
}

bool plainer(const Layout& a, const Layout& b) {
  const auto rank = [](const Layout& layout) {
    const Parallelism& cut = layout.cut;
    const bool usual = cut.pipeline == 1 || cut.schedule == Schedule::one_f_one_b ||
                       cut.schedule == Schedule::interleaved;
    const std::array kinds{cut.tensor > 1,
                           cut.context > 1,
                           cut.pipeline > 1,
                           cut.virtual_stages > 1,
                           !usual,
                           cut.expert > 1,
                           cut.expert > 1 && cut.expert_tensor != cut.tensor,
                           cut.sharding != Sharding::none,
                           layout.recompute != Recompute::none};
    return std::tuple(std::ranges::count(kinds, true), -cut.data, cut.virtual_stages, cut.sharding,
                      layout.recompute, cut.expert);
  };
  return rank(a) < rank(b);
}

void apply(const Layout& layout, Scenario& scenario) {
  scenario.job.parallelism = layout.cut;
  scenario.job.batch.micro_sequences = layout.micro_sequences;
  scenario.job.recompute = layout.recompute;
}

RuleCheck::RuleCheck(const Scenario& base) {
  draft_.file = base.file;
  draft_.model = base.job.model;
  draft_.node = base.node;
}

BrokenRule RuleCheck::broken(const Scenario& candidate) {
  const Parallelism& cut = candidate.job.parallelism;
  draft_.tensor = cut.tensor;
  draft_.pipeline = cut.pipeline;
  try {
    check_rules(draft_, candidate);
    return {};
  } catch (const InputError& error) {
    const InputProblem& problem = error.problem();
    return {problem.pointer, "found " + problem.found + "; allowed: " + problem.allowed,
            problem.found, problem.allowed};
  }
}

MemoryBreakdown fullest_stage(const TrainingJob& job, const StackSpec& stack) {
  return std::ranges::max(peak_memories(job, stack), {}, &MemoryBreakdown::needed);
}

}  // namespace lockstep
