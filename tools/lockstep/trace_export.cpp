#include "tools/lockstep/trace_export.hpp"

#include <fmt/format.h>
#include <string>

#include "models/base/output_file.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/write_chakra.hpp"
#include "sim/trace/trace_of_step.hpp"
#include "tools/console/output_folder.hpp"

namespace lockstep {
namespace {

void write_folder(const std::string& folder, const Trace& trace) {
  OutputFolder out(folder);
  for (int rank = 0; rank < trace.ranks; ++rank) {
    out.write(fmt::format("step.{}.et", rank), write_chakra(trace, rank));
  }
  out.write("comm_groups.json", write_trace_groups(trace));
  out.commit();
}

}  // namespace

bool exports_trace(const ParsedOptions& options) {
  return options.has("chakra") || options.has("goal");
}

void note_trace(Scenario& scenario) {
  const TrainingJob& job = scenario.job;
  if (job.parallelism.expert == 1 || expert_load(job).fullest == 1) return;
  scenario.assumptions.emplace_back(
      "trace: tokens for experts as even all-to-alls that take as long (Chakra and GOAL have no "
      "uneven ones)");
}

void export_trace(const ParsedOptions& options, const Scenario& scenario) {
  const Trace trace = trace_of_step(scenario);
  if (options.has("chakra")) write_folder(options.get("chakra"), trace);
  if (options.has("goal")) {
    OutputFile file(options.get("goal"));
    write_goal(trace, [&](std::string_view part) { file.write(part); });
    file.commit();
  }
}

}  // namespace lockstep
