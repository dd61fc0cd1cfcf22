#include "tools/lockstep/job/job_import.hpp"

#include <array>
#include <ostream>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/launch/job_report.hpp"

namespace lockstep {
namespace {

constexpr int kMostImportedNodes = 1'000'000;
constexpr int kMostImportedTokens = 1 << 24;
constexpr std::array<std::string_view, 2> kJobReportFormats{"table", "json"};

JobImportOptions job_options(const ParsedOptions& options) {
  JobImportOptions out;
  out.node = options.get("node");
  if (options.has("nodes")) out.nodes = whole_number(options, "nodes", 1, kMostImportedNodes);
  if (options.has("tokens")) out.tokens = whole_number(options, "tokens", 1, kMostImportedTokens);
  out.model = model_option(options);
  out.set = options.all("set");
  const std::string file = options.get("output", "-");
  if (file != "-") out.scenario_file = file;
  return out;
}

}  // namespace

Exit import_job_files(const ParsedOptions& options, const std::vector<std::string>& files,
                      const PresetStore& presets, Console& console) {
  const bool json = options.choice("format", kJobReportFormats) == "json";
  const JobImportOptions job = job_options(options);
  JobImport imported;
  const bool to_file = !job.scenario_file.empty();
  try {
    (void)import_job(files, job, presets, &imported);
  } catch (const InputError&) {
    if (!json) console.err << terminal_text(job_report(imported, TextStyle{}));
    throw;
  }
  if (to_file) write_output(Answer::file(imported.scenario), options, console);
  if (json) {
    console.out << JsonText(job_report_json(imported)).str();
    return Exit::ok;
  }
  std::ostream& report = to_file ? console.out : console.err;
  report << terminal_text(job_report(imported, to_file ? console.style : TextStyle{}));
  if (!to_file) write_output(Answer::file(imported.scenario), options, console);
  return Exit::ok;
}

}  // namespace lockstep
