#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kSource = LOCKSTEP_SOURCE_DIR;
const std::string kRails = kSource + "/tests/reference/infiniband/rails4x4.ibnetdiscover";

}  // namespace

TEST_CASE("lockstep topology: imports, exports to every format and imports the same again") {
  const TemporaryFolder folder;
  const std::string fabric = folder.path() + "/fabric.json";
  const std::string hosts = folder.write("hosts.txt", "node 3\nnode 1\n");
  const Ran ran = lockstep_with({"topology", "import", kRails, "--hosts", hosts, "-o", fabric});
  CHECK(ran.err.empty());
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out == "ibnetdiscover, ibsim: 4 hosts, 16 NICs of 25 GB/s, 6 switches, 32 cables\n");
  const auto written = nlohmann::json::parse(read_text_file(fabric));
  CHECK(written["hosts"][0]["name"] == "node 3");
  CHECK(written["hosts"][1]["name"] == "node 1");
  for (const char* format : {"ibsim", "graphml", "dot", "fabric"}) {
    CAPTURE(format);
    const std::string file = folder.path() + "/out." + format;
    CHECK(lockstep_with({"topology", "export", fabric, "--format", format, "-o", file}).exit ==
          Exit::ok);
    const Ran again = lockstep_with({"topology", "import", file, "--hosts", hosts});
    CHECK(again.exit == Exit::ok);
    const auto back = nlohmann::json::parse(again.out);
    for (const char* key : {"hosts", "switches", "cables"}) CHECK(back[key] == written[key]);
  }
}

TEST_CASE("lockstep topology show: figures as a table and as JSON, with a picture") {
  const TemporaryFolder folder;
  const std::string picture = folder.path() + "/fabric.svg";
  const Ran ran = lockstep_with({"topology", "show", kRails, "--svg", picture});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("4 cables at most") != std::string::npos);
  CHECK(read_text_file(picture).starts_with("<svg "));
  const auto json =
      nlohmann::json::parse(lockstep_with({"topology", "show", kRails, "--format", "json"}).out);
  CHECK(json["diameter_cables"] == 4);
  CHECK(json["bisection_bytes_per_s"] == json["half_injection_bytes_per_s"]);
}

TEST_CASE("lockstep topology show: a scenario's faults are down in the picture") {
  const TemporaryFolder folder;
  const std::string picture = folder.path() + "/fabric.svg";
  const Ran ran = lockstep_with({"topology", "show", kSource + "/scenarios/comm/broken-fabric.json",
                                 "--format", "json", "--svg", picture});
  REQUIRE(ran.exit == Exit::ok);
  const auto json = nlohmann::json::parse(ran.out);
  // The four cables of a spine, one by name, two by a seed, which takes one of them again.
  CHECK(json["down_cables"] == 6);
  CHECK(json["cables"] == 32 + 4 * 8 - 6);
  CHECK(read_text_file(picture).find("58 cables, 6 more are down") != std::string::npos);
}

TEST_CASE(
    "lockstep topology: a mistake is one line with the line's number, and nothing is written") {
  const TemporaryFolder folder;
  const std::string wrong = folder.write("topology.conf", "SwitchName=a Nodes=n[1-2]\nSwichName=b");
  const std::string out = folder.path() + "/fabric.json";
  const Ran ran = lockstep_with({"topology", "import", wrong, "--rate", "400 Gb/s", "-o", out});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with(wrong + ":2: found \"SwichName\"; allowed: SwitchName, "));
  CHECK(ran.err.ends_with("Did you mean \"SwitchName\"?\n"));
  CHECK_FALSE(std::filesystem::exists(out));
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"topology", "show", "fat_tre", "--node", "dgx_h100", "--nodes", "16"},
       "fat_tre: found no such file, and no fabric of that name; allowed: a file, or a name of "
       "lockstep list fabrics. Did you mean \"fat_tree\"?\n"},
      {{"topology"}, "lockstep topology: nothing to do; "},
      {{"topology", "shew", "x"}, "lockstep topology: unknown action \"shew\"; allowed: import, "},
      {{"topology", "show"}, "lockstep topology show: no file; "},
      {{"topology", "show", "rail_optimised"}, "lockstep topology: fabric preset "},
      {{"topology", "export", kRails}, "lockstep topology export: --format is missing; "},
      {{"topology", "show", folder.path()}, folder.path() + ": found a directory; "},
      {{"topology", "show", kRails, "--nodes", "4"}, "lockstep topology: --nodes is for scenarios"},
      {{"topology", "show", "fat_tree", "--node", "dgx_h100", "--nodes", "0"},
       "command line#/cluster/nodes: found 0 (--nodes 0); allowed: "},
  };
  for (const auto& [args, message] : mistakes) {
    const Ran found = lockstep_with(args);
    CHECK(found.exit == Exit::bad_input);
    CHECK_MESSAGE(found.err.starts_with(message), found.err);
  }
}

namespace {

std::string comm_scenario(const std::string& node, int nodes, const std::string& fabric) {
  return R"({"cluster": {"node": )" + node + R"(, "nodes": )" + std::to_string(nodes) +
         R"(, "fabric": )" + fabric +
         R"(}, "traffic": [{"kind": "permutation", "size": "64 MiB", "as": "flows"}]})";
}

nlohmann::json answer_of_comm(const std::string& file) {
  const Ran ran = lockstep_with({"comm", file, "--format", "json"});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return nlohmann::json::parse(ran.out);
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

}  // namespace

TEST_CASE("lockstep topology export: a fabric carries messages as it did before its export") {
  const TemporaryFolder folder;
  for (const char* fabric :
       {R"("fat_tree_ecmp")", R"("rail_optimised")",
        R"({"kind": "fat_tree", "routing": "adaptive", "leaf_oversubscription": 2,
            "leaf_ports_down": 16})",
        R"({"kind": "dragonfly", "leaf_ports_down": 8, "routing": "adaptive",
            "nonminimal_share": 0.25})"}) {
    CAPTURE(fabric);
    const std::string own = folder.write("own.json", comm_scenario(R"("dgx_h100")", 32, fabric));
    const std::string drawn = folder.path() + "/drawn.json";
    REQUIRE(lockstep_with({"topology", "export", own, "--format", "fabric", "-o", drawn}).exit ==
            Exit::ok);
    const std::string copy = folder.write(
        "copy.json",
        comm_scenario(R"("dgx_h100")", 32, R"({"kind": "file", "file": "drawn.json"})"));
    const nlohmann::json before = answer_of_comm(own), after = answer_of_comm(copy);
    CHECK(after["end_s"].get<double>() ==
          doctest::Approx(before["end_s"].get<double>()).epsilon(1e-9));
    CHECK(after["assumptions"].dump().find("does not tell") == std::string::npos);
  }
}

TEST_CASE("lockstep topology export: what a format or file cannot say is said") {
  const TemporaryFolder folder;
  const std::string own =
      folder.write("own.json", comm_scenario(R"("dgx_h100")", 4, R"("fat_tree_ecmp")"));
  const Ran dot = lockstep_with({"topology", "export", own, "--format", "dot"});
  CHECK(dot.err.find("left out, for dot cannot say it: routing ecmp") != std::string::npos);
  folder.write("drawn.dot", dot.out);
  const std::string copy = folder.write(
      "copy.json", comm_scenario(R"("dgx_h100")", 4, R"({"kind": "file", "file": "drawn.dot"})"));
  const std::string assumed = answer_of_comm(copy)["assumptions"].dump();
  CHECK(assumed.find("fabric.routing: spray (drawn.dot does not tell)") != std::string::npos);
  CHECK(assumed.find("fabric.transport: the node's (drawn.dot does not tell)") !=
        std::string::npos);
  const std::string said = folder.write(
      "said.json", comm_scenario(R"("dgx_h100")", 4,
                                 R"({"kind": "file", "file": "drawn.dot", "routing": "ecmp",
                                     "switch_latency": "600 ns", "transport": "infiniband"})"));
  CHECK(answer_of_comm(said)["assumptions"].dump().find("does not tell") == std::string::npos);
}

TEST_CASE("lockstep comm: the headline has the rate of the cables, and a note where NICs differ") {
  const TemporaryFolder folder;
  const std::string net = read_text_file(kSource + "/tests/reference/infiniband/rails4x4.net");
  const std::string slow = folder.write("slow.net", replaced(net, "4xHDR", "4xSDR"));
  const std::string fabric = folder.path() + "/slow.json";
  const Ran import = lockstep_with({"topology", "import", slow, "-o", fabric});
  CHECK(import.out.find("16 NICs of 8 Gb/s") != std::string::npos);
  CHECK(lockstep_with({"topology", "show", fabric}).out.find("16 NICs of 8 Gb/s") !=
        std::string::npos);
  const std::string file =
      folder.write("slow.comm.json", comm_scenario(R"({"preset": "dgx_h100", "nics": 4})", 4,
                                                   R"({"kind": "file", "file": "slow.json"})"));
  const Ran ran = lockstep_with({"comm", file});
  CHECK(ran.out.find("16 NICs of 8 Gb/s") != std::string::npos);
  CHECK(answer_of_comm(file)["assumptions"].dump().find(
            "NICs send at 8 Gb/s, the rate of their cables in slow.json; those of dgx_h100 could "
            "send at 50 GB/s") != std::string::npos);
  const auto entry = answer_of_comm(file)["traffic"][0];
  CHECK(entry["line_rate_share"].get<double>() ==
        doctest::Approx(entry["nic_bytes_per_s"].get<double>() / 1e9));
  CHECK(entry["line_rate_share"].get<double>() > 0.5);
}

TEST_CASE("lockstep topology import: SHARP aggregation nodes are left out, with their number") {
  const TemporaryFolder folder;
  const std::string tree =
      read_text_file(kSource + "/tests/reference/infiniband/tree16.ibnetdiscover");
  const std::string file = folder.write(
      "sharp.txt",
      replaced(tree, "\"node 15 nic 0\"", "\"Mellanox Technologies Aggregation Node\""));
  const Ran ran = lockstep_with({"topology", "import", file, "-o", folder.path() + "/out.json"});
  CHECK(ran.out.find("15 hosts, 15 NICs of 25 GB/s, 20 switches") != std::string::npos);
  CHECK(ran.out.find("assumed: 1 SHARP aggregation node of switches is left out.") !=
        std::string::npos);
}

TEST_CASE("lockstep topology import: an MI250X die is half a card") {
  const TemporaryFolder folder;
  std::string xml = read_text_file(kSource + "/tests/reference/formats/nccl-topology.xml");
  xml = replaced(xml, R"(vendor="0x10de" device="0x2330")", R"(vendor="0x1002" device="0x740c")");
  xml = replaced(xml, "0x030200", "0x038000");
  const Ran ran = lockstep_with({"topology", "import", folder.write("mi.xml", xml)});
  REQUIRE(ran.exit == Exit::ok);
  const auto node = nlohmann::json::parse(ran.out);
  CHECK(node["gpus"] == 2);
  CHECK(node["gpu"] == "mi250x_gcd");
}

TEST_CASE("lockstep topology import: a PCI device without a class is a bridge, as NCCL has it") {
  const TemporaryFolder folder;
  const std::string xml = read_text_file(kSource + "/tests/reference/formats/nccl-topology.xml");
  const std::string bridges = replaced(xml,
                                       R"(class="0x060400" vendor="0x1000" device="0xc030" )"
                                       R"(link_speed="32.0 GT/s PCIe" link_width="16")",
                                       "");
  REQUIRE(bridges != xml);
  const Ran with = lockstep_with({"topology", "import", folder.write("a.xml", xml)});
  const Ran without = lockstep_with({"topology", "import", folder.write("a.xml", bridges)});
  CHECK(without.exit == Exit::ok);
  CHECK(without.out == with.out);
  // Templates that NCCL merges with what it finds on the machine have no GPUs of their own.
  const std::string alone = folder.write("c.xml", R"(<system version="1"><cpu numaid="0">
      <pci busid="0000:4f:00.0"/><pci busid="0000:50:00.0"/></cpu></system>)");
  const Ran refused = lockstep_with({"topology", "import", alone});
  CHECK(refused.exit == Exit::bad_input);
  CHECK(refused.err.find("no GPUs, and 2 devices without a class") != std::string::npos);
}

TEST_CASE("lockstep topology import: interfaces without RDMA are left out, which is said") {
  const TemporaryFolder folder;
  const auto node_with = [&](const std::string& first, const std::string& second) {
    std::string text = R"(<system version="1"><cpu numaid="0">
      <nic><net name="bond0" speed="1000"/></nic><pci busid="0000:01:00.0" class="0x060400">
      <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x2330"><gpu/></pci>)";
    for (const auto& [bus, name] : {std::pair{"03", first}, {"04", second}}) {
      text += R"(<pci busid="0000:)" + std::string(bus) +
              R"(:00.0" class="0x020000"><nic><net name=")" + name +
              R"(" speed="200000"/></nic></pci>)";
    }
    return folder.write("node.xml", text + "</pci></cpu></system>");
  };
  const Ran mixed = lockstep_with({"topology", "import", node_with("mlx5_bond_0", "enp4s0f0")});
  REQUIRE_MESSAGE(mixed.exit == Exit::ok, mixed.err);
  const auto node = nlohmann::json::parse(mixed.out);
  CHECK(node["nics"] == 1);
  CHECK(node["transport"] == "roce");  // two ports of a card, bonded
  CHECK(mixed.err.find("Left out, interfaces without RDMA: bond0, enp4s0f0") != std::string::npos);
  // Where there is nothing else, they are what the node has.
  const Ran sockets = lockstep_with({"topology", "import", node_with("eth0", "eth1")});
  CHECK(nlohmann::json::parse(sockets.out)["nics"] == 2);
  CHECK(sockets.err.find("Left out, interfaces without RDMA: bond0\n") != std::string::npos);
}

TEST_CASE("lockstep topology import: NICs that are nearest to no GPU count only when asked for") {
  const TemporaryFolder folder;
  const std::string matrix = folder.write("smi.txt",
                                          "\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tSYS\n"
                                          "NIC0\tPIX\t X \tSYS\nNIC1\tSYS\tSYS\t X \n");
  std::vector<std::string> args{"topology", "import",         matrix,
                                "--gpu",    "h100_sxm5_80gb", "--rate",
                                "400 Gb/s", "--transport",    "infiniband"};
  const Ran near = lockstep_with(args);
  CHECK(nlohmann::json::parse(near.out)["nics"] == 1);
  CHECK(near.err.find("Left out, nearest to no GPU: NIC1 (--all-nics counts them)") !=
        std::string::npos);
  args.emplace_back("--all-nics");
  CHECK(nlohmann::json::parse(lockstep_with(args).out)["nics"] == 2);
}

TEST_CASE("lockstep topology import: names that nvidia-smi gives beside its matrix tell the GPU") {
  const TemporaryFolder folder;
  const std::string matrix =
      "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nLegend:\n\n  X    = Self\n";
  const auto import = [&](const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> args{"topology", "import", folder.write("smi.txt", text), "--rate",
                                  "400 Gb/s"};
    args.insert(args.end(), more.begin(), more.end());
    return lockstep_with(args);
  };
  const std::string listed = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n  MIG 1g (UUID: MIG-2)\n";
  const std::string table =
      "| NVIDIA-SMI 550.54      Driver Version: 550.54      CUDA Version: 12.4     |\n"
      "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |       0 |\n"
      "| N/A   50C    P0             640W /  700W |   7MiB /  81559MiB |    100%      Default |\n";
  for (const std::string& text : {listed + matrix, matrix + listed, table + matrix,
                                  "index, name\n0, NVIDIA H100 80GB HBM3\n" + matrix}) {
    CAPTURE(text);
    const Ran ran = import(text);
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    CHECK(nlohmann::json::parse(ran.out)["gpu"] == "h100_sxm5_80gb");
    CHECK(ran.err.find("GPUs by their name, \"NVIDIA H100 80GB HBM3\"") != std::string::npos);
  }
  const Ran cut = import("GPU 0: NVIDIA A100-SXM4 (UUID: GPU-1)\n" + matrix);
  CHECK(cut.err.find("--gpu NAME, one of a100_sxm4_40gb, a100_sxm4_80gb") != std::string::npos);
  const Ran other = import(listed + matrix, {"--gpu", "a100_sxm4_80gb"});
  CHECK(other.exit == Exit::bad_input);
  CHECK(other.err.find("found \"NVIDIA H100 80GB HBM3\", and --gpu a100_sxm4_80gb") !=
        std::string::npos);
}

TEST_CASE("lockstep topology import: Slurm's blocks are switches below one, which is said") {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "block.conf",
      "BlockName=b1 Nodes=n[0-17] # rack\nBlockName=b2 Nodes=n[18-35]\nBlockSizes=18\n");
  const Ran ran = lockstep_with({"topology", "import", file, "--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const auto fabric = nlohmann::json::parse(ran.out);
  CHECK(fabric["switches"].size() == 3);
  CHECK(ran.err.find("2 blocks of 18 hosts are NVLink domains") != std::string::npos);
}

TEST_CASE("lockstep topology import: of a topology.yaml the cluster's default is read") {
  const TemporaryFolder folder;
  constexpr const char* kTwo =
      "- topology: a\n  cluster_default: false\n  block:\n    blocks:\n      - block: b1\n"
      "        nodes: n[1-4]\n      - block: b2\n"
      "- topology: b\n  cluster_default: true\n  tree:\n    switches:\n"
      "      - switch: top\n        children: s[1-2]\n      - {switch: s1, nodes: 'm[1-3]'}\n"
      "      - {switch: s2, nodes: 'm[4-6]'}\n- topology: c\n  flat: true\n";
  const std::string file = folder.write("topology.yaml", kTwo);
  const auto import = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"topology", "import", file, "--rate", "400 Gb/s"});
    return lockstep_with(more);
  };
  CHECK(nlohmann::json::parse(import({}).out)["hosts"].size() == 6);
  const Ran blocks = import({"--topology", "a"});
  CHECK(nlohmann::json::parse(blocks.out)["hosts"].size() == 4);
  CHECK(blocks.err.find("Blocks without hosts: 1, left out.") != std::string::npos);
  CHECK(import({"--topology", "c"}).err ==
        file + ": found topology \"c\", which is flat; allowed: one with a tree or blocks\n");
  CHECK(import({"--topology", "d"})
            .err.starts_with(file + ": found no topology \"d\"; allowed: a, b, c"));
  const std::string broken = folder.write("broken.yaml", "- topology: a\n  tree: [\n");
  const Ran ran = lockstep_with({"topology", "import", broken, "--rate", "400 Gb/s"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find(": found at line ") != std::string::npos);
}

TEST_CASE("lockstep topology import: without classes devices are NICs, with a GPU a bridge") {
  const TemporaryFolder folder;
  const std::string file = folder.write("topo.xml", R"(<system version="1"><cpu numaid="0">
    <pci busid="0000:45:00.0"><pci busid="0000:4f:00.0"/><pci busid="0000:50:00.0"/></pci>
    <pci busid="0000:56:00.0"><pci busid="0000:60:00.0"/><pci busid="0000:61:00.0"/></pci>
    </cpu></system>)");
  std::vector<std::string> args{"topology", "import", file, "--gpu", "h100_sxm5_80gb"};
  CHECK(lockstep_with(args).err.find("found NICs without a speed; allowed: --rate") !=
        std::string::npos);
  args.insert(args.end(), {"--rate", "100 Gb/s"});
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(nlohmann::json::parse(ran.out)["nics"] == 4);
  CHECK(nlohmann::json::parse(ran.out)["gpus"] == 2);
  CHECK(ran.err.find("behind each of 2 bridges there is one GPU") != std::string::npos);
}

TEST_CASE("lockstep topology import: NetQ's hosts have a NIC for each cable") {
  const TemporaryFolder folder;
  const std::string file = folder.write("graph.json", R"([{"nodes": [
    {"id": "tier-1", "compounded_nodes": [{"id": "a", "name": "leaf1", "device_type": "switch"}]},
    {"id": "tier-0", "compounded_nodes": [{"id": "b", "name": "gpu1", "device_type": "host"},
                                          {"id": "c", "name": "gpu2", "device_type": "host"}]}],
    "links": [{"compounded_links": [
        {"interfaces": [{"node": "a", "interface": "swp1"}, {"node": "b", "interface": "eth0"}]},
        {"interfaces": [{"node": "b", "interface": "eth1"}, {"node": "a", "interface": "swp2"}]}]},
      {"compounded_links": [
        {"interfaces": [{"node": "c", "interface": "eth0"},
                        {"node": "a", "interface": "swp3"}]}]}]}])");
  const Ran ran = lockstep_with({"topology", "import", file, "--rate", "200 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err.find("2 hosts, 3 NICs of 25 GB/s, 1 switch, 3 cables") != std::string::npos);
  CHECK(lockstep_with({"topology", "import", file}).err.find("--rate") != std::string::npos);
}

TEST_CASE("lockstep topology import: adapters that name no host are counted and left out") {
  const TemporaryFolder folder;
  constexpr const char* kNet =
      "Switch 8 \"S-1\" # \"leaf1\" base port 0 lid 1 lmc 0\n"
      "[1] \"H-1\"[1] # \"n1 mlx5_0\" lid 2 4xNDR\n[2] \"H-2\"[1] # \"MT4129 ConnectX7   Mellanox "
      "Technologies\" lid 3 4xNDR\n"
      "[3] \"H-3\"[1] # \"n2 mlx5_0\" lid 4 4xNDR\n\n"
      "Ca 1 \"H-1\" # \"n1 mlx5_0\"\n[1](1) \"S-1\"[1] # lid 2 lmc 0 \"leaf1\" lid 1 4xNDR\n\n"
      "Ca 1 \"H-2\" # \"MT4129 ConnectX7   Mellanox Technologies\"\n[1](2) \"S-1\"[2] # lid 3 lmc "
      "0 \"leaf1\" lid 1 4xNDR\n\n"
      "Ca 1 \"H-3\" # \"n2 mlx5_0\"\n[1](3) \"S-1\"[3] # lid 4 lmc 0 \"leaf1\" lid 1 4xNDR\n";
  const Ran ran = lockstep_with({"topology", "import", folder.write("net.txt", kNet)});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(nlohmann::json::parse(ran.out)["hosts"].size() == 2);
  CHECK(ran.err.find("1 adapter without a host's name is left out, on leaf1.") !=
        std::string::npos);
}

TEST_CASE("lockstep topology export: a name that is not UTF-8 is replaced in every format") {
  const TemporaryFolder folder;
  const std::string file = folder.write("lat.conf", "SwitchName=s\xE9 Nodes=n[0-3]\n");
  for (const char* format : {"graphml", "dot", "fabric"}) {
    CAPTURE(format);
    const Ran ran =
        lockstep_with({"topology", "export", file, "--rate", "100 Gb/s", "--format", format});
    CHECK(ran.exit == Exit::ok);
    CHECK(ran.out.find("s\xEF\xBF\xBD") != std::string::npos);
    CHECK(ran.out.find('\xE9') == std::string::npos);
    CHECK(ran.err.find("1 byte of the file is not UTF-8") != std::string::npos);
  }
  const std::string picture = folder.path() + "/lat.svg";
  REQUIRE(lockstep_with({"topology", "show", file, "--rate", "100 Gb/s", "--svg", picture}).exit ==
          Exit::ok);
  CHECK(read_text_file(picture).find('\xE9') == std::string::npos);
}
