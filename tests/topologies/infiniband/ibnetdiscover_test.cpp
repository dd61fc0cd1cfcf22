#include "topologies/infiniband/ibnetdiscover.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "tests/topologies/infiniband/small_subnets.hpp"
#include "topologies/infiniband/host_name.hpp"
#include "topologies/infiniband/ibsim_net.hpp"

namespace lockstep {
namespace {

using test::sample;

/// One switch, two hosts with two adapters each and one without a name; written by hand as
/// ibnetdiscover and ibsim's net files have it.
constexpr std::string_view kOneSwitch = R"(#
# Topology file: generated on Sat Nov 21 08:10:12 2026
vendid=0x2c9
devid=0xd2f2
sysimgguid=0x900
switchguid=0x900(900)
Switch	41 "S-0000000000000900"		# "Quantum Mellanox Technologies" enhanced port 0 lid 7 lmc 0
[1]	"H-0000000000000a00"[1](a01) 		# "host10 mlx5_0" lid 11 4xNDR
[2]	"H-0000000000000b00"[1](b01) 		# "host10 mlx5_10" lid 12 4xNDR s=4 w=2 v=4 e=4
[3][ext 9]	"H-0000000000000c00"[2](c02) 		# "host2 mlx5_1" lid 13 2xHDR
[41]	"H-0000000000000d00"[1](d01) 		# "Mellanox Technologies Aggregation Node" lid 14 4xHDR

caguid=0xa00
Ca	1 "H-0000000000000a00"		# "host10 mlx5_0"
[1](a01) 	"S-0000000000000900"[1]		# lid 11 lmc 0 "Quantum Mellanox Technologies" lid 7 4xNDR

caguid=0xb00
Ca	1 "H-0000000000000b00"		# "host10 mlx5_10"
[1](b01) 	"S-0000000000000900"[2]		# lid 12 lmc 0 "Quantum Mellanox Technologies" lid 7 4xNDR

caguid=0xc00
Ca	2 "H-0000000000000c00"		# "host2 mlx5_1"
[2](c02) 	"S-0000000000000900"[3]		# lid 13 lmc 0 "Quantum Mellanox Technologies" lid 7 4xNDR

caguid=0xd00
Ca	1 "H-0000000000000d00"		# "Mellanox Technologies Aggregation Node"
[1](d01) 	"S-0000000000000900"[41]		# lid 14 lmc 0 "Quantum Mellanox Technologies" lid 7 4xHDR
)";

std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const std::size_t at = out.find(from);
  REQUIRE(at != std::string::npos);
  return out.replace(at, from.size(), to);
}

TEST_CASE("ibnetdiscover: hosts become nodes in natural order, their adapters NICs") {
  const InfinibandSubnet subnet = read_ibnetdiscover("f", kOneSwitch).subnet;
  CHECK(subnet.hosts == std::vector<std::string>{"host2", "host10"});
  const ClusterGraph& graph = subnet.graph;
  CHECK(graph.nodes() == 2);
  CHECK(graph.vertex_name(graph.nic_port(0, 0)) == "host2 mlx5_1");
  CHECK(graph.vertex_name(graph.nic_port(1, 0)) == "host10 mlx5_0");
  CHECK(graph.vertex_name(graph.nic_port(1, 1)) == "host10 mlx5_10");
  // The switch, then SHARP's end point in it, which is no host's.
  CHECK(graph.vertices()[3].level == 1);
  CHECK_FALSE(graph.vertices()[4].is_port());
  CHECK(subnet.vertices[4].kind == InfinibandKind::adapter);
  CHECK(subnet.vertices[0].port == 2);
  CHECK(subnet.vertices[0].port_guid == 0xc02);
  CHECK(subnet.vertices[0].lid == 13);
  CHECK(subnet.vertices[3].box_ports == 41);
}

TEST_CASE("ibnetdiscover: a cable has the slower of two speeds, and one's own where asked") {
  const auto capacity = [](const IbnetdiscoverImport& import) {
    return import.subnet.graph.cables()[0].capacity;  // of host2
  };
  CHECK(capacity(read_ibnetdiscover("f", kOneSwitch)) == gigabits_per_second(100));
  CHECK(capacity(read_ibnetdiscover("f", kOneSwitch,
                                    {.hosts = {},
                                     .hosts_file = "",
                                     .cut_dangling = false,
                                     .capacity = gigabits_per_second(800)})) ==
        gigabits_per_second(800));
}

TEST_CASE("ibnetdiscover: a hosts file orders hosts, those that it leaves out follow") {
  IbnetdiscoverOptions options;
  options.hosts = read_hosts("h", "# racks from the left\n\n  host10  # first\n");
  options.hosts_file = "h";
  CHECK(read_ibnetdiscover("f", kOneSwitch, options).subnet.hosts ==
        std::vector<std::string>{"host10", "host2"});
  options.hosts = {"host1"};
  CHECK_THROWS_WITH_AS((void)read_ibnetdiscover("f", kOneSwitch, options),
                       R"(h: found "host1"; allowed: each host of the fabric once: host2, host10. )"
                       R"(Did you mean "host10"?)",
                       InputError);
  CHECK_THROWS_WITH_AS((void)read_hosts("h", "a\nb\na\n"),
                       R"(h:3: found "a" again; allowed: a host once; line 1 has it)", InputError);
}

TEST_CASE("ibnetdiscover: a cable to a box that is not there is an error, or is cut") {
  const std::string excerpt =
      with(kOneSwitch, "caguid=0xd00\nCa	1 \"H-0000000000000d00\"", "#");
  const std::string rest = excerpt.substr(0, excerpt.rfind("[1](d01)"));
  CHECK_THROWS_WITH_AS(
      (void)read_ibnetdiscover("f", rest),
      R"(f:11: found a cable to "H-0000000000000d00"; allowed: a box that the file describes)",
      InputError);
  const IbnetdiscoverImport cut = read_ibnetdiscover(
      "f", rest, {.hosts = {}, .hosts_file = "", .cut_dangling = true, .capacity = {}});
  CHECK(cut.cut_cables == 1);
  CHECK(cut.subnet.graph.cables().size() == 3);
  CHECK(cut.subnet.graph.vertex_count() == 4);
}

struct Mistake {
  std::string_view from, to, message;
};

TEST_CASE("ibnetdiscover: a mistake is found at its line") {
  const std::array mistakes{
      Mistake{
          "Switch\t41", "Svitch\t41",
          R"(f:7: found "Svitch\x0941 "S-0000000000000900"\x09\x09# "Quantum Mellanox )"
          R"(Technolo..."; )"
          R"(allowed: a box (Switch, Ca, Hca, Rt), a port ([1] "box"[1]), switchguid=, caguid=, )"
          R"(rtguid=, sysimgguid=, vendid=, devid=, width=, speed=, speedext=, Chassis, a )"
          R"(comment (#))"},
      Mistake{"Switch\t41", "Switch\t255", "f:7: found 255 ports; allowed: 1 to 254"},
      Mistake{"Switch\t41", "Switch\t40",
              R"(f:11: found port 41; allowed: 1 to 40, the ports of "S-0000000000000900")"},
      Mistake{"[2]", "[1]",
              "f:9: found port 1 again; allowed: a port once in a box; line 8 has it"},
      Mistake{
          "lid 11 4xNDR", "lid 11 4xGDR",
          R"(f:8: found "4xGDR"; allowed: a width of 1x, 2x, 4x, 8x or 12x with one of SDR DDR )"
          R"(QDR FDR10 FDR EDR HDR NDR XDR)"},
      Mistake{"port 0 lid 7", "port 0 lid 11",
              "f:7: found LID 11 again; allowed: a LID once; line 15 has it"},
      Mistake{
          "\"S-0000000000000900\"[1]", "\"S-0000000000000900\"[2]",
          R"(f:8: found a cable to "H-0000000000000a00"[1], which line 15 says leads elsewhere; )"
          R"(allowed: the same cable on both ends)"},
      Mistake{"caguid=0xb00", "caguid=0xa00",
              "f:18: found GUID 0xa00 again; allowed: a GUID once; line 14 has it"},
      Mistake{"caguid=0xb00", "caguid=x",
              R"(f:17: found "caguid=x"; allowed: a GUID, as in caguid=0x100000)"},
  };
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.to);
    CHECK_THROWS_WITH_AS((void)read_ibnetdiscover("f", with(kOneSwitch, mistake.from, mistake.to)),
                         std::string(mistake.message).c_str(), InputError);
  }
  CHECK_THROWS_AS((void)read_ibnetdiscover("f", ""), InputError);
}

TEST_CASE("ibnetdiscover: what it printed of our rails and tree is what we had built") {
  const InfinibandSubnet seen = read_ibnetdiscover("f", sample("rails4x4.ibnetdiscover")).subnet;
  CHECK((test::describe(seen) == test::describe(test::rails(4, 4))));
  const InfinibandSubnet tree = read_ibnetdiscover("f", sample("tree16.ibnetdiscover")).subnet;
  CHECK((test::describe(tree) == test::describe(test::k_ary_tree(4))));
}

TEST_CASE("write_ibsim: reads back as the same subnet, and is the text that ibsim took") {
  const InfinibandSubnet rails = test::rails(4, 4);
  CHECK(write_ibsim(rails) == sample("rails4x4.net"));
  for (const InfinibandSubnet& subnet :
       {rails, test::k_ary_tree(4), read_ibnetdiscover("f", kOneSwitch).subnet}) {
    for (const bool lids : {false, true}) {
      const std::string net = write_ibsim(subnet, {.lids = lids});
      const auto back = read_ibnetdiscover("net", net).subnet;
      auto expected = test::describe(subnet), found = test::describe(back);
      // Without LIDs in the file they are assigned anew.
      if (!lids && subnet.vertices[0].lid == 13) continue;
      CHECK((expected == found));
      CHECK(back.hosts == subnet.hosts);
    }
  }
}

TEST_CASE("adapter_name: host and device, in the ways that drivers write them") {
  struct Row {
    std::string_view description, host, device;
  };
  for (const Row& row : {
           Row{"host1 mlx5_0", "host1", "mlx5_0"},
           Row{"host1_mlx5_12", "host1", "mlx5_12"},
           Row{"gpu-a HCA-2", "gpu-a", "HCA-2"},
           Row{"RMD701091901003 ibp11s0f0", "RMD701091901003", "ibp11s0f0"},
           Row{"node 3 nic 1", "node 3", "nic 1"},
           Row{"rack 2 host  mlx5_0", "rack 2 host", "mlx5_0"},
           Row{"MT4129 ConnectX7   Mellanox Technologies",
               "MT4129 ConnectX7   Mellanox Technologies", ""},
           Row{"mlx5_0", "mlx5_0", ""},
       }) {
    CAPTURE(row.description);
    CHECK(adapter_name(row.description).host == row.host);
    CHECK(adapter_name(row.description).device == row.device);
  }
}

}  // namespace
}  // namespace lockstep
