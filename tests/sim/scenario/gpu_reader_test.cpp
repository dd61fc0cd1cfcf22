// A scenario's card: a preset with changes, of which some change more than themselves.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

GpuSpec card_with(const std::vector<std::string>& sets, const std::string& node = "dgx_h100") {
  return read_scenario("card.json",
                       R"({"model": "llama3_8b", "cluster": {"node": ")" + node +
                           R"("}, "batch": {"sequences": 64, "tokens": 4096}})",
                       presets(), {.set = sets})
      .node.gpu;
}

/// Of an all-to-all of 1 GiB among eight GPUs of a node, as nccl-tests prints it.
double gigabytes_of_bus(const GpuSpec& gpu) {
  const CollectiveCall call{CollectiveOp::all_to_all, Bytes{1073741824}, 8, 8};
  const Seconds time =
      collective_time(call, gpu, presets().transport("infiniband"), gigabytes_per_second(50));
  return bus_factor(call.op, 8) * call.payload.base_units() / time.base_units() / 1e9;
}

const std::string kNvlink = "cluster.node.gpu.nvlink_bandwidth=";

}  // namespace

TEST_CASE("a card's NVLink rate: collectives inside the node follow it") {
  const double own = gigabytes_of_bus(card_with({}));
  CHECK(gigabytes_of_bus(card_with({kNvlink + "450 GB/s"})) == own);
  CHECK(gigabytes_of_bus(card_with({kNvlink + "225 GB/s"})) == test::near(own / 2).epsilon(0.05));
  CHECK(gigabytes_of_bus(card_with({kNvlink + "45 GB/s"})) == test::near(own / 10).epsilon(0.1));
  CHECK(gigabytes_of_bus(card_with({kNvlink + "900 GB/s"})) > 1.5 * own);
  const GpuSpec half = card_with({kNvlink + "225 GB/s"});
  CHECK(half.collectives.all_reduce.at(0).base ==
        presets().nvlink("hopper_nvlink4").all_reduce.at(0).base);
}

TEST_CASE("a card's NVLink rate: collectives that the scenario names stay as they are") {
  const GpuSpec named =
      card_with({kNvlink + "200 GB/s", "cluster.node.gpu.collectives=h800_nvlink4"});
  CHECK(named.nvlink_scale == 1);
  GpuSpec h800 = card_with({});
  h800.nvlink_bandwidth = named.nvlink_bandwidth;
  h800.collectives = presets().nvlink("h800_nvlink4");
  CHECK(gigabytes_of_bus(named) == gigabytes_of_bus(h800));
}

TEST_CASE("a card's NVLink rate: at 0 its collectives run over PCIe, at the lanes that it has") {
  const GpuSpec none = card_with({kNvlink + "0"});
  CHECK(none.nvlink_scale == 0);
  CHECK(gigabytes_of_bus(none) < 63);
  CHECK(gigabytes_of_bus(none) == gigabytes_of_bus(presets().gpu("h100_pcie_80gb")));
  // An A100 has PCIe 4.0, half of what the preset was measured on.
  const GpuSpec gen4 = card_with({kNvlink + "0"}, "dgx_a100_80gb");
  CHECK(gen4.collectives.all_to_all.back().bus_bandwidth ==
        0.5 * presets().nvlink("pcie").all_to_all.back().bus_bandwidth);
  // What joins a Grace to its GPU joins no two GPUs.
  const GpuSpec grace = card_with({kNvlink + "0"}, "gb200_nvl72");
  CHECK(grace.collectives.all_to_all.back().bus_bandwidth ==
        presets().nvlink("pcie").all_to_all.back().bus_bandwidth);
}

TEST_CASE("a card's NVLink rate: a card without any keeps the collectives that it names") {
  const GpuSpec bridged = card_with({"cluster.node.gpu=l40s_48gb", kNvlink + "50 GB/s"});
  CHECK(gigabytes_of_bus(bridged) == gigabytes_of_bus(presets().gpu("l40s_48gb")));
}

}  // namespace lockstep
