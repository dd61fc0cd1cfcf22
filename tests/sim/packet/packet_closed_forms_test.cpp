// Both link layers against times that can be added up by hand. Times are whole nanoseconds in these
// networks, so that all are exact to the tick.
#include <doctest/doctest.h>

#include "tests/sim/packet/hand_network.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;

/// A chain of switches between two hosts, 0 and 1, with this rate on each link.
PacketNetwork chain(const std::vector<double>& gigabytes, std::uint64_t bytes) {
  const auto switches = static_cast<std::uint32_t>(gigabytes.size() - 1);
  PacketNetwork network = network_of(2, switches);
  std::vector<LinkIndex> path;
  for (std::uint32_t i = 0; i <= switches; ++i) {
    path.push_back(add_link(network, i == 0 ? 0 : 1 + i, i == switches ? 1 : 2 + i,
                            gigabytes_per_second(gigabytes[i])));
  }
  network.flows.push_back({{path}, bytes, {}, 0});
  return network;
}

}  // namespace

TEST_CASE("one message: serialisation, store and forward at each switch, latencies, to the tick") {
  // 10 packets of 1 us over 4 links: 10 us, 3 more packet times, 4 cables, 3 switches.
  for (const std::uint64_t packets : {1U, 2U, 10U, 1000U}) {
    const PacketNetwork network = chain({1, 1, 1, 1}, packets * 1000);
    const StepTime expected = ns((packets + 3) * 1000 + 4 * 100 + 3 * 300);
    const PacketResult credit = simulate(network, plain_credit());
    CHECK(credit.flows[0].finish == expected);
    CHECK(credit.packet_hops == 4 * packets);
    CHECK(conserves(network, credit, kPlain));
    CHECK(simulate(network, plain_ethernet()).flows[0].finish == expected);
  }
}

TEST_CASE("one message: the slowest link sets the pace, its last packet is short") {
  // 2.5 packets. The middle link takes 2 us a packet and 1 us for the half; the last link then
  // carries the half packet in 0.5 us.
  const PacketNetwork network = chain({1, 0.5, 1}, 2500);
  const StepTime expected = ns(1000 + 2000 + 2000 + 1000 + 500 + 3 * 100 + 2 * 300);
  CHECK(simulate(network, plain_credit()).flows[0].finish == expected);
  CHECK(simulate(network, plain_ethernet()).flows[0].finish == expected);
}

TEST_CASE("a message that is passed on: it follows what arrives, `lead` bytes ahead") {
  // Host 0 sends 10 packets to host 1 over a link that takes 4 us for each; host 1 sends as many to
  // host 2. A packet begins when a byte of it is there: with up to one packet of its own the last
  // begins once the last but one has arrived, 4 us before the end of the other message, with one
  // byte more 4 us earlier. It takes 2 packet times, 2 cables and a switch.
  PacketNetwork network = star(3);
  network.links[0].rate = kRate / 4;
  add_message(network, 0, 1, 10000);
  add_message(network, 1, 2, 10000);
  network.flows[1].after = 0;
  const StepTime slow = ns(10 * 4000 + 1000 + 2 * 100 + 300);
  const auto ends = [&](std::uint64_t lead) {
    network.flows[1].lead = lead;
    const PacketResult credit = simulate(network, plain_credit());
    CHECK(conserves(network, credit, kPlain));
    CHECK(credit.flows[0].finish == slow);
    const PacketResult ethernet = simulate(network, plain_ethernet());
    CHECK(ethernet.flows[1].finish == credit.flows[1].finish);
    return credit.flows[1].finish;
  };
  const StepTime after{ns(2 * 1000 + 2 * 100 + 300)};
  CHECK(ends(1) == StepTime{slow.ps - ns(4000).ps + after.ps});
  CHECK(ends(1000) == StepTime{slow.ps - ns(4000).ps + after.ps});
  CHECK(ends(1001) == StepTime{slow.ps - 2 * ns(4000).ps + after.ps});
  CHECK(ends(5001) == StepTime{slow.ps - 6 * ns(4000).ps + after.ps});
  // Everything of its own: as if alone.
  CHECK(ends(10000) == ns(10 * 1000 + 1000 + 2 * 100 + 300));
}

TEST_CASE("headers: the wire carries them, the message does not") {
  const PacketNetwork network = chain({1}, 40960);
  CreditControl control;
  CHECK(simulate(network, control).flows[0].finish == ns(10 * 4122 + 100));
  CHECK(kInfinibandFraming.efficiency() == doctest::Approx(4096.0 / 4122));
  CHECK(kRoceFraming.efficiency() == doctest::Approx(4096.0 / 4178));
}

TEST_CASE("a later start: nothing moves before it") {
  PacketNetwork network = chain({1}, 1000);
  network.flows[0].start = ns(5000);
  CHECK(simulate(network, plain_credit()).flows[0].finish == ns(5000 + 1000 + 100));
}

TEST_CASE("rounds: each begins a gap after the last of the flows before it has arrived") {
  PacketNetwork network = star(3);
  // Two flows from two hosts, of 2 and 5 packets, each 1 us; then one, and one more.
  add_message(network, 0, 2, 2000);
  add_message(network, 1, 2, 5000, ns(500));
  add_message(network, 0, 1, 1000);
  add_message(network, 1, 0, 3000);
  network.rounds = {{.first = 2, .after_count = 2, .gap = microseconds(10)},
                    {.first = 3, .after_first = 2, .gap = {}}};
  CHECK(mistake(network).empty());
  const PacketResult credit = simulate(network, plain_credit());
  CHECK(conserves(network, credit, kPlain));
  const StepTime first = std::max(credit.flows[0].finish, credit.flows[1].finish);
  // A switch stores each packet and forwards it: the last one takes another 1.5 us.
  constexpr std::uint64_t kPath = 1000 + 100 + 300 + 100;
  CHECK(first >= ns(500 + 5000 + kPath));
  CHECK(credit.flows[2].finish == first + ns(10000 + 1000 + kPath));
  CHECK(credit.flows[3].finish == credit.flows[2].finish + ns(3000 + kPath));
  network.rounds[1].after_first = 3;
  CHECK(mistake(network) == "a round waits for flows behind its own");
  network.rounds[1] = {.first = 2, .after_first = 1, .gap = {}};
  CHECK(mistake(network) == "a round has a flow that is not there, or that another has");
  network.rounds[1] = {.first = 3, .count = 2, .after_first = 2, .gap = {}};
  CHECK(mistake(network) == "a round has a flow that is not there, or that another has");
}

TEST_CASE("k flows into one port: each gets 1/k of it, whatever the lengths of their cables") {
  for (const std::uint32_t k : {2U, 3U, 7U, 16U}) {
    PacketNetwork network = star(k + 1);
    constexpr std::uint64_t kPackets = 400;
    for (std::uint32_t h = 0; h < k; ++h) {
      network.links[h].latency = Seconds{100e-9 * (1 + h)};
      add_message(network, h, k, kPackets * 1000);
    }
    // The port is busy from the first arrival on; the last round ends with it. Flows in turn: the
    // first to end is a round ahead of the last, and further ahead by the packets that passed
    // before the longest cable's first: one, and one more for each microsecond of it.
    const StepTime last = ns(1000 + 100 + 300 + k * kPackets * 1000 + 100);
    const StepTime spread = ns((2 + k / 10) * k * 1000);
    const PacketResult credit = simulate(network, plain_credit());
    CHECK(conserves(network, credit, kPlain));
    StepTime latest;
    for (const PacketFlowResult& flow : credit.flows) {
      CHECK(flow.finish + spread >= last);
      latest = std::max(latest, flow.finish);
    }
    CHECK(latest == last);
    // First in, first out shares by arrivals: the port never idles either.
    latest = {};
    const PacketResult ethernet = simulate(network, plain_ethernet());
    CHECK(conserves(network, ethernet, kPlain));
    for (const PacketFlowResult& flow : ethernet.flows) latest = std::max(latest, flow.finish);
    CHECK(latest == last);
  }
}

TEST_CASE("two virtual lanes share a link evenly, one lane does when the other has nothing") {
  PacketNetwork network = star(3);
  add_message(network, 0, 2, 100000, {}, 0);
  add_message(network, 0, 2, 100000, {}, 0);
  add_message(network, 0, 2, 100000, {}, 1);
  CreditControl control = plain_credit();
  control.lanes = 2;
  const PacketResult result = simulate(network, control);
  // Lane 1 has half of the link for 200 packets; lane 0's flows a quarter each, then half each.
  const std::uint64_t tail = 100 + 300 + 1000 + 100;
  CHECK(result.flows[2].finish <= ns(200 * 1000 + tail));
  CHECK(result.flows[2].finish >= ns(199 * 1000 + tail));
  CHECK(result.flows[1].finish == ns(300 * 1000 + tail));
}

TEST_CASE("spraying: all paths carry the same, the sum of their rates comes through") {
  // Host 0 with a link of 4 GB/s, four parallel links of 1 GB/s, host 1 with 4 GB/s.
  PacketNetwork network = network_of(2, 2);
  const LinkIndex up = add_link(network, 0, 2, 4.0 * kRate);
  std::vector<std::vector<LinkIndex>> paths;
  for (int i = 0; i < 4; ++i) paths.push_back({up, add_link(network, 2, 3), 0});
  const LinkIndex down = add_link(network, 3, 1, 4.0 * kRate);
  for (auto& path : paths) path[2] = down;
  network.flows.push_back({paths, 4000000, {}, 0});
  const PacketResult result = simulate(network, plain_credit());
  CHECK(conserves(network, result, kPlain));
  for (LinkIndex link = 1; link <= 4; ++link) CHECK(result.links[link].carried == 1000000);
  // 1,000 packets each at 1 us, and the path's latency. A packet may find its link busy with the
  // one before, which a new order of the round puts up to 6 slots of 0.25 us early.
  const StepTime least = ns(1000 * 1000 + 250 + 250 + 3 * 100 + 2 * 300);
  CHECK(result.flows[0].finish >= least);
  CHECK(result.flows[0].finish <= least + ns(4 * 1000));
}

TEST_CASE("same network, same bytes: two runs agree in everything that they return") {
  PacketNetwork network = star(6);
  for (std::uint32_t h = 0; h < 5; ++h) add_message(network, h, 5, 300000 + 77 * h);
  EthernetControl control = ethernet_for(kRate);
  const PacketResult a = simulate(network, control), b = simulate(network, control);
  CHECK(a.events == b.events);
  for (std::size_t f = 0; f < 5; ++f) CHECK(a.flows[f].finish == b.flows[f].finish);
}

TEST_CASE("mistakes in a network are named") {
  PacketNetwork network = star(3);
  add_message(network, 0, 1, 1000);
  CHECK(mistake(network).empty());
  network.flows[0].paths = {{0, 1}};
  CHECK(mistake(network) == "a path is not connected");
  network.flows[0].paths = {{0, 99}};
  CHECK(mistake(network) == "a path has an unknown link");
  network.flows[0].paths = {{0, 4}, {1, 4}};
  CHECK(mistake(network) == "the paths of a flow begin with different links");
  network.flows[0].paths = {{0, 4}, {0, 5}};
  CHECK(mistake(network) == "the paths of a flow end at different vertices");
  network.flows[0].paths.clear();
  CHECK(mistake(network) == "a flow has no path");
  network.flows[0] = {{{0, 4}}, 0, {}, 0};
  CHECK(mistake(network) == "a flow has no bytes");
}
