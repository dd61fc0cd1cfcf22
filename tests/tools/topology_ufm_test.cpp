#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Two hosts on a leaf below a spine, two adapters in the first host, and a SHARP end point.
constexpr const char* kLinks = R"([
  {"source_guid": "a1", "source_port": "1", "destination_guid": "b1", "destination_port": "1",
   "source_port_dname": "1/1/1", "destination_port_dname": "HCA-1/1", "width": "4x",
   "source_port_name": "a1_1", "destination_port_name": "b1_1",
   "source_port_node_description": "leaf1:1/1/1",
   "destination_port_node_description": "gpu1 mlx5_0"},
  {"source_guid": "b1", "source_port": "1", "destination_guid": "a1", "destination_port": "2",
   "source_port_dname": "HCA-2/1", "destination_port_dname": "1/1/2", "width": "4x",
   "source_port_node_description": "gpu1 mlx5_1",
   "destination_port_node_description": "leaf1:1/1/2"},
  {"source_guid": "a1", "source_port": "3", "destination_guid": "b2", "destination_port": "1",
   "source_port_dname": "1/2/1", "destination_port_dname": "1", "width": "4x",
   "source_port_node_description": "leaf1:1/2/1",
   "destination_port_node_description": "gpu2 mlx5_0"},
  {"source_guid": "a1", "source_port": "64", "destination_guid": "a2", "destination_port": "1",
   "source_port_dname": "1/32/2", "destination_port_dname": "1/1/1", "width": "4x",
   "source_port_node_description": "leaf1:1/32/2",
   "destination_port_node_description": "spine1:1/1/1"},
  {"source_guid": "a1", "source_port": "65", "destination_guid": "a9", "destination_port": "1",
   "source_port_dname": "65", "destination_port_dname": "1", "width": "4x",
   "source_port_node_description": "leaf1:65",
   "destination_port_node_description": "Mellanox Technologies Aggregation Node"}])";

}  // namespace

TEST_CASE("lockstep topology import: UFM's links are cables of hosts and switches") {
  const TemporaryFolder folder;
  const std::string file = folder.write("links.json", kLinks);
  const Ran none = lockstep_with({"topology", "import", file});
  CHECK(none.exit == Exit::bad_input);
  CHECK(none.err.find("links.json#/0: found a cable without a rate, from \"leaf1\" to \"gpu1\"; "
                      "allowed: rates of ports in the same file, or --rate") != std::string::npos);
  const Ran ran = lockstep_with({"topology", "import", file, "--rate", "400 Gb/s"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err.find("2 hosts, 3 NICs of 50 GB/s, 2 switches, 4 cables") != std::string::npos);
  CHECK(ran.err.find("1 link of SHARP aggregation nodes is left out.") != std::string::npos);
  const auto fabric = nlohmann::json::parse(ran.out);
  CHECK(fabric["hosts"][0]["name"] == "gpu1");
  CHECK(fabric["hosts"][0]["nics"][1] == "gpu1 mlx5_1");
  CHECK(fabric["switches"][1]["level"] == 2);
}

TEST_CASE("lockstep topology import: ports beside UFM's links tell their rates") {
  const TemporaryFolder folder;
  const std::string both =
      folder.write("ufm.json", std::string("[") + kLinks +
                                   R"(, [{"systemID": "a1", "dname": "1/1/1", "name": "a1_1",
        "active_speed": "NDR", "active_width": "4x"}, {"systemID": "b1", "dname": "HCA-1/1",
        "name": "b1_1", "active_speed": "NDR", "active_width": "2x"},
       {"systemID": "a1", "dname": "1/1/2", "active_speed": "HDR", "active_width": "IB_4x"},
       {"systemID": "b2", "dname": "1", "active_speed": "NDR", "active_width": "4x"},
       {"systemID": "a2", "dname": "1/1/1", "active_speed": "XDR", "active_width": "4x"}]])");
  const Ran ran = lockstep_with({"topology", "import", both, "--from", "ufm"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  // The slower end of the first is 2xNDR, the second 4xHDR, the third 4xNDR.
  CHECK(ran.err.find("3 NICs of 25 GB/s to 50 GB/s") != std::string::npos);
}

TEST_CASE("lockstep topology import: UFM's ports alone name each cable twice") {
  const TemporaryFolder folder;
  const std::string file = folder.write("ports.json", R"([
    {"systemID": "a1", "number": 1, "dname": "1", "name": "a1_1", "active_speed": "NDR",
     "active_width": "4x", "node_description": "leaf1:1", "peer_node_guid": "b1",
     "peer_port_dname": "HCA-1/1", "peer": "b1_1", "peer_node_description": "gpu1 mlx5_0"},
    {"systemID": "b1", "number": 1, "dname": "HCA-1/1", "name": "b1_1", "active_speed": "NDR",
     "active_width": "4x", "node_description": "gpu1 mlx5_0", "peer_node_guid": "a1",
     "peer_port_dname": "1", "peer": "a1_1", "peer_node_description": "leaf1:1"},
    {"systemID": "a1", "number": 2, "dname": "2", "name": "a1_2", "active_speed": "",
     "node_description": "leaf1:2", "peer_node_guid": ""}])");
  const Ran ran = lockstep_with({"topology", "import", file});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err.find("1 host, 1 NIC of 50 GB/s, 1 switch, 1 cable") != std::string::npos);
}

TEST_CASE("lockstep topology import: what UFM's links leave open is asked for") {
  const TemporaryFolder folder;
  const std::string open = R"({"source_guid": "a1", "source_port": "1", "destination_guid": "b1",
    "destination_port": "1", "source_port_dname": "1", "destination_port_dname": "1",
    "source_port_node_description": "leaf1:1", "destination_port_node_description": "gpu1"})";
  const auto import = [&](const std::string& text) {
    return lockstep_with(
        {"topology", "import", folder.write("ufm.json", text), "--rate", "400 Gb/s"});
  };
  CHECK(import("[" + open + "]")
            .err.find("ufm.json#/0: found a port of \"gpu1\", which may be a host or a switch; "
                      "allowed: its "
                      "system (GET /ufmRest/resources/systems) in the same file") !=
        std::string::npos);
  const Ran told = import("{\"links\": [" + open +
                          "], \"systems\": [{\"system_guid\": \"b1\", \"system_name\": \"node1\", "
                          "\"type\": \"host\"}]}");
  REQUIRE_MESSAGE(told.exit == Exit::ok, told.err);
  CHECK(nlohmann::json::parse(told.out)["hosts"][0]["name"] == "node1");
  CHECK(
      import(R"([{"source_guid": "a1"}])")
          .err.find(
              "found a link without destination_guid; allowed: source_guid and destination_guid") !=
      std::string::npos);
}
