#include "sim/search/dividing_counts.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/search/layouts.hpp"

namespace lockstep {
namespace {

/// Looks at sizes of one job.
class JobSizes {
 public:
  JobSizes(const Scenario& base, TuneSpace space) : base_(base), space_(std::move(space)) {
    // What decides nothing about divisors is looked at once.
    if (space_.sharding.empty()) space_.sharding = {Sharding::none};
    if (space_.recompute.empty()) space_.recompute = {Recompute::none};
    if (space_.expert.empty()) space_.expert = {1};
    if (space_.micro_sequences.empty()) space_.micro_sequences = {1};
    Parallelism& cut = base_.job.parallelism;
    gpus_per_node_ = base.gpus() / base.nodes;
    cut.tensor = cut.context = cut.pipeline = cut.expert = cut.expert_tensor = 1;
    cut.virtual_stages = 1;
    cut.schedule = Schedule::one_f_one_b;
    cut.layers_per_stage.clear();
    cut.order = nullptr;
  }

  bool divides(int nodes, int sequences) {
    Scenario scenario = base_;
    scenario.nodes = nodes;
    scenario.job.batch.sequences = sequences;
    scenario.job.parallelism.data = nodes * gpus_per_node_;
    if (!may_divide(scenario)) return false;
    RuleCheck rules(scenario);
    for (const Layout& layout : all_layouts(scenario, space_)) {
      if (sequences % layout.cut.data != 0) continue;
      apply(layout, scenario);
      if (can_run(scenario.stack, scenario.job) && rules.broken(scenario).problem.empty()) {
        return true;
      }
    }
    return false;
  }

 private:
  /// Whether any widths leave a number of replicas that divides the sequences.
  [[nodiscard]] bool may_divide(const Scenario& scenario) const {
    const int gpus = scenario.gpus(), sequences = scenario.job.batch.sequences;
    for (int replicas = std::min(gpus, sequences); replicas >= 1; --replicas) {
      if (gpus % replicas == 0 && sequences % replicas == 0 &&
          std::int64_t{gpus} / replicas <= most_ranks(scenario)) {
        return true;
      }
    }
    return false;
  }
  /// Ranks of a replica at most, but for widths that are asked for.
  [[nodiscard]] std::int64_t most_ranks(const Scenario& scenario) const {
    const auto most = [](const std::vector<int>& asked, std::int64_t usual) {
      return asked.empty() ? usual : std::int64_t{*std::ranges::max_element(asked)};
    };
    const TrainingJob& job = scenario.job;
    return most(space_.tensor, scenario.node.nvlink_domain) *
           most(space_.context, std::max(1, job.batch.tokens / kMinContextTokens)) *
           most(space_.pipeline, job.model.layers + 2);
  }

  Scenario base_;
  TuneSpace space_;
  int gpus_per_node_ = 1;
};

/// The first count that `divides` below and above `from`, no further than half and twice of it.
template <class Divides>
void look_around(int from, Divides divides, std::optional<int>& below, std::optional<int>& above) {
  for (int count = from - 1; count >= std::max(1, from / 2) && !below; --count) {
    if (divides(count)) below = count;
  }
  for (int count = from + 1; count <= 2 * std::int64_t{from} && !above; ++count) {
    if (divides(count)) above = count;
  }
}

std::string either(std::optional<int> a, std::optional<int> b, int factor = 1) {
  std::string out;
  if (a) out += std::to_string(std::int64_t{*a} * factor);
  if (a && b) out += " or ";
  if (b) out += std::to_string(std::int64_t{*b} * factor);
  return out;
}

}  // namespace

DividingCounts dividing_counts(const Scenario& base, const TuneSpace& space) {
  DividingCounts out;
  JobSizes sizes(base, space);
  const int nodes = base.nodes, sequences = base.job.batch.sequences;
  if (2 * std::int64_t{base.gpus()} <= kMaxGpus) {
    look_around(
        nodes, [&](int n) { return sizes.divides(n, sequences); }, out.fewer_nodes, out.more_nodes);
  }
  look_around(
      sequences, [&](int n) { return sizes.divides(nodes, n); }, out.fewer_sequences,
      out.more_sequences);
  return out;
}

std::string words_of(const DividingCounts& counts, int gpus_per_node) {
  std::string out;
  if (counts.fewer_nodes || counts.more_nodes) {
    out = either(counts.fewer_nodes, counts.more_nodes) + " nodes (" +
          either(counts.fewer_nodes, counts.more_nodes, gpus_per_node) + " GPUs)";
  }
  if (counts.fewer_sequences || counts.more_sequences) {
    if (!out.empty()) out += ", or ";
    out += either(counts.fewer_sequences, counts.more_sequences) + " sequences a step";
  }
  return out;
}

}  // namespace lockstep
