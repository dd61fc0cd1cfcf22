// All-to-alls whose members are sent unequal parts: by hand, port by port, and in the closed form.
#include "models/collectives/exchange_skew.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>

#include "models/collectives/channels.hpp"
#include "models/collectives/collectives.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

std::vector<GroupMember> members_on(int nodes, int each) {
  std::vector<GroupMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < each; ++gpu) members.push_back({node, gpu});
  }
  return members;
}

struct PortExtremes {
  PortBytes most, sum;
};
PortExtremes extremes(const std::vector<PortBytes>& ports) {
  PortExtremes out;
  for (const PortBytes& port : ports) {
    for (double PortBytes::* const way : {&PortBytes::network_out, &PortBytes::network_in,
                                          &PortBytes::nvlink_out, &PortBytes::nvlink_in}) {
      out.most.*way = std::max(out.most.*way, port.*way);
      out.sum.*way += port.*way;
    }
  }
  return out;
}

template <class Visit>
void for_each_skew(Visit&& visit) {
  for (const double fullest : {1.0, 1.5, 3.0, 8.0}) {
    for (const bool whole_domain : {false, true}) {
      for (const bool back : {false, true}) {
        CAPTURE(fullest);
        CAPTURE(whole_domain);
        CAPTURE(back);
        visit(ExchangeSkew{.fullest = fullest, .whole_domain = whole_domain, .back = back});
      }
    }
  }
}

}  // namespace

TEST_CASE("exchange skew: with one hot member of share x, its NIC carries x of the bytes") {
  // Eight members on as many nodes; the first is sent half of all tokens, and sends them back.
  const auto members = members_on(8, 1);
  const double x = 0.5;
  const auto there = all_to_all_ports({.fullest = 8 * x}, false, members);
  const auto back = all_to_all_ports({.fullest = 8 * x, .back = true}, false, members);
  // Of 8 payloads 7/8 cross the network: what a member has for its own experts does not.
  CHECK(there[0].network_in == doctest::Approx(x * 7));
  CHECK(back[0].network_out == doctest::Approx(x * 7));
  for (std::size_t m = 1; m < 8; ++m) {
    CHECK(there[m].network_in == doctest::Approx((1 - x) / 7 * 7));
    CHECK(there[m].network_out == doctest::Approx(x + (1 - x) / 7 * 6));
    CHECK(back[m].network_in == doctest::Approx(there[m].network_out));
  }
}

TEST_CASE("exchange skew: what is sent is received, and a skew moves no more than an even one") {
  for (const int each : {1, 2, 4}) {
    for (const int nodes : {1, 2, 5}) {
      if (each * nodes == 1) continue;
      const auto members = members_on(nodes, each);
      for (const bool gathered : {false, true}) {
        const PortBytes even = extremes(all_to_all_ports({}, gathered, members)).sum;
        for_each_skew([&](const ExchangeSkew& skew) {
          const PortBytes sum = extremes(all_to_all_ports(skew, gathered, members)).sum;
          CHECK(sum.network_out == doctest::Approx(sum.network_in));
          CHECK(sum.nvlink_out == doctest::Approx(sum.nvlink_in));
          CHECK(sum.network_out == doctest::Approx(even.network_out));
        });
      }
    }
  }
}

TEST_CASE("exchange skew: the factors of the law are those of the fullest port") {
  for (const int each : {1, 2, 8}) {
    for (const int nodes : {2, 3, 8}) {
      const auto members = members_on(nodes, each);
      for (const bool gathered : {false, true}) {
        CAPTURE(each);
        CAPTURE(nodes);
        CAPTURE(gathered);
        const PortBytes even = extremes(all_to_all_ports({}, gathered, members)).most;
        for_each_skew([&](const ExchangeSkew& skew) {
          const PortBytes most = extremes(all_to_all_ports(skew, gathered, members)).most;
          const SkewFactors law = skew_factors(skew, nodes * each, each, gathered);
          CHECK(std::max(most.network_in, most.network_out) ==
                doctest::Approx(law.network * even.network_in));
          if (each == 1) return;
          const double nvlink = std::max(most.nvlink_in, most.nvlink_out);
          CHECK(nvlink <= law.nvlink * even.nvlink_in * (1 + 1e-12));
          CHECK(law.nvlink >= 1);
        });
      }
    }
  }
}

TEST_CASE("exchange skew: the edges of a shape load NICs as its ports do") {
  const auto members = members_on(3, 4);
  for (const std::string_view algorithm : {"pairwise", "two_level"}) {
    for_each_skew([&](const ExchangeSkew& skew) {
      CAPTURE(algorithm);
      const CollectiveShape shape =
          skewed(collective_shape(CollectiveOp::all_to_all, algorithm, members, 8), skew, members);
      std::vector<PortBytes> found(members.size());
      for (const NetworkEdge& edge : pair_edges(shape, members)) {
        found[static_cast<std::size_t>(edge.from)].network_out += edge.bytes;
        found[static_cast<std::size_t>(edge.to)].network_in += edge.bytes;
      }
      const auto ports = all_to_all_ports(skew, algorithm == "two_level", members);
      for (std::size_t m = 0; m < members.size(); ++m) {
        CHECK(found[m].network_out == doctest::Approx(ports[m].network_out));
        CHECK(found[m].network_in == doctest::Approx(ports[m].network_in));
      }
    });
  }
}

TEST_CASE("exchange skew: in the closed form more skew is never faster, and none changes nothing") {
  const NodeSpec node = test::presets().node("dgx_h100");
  const TransportSpec transport = test::presets().transport("infiniband");
  for (const int per_node : {1, 4, 8}) {
    for (const int ranks : {8, 16, 64}) {
      CollectiveCall call{.op = CollectiveOp::all_to_all,
                          .payload = Bytes{64e6},
                          .ranks = ranks,
                          .ranks_per_node = per_node};
      const Seconds even = collective_time(call, node.gpu, transport, node.nic_bandwidth);
      Seconds before = even;
      for (const double fullest : {1.0, 1.1, 2.0, 4.0, 8.0}) {
        call.skew.fullest = fullest;
        const Seconds time = collective_time(call, node.gpu, transport, node.nic_bandwidth);
        CHECK(time >= before);
        before = time;
        if (fullest == 1) CHECK(time == even);
      }
      CHECK(before > even);
    }
  }
}

}  // namespace lockstep
