/// Constants of collectives fitted to a profile: of NVLink inside a node, of the transport between
/// nodes. For `lockstep validate --profile FILE --fit`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/kernels/kernel_profile.hpp"
#include "sim/measured/fit_kernels.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Part names: "nvlink.all_reduce" with constants "low_latency.base" and so on; "transport".
inline constexpr std::string_view kNvlinkPart = "nvlink.", kTransportPart = "transport";

/// One fit for each operation that has points enough inside one node, and one of the transport for
/// the points over several (the profile has to name the network). The loss is that of
/// fit_kernels.hpp, all points alike; the start, and the centre of what is plausible, is the
/// preset: a dozen points cannot move what they do not tell apart. Where all points of an operation
/// have as many GPUs, the latency of a step stays with the preset, and the base alone moves.
std::vector<KernelFit> fit_collectives(const Profile& profile, const PresetStore& presets);

/// Whether the fit is one of these.
bool is_collective_fit(const KernelFit& fit);

}  // namespace lockstep
