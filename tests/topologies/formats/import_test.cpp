#include "topologies/formats/import.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/formats/dot.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/graphml.hpp"
#include "topologies/formats/hostlist.hpp"
#include "topologies/formats/slurm_topology.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kRate = gigabits_per_second(400);

std::string text_of_sample(const std::string& name) {
  return read_text_file(LOCKSTEP_SOURCE_DIR "/tests/reference/formats/" + name);
}

Import import_sample(const std::string& name, const ImportOptions& options = {}) {
  const std::string text = text_of_sample(name);
  return import_text(name, text, recognise(name, text), options);
}

DrawnFabric fabric_sample(const std::string& name, const ImportOptions& options = {}) {
  return std::get<DrawnFabric>(import_sample(name, options));
}

std::map<std::string, int> levels(const DrawnFabric& fabric) {
  std::map<std::string, int> out;
  for (const GraphVertex& v : fabric.graph.vertices()) {
    if (!v.is_port()) out[v.name] = v.level;
  }
  return out;
}

/// The message of the InputError that reading raises; empty: none.
template <class Read>
std::string message(Read read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("hostlists: expand as scontrol show hostnames does, and compress to the same names") {
  using Names = std::vector<std::string>;
  CHECK(*expand_hostlist("n[1-3,7]", 100) == Names{"n1", "n2", "n3", "n7"});
  CHECK(*expand_hostlist("n[08-10]", 100) == Names{"n08", "n09", "n10"});
  CHECK(*expand_hostlist("r[1-2]n[1-2]-ib,x", 100) ==
        Names{"r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib", "x"});
  for (const char* wrong : {"", "n[", "n]", "n[1", "n[2-1]", "n[a]", "n[]", "a,,b", "n[[1]]"}) {
    CAPTURE(wrong);
    CHECK_FALSE(expand_hostlist(wrong, 100));
  }
  CHECK(expand_hostlist("n[1-100]", 100)->size() == 100);
  CHECK_FALSE(expand_hostlist("n[0-100]", 100));
  CHECK_FALSE(expand_hostlist("n[0-99]n[0-99]", 9999));
  for (const char* text : {"n[1-4,7]", "n[08-12]", "a,b", "rack1-n[01-16],rack2-n[01-16]",
                           "n[9-11]", "n1,m1", "7,8"}) {
    CHECK(compress_hostlist(*expand_hostlist(text, 100)) == text);
  }
}

TEST_CASE("Slurm topology.conf: hosts on leaves, as many uplinks as hosts") {
  const DrawnFabric fabric =
      fabric_sample("topology.conf", {.rate = kRate, .hosts = {}, .hosts_file = {}});
  CHECK(fabric.hosts == std::vector<std::string>{"gpu01", "gpu02", "gpu03", "gpu04", "gpu05",
                                                 "gpu06", "gpu07", "login1"});
  CHECK(levels(fabric) == std::map<std::string, int>{{"leaf1", 1}, {"leaf2", 1}, {"spine", 2}});
  CHECK(fabric.graph.cables().size() == 16);
  CHECK(fabric.graph.bisection() == 4 * kRate);
  CHECK(fabric.assumptions.size() == 2);
}

TEST_CASE("Slurm topology.conf: a host that several switches list has a NIC on each") {
  const DrawnFabric fabric = read_slurm_topology(
      "f", "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[2-4]\nSwitchName=c Switches=a,b\n",
      kRate);
  CHECK(fabric.hosts.size() == 4);
  CHECK(fabric.graph.nics(0) == 1);
  CHECK(fabric.graph.nics(1) == 2);
  CHECK(fabric.graph.port_count() == 6);
  CHECK(fabric.graph.cables().size() == 12);
  CHECK(fabric.assumptions[0].find("on each switch that lists it") != std::string::npos);
}

TEST_CASE("Slurm: what scontrol show topology prints is the topology.conf that it was made of") {
  const std::string printed =
      "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
      "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4]\n"
      "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]\n";
  const std::string written =
      "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\n"
      "SwitchName=spine Switches=leaf[1-2]\n";
  CHECK(write_fabric_json(read_slurm_topology("a", printed, kRate)) ==
        write_fabric_json(read_slurm_topology("a", written, kRate)));
}

TEST_CASE("Slurm topology.conf: what is written joins the same hosts on the same leaves") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.leaf_ports_down = 8;
  spec.levels = 3;
  spec.pod_leaves = 2;
  const DrawnFabric tree = drawn_fabric(graph_of(Fabric(spec, 32, 2, kRate)), "a builder");
  const std::string text = write_slurm_topology(tree);
  const DrawnFabric back = read_slurm_topology("topology.conf", text, kRate);
  CHECK(back.hosts == tree.hosts);
  const auto found = levels(back);
  const auto count = [&](int level) {
    return std::count_if(found.begin(), found.end(), [=](auto& v) { return v.second == level; });
  };
  CHECK(count(1) == 8);  // 4 nodes of 2 NICs on each
  CHECK(count(2) == 4);  // the spines of a pod are one
  CHECK(count(3) == 1);  // so are the cores
  CHECK(write_slurm_topology(back) != "");
  // The leaves of a rail-optimised unit share their hosts, and Slurm wants each host once.
  spec.kind = FabricKind::rail_optimised;
  spec.levels = 2;
  const DrawnFabric rails = drawn_fabric(graph_of(Fabric(spec, 16, 2, kRate)), "a builder");
  CHECK(write_slurm_topology(rails) ==
        "# topology.conf for TopologyPlugin=topology/tree\n"
        "# leaf0 stands for 2 switches\n"
        "SwitchName=leaf0 Nodes=node[0-7]\n"
        "# leaf2 stands for 2 switches\n"
        "SwitchName=leaf2 Nodes=node[8-15]\n"
        "# spine0 stands for 8 switches\n"
        "SwitchName=spine0 Switches=leaf[0,2]\n");
}

TEST_CASE("DOT: subgraphs, chains, defaults and ports make the cables that Graphviz draws") {
  const DrawnFabric fabric = fabric_sample("fabric.dot");
  CHECK(fabric.hosts == std::vector<std::string>{"h0", "h1", "h2", "h3"});
  CHECK(levels(fabric) ==
        std::map<std::string, int>{{"leaf0", 1}, {"leaf1", 1}, {"spine0", 2}, {"spine1", 2}});
  CHECK(fabric.graph.cables().size() == 8);
  CHECK(fabric.graph.bisection() == gigabits_per_second(200));
}

TEST_CASE("GraphML: kinds, labels and defaults, there and back is one cable") {
  const DrawnFabric fabric = fabric_sample("fabric.graphml");
  CHECK(fabric.hosts == std::vector<std::string>{"a", "b"});
  CHECK(levels(fabric) == std::map<std::string, int>{{"top & rack", 1}});
  REQUIRE(fabric.graph.cables().size() == 2);
  CHECK(fabric.graph.cables()[0].capacity == gigabits_per_second(100));
  CHECK(fabric.graph.cables()[1].capacity == gigabits_per_second(25));
}

TEST_CASE("GraphML and DOT: what is written reads back as the same fabric") {
  FabricSpec spec;
  spec.leaf_ports_down = 4;
  spec.leaf_oversubscription = 1.5;
  DrawnFabric fabric = drawn_fabric(graph_of(Fabric(spec, 7, 3, kRate)), "a \"builder\" <&>");
  fabric.down.push_back(fabric.graph.cables()[3]);
  fabric.hosts[0] = "quote\" & <host>";
  const NamedGraph graph = named_graph(fabric);
  for (const NamedGraph& read :
       {read_dot("a.dot", write_dot(graph)), read_graphml("a.graphml", write_graphml(graph))}) {
    DrawnFabric back = fabric_of("a", read, {});
    back.source = fabric.source;
    CHECK(write_fabric_json(back) == write_fabric_json(fabric));
  }
}

TEST_CASE("NCCL topology: GPUs, NVLink domain, NICs and which are near") {
  const NodeDrawing node = std::get<NodeDrawing>(import_sample("nccl-topology.xml"));
  CHECK(node.gpu_preset == "h100_sxm5_80gb");
  REQUIRE(node.gpus.size() == 2);
  CHECK(node.gpus[0].nvlinks == 18);
  CHECK(nvlink_domain(node) == 2);
  REQUIRE(node.nics.size() == 2);
  CHECK(node.nics[0].rate == kRate);
  CHECK(node.nics[0].transport == "infiniband");
  CHECK(nearest_nics(node) == std::vector<std::string>{"GPU0: mlx5_0 (PIX)", "GPU1: mlx5_1 (PIX)"});
}

TEST_CASE("NCCL topology: sockets below the CPU are the network of a server that has no device") {
  const std::string gpu = R"(<pci busid="0:1" class="0x030200"><gpu dev="0" sm="90"/></pci>)";
  const auto node_with = [&](const std::string& more) {
    const std::string text = R"(<system version="1"><cpu numaid="0"><nic><net name="docker0" )"
                             R"(speed="10000"/><net name="bond0" speed="1000"/></nic>)" +
                             more + gpu + "</cpu></system>";
    return std::get<NodeDrawing>(import_text("f", text, recognise("f", text), {}));
  };
  const NodeDrawing alone = node_with("");
  REQUIRE(alone.nics.size() == 1);
  CHECK(alone.only_sockets);
  CHECK(alone.nics[0].name == "bond0");
  CHECK(alone.nics[0].transport == "ethernet");
  CHECK(alone.nics[0].rate == gigabits_per_second(1));
  CHECK(alone.sockets == std::vector<std::string>{"docker0"});
  CHECK(nearest_nics(alone) == std::vector<std::string>{"GPU0: bond0 (PHB)"});
  const NodeDrawing beside = node_with(
      R"(<pci busid="0:2" class="0x020700"><nic><net name="mlx5_0" speed="400000"/></nic></pci>)");
  REQUIRE(beside.nics.size() == 1);
  CHECK(beside.nics[0].name == "mlx5_0");
  CHECK_FALSE(beside.only_sockets);
}

TEST_CASE("nvidia-smi topo -m: the matrix behind a prompt and under an underline") {
  const NodeDrawing node = std::get<NodeDrawing>(import_sample("nvidia-smi-topo-m.txt"));
  REQUIRE(node.gpus.size() == 2);
  CHECK(node.gpus[1].nvlinks == 18);
  CHECK(nvlink_domain(node) == 2);
  CHECK(nearest_nics(node) ==
        std::vector<std::string>{"GPU0: rocep1s0 (PIX)", "GPU1: rocep129s0 (PIX)"});
  CHECK(node.nics[0].transport == "roce");
  CHECK(node.gpus[0].paths[1] == PciePath::sys);
}

NodeDrawing smi(const std::string& text) {
  return std::get<NodeDrawing>(import_text("f", text, recognise("f", text), {}));
}

TEST_CASE("nvidia-smi topo -m: an excerpt without rows of NICs, with empty lines and old words") {
  const NodeDrawing node =
      smi("\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n\nGPU0\t X \tSOC\tPHB\t0-13\n\n"
          "GPU1\tSOC\t X \tSOC\t14-27\n");
  REQUIRE(node.gpus.size() == 2);
  CHECK(node.gpus[0].paths[0] == PciePath::phb);
  CHECK(node.gpus[1].paths[0] == PciePath::sys);
  CHECK(node.tells_nvlink);
  // What ends the matrix early is read too.
  const NodeDrawing named = smi("\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC Legend:\n\n  NIC0: mlx5_7\n");
  CHECK(named.nics[0].name == "mlx5_7");
}

/// GPUs of which all pairs have that cell.
std::string pairs_of(int gpus, const std::string& cell) {
  std::string text;
  for (int g = 0; g < gpus; ++g) text += "\tGPU" + std::to_string(g);
  for (int a = 0; a < gpus; ++a) {
    text += "\nGPU" + std::to_string(a);
    for (int b = 0; b < gpus; ++b) text += a == b ? "\t X " : "\t" + cell;
  }
  return text + "\n";
}

TEST_CASE("nvidia-smi topo -m: pairs that share a GPU's links are a mesh, others have switches") {
  struct Pairs {
    int gpus;
    const char* cell;
    int links;
    bool switches;
  };
  // HGX of four A100 and of four H100; eight H100 and sixteen V100 on NVSwitch; a bridge.
  for (const auto& [gpus, cell, links, switches] : {Pairs{4, "NV4", 12, false},
                                                    {4, "NV6", 18, false},
                                                    {8, "NV18", 18, true},
                                                    {16, "NV6", 6, true},
                                                    {2, "NV4", 4, false}}) {
    CAPTURE(cell);
    const NodeDrawing node = smi(pairs_of(gpus, cell));
    CHECK(node.gpus[0].nvlinks == links);
    CHECK(node.nvlink_switches == switches);
  }
}

TEST_CASE("nvidia-smi topo -mp: the matrix of PCIe alone does not tell of NVLink") {
  const std::string matrix = "\tGPU0\tGPU1\nGPU0\t X \tNODE\nGPU1\tNODE\t X \n\nLegend:\n\n";
  CHECK_FALSE(smi(matrix + "  X    = Self\n").tells_nvlink);
  CHECK(smi(matrix + "  X    = Self\n  NV#  = Connection of # NVLinks\n").tells_nvlink);
}

TEST_CASE("--hosts: orders the nodes of every format, and names the vertices that are hosts") {
  const DrawnFabric fabric = fabric_sample(
      "topology.conf", {.rate = kRate, .hosts = {"gpu03", "gpu01"}, .hosts_file = "hosts.txt"});
  CHECK(fabric.hosts[0] == "gpu03");
  CHECK(fabric.hosts[1] == "gpu01");
  CHECK(fabric.hosts[2] == "gpu02");
  CHECK(fabric.graph.vertex_name(fabric.graph.nic_port(0, 0)) == "gpu03");
  const ImportOptions wrong{.rate = kRate, .hosts = {"gpu08"}, .hosts_file = "hosts.txt"};
  CHECK(message([&] { (void)fabric_sample("topology.conf", wrong); }) ==
        "hosts.txt: found \"gpu08\"; allowed: a host of the fabric. Did you mean \"gpu01\"?");
  const std::string ring = "graph { a -- b; b -- c; c -- a; h -- a; h -- b }";
  const DrawnFabric two = fabric_of("r.dot", read_dot("r.dot", ring),
                                    {.rate = kRate, .hosts = {"h"}, .hosts_file = "h"});
  CHECK(two.graph.nics(0) == 2);
}

struct ImportMistake {
  std::string text;
  std::string message;
};

TEST_CASE(
    "a wrong file: one line with the number of the line, what was found and what is allowed") {
  const ImportOptions options{.rate = kRate, .hosts = {}, .hosts_file = {}};
  const ImportMistake mistakes[] = {
      {"", "f:1: found an empty file; allowed: fabric.json, "},
      {"\n\nhello\n", "f:3: found \"hello\"; allowed: fabric.json, "},
      {"SwitchName=a Nodes=n[1-2]\nSwitchName=b Node=n3\n",
       "f:2: found \"Node\"; allowed: SwitchName, Nodes, Switches, LinkSpeed, Level. Did you "
       "mean \"Nodes\"?"},
      {"SwitchName=a Nodes=n[1-\n", "f:1: found \"n[1-\"; allowed: a list such as n[1-4,7]"},
      {"SwitchName=a Nodes=n1\nSwitchName=s Switches=b\n",
       "f:2: found \"b\"; allowed: a switch with a line of its own. Did you mean \"a\"?"},
      {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "f:1: found \"a\" below itself"},
      {"SwitchName=a Nodes=n1,n1\n", "f:1: found \"n1\" again; allowed: a host once on a switch"},
      {"SwitchName=a\n", "f:1: found neither Nodes nor Switches; allowed: one of"},
      {"graph {\n a -- b\n a -> b\n}", "f:3: found \"->\"; allowed: -- in a graph"},
      {"graph {\n a -- \n}", "f:3: found \"}\"; allowed: a name"},
      {"graph {\n a -- \"b\n}", "f:2: found a quoted name without an end; allowed: \""},
      {"graph {\n a -- b [rate=fast]\n}", "f:2: found \"fast\"; allowed: "},
      {"graph {\n a -- a\n}", "f:2: found an edge from \"a\" to itself; allowed: "},
      {"graph {\n a [kind=swich]\n}", "f:2: found \"swich\"; allowed: nic, hca, switch"},
      {"graph {\n a -- \x01\n}", "f:2: found a control character (0x01); allowed: text"},
      {"graph {\n a -- b\n", "f:3: found the end of the file; allowed: "},
      {"<graphml>\n<graph>\n<node id=\"a\">\n</graph></graphml>", "f:4: found broken XML ("},
      {"<graphml>\n<graph>\n<node id=\"a\"/>\n<edge source=\"a\" target=\"A1\"/></graph></graphml>",
       "f:4: found target=\"A1\"; allowed: the id of a <node>"},
      {"<graphml>\n<graph>\n<node/></graph></graphml>", "f:3: found <node> without an id; "},
      {"<graphs version=\"1\"/>", "f:1: found <graphs>, the rings and trees that NCCL chose"},
      {"<system>\n<cpu>\n<pci class=\"gpu\"/></cpu></system>",
       "f:3: found class=\"gpu\"; allowed: a PCI class, as 0x060400"},
      {"<system>\n<cpu/></system>", "f:1: found no GPUs; allowed: "},
      {"\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\n",
       "f:3: found 1 cells; allowed: 2, one for each"},
      {"\tGPU0\tGPU1\nGPU0\t X \tNVX\n",
       "f:2: found \"NVX\"; allowed: PIX, PXB, PHB, NODE, SYS or NV"},
      {"\tGPU0\tGPU1\nGPU0\t X \tSYS\n",
       "f:3: found the end of the file; allowed: the row of GPU1"},
      {"vendid=0x0\nSwitch 4 \"S-1\" # \"sw\"\n[1] nonsense\n", "f:3: found "},
  };
  for (const ImportMistake& mistake : mistakes) {
    CAPTURE(mistake.text);
    const std::string found = message([&] {
      const ImportFormat& format = recognise("f", mistake.text);
      (void)import_text("f", mistake.text, format, options);
    });
    CHECK_MESSAGE(found.starts_with(mistake.message), found);
    CHECK(found.find('\n') == std::string::npos);
  }
}

TEST_CASE("DOT and GraphML without rates ask for --rate") {
  CHECK(message([] { (void)fabric_of("g.dot", read_dot("g.dot", "graph {\n a -- b\n}"), {}); }) ==
        "g.dot:2: found an edge without a rate; allowed: rate=\"400 Gb/s\" on every edge, or "
        "--rate");
}

}  // namespace
TEST_CASE("import: files of the same clusters that have no cables are refused by their names") {
  const auto refused = [](const std::string& text) {
    try {
      (void)recognise("f", text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("recognised");
  };
  CHECK(refused(R"([{"Name": "node1", "DomainUUID": "a", "GpuIDList": ["b", "c"]}])")
            .starts_with("f: found compute nodes and their NVLink domains"));
  CHECK(refused("# a tree\nswitches:\n  S1:\n    switches: [S2]\nblocks:\n- switch: S2\n")
            .starts_with("f: found a model of topograph's"));
}

}  // namespace lockstep
