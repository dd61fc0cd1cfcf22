/// Declares the members of specs of hardware, software, models and fabrics in JSON, whose keys are
/// the names of their C++ members. Presets and scenarios share these readers: a scenario that
/// refines a preset reads its changes over the preset's values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/collectives/collectives.hpp"
#include "models/spec/compose_stack.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

// Each declares the members of an object and the rules between them. They do not complain about
// other keys: who reads asks for its own ("preset", "releases") and then calls finish(); nested
// objects are finished. All throw InputError.
void declare_gpu(const DeclaredMembers& member, const PresetStore& presets, GpuSpec& out);
void declare_node(const DeclaredMembers& member, const PresetStore& presets, NodeSpec& out);
void declare_model(const DeclaredMembers& member, TransformerShape& out);
void declare_stack(const DeclaredMembers& member, StackSpec& out);
/// Parts of a layer run as CUDA graphs: takes the rest of the experts' host time off.
void leave_partial_graphs(StackSpec& stack);
/// What a stack does, switch by switch; beside the members of declare_stack(), in one object.
void declare_switches(const DeclaredMembers& member, StackSwitches& out);
/// What a stack's user taught it, by lockstep learn.
void declare_learnt(const DeclaredMembers& member, std::vector<LearntLevel>& out);
void declare_operator_costs(const DeclaredMembers& member, OperatorCosts& out);
void declare_fabric(const DeclaredMembers& member, const PresetStore& presets, FabricSpec& out);
void declare_attention_kernel(const DeclaredMembers& member, AttentionConstants& out);
void declare_transport(const DeclaredMembers& member, TransportSpec& out);
void declare_collectives(const DeclaredMembers& member, IntraNodeCollectives& out);
void declare_gpu_power(const DeclaredMembers& member, GpuPowerConstants& out);
void declare_chassis(const DeclaredMembers& member, ChassisSpec& out);
void declare_facility(const DeclaredMembers& member, FacilitySpec& out);
/// The modules that selective recomputation repeats: a list of names.
RecomputeModules read_recompute_modules(const JsonCursor& from);
/// The names of the modules, as that reads them.
nlohmann::ordered_json written_modules(const RecomputeModules& modules);
/// A part of a fabric that is broken, slow or faster; finished.
FabricFault read_fabric_fault(const JsonCursor& from);
/// A transport by its name, by "preset" with changes to it, or by changes to what `name` and `own`
/// have: sets both.
void read_transport_choice(const JsonCursor& from, const PresetStore& presets, std::string& name,
                           std::optional<TransportSpec>& own);
/// A preset given by its name (a string), or by "preset" with changes to it: reads both forms.
/// The name is checked to be one of `kind`; returns it.
std::string read_preset_name(const JsonCursor& from, std::string_view kind,
                             const PresetStore& presets);
/// A preset given by its name alone.
std::string read_bare_preset_name(const JsonCursor& from, std::string_view kind,
                                  const PresetStore& presets);

// Bounds that no real value leaves, and within which no product overflows.
inline constexpr Interval kLatency{0, 0.1};                      // seconds
inline constexpr Interval kRate{1e7, 1e16};                      // bytes per second
inline constexpr Interval kHbmRate{1e9, 1e16};                   // bytes per second
inline constexpr Interval kPeak{1e11, 1e20};                     // FLOP per second
inline constexpr Interval kPeakOrNone{1e11, 1e20, false, true};  // the same; 0: not supported
inline constexpr Interval kEfficiency{0.01, 1};
inline constexpr Interval kRatio{0.01, 100};
inline constexpr Interval kPerElement{0, 1000};  // bytes, tokens, kernels per something
inline constexpr Interval kMemory{1e6, 1e15};    // bytes
inline constexpr Interval kPower{1, 1e5};        // watts
inline constexpr Interval kSpread{0, 0.5};       // relative standard deviation
inline constexpr Interval kPrice{0, 1e6};

/// Largest values that are taken; they keep every product within 64 bits and every time finite.
constexpr int kMaxLayers = 10'000;
constexpr int kMaxWidth = 1 << 20;  ///< hidden, ffn
constexpr int kMaxVocabulary = 1 << 24;
constexpr int kMaxHeads = 1 << 16;
constexpr int kMaxTokens = 1 << 24;  ///< of a sequence
constexpr int kMaxGpusPerNode = 1024;

}  // namespace lockstep
