/// Reads the specs of hardware, software, models and fabrics from JSON whose keys are the names of
/// their C++ members. Presets and scenarios share these readers: a scenario that refines a preset
/// reads its changes over the preset's values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/collectives/collectives.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

enum class Extent : std::uint8_t {
  whole,    ///< everything that has no sensible default must be there
  changes,  ///< only what differs from the values that the spec has
};

// Each reads the members of an object into `out`. They do not complain about other keys: the caller
// asks for its own ("preset", "releases") and then calls finish(); nested objects are finished.
// All throw InputError.
void read_gpu(const JsonCursor& from, Extent extent, const PresetStore& presets, GpuSpec& out);
void read_node(const JsonCursor& from, Extent extent, const PresetStore& presets, NodeSpec& out);
void read_model(const JsonCursor& from, Extent extent, TransformerShape& out);
void read_stack(const JsonCursor& from, Extent extent, StackSpec& out);
void read_fabric(const JsonCursor& from, Extent extent, const PresetStore& presets,
                 FabricSpec& out);
/// The modules that selective recomputation repeats: a list of names.
RecomputeModules read_recompute_modules(const JsonCursor& from);
/// A part of a fabric that is broken, slow or faster; finished.
FabricFault read_fabric_fault(const JsonCursor& from);
void read_transport(const JsonCursor& from, Extent extent, TransportSpec& out);
/// A transport by its name, by "preset" with changes to it, or by changes to what `name` and `own`
/// have: sets both.
void read_transport_choice(const JsonCursor& from, const PresetStore& presets, std::string& name,
                           std::optional<TransportSpec>& own);
void read_collectives(const JsonCursor& from, Extent extent, IntraNodeCollectives& out);
void read_gpu_power(const JsonCursor& from, Extent extent, GpuPowerConstants& out);
void read_chassis(const JsonCursor& from, Extent extent, ChassisSpec& out);
void read_facility(const JsonCursor& from, Extent extent, FacilitySpec& out);

/// A preset given by its name (a string), or by "preset" with changes to it: reads both forms.
/// The name is checked to be one of `kind`; returns it.
std::string read_preset_name(const JsonCursor& from, std::string_view kind,
                             const PresetStore& presets);

/// Largest values that are taken; they keep every product within 64 bits and every time finite.
constexpr int kMaxLayers = 10'000;
constexpr int kMaxWidth = 1 << 20;  ///< hidden, ffn
constexpr int kMaxVocabulary = 1 << 24;
constexpr int kMaxHeads = 1 << 16;
constexpr int kMaxTokens = 1 << 24;  ///< of a sequence
constexpr int kMaxGpusPerNode = 1024;

}  // namespace lockstep
