/// Re-makes the kernel constants of the GPU presets from measured kernels: `lockstep fit-kernels`.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/kernel_profile.hpp"
#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Constants of one part of one preset, fitted together.
struct KernelFit {
  std::string gpu;   ///< preset name
  std::string part;  ///< "gemm", "attention.flash3", "memory": where they go in the preset
  /// Key and value as presets write them: {"launch", "2.6 us"}.
  std::vector<std::pair<std::string, std::string>> constants;
  /// That no point depends on, at the centre of their plausible range.
  std::vector<std::pair<std::string, std::string>> untouched;
  bool in_preset = true;  ///< whether the preset has the part; `before` says nothing where not
  PointSummary before;    ///< with the constants of the preset
  PointSummary after;     ///< with the fitted ones, on the points that they were fitted to
  PointSummary held_out;  ///< each quarter of the points predicted by a fit to the other three
};

/// Fits every part of every GPU that a file has enough points of (see kernel_rows.hpp for formats).
///
/// Minimises the mean of |ln(predicted / measured)|, cut at 0.5, where sizes that training has
/// count three times, plus a quadratic penalty for leaving the range that is physically plausible:
/// a dozen measured products cannot move a constant far. The starting point and the centre of that
/// range are the same for all GPUs (fit_kernels.cpp), not the constants that the preset has. Throws
/// InputError for a file of another format.
std::vector<KernelFit> fit_gemm(const std::string& file, const PresetStore& presets);
std::vector<KernelFit> fit_attention(const std::string& file, const PresetStore& presets);
std::vector<KernelFit> fit_memory_kernels(const std::string& file, const PresetStore& presets);

/// Where a kind of kernels has fewer points, its constants stay as they are.
inline constexpr std::size_t kFewestFitPoints = 8;

/// Fits constants to the points of a profile and its card: products, attention by kernel,
/// memory-bound kernels. The clock under a lasting load is fitted where there are points of both
/// loads. What no point depends on is not among the constants.
std::vector<KernelFit> fit_profile(const Profile& profile, const PresetStore& presets);

/// For people: errors before, after and held out of each fit, then the constants as JSON that can
/// be copied into the preset.
std::string kernel_fits_text(const std::vector<KernelFit>& fits);

}  // namespace lockstep
