#include <array>
#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "models/base/output_file.hpp"
#include "sim/measured/command_formulas.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/plan/serving_plan_output.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> kOfTrainingPlans{"samples", "stack", "fold", "unfold"};

Answer formatted_service(const ServingPlanAnswer& answer, const std::string& format,
                         const TextStyle& style) {
  if (format == "json") return JsonText(serving_plan_json(answer));
  if (format == "csv") return serving_plan_csv(answer);
  if (format == "markdown") return serving_plan_markdown(answer);
  return Answer::terminal(serving_plan_table(answer, style));
}

void refuse_training_options(const ParsedOptions& options) {
  for (const std::string_view name : kOfTrainingPlans) {
    if (options.has(name)) {
      throw UsageError(fmt::format("--{}: no such option for the plan of a service", name));
    }
  }
}

ServingPlanReport sized_services(const ServingPlanSpec& spec, const ParsedOptions& options,
                                 Console& console) {
  const InterruptGuard guard;
  Progress progress(console.err, "plan", 1, console.err_is_terminal && !options.has("quiet"));
  return evaluate_serving_plan(
      spec, {.jobs = options.has("jobs") ? whole_number(options, "jobs", 1, kMostJobs) : 0,
             .progress = [&](std::size_t done, std::size_t most) { progress.update(done, most); },
             .interrupted = [] { return InterruptGuard::interrupted(); }});
}

}  // namespace

std::optional<nlohmann::ordered_json> serving_plan_point(const JsonCursor& root,
                                                         const PresetStore& presets,
                                                         const ParsedOptions& options,
                                                         Console& console) {
  refuse_training_options(options);
  const ServingPlanSpec spec = read_serving_plan(root, presets);
  const ServingPlanReport report = sized_services(spec, options, console);
  if (report.interrupted) return std::nullopt;
  return serving_plan_json({spec, report});
}

Exit answer_serving_plan(const JsonCursor& root, const PresetStore& presets,
                         const ParsedOptions& options, const std::string& format,
                         Console& console) {
  refuse_training_options(options);
  const ServingPlanSpec spec = read_serving_plan(root, presets);
  const ServingPlanReport report = sized_services(spec, options, console);
  if (report.interrupted) return Exit::interrupted;
  const ServingPlanAnswer answer{spec, report};
  if (options.has("report")) {
    OutputFile file(options.get("report"));
    const Behind behind(
        spec.file,
        explained_command(CommandAnswer::serving_plan, serving_plan_json(answer), root.json()),
        presets);
    file.write(serving_plan_page(answer, written_in(root), &behind));
    file.commit();
  }
  write_output(formatted_service(answer, format, output_style(options, console)), options, console);
  return Exit::ok;
}

}  // namespace lockstep
