/// Reads a profile: kernels and collectives that were timed on a card.
/// scenarios/profile.schema.json is the format.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/profile/kernel_profile.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Throws InputError, also for a format that the card lacks. `file` is the name for messages.
Profile read_profile(const std::string& file, std::string_view text, const PresetStore& presets);

/// The profile of a name: a file, else a preset of kind profiles, whose name then stands for the
/// file. Throws InputError.
Profile load_profile(const std::string& name, const PresetStore& presets);

/// The same of several; says in `assumptions` which times come from each.
std::vector<Profile> load_profiles(std::span<const std::string> names, const PresetStore& presets,
                                   std::vector<std::string>& assumptions);

/// The network of the node: what each GPU gets of its NICs.
NodeNetwork network_of(const NodeSpec& node, const TransportSpec& transport);

/// Corrects the node's card as its preset has it by the profiles. Throws InputError where one is of
/// another card, or has collectives over several nodes that it says ran on another network.
void apply_profiles(std::span<const Profile> profiles, NodeSpec& node,
                    const TransportSpec& transport);

}  // namespace lockstep
