// Uses each folder of the installed library once: succeeds when it compiles, links, adds up, and
// reads presets. Prints the folder that they are from.
#include <cstdio>
#include <exception>
#include <string>

#include "models/base/units.hpp"
#include "models/spec/precision.hpp"
#include "sim/core/clock.hpp"
#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/fabric.hpp"

int main() {
  const lockstep::FabricSpec fabric{};
  const lockstep::StepTime tick = lockstep::to_step_time(lockstep::microseconds(1));
  const bool ok = lockstep::info(lockstep::Precision::bf16).name == "bf16" && tick.ps == 1000000 &&
                  fabric.levels == 2;
  if (!ok) return 1;
  try {
    const lockstep::PresetStore presets;
    std::puts(presets.path("models", "llama3_8b").c_str());
    return presets.model("llama3_8b").layers == 32 ? 0 : 1;
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
}
