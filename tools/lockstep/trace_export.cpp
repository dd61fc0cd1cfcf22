#include "tools/lockstep/trace_export.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <system_error>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/write_chakra.hpp"
#include "sim/trace/trace_of_step.hpp"

namespace lockstep {
namespace {

void write_whole(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

void write_folder(const std::string& folder, const Trace& trace) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw InputError({.file = folder,
                      .pointer = {},
                      .found = error.message(),
                      .allowed = "a folder that can be made and written",
                      .nearest = {}});
  }
  for (int rank = 0; rank < trace.ranks; ++rank) {
    write_whole(fmt::format("{}/step.{}.et", folder, rank), write_chakra(trace, rank));
  }
  write_whole(folder + "/comm_groups.json", write_trace_groups(trace));
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
