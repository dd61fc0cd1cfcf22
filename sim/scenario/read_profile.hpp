/// Reads a profile: kernels and collectives that were timed on a card.
/// scenarios/profile.schema.json is the format.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/kernels/kernel_profile.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Throws InputError, also for a format that the card lacks. `file` is the name for messages.
Profile read_profile(const std::string& file, std::string_view text, const PresetStore& presets);
/// What the JSON Schema of a profile says of its points, as their readers declare them.
nlohmann::ordered_json profile_points_schema();

/// The profile of a name: a file, else a preset of kind profiles, whose name then stands for the
/// file. Throws InputError.
Profile load_profile(const std::string& name, const PresetStore& presets);

/// Loads several profiles; adds to `assumptions` which times come from each.
std::vector<Profile> load_profiles(std::span<const std::string> names, const PresetStore& presets,
                                   std::vector<std::string>& assumptions);

/// The network of the node: what each GPU gets of its NICs.
NodeNetwork network_of(const NodeSpec& node, const TransportSpec& transport);

/// The card that a profile was measured on: `spec` under the profile's power limit, with the
/// NVLinks that it is sold with.
GpuSpec measured_card(const Profile& profile, const GpuSpec& spec);

/// Makes the node's card of its layers, always in this order: the datasheet and the laws (node.gpu,
/// as its preset or scenario has it), what was measured, a power cap. Measured times are held
/// against the laws at the power limit that they were measured under, so that a cap costs a kernel
/// the same share of its time with and without a profile. Throws InputError where a profile is of
/// another card, or has collectives over several nodes that it says ran on another network.
/// Requires a card without layers, and where there is a cap, lowest_cap() <= cap <= its limit.
void lay_card(NodeSpec& node, const TransportSpec& transport, std::span<const Profile> profiles,
              std::optional<Watts> cap);

}  // namespace lockstep
