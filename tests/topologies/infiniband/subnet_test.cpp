#include "topologies/infiniband/subnet.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "tests/topologies/infiniband/small_subnets.hpp"
#include "topologies/infiniband/link_rate.hpp"

namespace lockstep {
namespace {

std::vector<GraphVertex> two_hosts() {
  return {{.name = "a", .level = 0, .node = 0, .nic = 0},
          {.name = "b", .level = 0, .node = 1, .nic = 0},
          {.name = "s", .level = 1}};
}

TEST_CASE("infiniband_subnet: port numbers that are given stay, the others are the lowest free") {
  const ClusterGraph graph(two_hosts(), {{.a = 0, .b = 2, .capacity = test::kHdr},
                                         {.a = 1, .b = 2, .capacity = test::kHdr, .port_b = 1}});
  const InfinibandSubnet subnet = infiniband_subnet(graph, "f");
  CHECK(subnet.graph.cables()[0].port_a == 1);
  CHECK(subnet.graph.cables()[0].port_b == 2);
  CHECK(subnet.graph.cables()[1].port_b == 1);
  CHECK(subnet.vertices[2].box_ports == 2);
  const PortMap ports(subnet);
  CHECK(subnet.graph.target()[ports.link(2, 2)] == 0);
  CHECK(ports.link(2, 0) == PortMap::kNoLink);
}

TEST_CASE("infiniband_subnet: the manager has LID 1, others follow by the last byte of the GUID") {
  const InfinibandSubnet subnet =
      infiniband_subnet(ClusterGraph(two_hosts(), {{.a = 0, .b = 2, .capacity = test::kHdr},
                                                   {.a = 1, .b = 2, .capacity = test::kHdr}}),
                        "f");
  CHECK(subnet.vertices[0].port_guid == 0x100001);
  CHECK(subnet.vertices[1].port_guid == 0x100003);
  CHECK(subnet.vertices[2].port_guid == 0x200000);
  CHECK(subnet.vertices[0].lid == 1);
  CHECK(subnet.vertices[2].lid == 2);  // 0x...00 before 0x...03
  CHECK(subnet.vertices[1].lid == 3);
}

TEST_CASE("infiniband_subnet: what InfiniBand cannot hold is an error of one line") {
  const GraphCable one{.a = 0, .b = 2, .capacity = test::kHdr};
  const GraphCable two{.a = 1, .b = 2, .capacity = test::kHdr};
  const auto make = [](std::vector<GraphCable> cables) {
    (void)infiniband_subnet(ClusterGraph(two_hosts(), std::move(cables)), "f");
  };
  CHECK_THROWS_WITH_AS(make({one}),
                       R"(f: found "b" with 0 cables; allowed: one cable at every NIC port of an )"
                       R"(InfiniBand fabric)",
                       InputError);
  CHECK_THROWS_AS(make({one, two, two}), InputError);
  GraphCable same = two;
  same.port_b = 1;
  GraphCable first = one;
  first.port_b = 1;
  CHECK_THROWS_WITH_AS(make({first, same}),
                       R"(f: found port 1 of "s" twice; allowed: one cable in a port)", InputError);
  same.port_b = 255;
  CHECK_THROWS_WITH_AS(make({first, same}),
                       R"(f: found port 255 of "s"; allowed: port numbers from 1 to 254)",
                       InputError);
}

TEST_CASE("link_rate: names and rates translate both ways") {
  CHECK(link_rate("4xHDR") == gigabits_per_second(200));
  CHECK(link_rate("4xNDR") == gigabits_per_second(400));
  CHECK(link_rate("12xSDR") == gigabits_per_second(24));
  CHECK(link_rate("4xFDR")->base_units() * 8 / 1e9 == doctest::Approx(54.5).epsilon(0.001));
  for (const std::string_view wrong : {"", "4x", "3xHDR", "4xGDR", "xHDR", "4 xHDR", "0Gb/s"}) {
    CAPTURE(wrong);
    CHECK_FALSE(link_rate(wrong).has_value());
  }
  for (const LaneSpeed& speed : lane_speeds()) {
    CHECK_FALSE(speed.source.empty());
    const std::string name = "4x" + std::string(speed.name);
    CHECK(link_rate_name(*link_rate(name)) == name);
  }
  CHECK(link_rate_name(gigabits_per_second(133)) == "133Gb/s");
  CHECK(link_rate("133Gb/s") == gigabits_per_second(133));
}

TEST_CASE("ibsim_rate: the fastest of what the codes enable") {
  CHECK(ibsim_rate({}) == link_rate("4xSDR"));
  CHECK(ibsim_rate({.width = 2, .speed = 7}) == link_rate("4xQDR"));
  CHECK(ibsim_rate({.width = 11, .speed = 1}) == link_rate("12xSDR"));
  CHECK(ibsim_rate({.width = 0, .speed = 4, .extended = 4}) == link_rate("4xHDR"));
  CHECK_FALSE(ibsim_rate({.width = 0, .speed = 8}).has_value());
}

}  // namespace
}  // namespace lockstep
