/// Holds collective times against nccl-tests and rccl-tests logs: `lockstep validate --nccl FILE`.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Predicts every row of a file of series (the format of tests/reference/nccl.json, which
/// tests/reference/README.md describes). A series says what it ran on: `gpu` names the preset by
/// chip, memory and socket ("H100-80GB SXM"), `inter` the transport and the NICs ("EFA v2 32x100
/// Gb/s per node"; one node needs none; a preset named after transport and GPU architecture,
/// slingshot_ampere, is preferred), `nodes`, `ranks`; nothing depends on the name of the system.
///
/// Measured is the out-of-place time, else the in-place one. Points are identified by system, gpu,
/// op, nodes, ranks, transport and bytes. The summary has all points; one node and several nodes by
/// payload, large (64 MB or more), medium, and small (64 KB or less); then each system and op. Of
/// large ones also by configuration, against the median of its repeats, and every repeat as a point
/// of its own (call_repeats.hpp). The notes say how far repeats over several nodes differ, and name
/// the ten large points there that are furthest off, with what the data say of the reason.
/// Left out, with the reason and the count: GPUs and networks that no preset is about, series that
/// their source flags as misconfigured, and those whose algorithm was forced by hand.
///
/// Throws InputError if the file is no such file.
PointTable validate_collectives(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
