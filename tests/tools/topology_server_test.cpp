#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// A <pci> of a GPU whose NVLinks lead to a switch.
std::string switched_gpu(int number, const std::string& device) {
  const std::string n = std::to_string(number);
  return "<pci busid=\"000" + n + ":01:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"" +
         device + "\"><gpu dev=\"" + n +
         "\"><nvlink target=\"fff:ff:ff.f\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>";
}

std::string google_nic(int number) {
  const std::string n = std::to_string(number);
  return "<pci busid=\"0000:0" + n + ":00.0\" class=\"0x020000\" vendor=\"0x1ae0\" " +
         "device=\"0x0084\"><nic><net name=\"eth" + n + "\" speed=\"200000\"/></nic></pci>";
}

std::string system_of(const std::string& devices) {
  return "<system version=\"1\"><cpu numaid=\"0\">" + devices + "</cpu></system>";
}

}  // namespace

TEST_CASE("lockstep topology import: a tray of an NVL72 is joined with its rack") {
  const TemporaryFolder folder;
  std::string tray, board;
  for (int i = 0; i < 4; ++i) tray += switched_gpu(i, "0x2941");
  for (int i = 0; i < 4; ++i) board += switched_gpu(i, "0x2330");
  const std::string nic =
      "<pci busid=\"0000:09:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\"><nic>"
      "<net name=\"mlx5_0\" speed=\"400000\"/></nic></pci>";
  const Ran rack =
      lockstep_with({"topology", "import", folder.write("tray.xml", system_of(tray + nic))});
  REQUIRE_MESSAGE(rack.exit == Exit::ok, rack.err);
  CHECK(nlohmann::json::parse(rack.out)["gpus"] == 4);
  CHECK(nlohmann::json::parse(rack.out)["nvlink_domain"] == 72);
  CHECK(rack.err.find("join the trays of a rack, which no tray tells: 72 GPUs") !=
        std::string::npos);
  // H100 have no racks.
  const Ran hopper =
      lockstep_with({"topology", "import", folder.write("h100.xml", system_of(board + nic))});
  CHECK(nlohmann::json::parse(hopper.out)["nvlink_domain"] == 4);
}

TEST_CASE("lockstep topology import: Google's interfaces carry TCPX, or TCPXO with one for a GPU") {
  const TemporaryFolder folder;
  const std::string gpus = switched_gpu(0, "0x2330") + switched_gpu(1, "0x2330");
  const auto transport = [&](const std::string& devices) {
    const std::string file = folder.write("a3.xml", system_of(devices));
    return nlohmann::json::parse(lockstep_with({"topology", "import", file}).out)["transport"];
  };
  CHECK(transport(gpus + google_nic(1) + google_nic(2)) == "tcpxo");
  CHECK(transport(gpus + google_nic(1)) == "tcpx");
  CHECK(transport(switched_gpu(0, "0x20b0") + google_nic(1)) == "ethernet");
}

TEST_CASE("lockstep topology import: NICs that a server does not list are counted by --nics") {
  const TemporaryFolder folder;
  const std::string bare =
      folder.write("bare.txt", "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n");
  std::vector<std::string> args{"topology", "import",   bare,          "--gpu", "a100_pcie_80gb",
                                "--rate",   "100 Gb/s", "--transport", "roce"};
  const Ran without = lockstep_with(args);
  CHECK(without.exit == Exit::bad_input);
  CHECK(without.err == bare +
                           ": found no NICs; allowed: a server with at least one NIC for its "
                           "network; --nics N and --rate tell of NICs that the file does not "
                           "list\n");
  args.insert(args.end(), {"--nics", "2"});
  const Ran with = lockstep_with(args);
  REQUIRE_MESSAGE(with.exit == Exit::ok, with.err);
  CHECK(nlohmann::json::parse(with.out)["nics"] == 2);
  CHECK(with.err.find("NICs are not listed; their number is that of --nics") != std::string::npos);
  args[2] = folder.write("one.txt", "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n");
  CHECK(lockstep_with(args).err ==
        args[2] +
            ": found 1 NICs, and --nics; allowed: --nics where the description lists no NIC\n");
}

TEST_CASE("lockstep topology import: lists of topology.yaml may be lists of YAML") {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "topology.yaml",
      "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
      "      - {switch: top, children: [s1, s2]}\n      - {switch: s1, nodes: 'n[1-4]'}\n"
      "      - {switch: s2, nodes: [n5, n6]}\n");
  const Ran ran = lockstep_with({"topology", "import", file, "--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(nlohmann::json::parse(ran.out)["hosts"].size() == 6);
}
