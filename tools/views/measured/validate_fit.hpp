/// `lockstep validate --profile FILE --fit`: constants of a card and its fabric fitted to a
/// profile.
#pragma once

#include <string>
#include <vector>

#include "models/kernels/kernel_profile.hpp"
#include "sim/measured/fit_kernels.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// What a profile says of the constants of its card and of what joins cards.
struct ProfileFit {
  Profile profile;
  std::vector<KernelFit> fits;
  std::vector<std::string> not_fitted;  ///< a line for each kind of points, with the reason
};

/// `name`: of a profile's file or preset. Throws InputError, also where no kind has enough points.
ProfileFit fit_profile_of(const std::string& name, const PresetStore& presets);

/// Errors of each kind of kernel with the preset's constants, with the fitted ones, and on points
/// that were left out of the fit; then the constants as JSON to copy into a preset.
std::string profile_fit_table(const ProfileFit& fit, const TextStyle& style);
/// {"gpu", "parts": [{"part", "constants", "preset", "fitted", "left_out"}], "not_fitted"}; errors
/// as in the summary of validate's points, null of what the preset has not.
JsonText profile_fit_json(const ProfileFit& fit);
/// A line for each constant: its part, name, value and the part's errors.
CsvText profile_fit_csv(const ProfileFit& fit);

/// The card's preset as its file has it with the fitted constants, each with the profile as its
/// source. Of a profile of collectives alone the preset of the card's NVLink, and where they all
/// run over several nodes that of the transport.
std::string fitted_preset(const ProfileFit& fit, const PresetStore& presets);

}  // namespace lockstep
