/// The layouts that a search considers, and which of them a scenario may have.
#pragma once

#include <string>
#include <vector>

#include "models/layer/memory.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/search/tune.hpp"

namespace lockstep {

/// What a layout decides of a scenario.
struct Layout {
  Parallelism cut;
  int micro_sequences = 1;
  Recompute recompute = Recompute::none;
};

/// All combinations whose ranks are as many as the GPUs of `base`, plain ones before others along
/// each axis. Left open in `space`:
///
/// - tensor: divisors of the attention heads up to an NVLink domain, across which nobody trains so;
/// - pipeline: any number of stages that the layers allow;
/// - context: as many ranks as leave each kMinContextTokens, where the batch has such sequences;
/// - expert: divisors of the experts; expert_tensor: 1, and what `base` says;
/// - virtual_stages: all that spread the layers evenly, embedding and output in the place of a
///   layer or not, and what `base` says;
/// - micro batches: divisors of the sequences that a replica has;
/// - sharding: none to zero3 where there are replicas;
/// - recompute: none, full, and selective where that saves memory.
std::vector<Layout> all_layouts(const Scenario& base, const TuneSpace& space);

/// Shorter pieces of a sequence are left out unless asked for: their attention is too short to hide
/// the exchange of keys and values behind (assumed).
constexpr int kMinContextTokens = 2048;

/// Whether `a` is easier to set up and to keep running than `b`: fewer kinds of parallelism,
/// sharding and recomputation at once, then fewer ranks to a replica, fewer virtual stages, less
/// sharding, less recomputation.
bool plainer(const Layout& a, const Layout& b);

/// Puts a layout into a scenario.
void apply(const Layout& layout, Scenario& scenario);

/// Pointer of the rule's value that a scenario breaks ("/batch/sequences"), and the rule; empty
/// where it keeps all of them (scenario_rules.hpp).
struct BrokenRule {
  std::string pointer, problem;
  std::string found{}, allowed{};  ///< what `problem` puts together
};
class RuleCheck {
 public:
  explicit RuleCheck(const Scenario& base);
  [[nodiscard]] BrokenRule broken(const Scenario& candidate);

 private:
  ScenarioDraft draft_;
};

/// Peak memory of the stage that needs most.
MemoryBreakdown fullest_stage(const TrainingJob& job, const StackSpec& stack);

}  // namespace lockstep
