#include "tools/lockstep/queue/queue_input.hpp"

#include <string>

#include "models/base/text_file.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {

QueueInput timed_queue(const ParsedOptions& options, const PresetStore& presets) {
  const std::string path = scenario_path(options.positionals[1], presets);
  const ParsedScenario parsed = parse_scenario(path, read_text_file(path), options.all("set"));
  if (parsed.kind != ScenarioKind::queue) {
    (void)parsed.root.at("queue");  // names what is missing
    require_kind(parsed.root, {ScenarioKind::queue}, "a scenario with \"queue\"");
  }
  QueueInput out{.spec = *read_scenario_file(parsed, presets).queue,
                 .written = written_in(parsed.root)};
  time_trainings(out.spec, options.has("allow-oom"));
  return out;
}

}  // namespace lockstep
