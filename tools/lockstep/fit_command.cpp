#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/base/output_file.hpp"
#include "sim/measured/fit.hpp"
#include "sim/measured/fit_residuals.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/measured/residuals_file.hpp"
#include "sim/measured/row_document.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/measured/fit_tables.hpp"

namespace lockstep {
namespace {

constexpr std::array kFitOptions{
    OptionSpec{"rows", 0, "FILE", false,
               "Fit to the rows of this file that do not contradict themselves (the format of "
               "tests/reference/training.json) instead of the project's own.",
               "--rows measured.json", PathUse::reads},
    OptionSpec{"constants", 0, "FILE", false,
               "What to fit, with priors, instead of the project's tests/reference/fit.json.",
               "--constants my-fit.json", PathUse::reads},
    OptionSpec{"leave-out", 0, "", false,
               "Also fit again without each source in turn, and predict that source: how well the "
               "constants carry over.",
               "--leave-out"},
    OptionSpec{"residuals", 0, "FILE", false,
               "With --leave-out: write what each row's prediction misses by with the presets, and "
               "with its source left out of the fit. The project's models/presets/accuracy/"
               "published.json, from which intervals of predictions come, is made so.",
               "--residuals models/presets/accuracy/published.json", PathUse::writes},
    OptionSpec{"write", 0, "", false,
               "Write the fitted constants into the preset files that hold them.", "--write"},
    kPresetsOption,
    kOutputOption,
};
constexpr std::array<std::string_view, 2> kFitExamples{
    "lockstep fit --leave-out",
    "lockstep fit --rows measured.json --presets ./my-presets --write",
};
constexpr CommandSpec kFitSpec{
    .name = "fit",
    .usage = "fit [options]",
    .summary = "Refit the constants to the published runs and report how well they generalise.",
    .about =
        "A few constants are known only from whole training runs: the clock that a kind of GPU\n"
        "sustains, what a release of a software stack hides and wastes. tests/reference/fit.json "
        "lists\n"
        "them with their priors; none belongs to a row. This command fits them all together and "
        "prints\n"
        "the errors that remain, by source.",
    .positionals = 0,
    .options = kFitOptions,
    .examples = kFitExamples,
};

Exit run_fit(const ParsedOptions& options, Console& console) {
  if (options.has("residuals") && !options.has("leave-out")) {
    throw UsageError("lockstep fit: --residuals is for --leave-out");
  }
  const PresetStore presets(options.all("presets"));
  const std::string rows_file =
      options.has("rows") ? options.get("rows") : reference_file(presets, "training.json");
  const std::string constants_file =
      options.has("constants") ? options.get("constants") : reference_file(presets, "fit.json");
  const auto reference = load_rows(rows_file, presets);
  const Vendors vendors = read_vendors(constants_file);
  const std::vector<FitRow> rows = fit_rows(reference, presets, vendors);
  const std::vector<FitParameter> priors = read_fit_parameters(constants_file);

  std::map<std::string, SourceErrors> sources;
  const auto collect = [&](const std::vector<double>& errors,
                           std::vector<double> SourceErrors::* to) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      (sources[rows[i].source].*to).push_back(errors[i]);
    }
  };
  collect(fit_errors(rows, priors), &SourceErrors::prior);
  std::vector<FitParameter> fitted = priors;
  fit(rows, fitted);
  collect(fit_errors(rows, fitted), &SourceErrors::fitted);
  std::string composed;
  const TextStyle style = output_style(options, console);
  if (options.has("leave-out")) {
    const auto held = options.has("write") ? fitted : decltype(fitted){};  // none: the presets'
    const std::vector<double> held_errors = fit_errors(rows, held);
    ResidualTable residuals;
    for (std::size_t i = 0; i < rows.size(); ++i)
      residuals.push_back(residual_of(rows[i], held_errors[i]));
    std::vector<std::string> names;
    names.reserve(sources.size());
    for (const auto& [source, errors] : sources) names.push_back(source);
    for (const FitRow& row : rows) {
      if (std::ranges::find(names, row.vendor) == names.end()) names.push_back(row.vendor);
    }
    const auto without = fit_without_each(rows, names, fitted);
    for (std::size_t n = 0; n < names.size(); ++n) {
      const std::vector<double> errors = fit_errors(rows, without[n]);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].source == names[n]) {
          residuals[i].left_out = std::log1p(errors[i]);
          sources[names[n]].left_out.push_back(errors[i]);
        }
        if (rows[i].vendor == names[n]) residuals[i].vendor_left_out = std::log1p(errors[i]);
      }
    }
    add_default_stack(residuals, reference, presets, held);
    std::map<std::string, std::vector<FitParameter>> by_vendor;
    for (std::size_t n = 0; n < names.size(); ++n) {
      const bool is_vendor =
          std::ranges::any_of(rows, [&](const FitRow& row) { return row.vendor == names[n]; });
      if (is_vendor) by_vendor[names[n]] = without[n];
    }
    add_composed(residuals, reference, presets, vendors, by_vendor);
    composed = table_of_composed(residuals, style);
    if (options.has("residuals")) {
      OutputFile file(options.get("residuals"));
      file.write(residuals_json(residuals));
      file.commit();
    }
  }
  write_output(Answer::terminal(table_of_constants(fitted, style) + "\n" +
                                table_of_errors(sources, style) + composed),
               options, console);
  if (options.has("write")) write_fit(fitted, presets);
  return Exit::ok;
}

}  // namespace

const Command& fit_command() {
  static const Command command{&kFitSpec, run_fit};
  return command;
}

}  // namespace lockstep
