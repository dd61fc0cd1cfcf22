/// Fits the constants that only whole training runs identify: a sustained clock per kind of GPU,
/// what a software stack hides and wastes. tests/reference/fit.json lists them with their priors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// One constant: a number of a preset. Fitted as prior * exp(x), x normal with deviation `spread`.
struct FitParameter {
  std::string kind;    ///< "gpus", "stacks"
  std::string preset;  ///< "h100_sxm5_80gb"
  std::string path;    ///< "gemm.sustained"; a stack's may be "releases.24.05.elementwise.slowdown"
  std::string why;     ///< what it stands for
  double prior = 1;
  double spread = 0.1;  ///< relative
  double min = 0, max = 1;
  double value = 1;      ///< the fit's answer, to three digits
  std::size_t rows = 0;  ///< that depend on it
};

/// Reads the list. Throws InputError.
std::vector<FitParameter> read_fit_parameters(const std::string& file);

/// Who is behind sources: of each, the one that fit.json names, else the source itself.
using Vendors = std::map<std::string, std::string>;
/// Throws InputError.
Vendors read_vendors(const std::string& file);

/// A measured row as the fit sees it.
struct FitRow {
  std::string id, source;
  std::string vendor;   ///< whom several sources may belong to
  std::string release;  ///< as the row states it
  Scenario scenario;
  double measured_s = 0;
};

/// Complete rows with a step time that can be simulated.
std::vector<FitRow> fit_rows(const std::vector<ReferenceRow>& rows, const PresetStore& presets,
                             const Vendors& vendors = {});

/// Predicted over measured, minus 1, of every row with these constants. Rows run on all cores.
std::vector<double> fit_errors(const std::vector<FitRow>& rows,
                               const std::vector<FitParameter>& parameters);

/// Levenberg-Marquardt on log(predicted / measured) with Huber weights (rows beyond 10 % count
/// less) and the priors as further residuals; starts from the values, and leaves them rounded to
/// the three digits that presets hold. Deterministic.
void fit(const std::vector<FitRow>& rows, std::vector<FitParameter>& parameters);

/// Constants that stopped at a bound: more than their priors' plausible range explains.
std::vector<const FitParameter*> at_bounds(const std::vector<FitParameter>& parameters);

/// The constants as fitted without each source, or vendor, in turn, from those fitted to all rows.
/// Predictions are taken as linear in the logarithms of the constants, as they are at `fitted`, so
/// that all sources together cost one round of derivatives. Predict with the result: that is exact
/// again.
std::vector<std::vector<FitParameter>> fit_without_each(const std::vector<FitRow>& rows,
                                                        const std::vector<std::string>& names,
                                                        const std::vector<FitParameter>& fitted);

/// Writes the values into the preset files, each with the fit as its source, and into the stacks'
/// which of them are at a bound.
void write_fit(const std::vector<FitParameter>& parameters, const PresetStore& presets);

}  // namespace lockstep
