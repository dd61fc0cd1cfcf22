#include "tools/views/measured/fit_tables.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "models/base/number_text.hpp"
#include "sim/measured/fit.hpp"
#include "sim/measured/statistics.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

std::string percent(const std::vector<double>& errors, double ErrorSummary::* member) {
  if (errors.empty()) return "-";
  return fmt::format("{:.1f} %", 100 * (summarise_errors(errors).*member));
}

}  // namespace

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

}  // namespace lockstep
