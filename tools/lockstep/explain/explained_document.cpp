#include "tools/lockstep/explain/explained_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <thread>

#include <nlohmann/json.hpp>

#include "sim/answer/comm_collective.hpp"
#include "sim/measured/command_formulas.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "sim/search/serving_plan.hpp"
#include "sim/traffic/simulate_traffic.hpp"
#include "tools/lockstep/replay/replayed.hpp"
#include "tools/lockstep/replay/trace_asked.hpp"
#include "tools/views/comm/comm_collective_output.hpp"
#include "tools/views/comm/comm_traffic.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/plan/serving_plan_output.hpp"

namespace lockstep {
namespace {

ExplainedAnswer comm_to_explain(const JsonCursor& root, const PresetStore& presets) {
  if (root.find("collective")) {
    const CollectiveStudy study = run_collective_study(root, presets);
    return explained_command(CommandAnswer::collectives, collective_json(study), root.json(),
                             &study.cluster.node);
  }
  const TrafficScenario scenario = read_traffic(root, presets);
  TrafficReport report = simulate_traffic(scenario);
  add_alone(scenario, report);
  return explained_command(CommandAnswer::traffic, traffic_json(scenario, report, std::nullopt),
                           root.json(), &scenario.cluster.node);
}

ExplainedAnswer plan_to_explain(const JsonCursor& root, const std::string& text,
                                const std::vector<std::string>& sets, const PresetStore& presets) {
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (is_serving_plan(root)) {
    const ServingPlanSpec spec = read_serving_plan(root, presets);
    const ServingPlanReport report = evaluate_serving_plan(spec, {.jobs = threads});
    return explained_command(CommandAnswer::serving_plan, serving_plan_json({spec, report}),
                             root.json());
  }
  const PlanSpec spec = read_plan(root.file(), text, presets, sets);
  const PlanReport report = evaluate_plan(spec, {.jobs = threads});
  return explained_command(CommandAnswer::plan, plan_json({spec, report}), root.json());
}

}  // namespace

ExplainedAnswer answer_to_document(const std::string& path, const std::string& text,
                                   const std::vector<std::string>& sets, const PresetStore& presets,
                                   bool allow_oom) {
  const JsonCursor root = JsonCursor::parse(path, text, JsonStyle::plain, sets);
  const std::string_view command = command_of(root);
  if (allow_oom && command != "run") {
    throw UsageError(fmt::format(
        "lockstep explain: found --allow-oom beside what lockstep {} answers; allowed: beside a "
        "scenario of lockstep run, or a sweep",
        command));
  }
  if (command == "comm") return comm_to_explain(root, presets);
  if (command == "plan") return plan_to_explain(root, text, sets, presets);
  return answer_text(
      path, text, presets,
      {.set = sets,
       .allow_oom = allow_oom || tells_memory(root) || (sets.empty() && is_measured_row(root))});
}

ExplainedAnswer replay_to_explain(const ParsedOptions& options, const PresetStore& presets,
                                  Console& console) {
  const ReplayStudy study = replayed_study(options, presets, console);
  const TraceCluster where(trace_cluster_asked(options), presets);
  return explained_command(CommandAnswer::replay, replay_json(study),
                           where.written(study.trace.ranks).json(), &study.cluster.node);
}

}  // namespace lockstep
