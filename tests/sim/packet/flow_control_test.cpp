// Credits and pauses: what round trips cost, that nothing is lost, who blocks whom.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "tests/sim/packet/hand_network.hpp"
#include "tests/support/near.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;

}  // namespace

TEST_CASE("credits: a buffer below the round trip limits the rate to buffer / round trip") {
  // One link of 10 us to the receiver, which takes packets at once. A packet's room is known to be
  // free again one packet time and two cable times after its start: 21 us for `slots` packets.
  PacketNetwork network = network_of(2, 0);
  add_link(network, 0, 1, kRate, Seconds{10e-6});
  constexpr std::uint64_t kPackets = 840;
  network.flows.push_back({{{0}}, kPackets * 1000, {}, 0});
  for (const std::uint32_t slots : {1U, 4U, 20U}) {
    const PacketResult result = simulate(network, plain_credit(slots * 1000));
    // Full rounds but the last, of which only the packets and one cable count.
    const std::uint64_t expected = (kPackets / slots - 1) * 21000 + slots * 1000 + 10000;
    CHECK(result.flows[0].finish == ns(expected));
    CHECK(result.links[0].input_max <= slots * 1000);
  }
  // 21 packets cover the round trip: line rate.
  const PacketResult full = simulate(network, plain_credit(21000));
  CHECK(full.flows[0].finish == ns(kPackets * 1000 + 10000));
}

TEST_CASE("credits: through a switch the round trip counts its forwarding and its next link") {
  PacketNetwork network = star(2);
  add_message(network, 0, 1, 100000);
  // Room for one packet: sent (1 us), cable, forwarding, sent on (1 us), cable back.
  const PacketResult result = simulate(network, plain_credit(1000));
  const std::uint64_t round = 1000 + 100 + 300 + 1000 + 100;
  CHECK(result.flows[0].finish == ns(99 * round + 1000 + 100 + 300 + 1000 + 100));
}

TEST_CASE("pauses lose nothing: an input never exceeds xoff and its headroom, yet reaches xoff") {
  for (const std::uint32_t senders : {2U, 5U, 12U}) {
    for (const double cable_us : {0.1, 2.0, 20.0}) {
      PacketNetwork network = star(senders + 1);
      for (PacketLink& link : network.links) link.latency = Seconds{cable_us * 1e-6};
      for (std::uint32_t h = 0; h < senders; ++h) add_message(network, h, senders, 400000);
      const EthernetControl control = plain_ethernet();
      const PacketResult result = simulate(network, control);
      CHECK(conserves(network, result, kPlain));
      for (LinkIndex up = 0; up < senders; ++up) {
        CAPTURE(senders);
        CAPTURE(cable_us);
        CHECK(result.links[up].pauses > 0);
        CHECK(result.links[up].input_max > control.xoff);
        CHECK(result.links[up].input_max <= control.xoff + pause_headroom(network, up, control));
      }
    }
  }
}

TEST_CASE("pauses: the port that they protect never idles, and senders idle for as long as told") {
  // Two hosts at 1 GB/s into one port of 1 GB/s, 1,000 packets each: 2,000 us for the port.
  PacketNetwork network = star(3);
  add_message(network, 0, 2, 1000000);
  add_message(network, 1, 2, 1000000);
  const PacketResult result = simulate(network, plain_ethernet());
  CHECK(std::max(result.flows[0].finish, result.flows[1].finish) ==
        ns(1000 + 100 + 300 + 2000 * 1000 + 100));
  // A sender is on the wire for 1,000 us. It is paused for the rest but the 20 packets that the
  // input holds and the round trips; a packet that has begun goes on into its pause.
  const PacketLinkResult& up = result.links[0];
  const StepTime wait = ns(2000 * 1000 - 1000 * 1000);
  CHECK(up.paused <= wait + ns(up.pauses * 1000));
  CHECK(up.paused >= wait - ns(2 * 22 * 1000));
}

TEST_CASE(
    "a victim of congestion: it shares a link with flows to a full port, and stops with them") {
  // Hosts 0 and 1 on switch A send over one trunk to switch B: host 0 to the port that hosts 4 and
  // 5 fill as well, host 1 to an idle one. Without flow control host 1 would have half the trunk.
  PacketNetwork network = network_of(6, 2);
  const std::uint32_t a = 6, b = 7;
  const LinkIndex up0 = add_link(network, 0, a), up1 = add_link(network, 1, a);
  const LinkIndex trunk = add_link(network, a, b);
  const LinkIndex busy = add_link(network, b, 2), idle = add_link(network, b, 3);
  const LinkIndex up4 = add_link(network, 4, b), up5 = add_link(network, 5, b);
  constexpr std::uint64_t kBytes = 2000000;
  network.flows = {{{{up0, trunk, busy}}, kBytes, {}, 0},
                   {{{up1, trunk, idle}}, kBytes, {}, 0},
                   {{{up4, busy}}, kBytes, {}, 0},
                   {{{up5, busy}}, kBytes, {}, 0}};
  // The trunk's buffer fills with packets for the busy port; then for each of them, which leave at
  // a third of the rate, the turn-taking trunk brings one for the idle port: a third as well.
  const PacketResult one_lane = simulate(network, plain_credit(10000));
  CHECK(to_seconds(one_lane.flows[1].finish).base_units() ==
        test::near(6e-3).epsilon(0.02));  // the buffer's 10 packets, and rounds, of 2,000
  CHECK(conserves(network, one_lane, kPlain));
  // On a lane of its own it takes half of the trunk at least: max-min would give it two thirds.
  network.flows[1].lane = 1;
  CreditControl two_lanes = plain_credit(10000);
  two_lanes.lanes = 2;
  const PacketResult apart = simulate(network, two_lanes);
  CHECK(to_seconds(apart.flows[1].finish).base_units() == test::near(3e-3).epsilon(0.02));
  // Pauses without congestion control stop the victim likewise.
  network.flows[1].lane = 0;
  const PacketResult paused = simulate(network, plain_ethernet());
  CHECK(to_seconds(paused.flows[1].finish) > Seconds{5.5e-3});
}

TEST_CASE("head-of-line blocking: one queue per input carries what Karol et al. derived") {
  // Karol, Hluchyj and Morgan 1987, IEEE Trans. Communications 35(12), table I: saturated N x N
  // switches with one queue per input and random destinations carry 0.75 (N = 2), 0.6553 (4),
  // 0.6184 (8) of their capacity. Theirs choose among waiting packets at random, ours in turn, and
  // ours do not run in step: the share is that of a queue in balance all the same. 8 x 4,000
  // packets: 3 standard deviations of such a mean are about 1 %; the ends add 1 %.
  const std::array<std::pair<std::uint32_t, double>, 3> published{
      {{2, 0.75}, {4, 0.6553}, {8, 0.6184}}};
  for (const auto& [n, share] : published) {
    PacketNetwork network = star(2 * n);
    RandomStream random({.seed = 7, .component = n});
    constexpr std::uint64_t kPackets = 4000;
    for (std::uint32_t h = 0; h < n; ++h) {
      for (std::uint64_t p = 0; p < kPackets; ++p) {
        add_message(network, h, n + random.below(n), 1000);
      }
    }
    CreditControl control = plain_credit(8000);
    control.virtual_output_queues = false;
    StepTime end;
    for (const PacketFlowResult& flow : simulate(network, control).flows) {
      end = std::max(end, flow.finish);
    }
    const double carried = static_cast<double>(kPackets) * 1e-6 / to_seconds(end).base_units();
    CAPTURE(n);
    CHECK(carried == test::near(share).epsilon(0.02));
    control.virtual_output_queues = true;
    control.buffer = 128000;
    end = {};
    for (const PacketFlowResult& flow : simulate(network, control).flows) {
      end = std::max(end, flow.finish);
    }
    CHECK(static_cast<double>(kPackets) * 1e-6 / to_seconds(end).base_units() > 0.93);
  }
}

TEST_CASE("deadlock: a ring of full buffers stands still on one lane and not on two") {
  // Four switches in a ring, each host sends to the one two switches on, clockwise: every link's
  // buffer waits for the next one's. Two lanes, so that no lane's flows close the circle: Dally and
  // Seitz 1987, IEEE Trans. Computers 36(5).
  PacketNetwork network = network_of(4, 4);
  std::vector<LinkIndex> up, down, ring;
  for (std::uint32_t s = 0; s < 4; ++s) up.push_back(add_link(network, s, 4 + s, 2.0 * kRate));
  for (std::uint32_t s = 0; s < 4; ++s) down.push_back(add_link(network, 4 + s, s));
  for (std::uint32_t s = 0; s < 4; ++s) ring.push_back(add_link(network, 4 + s, 4 + (s + 1) % 4));
  for (std::uint32_t s = 0; s < 4; ++s) {
    network.flows.push_back(
        {{{up[s], ring[s], ring[(s + 1) % 4], down[(s + 2) % 4]}}, 200000, {}, 0});
  }
  const CreditControl one = plain_credit(2000);
  const PacketResult stuck = simulate(network, one);
  CHECK(stuck.deadlock);
  CHECK(stuck.flows[0].finish == StepTime{});

  for (std::uint32_t s = 0; s < 4; ++s) network.flows[s].lane = s < 2 ? 0 : 1;
  CreditControl two = one;
  two.lanes = 2;
  CHECK(conserves(network, simulate(network, two), kPlain));
  // Pauses lock up as credits do.
  for (PacketFlow& flow : network.flows) flow.lane = 0;
  EthernetControl ethernet = plain_ethernet();
  ethernet.xoff = 2000;
  ethernet.xon = 1000;
  CHECK(simulate(network, ethernet).deadlock);
}

TEST_CASE("trees never lock up: random traffic with the smallest buffers ends, every byte once") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    RandomStream random({.seed = seed});
    // Two levels: 4 leaves of 3 hosts under one root.
    PacketNetwork network = network_of(12, 5);
    std::vector<LinkIndex> up, down, root_up, root_down;
    for (std::uint32_t h = 0; h < 12; ++h) up.push_back(add_link(network, h, 12 + h / 3));
    for (std::uint32_t h = 0; h < 12; ++h) down.push_back(add_link(network, 12 + h / 3, h));
    for (std::uint32_t l = 0; l < 4; ++l) root_up.push_back(add_link(network, 12 + l, 16));
    for (std::uint32_t l = 0; l < 4; ++l) root_down.push_back(add_link(network, 16, 12 + l));
    for (int f = 0; f < 40; ++f) {
      const std::uint32_t from = random.below(12), to = (from + 1 + random.below(11)) % 12;
      std::vector<LinkIndex> path{up[from]};
      if (from / 3 != to / 3) path.insert(path.end(), {root_up[from / 3], root_down[to / 3]});
      path.push_back(down[to]);
      network.flows.push_back({{path}, 1 + random.below(30000), ns(random.below(50000)), 0});
    }
    CAPTURE(seed);
    CreditControl control = plain_credit(1000);
    // conserves() counts equal headers only where all packets are full: kPlain has none.
    CHECK(conserves(network, simulate(network, control), kPlain));
    control.virtual_output_queues = false;
    CHECK(conserves(network, simulate(network, control), kPlain));
    EthernetControl ethernet = plain_ethernet();
    ethernet.xoff = 2000;
    ethernet.xon = 1000;
    CHECK(conserves(network, simulate(network, ethernet), kPlain));
    EthernetControl controlled = ethernet_for(kRate);
    CHECK(conserves(network, simulate(network, controlled), controlled.framing));
  }
}
