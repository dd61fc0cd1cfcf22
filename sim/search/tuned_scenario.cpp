#include "sim/search/tuned_scenario.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/parallelism_json.hpp"
#include "sim/search/dividing_counts.hpp"
#include "sim/search/layouts.hpp"
#include "sim/search/rebase_files.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Nodes whose memory holds weights, gradients and optimiser states of the job, and nothing else:
/// with fewer no layout fits.
int fewest_nodes(const Scenario& base) {
  const StackSpec& stack = base.stack;
  const double each =
      stack.parameter_bytes + stack.main_gradient_bytes + stack.memory.optimiser_state_bytes;
  const double node = base.node.gpus * base.node.gpu.hbm_capacity.base_units();
  return static_cast<int>(std::ceil(each * total_parameters(base.job.model) / node));
}

/// What would help a job for which no layout fits.
std::string room_for(const Scenario& base) {
  const TrainingJob& job = base.job;
  const bool whole = !job.adapters.any() && !job.offload.any() && base.pools.empty();
  const int fewest = whole ? fewest_nodes(base) : 0;
  if (fewest <= base.nodes) return "more nodes, shorter sequences, LoRA or offload";
  return fmt::format(
      "at least {} nodes, whose memory holds weights, gradients and optimiser states; or LoRA "
      "(--set lora.rank=16), or offload",
      fewest);
}

std::size_t layouts_of(const std::vector<TuneCount>& counts) {
  std::size_t sum = 0;
  for (const TuneCount& count : counts) sum += count.layouts;
  return sum;
}

/// The rule that a width breaks which was given, and not searched, whatever the others are.
std::optional<BrokenRule> forbidden_width(const Scenario& base, const TuneSpace& space) {
  struct Width {
    std::string_view pointer;
    const std::vector<int>* given;
  };
  const std::array widths{
      Width{"/parallelism/tensor", &space.tensor}, Width{"/parallelism/context", &space.context},
      Width{"/parallelism/pipeline", &space.pipeline}, Width{"/parallelism/expert", &space.expert}};
  Scenario scenario = base;
  RuleCheck rules(base);
  for (const Layout& layout : all_layouts(base, space)) {
    apply(layout, scenario);
    BrokenRule rule = rules.broken(scenario);
    const auto breaks = [&](const Width& width) {
      return rule.pointer == width.pointer && width.given->size() == 1;
    };
    if (std::ranges::any_of(widths, breaks)) return rule;
  }
  return std::nullopt;
}

}  // namespace

Json tuned_scenario(const JsonCursor& written, const Scenario& layout, const std::string& from,
                    const std::string& to) {
  Json out = written.json();
  const TrainingJob& job = layout.job;
  Json& parallelism = out["parallelism"];
  if (!parallelism.is_object()) parallelism = Json::object();
  for (const std::string_view key : layout_keys()) parallelism.erase(std::string(key));
  // Kept where the search kept them; it drops those of a layout that could not be run.
  if (job.parallelism.embedding == EndPlace::automatic) parallelism.erase("embedding");
  if (job.parallelism.output == EndPlace::automatic) parallelism.erase("output");
  Json all = written_parallelism(job.parallelism);
  all.update(parallelism);  // what layouts share: places of embedding and output, dispatch
  parallelism = std::move(all);
  out["batch"]["micro"] = job.batch.micro_sequences;
  Json& recompute = out["recompute"];
  const bool modules = recompute.is_object() && job.recompute == Recompute::selective;
  if (!modules) recompute = name_of(job.recompute);
  out.erase("expect");
  rebase_files(out, from, to);
  return out;
}

void fail_without_layout(const Scenario& base, const TuneResult& result, const TuneSpace& space) {
  const std::size_t unable = layouts_of(result.beyond_stack);
  InputProblem problem{.file = base.file,
                       .pointer = {},
                       .found = {},
                       .allowed = "a model, batch and cluster with one; or more values to try",
                       .nearest = {}};
  if (result.over_memory > 0) {
    problem.found = fmt::format(
        "no layout that fits on {} ({} of {}): of {} combinations {} need more memory than {} has, "
        "the others break a rule",
        counted(base.gpus(), "GPU"), counted(base.nodes, "node"), base.node.name, result.considered,
        result.over_memory, base.node.gpu.name);
    if (unable > 0) {
      problem.found += fmt::format(" or cannot be run by the stack {}", base.stack.name);
    }
    problem.allowed = room_for(base);
  } else if (unable > 0) {
    problem.pointer = "/stack";
    problem.found =
        fmt::format("no layout that {} can run: of {} combinations {} need {}", base.stack.name,
                    result.considered, unable, result.beyond_stack.front().reason);
    problem.allowed = R"(another stack, what it can run, or "stack": {"allow": [...]})";
  } else {
    const int per_node = base.gpus() / base.nodes;
    const std::string sizes = words_of(dividing_counts(base, space), per_node);
    problem.pointer = "/batch/sequences";
    problem.found =
        fmt::format("no layout that divides {} of a step on {}",
                    counted(base.job.batch.sequences, "sequence"), counted(base.gpus(), "GPU"));
    if (!sizes.empty()) {
      problem.allowed = sizes + ", which can be laid out";
    } else if (std::optional<BrokenRule> rule = forbidden_width(base, space)) {
      problem.pointer = rule->pointer;
      problem.found = rule->found;
      problem.allowed = rule->allowed;
    } else {
      problem.pointer = "/parallelism";
      problem.allowed = fmt::format(
          "widths that divide the {} GPUs, the model's heads and layers; what is left out is "
          "searched",
          base.gpus());
    }
  }
  throw InputError(std::move(problem));
}

}  // namespace lockstep
