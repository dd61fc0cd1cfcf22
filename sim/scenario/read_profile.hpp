/// Reads a profile: kernels that were timed on a card. scenarios/profile.schema.json is the format.
#pragma once

#include <string>
#include <string_view>

#include "models/profile/kernel_profile.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Throws InputError, also for a format that the card lacks. `file` is the name for messages.
Profile read_profile(const std::string& file, std::string_view text, const PresetStore& presets);

/// The card as its preset has it, corrected by the profile. Throws InputError where the profile is
/// of another card.
void apply_profile(const Profile& profile, GpuSpec& gpu);

}  // namespace lockstep
