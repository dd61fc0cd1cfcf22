#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string device(int id, const std::string& name) {
  return fmt::format(R"({{"id": {}, "name": "{}"}})", id, name);
}

/// An end as NetBox 4 writes it.
std::string end(int id, const std::string& device, const std::string& name) {
  return fmt::format(
      R"({{"object_type": "dcim.interface", "object_id": {0},
           "object": {{"id": {0}, "device": {1}, "name": "{2}", "cable": 1}}}})",
      id, device, name);
}
std::string cable(int id, const std::string& a, const std::string& b,
                  const std::string& status = "connected") {
  return fmt::format(
      R"({{"id": {}, "a_terminations": [{}], "b_terminations": [{}],
           "status": {{"value": "{}", "label": "Of it"}}}})",
      id, a, b, status);
}
std::string page(const std::string& results) {
  return R"({"count": 9, "next": null, "previous": null, "results": [)" + results + "]}";
}
/// An interface; `rest`: more of its keys.
std::string interface_of(int id, const std::string& device, const std::string& name,
                         const std::string& type, const std::string& rest = "") {
  return fmt::format(
      R"({{"id": {}, "device": {}, "name": "{}", "type": {{"value": "{}", "label": ""}},
           "enabled": true, "speed": null, "mgmt_only": false{}}})",
      id, device, name, type, rest);
}

const std::string kGpu1 = device(1, "gpu1"), kGpu2 = device(2, "gpu2");
const std::string kLeaf = device(3, "box3"), kSpine = device(4, "box4"), kPdu = device(5, "pdu5");

/// Two hosts on a leaf below a spine.
std::string cables() {
  return cable(1, end(11, kGpu1, "mlx5_0"), end(31, kLeaf, "swp1")) + "," +
         cable(2, end(32, kLeaf, "swp2"), end(21, kGpu2, "mlx5_0")) + "," +
         cable(3, end(33, kLeaf, "swp3"), end(41, kSpine, "swp1"));
}

Ran imported(const std::string& text, const std::vector<std::string>& more = {},
             const std::string& name = "netbox.json") {
  const TemporaryFolder folder;
  std::vector<std::string> args{"topology", "import", folder.write(name, text)};
  args.insert(args.end(), more.begin(), more.end());
  return lockstep_with(args);
}
bool says(const Ran& ran, const std::string& text) {
  if (ran.err.find(text) != std::string::npos) return true;
  MESSAGE(ran.err);
  return false;
}

/// What tells hosts from switches where cables are too few.
const std::string kRoles = page(
    R"({"id": 1, "device_type": {}, "role": {"name": "Server"}},
       {"id": 2, "device_type": {}, "role": {"name": "Server"}},
       {"id": 3, "device_type": {}, "role": {"name": "ToR"}},
       {"id": 4, "device_type": {}, "role": {"name": "Spine"}})");
std::string with_roles(const std::string& records) {
  return "[" + page(records) + "," + kRoles + "]";
}

}  // namespace

TEST_CASE("lockstep topology import: NetBox's cables join hosts and switches") {
  const Ran none = imported(with_roles(cables()));
  CHECK(none.exit == Exit::bad_input);
  CHECK(says(none,
             "netbox.json#/0/results/0: found a cable without a rate, from \"gpu1\" to "
             "\"box3\"; allowed: rates of ports in the same file, or --rate"));
  const Ran ran = imported(with_roles(cables()), {"--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(says(ran, "2 hosts, 2 NICs of 50 GB/s, 2 switches, 3 cables"));
  const auto fabric = nlohmann::json::parse(ran.out);
  CHECK(fabric["hosts"][0]["nics"][0] == "gpu1 mlx5_0");
  CHECK(fabric["switches"][1]["level"] == 2);
}

TEST_CASE("lockstep topology import: NetBox's cables of version 2 join two ports each") {
  const auto half = [](const char* side, int id, const std::string& of, const char* name) {
    return fmt::format(
        R"("termination_{0}_type": "dcim.interface", "termination_{0}_id": {1},
           "termination_{0}": {{"id": {1}, "device": {2}, "name": "{3}"}})",
        side, id, of, name);
  };
  const std::string old = "{\"id\": 1," + half("a", 11, kGpu1, "eth0") + "," +
                          half("b", 31, kLeaf, "swp1") + R"(, "status": {"value": true}},)" +
                          "{\"id\": 2," + half("a", 12, kGpu1, "eth1") + "," +
                          half("b", 32, kLeaf, "swp2") + R"(, "status": {"value": false}})";
  const Ran ran = imported(with_roles(old), {"--rate", "100 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(says(ran, "1 host, 1 NIC of 100 Gb/s, 1 switch, 1 cable"));
  CHECK(says(ran, "1 cable without the status \"connected\" is left out."));
}

TEST_CASE("lockstep topology import: interfaces and devices beside NetBox's cables") {
  const std::string interfaces =
      interface_of(11, kGpu1, "mlx5_0", "infiniband-ndr") + "," +
      interface_of(31, kLeaf, "swp1", "infiniband-xdr") + "," +
      interface_of(32, kLeaf, "swp2", "400gbase-x-osfp") + "," +
      interface_of(21, kGpu2, "mlx5_0", "200gbase-x-qsfp56") + "," + R"({"id": 41, "device": )" +
      kSpine +
      R"(, "name": "swp1", "type": {"value": "1.6tbase-x-osfp1600"}, "speed": 100000000,
          "enabled": false, "mgmt_only": false})";
  const std::string devices =
      R"({"id": 1, "name": "gpu1", "device_type": {"id": 7}, "role": {"name": "GPU node"}},
         {"id": 4, "name": "box4", "device_type": {"id": 8},
          "device_role": {"name": "Super-Spine", "slug": "super-spine"}},
         {"id": 5, "name": "pdu5", "device_type": {"id": 9}, "role": {"slug": "rack-pdu"}})";
  const std::string metered = cable(4, end(34, kLeaf, "swp4"), end(51, kPdu, "net"));
  const Ran ran = imported(
      "[" + page(cables() + "," + metered) + "," + page(interfaces) + "," + page(devices) + "]",
      {"--rate", "10 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  // NDR of four lanes behind XDR, and 200GBASE behind 400GBASE.
  CHECK(says(ran, "2 hosts, 2 NICs of 25 GB/s to 50 GB/s, 2 switches, 2 cables"));
  CHECK(says(ran, "InfiniBand interfaces without a speed are taken to have four lanes."));
  CHECK(says(ran,
             "Devices are taken by their role: as hosts GPU node; as switches Super-Spine; as "
             "neither rack-pdu."));
  CHECK(says(ran,
             "1 cable of devices that are neither hosts nor switches of this network is "
             "left out."));
  const auto fabric = nlohmann::json::parse(ran.out);
  int down = 0;
  for (const auto& one : fabric["cables"]) down += one.value("down", false) ? 1 : 0;
  CHECK(down == 1);
}

TEST_CASE("lockstep topology import: NetBox's connections through patch panels") {
  const std::string panel = R"({"object_type": "dcim.frontport", "object_id": 61, "object": {}})";
  const std::string through =
      cable(1, end(11, kGpu1, "mlx5_0"), panel) + "," + cable(2, panel, end(31, kLeaf, "swp1"));
  const std::string direct = cable(3, end(21, kGpu2, "mlx5_0"), end(32, kLeaf, "swp2"));
  const Ran alone = imported(with_roles(through + "," + direct), {"--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(alone.exit == Exit::ok, alone.err);
  CHECK(says(alone, "1 host, 1 NIC of 50 GB/s"));
  CHECK(says(alone,
             "2 cables of patch panels (only interfaces in the same file tell what they "
             "connect) are left out."));
  const auto connected = [](int cable_id, int id, const std::string& of, const char* name) {
    return fmt::format(
        R"(, "cable": {{"id": {}}}, "connected_endpoints_type": "dcim.interface",
            "connected_endpoints_reachable": true,
            "connected_endpoints": [{{"id": {}, "device": {}, "name": "{}"}}])",
        cable_id, id, of, name);
  };
  const std::string interfaces =
      interface_of(11, kGpu1, "mlx5_0", "400gbase-x-osfp", connected(1, 31, kLeaf, "swp1")) + "," +
      interface_of(31, kLeaf, "swp1", "400gbase-x-osfp", connected(2, 11, kGpu1, "mlx5_0")) + "," +
      interface_of(21, kGpu2, "mlx5_0", "400gbase-x-osfp", connected(3, 32, kLeaf, "swp2"));
  const Ran both =
      imported("[" + page(through + "," + direct) + "," + page(interfaces) + "," + kRoles + "]");
  REQUIRE_MESSAGE(both.exit == Exit::ok, both.err);
  CHECK(says(both, "2 hosts, 2 NICs of 50 GB/s, 1 switch, 2 cables"));
  CHECK(says(both, "1 connection through patch panels counted as from end to end."));
  const Ran only = imported(with_roles(interfaces));
  REQUIRE_MESSAGE(only.exit == Exit::ok, only.err);
  CHECK(says(only, "2 hosts, 2 NICs of 50 GB/s, 1 switch, 2 cables"));
  CHECK(nlohmann::json::parse(both.out)["cables"] == nlohmann::json::parse(only.out)["cables"]);
}

TEST_CASE("lockstep topology import: a breakout cable shares the rate of its one port") {
  const std::string both = end(11, kGpu1, "mlx5_0") + "," + end(12, kGpu1, "mlx5_1");
  const std::string split = cable(1, end(31, kLeaf, "swp1"), both);
  const std::string rates = interface_of(31, kLeaf, "swp1", "800gbase-x-osfp");
  const Ran ran = imported("[" + page(split) + "," + page(rates) + "]");
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(says(ran, "1 host, 2 NICs of 50 GB/s, 1 switch, 2 cables"));
  CHECK(says(ran,
             "Ports of 1 breakout cable are joined in order, each with an equal share of the "
             "rate."));
  const Ran odd = imported(with_roles(cable(1, both, both + "," + end(13, kLeaf, "swp3"))));
  CHECK(says(odd,
             "netbox.json#/0/results/0: found a cable of 2 ports to 3; allowed: as many ports "
             "on both sides, or a multiple"));
}

TEST_CASE("lockstep topology import: what NetBox leaves open or keeps for others") {
  const Ran plan =
      imported(with_roles(cable(1, end(11, kGpu1, "mlx5_0"), end(31, kLeaf, "swp1"), "planned")),
               {"--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(plan.exit == Exit::ok, plan.err);
  CHECK(says(plan, "All cables are planned: they count as connected."));
  const Ran ids =
      imported(with_roles(cable(1, R"({"object_type": "dcim.interface", "object_id": 11})",
                                R"({"object_type": "dcim.interface", "object_id": 31})")));
  CHECK(ids.exit == Exit::bad_input);
  CHECK(says(ids,
             "netbox.json#/0/results/0: found interface 11, of which the file tells no device; "
             "allowed: interfaces (GET /api/dcim/interfaces/) in the same file"));
  const Ran none = imported(page(R"({"id": 1, "a_terminations": [], "b_terminations": []})"));
  CHECK(says(none, "found no connected cable between two interfaces; allowed: NetBox's cables"));
  // Two sites have a device of one name; the management port and the power cable do not count.
  const std::string power = R"({"object_type": "dcim.powerport", "object_id": 71, "object": {}})";
  std::string managed = interface_of(13, kGpu1, "bmc", "1000base-t");
  managed.replace(managed.find("\"mgmt_only\": false"), 18, "\"mgmt_only\": true");
  const std::string twin = device(9, "gpu1");
  const Ran two =
      imported("[" +
                   page(cables() + "," + cable(4, end(91, twin, "mlx5_0"), end(34, kLeaf, "swp4")) +
                        "," + cable(5, end(13, kGpu1, "bmc"), end(81, device(8, "oob"), "1")) +
                        "," + cable(6, power, power)) +
                   "," + page(managed) + "," + kRoles + "]",
               {"--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(two.exit == Exit::ok, two.err);
  CHECK(says(two, "3 hosts, 3 NICs of 50 GB/s, 2 switches, 4 cables"));
  CHECK(says(two, "1 cable of interfaces for management only is left out."));
  CHECK(says(two, "1 cable of ports other than network interfaces is left out."));
  CHECK(two.out.find("gpu1 (9)") != std::string::npos);
}

TEST_CASE("lockstep topology import: NetBox's table of cables as CSV") {
  const std::string heading =
      "ID,Label,Termination A,Termination B,Device A,Device B,Status,Type\r\n";
  const std::string rows =
      "1,,mlx5_0,swp1,gpu1,leaf1,Connected,AOC\r\n"
      "2,,swp3,\"mlx5_0,mlx5_0\",leaf1,\"gpu2,gpu3\",Connected,AOC\r\n"
      "3,,swp9,swp1,leaf1,spine1,Connected,AOC\r\n"
      "4,,swp10,swp2,leaf1,spine1,Planned,AOC\r\n"
      "5,,PSU1,outlet 3,leaf1,pdu1,Connected,Power\r\n"
      "6,,swp11,A,leaf1,,Connected,\r\n"
      "7,,swp2,swp3,leaf2,spine1,Connected,AOC\r\n"
      "8,,mlx5_1,swp3,gpu1,leaf2,Connected,AOC\r\n";
  const auto csv = [](const std::string& text) {
    return imported(text, {"--rate", "400 Gb/s"}, "cables.csv");
  };
  const Ran ran = csv("\xEF\xBB\xBF" + heading + rows);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(says(ran, "3 hosts, 4 NICs of 50 GB/s, 3 switches, 6 cables"));
  CHECK(says(ran, "1 cable without the status \"connected\" is left out."));
  CHECK(says(ran, "2 cables of ports other than network interfaces are left out."));
  CHECK(says(ran, "Ports of 1 breakout cable are joined in order"));
  const Ran rate = imported(heading + rows, {}, "cables.csv");
  CHECK(rate.exit == Exit::bad_input);
  CHECK(says(rate, "cables.csv, row 1: found a cable without a rate, from \"gpu1\" to \"leaf1\""));
  CHECK(
      says(csv(heading + "1,,\"a,b,c\",swp1,\"gpu1,gpu2\",leaf1,,\n"),
           "cables.csv, row 1: found 2 devices and 3 ports on side a; allowed: one device, or one "
           "for each port"));
  CHECK(says(csv("ID,Label,Termination A,Termination B,Status,Type\n1,,a,b,,\n"),
             "cables.csv: found cables without their devices and ports on side a; allowed: columns "
             "\"Termination A\", \"Device A\""));
}

TEST_CASE("lockstep topology import: CSV that NetBox would import") {
  const Ran ran = imported(
      "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,status\n"
      "gpu1,dcim.interface,eth0,leaf1,dcim.interface,Ethernet1/1,connected\n"
      "gpu2,dcim.interface,eth0,leaf1,dcim.interface,Ethernet1/2,\n"
      "gpu2,dcim.powerport,PSU1,pdu1,dcim.poweroutlet,1,connected\n",
      {"--rate", "100 Gb/s"}, "cables.csv");
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(says(ran, "2 hosts, 2 NICs of 100 Gb/s, 1 switch, 2 cables"));
  CHECK(says(ran, "1 cable of ports other than network interfaces is left out."));
}
