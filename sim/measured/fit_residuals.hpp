/// What published rows miss with constants that are fitted, with the source or the vendor left out,
/// and with composed software.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/accuracy/residuals.hpp"
#include "sim/measured/fit.hpp"
#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// A row and what it missed with the constants that presets hold; what it misses with others is not
/// known yet.
Residual residual_of(const FitRow& row, double fitted_error);

/// Predicts the rows with the neutral stack, as where nobody says what ran, and with `constants` in
/// place of those that the presets hold.
void add_default_stack(ResidualTable& residuals, std::vector<ReferenceRow> reference,
                       const PresetStore& presets, const std::vector<FitParameter>& constants);

/// Predicts the rows with their software composed from what it does. `without` has, by vendor, the
/// constants that were fitted without it; the level common to all software is that of the others.
void add_composed(ResidualTable& residuals, std::vector<ReferenceRow> reference,
                  const PresetStore& presets, const Vendors& vendors,
                  const std::map<std::string, std::vector<FitParameter>>& without);

}  // namespace lockstep
