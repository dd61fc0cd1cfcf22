/// What both courses of lockstep-calibrate are made of: over the kernels of one card, and over the
/// collectives of several.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "tools/calibrate/calibrate.hpp"
#include "tools/calibrate/profile_text.hpp"
#include "tools/calibrate/session.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// What the command line says.
struct CalibrateSettings {
  std::string output, gpu, node, id_file;
  std::vector<std::string> only, presets;
  int minutes = 0;
  int device = 0;
};

/// assumed: writing the file, and what an estimate was short of.
constexpr double kReserveSeconds = 5;

/// The preset that --gpu names, or that the card's own name tells. Throws UsageError.
const GpuSpec& card_preset(const CalibrateSettings& settings, const std::string& card,
                           const PresetStore& presets);

CalibrateExit exit_of(SessionEnd end, int failed);

/// Prints the conditions, and writes the profile if it has points. `began`: the clock's reading.
void write_profile(const Calibration& calibration, const CalibrateSettings& settings, double began,
                   Console& console, const CalibrateWorld& world);

/// Where a call never came back: saves what is good and ends the program with
/// CalibrateExit::failed, also where it cannot be saved.
void save_and_end(const std::function<void()>& save, Console& console, const CalibrateWorld& world);

/// `lockstep-calibrate --nccl`: times collectives over the GPUs of all processes that were started
/// together. Every process runs it; rank 0 prints and writes.
CalibrateExit calibrate_collectives(const CalibrateSettings& settings, Console& console,
                                    const CalibrateWorld& world);

}  // namespace lockstep
