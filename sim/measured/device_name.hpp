/// What a driver calls a card ("NVIDIA H100 80GB HBM3", "AMD Instinct MI300X VF"), beside a preset
/// of ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The chip in a driver's name, "h100"; empty where none is named ("AMD Radeon Graphics").
std::string chip_of(std::string_view device);

/// The presets of the card that a driver names: of its chip, in its form and with its memory, where
/// the name tells them. "NVIDIA H100 80GB HBM3" is one preset, "NVIDIA A100-SXM..." several.
std::vector<std::string> presets_of_device(std::string_view device, const PresetStore& presets);

/// Holds what a recording says of its card against the card that it is taken for. Throws InputError
/// for another chip. Adds a line to `notes` for the chip in another form or with other memory, and
/// for a name that tells no chip; an empty name says nothing. `option`: what named the preset, for
/// messages ("--gpu").
void check_device(const std::string& file, std::string_view device, const std::string& preset,
                  std::string_view option, const PresetStore& presets,
                  std::vector<std::string>& notes);

}  // namespace lockstep
