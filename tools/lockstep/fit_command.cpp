#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/fit.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/measured/residuals_file.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"

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
               "With --leave-out: write what each row's prediction misses by, with its source in "
               "the fit and without. The project's models/presets/accuracy/published.json, from "
               "which intervals of predictions come, is made so.",
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

std::string table_of_constants(const std::vector<FitParameter>& parameters,
                               const TextStyle& style) {
  const std::vector<const FitParameter*> unexplained = at_bounds(parameters);
  TextTable table({{"constant", TextTable::Align::left},
                   {"prior"},
                   {"fitted"},
                   {"rows"},
                   {"", TextTable::Align::left}});
  for (const FitParameter& p : parameters) {
    table.add({fmt::format("{}/{}/{}", p.kind, p.preset, p.path), significant(p.prior),
               significant(p.value), std::to_string(p.rows),
               std::ranges::find(unexplained, &p) == unexplained.end() ? "" : "at its bound"});
  }
  std::string out = table.text(style);
  for (const FitParameter* p : unexplained) {
    out += fmt::format("unexplained: {}/{}/{} would be beyond {}\n", p->kind, p->preset, p->path,
                       significant(p->value));
  }
  return out;
}

struct SourceErrors {
  std::vector<double> prior, fitted, left_out;
};

std::string percent(const std::vector<double>& errors, double ErrorSummary::* member) {
  if (errors.empty()) return "-";
  return fmt::format("{:.1f} %", 100 * (summarise_errors(errors).*member));
}

std::string table_of_errors(const std::map<std::string, SourceErrors>& sources,
                            const TextStyle& style) {
  TextTable table({{"source", TextTable::Align::left},
                   {"rows"},
                   {"priors: median"},
                   {"p90"},
                   {"fitted: median"},
                   {"p90"},
                   {"bias"},
                   {"left out: median"},
                   {"p90"},
                   {"bias"}});
  SourceErrors all;
  const auto row = [&](const std::string& name, const SourceErrors& e) {
    table.add(
        {name, std::to_string(e.prior.size()), percent(e.prior, &ErrorSummary::median_abs),
         percent(e.prior, &ErrorSummary::p90_abs), percent(e.fitted, &ErrorSummary::median_abs),
         percent(e.fitted, &ErrorSummary::p90_abs), percent(e.fitted, &ErrorSummary::bias),
         percent(e.left_out, &ErrorSummary::median_abs),
         percent(e.left_out, &ErrorSummary::p90_abs), percent(e.left_out, &ErrorSummary::bias)});
  };
  std::vector<double> medians;
  for (const auto& [source, e] : sources) {
    row(source, e);
    for (const auto& [from, to] :
         {std::pair{&e.prior, &all.prior}, std::pair{&e.fitted, &all.fitted},
          std::pair{&e.left_out, &all.left_out}}) {
      to->insert(to->end(), from->begin(), from->end());
    }
    if (!e.left_out.empty()) medians.push_back(summarise_errors(e.left_out).median_abs);
  }
  row("all", all);
  std::string text = table.text(style);
  if (!medians.empty()) {
    text +=
        fmt::format("\nleft out in turn: median over sources {:.1f} %\n", 100 * median(medians));
  }
  return text;
}

Residual residual_of(const FitRow& row, double fitted_error) {
  Residual out{.row = row.id,
               .source = row.source,
               .vendor = row.vendor,
               .traits = traits_of(row.scenario),
               .fitted = std::log1p(fitted_error)};
  out.traits.release = row.release;
  out.traits.release_stands_in = false;
  return out;
}

/// Predicts the rows once more as if none of them said which software it ran.
void add_default_stack(ResidualTable& residuals, std::vector<ReferenceRow> reference,
                       const PresetStore& presets, const std::vector<FitParameter>& fitted) {
  for (ReferenceRow& row : reference) row.stack.clear();
  const std::vector<FitRow> rows = fit_rows(reference, presets);
  const std::vector<double> errors = fit_errors(rows, fitted);
  std::map<std::string_view, double> by_id;
  for (std::size_t i = 0; i < rows.size(); ++i) by_id[rows[i].id] = std::log1p(errors[i]);
  for (Residual& r : residuals) {
    if (const auto found = by_id.find(r.row); found != by_id.end()) r.as_default = found->second;
  }
}

/// Constants of GPUs alone, as a fit found them.
std::vector<FitParameter> of_gpus(const std::vector<FitParameter>& fitted) {
  std::vector<FitParameter> out;
  std::ranges::copy_if(fitted, std::back_inserter(out),
                       [](const FitParameter& p) { return p.kind == "gpus"; });
  return out;
}

/// The median over its sources of what each vendor's rows are off by in the median.
std::map<std::string, double> vendor_levels(const std::vector<FitRow>& rows,
                                            const std::vector<double>& errors) {
  std::map<std::string, std::map<std::string, std::vector<double>>> by;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    by[rows[i].vendor][rows[i].source].push_back(errors[i]);
  }
  std::map<std::string, double> out;
  for (const auto& [vendor, sources] : by) {
    std::vector<double> medians;
    for (const auto& [source, values] : sources) medians.push_back(median(values));
    out[vendor] = median(medians);
  }
  return out;
}

/// Predicts the rows with their software composed from what it does. `without` has, by vendor, the
/// constants that were fitted without it; the level common to all software is that of the others.
void add_composed(ResidualTable& residuals, std::vector<ReferenceRow> reference,
                  const PresetStore& presets, const Vendors& vendors,
                  const std::map<std::string, std::vector<FitParameter>>& without) {
  for (ReferenceRow& row : reference) row.composed = true;
  const std::vector<FitRow> rows = fit_rows(reference, presets, vendors);
  std::vector<double> errors(rows.size());
  for (const auto& [vendor, fitted] : without) {
    std::vector<FitRow> own;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].vendor != vendor) continue;
      own.push_back(rows[i]);
      places.push_back(i);
    }
    const std::vector<double> found = fit_errors(own, of_gpus(fitted));
    for (std::size_t k = 0; k < own.size(); ++k) errors[places[k]] = std::log1p(found[k]);
  }
  const std::map<std::string, double> levels = vendor_levels(rows, errors);
  std::map<std::string_view, double> by_id;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> others;
    for (const auto& [vendor, level] : levels) {
      if (vendor != rows[i].vendor) others.push_back(level);
    }
    by_id[rows[i].id] = errors[i] - (others.empty() ? 0 : median(others));
  }
  for (Residual& r : residuals) {
    if (const auto found = by_id.find(r.row); found != by_id.end()) r.composed = found->second;
  }
}

/// Errors of rows whose software was composed, whole vendors left out, by source; and over all.
std::string table_of_composed(const ResidualTable& residuals, const TextStyle& style) {
  std::map<std::string, std::vector<double>> sources;
  std::vector<double> all;
  for (const Residual& r : residuals) {
    if (!r.composed) continue;
    sources[r.source].push_back(std::expm1(*r.composed));
    all.push_back(std::expm1(*r.composed));
  }
  if (all.empty()) return {};
  TextTable table({{"composed, vendor left out", TextTable::Align::left},
                   {"rows"},
                   {"median"},
                   {"p90"},
                   {"bias"}});
  const auto row = [&](const std::string& name, const std::vector<double>& errors) {
    table.add({name, std::to_string(errors.size()), percent(errors, &ErrorSummary::median_abs),
               percent(errors, &ErrorSummary::p90_abs), percent(errors, &ErrorSummary::bias)});
  };
  std::vector<double> medians;
  for (const auto& [source, errors] : sources) {
    row(source, errors);
    medians.push_back(summarise_errors(errors).median_abs);
  }
  row("all", all);
  return "\n" + table.text(style) +
         fmt::format(
             "\ncomposed, whole vendors left out: median over sources {:.1f} %, 90th "
             "percentile of all rows {:.1f} %\n",
             100 * median(medians), 100 * summarise_errors(all).p90_abs);
}

Exit run_fit(const ParsedOptions& options, Console& console) {
  if (options.has("residuals") && !options.has("leave-out")) {
    throw UsageError("lockstep fit: --residuals is for --leave-out");
  }
  const PresetStore presets(options.all("presets"));
  const std::string rows_file =
      options.has("rows") ? options.get("rows") : reference_file(presets, "training.json");
  const std::string constants_file =
      options.has("constants") ? options.get("constants") : reference_file(presets, "fit.json");
  const auto reference = parse_rows(rows_file, read_text_file(rows_file));
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
  const std::vector<double> fitted_errors = fit_errors(rows, fitted);
  collect(fitted_errors, &SourceErrors::fitted);
  std::string composed;
  const TextStyle style = output_style(options, console);
  if (options.has("leave-out")) {
    ResidualTable residuals;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      residuals.push_back(residual_of(rows[i], fitted_errors[i]));
    }
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
    add_default_stack(residuals, reference, presets, fitted);
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
