/// What would help most: standard changes to a scenario of a step, of weeks, of an iteration of
/// reinforcement learning, of several jobs, of a queue of jobs or of a service, each made alone and
/// simulated.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/answer.hpp"
#include "sim/answer/value.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

struct QueueSpec;
struct RlScenario;
struct RunSpec;
struct ServingSpec;
struct SharedScenario;

/// A change that a person could make, as --set says it.
struct StandardChange {
  std::string words;              ///< "micro batch 1 -> 2"
  std::vector<std::string> sets;  ///< "batch.micro=2"
  bool other_gpu = false;         ///< another card: errors of two cards do not cancel
  bool other_stack = false;       ///< other software, of which advice has only the best
};

/// Those that a step leaves room for, whether they can be run or not: micro and global batch,
/// tensor, context and pipeline width at the same number of GPUs, virtual stages, schedule,
/// dispatch to experts, exchanges of context, those beside computation, sharding and its group,
/// recomputation, precision, fusions and the optimiser's formats of composed software, rate and
/// number of NICs, full bisection, routing, newer cards, a power cap lifted, stragglers replaced.
std::vector<StandardChange> standard_changes(const Scenario& scenario, const PresetStore& presets);
/// The same job on each other stack that published runs are of; none where somebody changed or
/// learnt constants of its own.
std::vector<StandardChange> stack_changes(const Scenario& scenario, const PresetStore& presets);
/// Of weeks: how often and how checkpoints are written, the storage's rate, how soon failures are
/// found and the job restarts, spares, repair, going on with a replica less. `checkpoints`: whether
/// the scenario has them as a list.
std::vector<StandardChange> run_changes(const RunSpec& run, bool checkpoints);
/// Of a queue: order, admission, preemption, placement, quotas, Slurm's cycles, a tenth more nodes,
/// for trainings newer cards.
std::vector<StandardChange> queue_changes(const QueueSpec& queue, const PresetStore& presets);
/// Of a service, at the same number of GPUs: widths, what a pass takes, formats of weights and
/// cache, router, engine, newer cards, NICs between two pools; and a replica more of each pool.
std::vector<StandardChange> serving_changes(const ServingSpec& serving, const PresetStore& presets);
/// Of an iteration of reinforcement learning, with as many responses: replicas, pools, engine and
/// formats of what generates, updates of a rollout, and what a step of training leaves room for.
std::vector<StandardChange> rl_changes(const RlScenario& scenario, const PresetStore& presets);
/// Of several jobs on one fabric: nodes side by side, less of other traffic, failures routed around
/// sooner, the fabric, NICs and card of all; of up to four trainings what their steps leave room
/// for, each by itself.
std::vector<StandardChange> shared_changes(const SharedScenario& scenario,
                                           const PresetStore& presets);

/// The presets that can take a card's place in its nodes and are newer or a refresh of it, slowest
/// first: of its maker and form (with links between the cards of a node or without), of its
/// generation or the next two, behind in nothing of 16-bit peak, memory, its bandwidth and links,
/// and clearly better in one of them. A card of an architecture unknown here is of any generation.
std::vector<std::string> newer_cards(const GpuSpec& gpu, const PresetStore& presets);
/// A change to each of them, in nodes that stay as they are.
void add_newer_cards(const GpuSpec& gpu, const PresetStore& presets,
                     std::vector<StandardChange>& out);

/// What advice about a kind of answer makes larger, and what it says beside.
struct AdviceGoal {
  AnswerKind kind;
  std::string_view name;                    ///< "tokens_per_s_per_gpu"
  std::string_view words;                   ///< "tokens/s per GPU"
  std::string_view as_it_is;                ///< "the step takes", before the first of `shown`
  std::array<std::string_view, 3> shown{};  ///< numbers of the answer; empty: fewer
  std::string_view all{};  ///< a count that a change must not lower: of jobs that end
  /// Nothing where an answer has no such number, as the mean over no jobs.
  std::optional<double> (*measure)(const ScenarioAnswer&);
};
/// Steps and iterations of reinforcement learning: tokens a second and GPU. Weeks: tokens trained
/// an hour of a GPU that is held, spares included. Several jobs: steps a second, the geometric mean
/// of the trainings, as twice the pace of one is worth as much as that of another. Queues and
/// services: 1 over the mean time of a job from submission to end, of a request from arrival to its
/// last token.
std::span<const AdviceGoal> advice_goals();

/// A change, and what it does.
struct AdvisedChange {
  StandardChange change;
  NamedNumbers numbers{};  ///< AdviceGoal::shown, then the goal's own
  double gain = 0;         ///< of the goal: 0.1 is 10 % more
  /// Between which nine of ten gains lie: of what changes a step by pairs of published runs, of
  /// weeks by the spread of the mean too; nothing where neither witnesses it, nor for other
  /// software.
  std::optional<double> gain_low{}, gain_high{};
  /// site_limit_w and site_excess_w of the answer; where there is a limit.
  std::optional<double> site_limit_w{}, site_excess_w{};
};

/// A change that cannot be, and why: one line.
struct RefusedChange {
  StandardChange change;
  std::string why;
};

struct Advice {
  std::string file;
  const AdviceGoal* goal = nullptr;
  NamedNumbers numbers{};                                 ///< as it is, as those of a change
  std::optional<double> site_limit_w{}, site_excess_w{};  ///< as it is; where there is a limit
  std::vector<AdvisedChange> changes{};                   ///< largest gain first
  /// Two of the first changes made together, where that gains more than each change alone.
  std::vector<AdvisedChange> pairs{};
  /// Do not fit in memory, break a rule, beyond the software, or leave jobs or requests undone.
  std::vector<RefusedChange> refused{};
};

/// A number of an AdvisedChange or of an Advice; nothing if there is none.
std::optional<double> number_named(const NamedNumbers& numbers, std::string_view name);

/// Simulates the scenario in a text, and each change to it. Throws InputError about the scenario
/// itself, and where advice_goals() has none of its kind. `done` is told after each simulation: how
/// many, of how many.
Advice advise(const std::string& file, const std::string& text, const PresetStore& presets,
              const Question& question, const std::function<void(std::size_t, std::size_t)>& done);

/// {"file", "answer_kind", "goal", numbers, "changes": [{"change", "set", numbers, "gain",
/// "gain_low", "gain_high"}], "pairs" as "changes", "refused": [{"change", "set", "why"}]}; where
/// there is a limit of the site's power, with "site_limit_w" and "site_excess_w" of the scenario
/// and of each change.
nlohmann::ordered_json advice_json(const Advice& advice);

}  // namespace lockstep
