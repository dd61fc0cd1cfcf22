#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

// Nodes of the presets have 1 to 16 NIC ports, nearly all of them 4 or 8.
TEST_CASE("every fabric preset: joins two nodes, and a hundred, of 4 NICs and of 8") {
  const PresetStore presets;
  for (const std::string& name : presets.names("fabrics")) {
    CAPTURE(name);
    const FabricSpec& spec = presets.fabric(name);
    for (const int nodes : {2, 100}) {
      for (const int nics : {4, 8}) {
        const auto found = check(spec, nodes, nics, gigabits_per_second(400));
        if (found) MESSAGE(found->field << ": found " << found->found << "; " << found->allowed);
        CHECK_FALSE(found);
      }
    }
  }
}

TEST_CASE("dgx_superpod_h100: its two layers of 64-port switches end at 256 nodes") {
  const PresetStore presets;
  const FabricSpec& spec = presets.fabric("dgx_superpod_h100");
  CHECK_FALSE(check(spec, 256, 8, gigabits_per_second(400)));
  const auto found = check(spec, 257, 8, gigabits_per_second(400));
  REQUIRE(found);
  CHECK(found->field == "levels");
}

}  // namespace
}  // namespace lockstep
