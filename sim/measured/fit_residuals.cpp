#include "sim/measured/fit_residuals.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "sim/measured/fit.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/scenario/read_residuals.hpp"

namespace lockstep {
namespace {

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

}  // namespace

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

void add_default_stack(ResidualTable& residuals, std::vector<ReferenceRow> reference,
                       const PresetStore& presets, const std::vector<FitParameter>& constants) {
  for (ReferenceRow& row : reference) row.unnamed = true;
  const std::vector<FitRow> rows = fit_rows(reference, presets);
  const std::vector<double> errors = fit_errors(rows, constants);
  std::map<std::string_view, double> by_id;
  for (std::size_t i = 0; i < rows.size(); ++i) by_id[rows[i].id] = std::log1p(errors[i]);
  for (Residual& r : residuals) {
    if (const auto found = by_id.find(r.row); found != by_id.end()) r.as_default = found->second;
  }
}

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

}  // namespace lockstep
