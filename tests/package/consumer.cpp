// Uses each folder of the installed library once: succeeds when it compiles, links and adds up.
#include "models/precision.hpp"
#include "models/units.hpp"
#include "sim/core/clock.hpp"
#include "topologies/fabric.hpp"

int main() {
  const lockstep::FabricSpec fabric{};
  const lockstep::StepTime tick = lockstep::to_step_time(lockstep::microseconds(1));
  const bool ok = lockstep::info(lockstep::Precision::bf16).name == "bf16" && tick.ps == 1000000 &&
                  fabric.levels == 2;
  return ok ? 0 : 1;
}
