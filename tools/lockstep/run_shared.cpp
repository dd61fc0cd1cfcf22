#include "tools/lockstep/run_shared.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/output_file.hpp"
#include "sim/answer/shared_answer.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/congestion/shared_work.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/console/work_budget.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/congestion_page.hpp"
#include "tools/views/report/shared_table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

/// Nothing where no hash decides anything. Throws InputError for --hash-seeds there.
std::optional<HashAnswer> hash_of(const SharedScenario& scenario, const SharedResult& result,
                                  const HashDraws& draws, Console& console) {
  const Cluster& cluster = scenario.cluster;
  if (!is_hashed(cluster.fabric, cluster.nodes, nic_ports(cluster.node))) return std::nullopt;
  return answer_of_draws(draws, drawn_numbers(result), console, [&scenario](int draw) {
    SharedScenario drawn = scenario;
    drawn.cluster.fabric.hash_draw = draw;
    for (SharedJob& job : drawn.jobs) job.scenario.fabric.hash_draw = draw;
    return drawn_numbers(simulate_shared(drawn));
  });
}

}  // namespace

Exit run_shared(const SharedScenario& scenario, const WrittenScenario& written,
                const PresetStore& presets, const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  if (!options.has("allow-oom")) require_memory(scenario);
  const Cluster& cluster = scenario.cluster;
  const HashDraws draws =
      hash_draws_of(options, scenario.file, cluster.fabric, cluster.nodes, nic_ports(cluster.node));
  const SharedWork work = shared_work(scenario);
  const int at_once = std::min(draws.count, draws.threads);
  const WorkEstimate estimate{.place = scenario.file + "#" + work.pointer,
                              .what = work.what,
                              .seconds = work.takes.base_units() * draws.count / at_once,
                              .bytes = work.holds.base_units() * at_once};
  check_work_memory(estimate, memory_limit());
  announce_work(estimate, console.err);
  const SharedResult result =
      simulate_shared(scenario, {.draw = options.has("report"), .limits = {}});
  const std::optional<HashAnswer> hash = hash_of(scenario, result, draws, console);
  const std::optional<SharedPower> power = power_of(scenario, result);
  const Json json = shared_json(scenario, result, power, hash, written);
  const std::vector<std::string> misses = all_missed(assertions, json);
  if (options.has("report")) {
    OutputFile file(options.get("report"));
    CongestionReport page = result.congestion;
    if (hash) page.fabric += fmt::format(", draw {} of the paths' hashes", hash->draw);
    const Behind behind(scenario.file, ScenarioAnswer(AnswerKind::jobs, json), presets);
    const PowerOfJobs drawn{
        .scenario = scenario, .power = power ? &*power : nullptr, .results = result.jobs};
    file.write(congestion_page(page,
                               {.simulated = cluster_words(cluster),
                                .written = written,
                                .assumptions = scenario.assumptions,
                                .presets = &presets,
                                .named = presets_of(cluster, presets)},
                               &behind, nullptr, &drawn));
    file.commit();
  }
  warn_of_old_names(assertions, json, console);
  const TextStyle style = output_style(options, console);
  write_output(format == "json" ? Answer(JsonText(json))
               : format == "csv"
                   ? Answer(shared_csv(scenario, result, power, hash))
                   : Answer::terminal(shared_table(scenario, result, power, hash, style)),
               options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
