#include "tools/lockstep/rl/run_rl.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/answer/rl_answer.hpp"
#include "sim/rl/rl_step.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/rl_page.hpp"
#include "tools/views/rl/rl_table.hpp"
#include "tools/views/run/claim_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// The step with each draw of the training cluster's hashes; nothing where they decide nothing.
std::optional<HashAnswer> hash_of(const RlScenario& scenario, const RlReport& report,
                                  const ParsedOptions& options, Console& console) {
  const Scenario& training = scenario.training;
  const NicPorts ports = nic_ports(training.node);
  const HashDraws draws =
      hash_draws_of(options, training.file, training.fabric, training.nodes, ports);
  if (!is_hashed(training.fabric, training.nodes, ports)) return std::nullopt;
  return answer_of_draws(draws, {report.step.base_units()}, console, [&scenario](int draw) {
    FabricSpec fabric = scenario.training.fabric;
    fabric.hash_draw = draw;
    return std::vector{simulate_rl_step(on_fabric(scenario, fabric)).step.base_units()};
  });
}

}  // namespace

Exit run_rl(const RlScenario& scenario, const WrittenScenario& written, const PresetStore& presets,
            const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  if (!options.has("allow-oom")) require_memory(scenario);
  const RlResult result = answer_rl(scenario);
  const RlReport& report = result.report;
  const std::optional<HashAnswer> hash = hash_of(scenario, report, options, console);
  Json json = rl_json(scenario, result, hash, written);
  std::vector<std::string> misses = all_missed(assertions, json);
  warn_of_old_names(assertions, json, console);
  const auto claim = judge_claim(scenario.training.expect, json, misses);
  if (reports) {
    const Behind behind(scenario.training.file, ScenarioAnswer(AnswerKind::rl, json), presets);
    write_report(options, rl_page(scenario, result, written, &behind, claim.get()));
  }
  const TextStyle style = output_style(options, console);
  write_output(format == "json"  ? Answer(JsonText(json))
               : format == "csv" ? Answer(rl_csv(result))
                                 : Answer::terminal(rl_table(scenario, result, hash, style) +
                                                    claim_text(claim.get(), style)),
               options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
