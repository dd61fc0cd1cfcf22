/// What keys of launch files say together, and what their software does where they say nothing. For
/// sim/launch/sketch_job.cpp, when all keys are read.
#pragma once

#include "sim/launch/launch_files.hpp"

namespace lockstep {

/// Whether one of the files is of that kind.
bool has_part(const LaunchFiles& files, LaunchKind kind);

/// By the rules of the one framework whose files they are.
void settle_framework(const LaunchFiles& files, SketchedJob& sketched);
/// Of files that are named and not here, sharding, formats and recomputation: whoever has the keys.
void settle_job(const LaunchFiles& files, SketchedJob& sketched);

}  // namespace lockstep
