#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kHops =
    "=============== ROCm System Management Interface ===============\n"
    "================== Hops between two GPUs ==================\n"
    "       GPU0         GPU1         GPU2         GPU3\n"
    "GPU0   0            1            2            2\n"
    "GPU1   1            0            2            2\n"
    "GPU2   2            2            0            1\n"
    "GPU3   2            2            1            0\n\n";
const std::string kTitle = "================ Link Type between two GPUs ================\n";
const std::string kHeading = "       GPU0         GPU1         GPU2         GPU3\n";
const std::string kPairs =
    "GPU0   0            XGMI         PCIE         PCIE\n"
    "GPU1   XGMI         0            PCIE         PCIE\n"
    "GPU2   PCIE         PCIE         0            XGMI\n"
    "GPU3   PCIE         PCIE         XGMI         0\n";
const std::string kEnd =
    "\n======================== Numa Nodes ========================\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\n";

Ran imported(const std::string& text, const std::string& gpu) {
  const TemporaryFolder folder;
  return lockstep_with({"topology", "import", folder.write("topo.txt", text), "--gpu", gpu,
                        "--nics", "4", "--rate", "200 Gb/s"});
}

}  // namespace

TEST_CASE("lockstep topology import: rocm-smi tells which GPUs xGMI joins") {
  const Ran pairs = imported(kHops + kTitle + kHeading + kPairs + kEnd, "mi300x");
  REQUIRE_MESSAGE(pairs.exit == Exit::ok, pairs.err);
  const auto node = nlohmann::json::parse(pairs.out);
  CHECK(node["gpu"] == "mi300x");
  CHECK(node["gpus"] == 4);
  CHECK(node["nvlink_domain"] == 2);
  CHECK(node["nics"] == 4);
  CHECK_MESSAGE(pairs.err.find("xGMI joins 2 GPUs") != std::string::npos, pairs.err);
  // Each device of an MI250X is one of its two dies. A chain joins them all.
  const Ran chain = imported(kTitle + kHeading +
                                 "GPU0 0 XGMI PCIE PCIE\nGPU1 XGMI 0 XGMI PCIE\n"
                                 "GPU2 PCIE XGMI 0 XGMI\nGPU3 PCIE PCIE XGMI 0\n",
                             "mi250x");
  REQUIRE_MESSAGE(chain.exit == Exit::ok, chain.err);
  CHECK(nlohmann::json::parse(chain.out)["gpu"] == "mi250x_gcd");
  CHECK(nlohmann::json::parse(chain.out)["nvlink_domain"] == 4);
}

TEST_CASE("lockstep topology import: mistakes in what rocm-smi printed have their line") {
  const auto fails = [](const std::string& text, const std::string& message) {
    const Ran ran = imported(text, "mi300x");
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find(message) != std::string::npos, ran.err);
  };
  fails(kTitle + "  GPU0 GPU1\nGPU0 0 XGMI\n",
        "topo.txt:4: found the end of the file; allowed: the row of GPU1");
  fails(kTitle + "  GPU0 GPU1\nGPU0 0 XGMI\nGPU2 XGMI 0\n",
        "topo.txt:4: found \"GPU2\"; allowed: the row of GPU1");
  fails(kTitle + "  GPU0 GPU1\nGPU0 0\n",
        "topo.txt:3: found 1 cells; allowed: 2, one for each GPU of the first line");
  fails(kTitle + "  GPU0 GPU1\nGPU0 0 NV4\n",
        "topo.txt:3: found \"NV4\"; allowed: XGMI, PCIE or XXXX (unknown)");
  fails(kTitle + "  GPU0 GPU1\nGPU0 XGMI XGMI\n",
        "topo.txt:3: found \"XGMI\"; allowed: 0 where a GPU meets itself");
}
