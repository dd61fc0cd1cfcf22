/// A stack out of a recorded training step: what its kernels, launches and collectives say of the
/// software, and everything else as in a stack that ships.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// A value that the recording determines.
struct StackFinding {
  std::string path;        ///< of the preset: "features.fused_norm"
  std::string value;       ///< JSON
  std::size_t events = 0;  ///< from how many kernels, operators, calls or launches
  std::string from;        ///< in words: "48 kernels, such as rmsnorm_fwd_tuned_kernel"
};
/// One that it does not: as in the base.
struct UntoldValue {
  std::string path;
  std::string base;  ///< JSON
  std::string why;
};

struct RecordedStack {
  std::vector<StackFinding> read;
  std::vector<UntoldValue> untold;
  std::vector<std::string> notes;  ///< what no stack says, a sentence each
  std::string preset;              ///< JSON
};

/// What the recordings are laid over.
struct RecordedStackBase {
  std::string stack;           ///< a stack preset that says what it does
  bool named = false;          ///< by a person; else it is the neutral one
  double host_slowness = 1.0;  ///< of the processors that they were made on
};

/// Of recordings of a training step's ranks, with the host's part (read_step_recordings()). Throws
/// InputError where there is no backward pass, and for a base that does not say what it does.
RecordedStack recorded_stack(std::span<const KinetoRecording> recordings,
                             const RecordedStackBase& base, const PresetStore& presets);

}  // namespace lockstep
