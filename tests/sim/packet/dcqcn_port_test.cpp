// What DCQCN costs a contended port: the fluid port against the same messages as packets.
#include "sim/packet/dcqcn_port.hpp"

#include <array>
#include <doctest/doctest.h>
#include <initializer_list>
#include <vector>

#include "sim/packet/packet_control.hpp"
#include "tests/sim/packet/hand_network.hpp"
#include "tests/support/near.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr BytesPerSecond kLine = gigabits_per_second(400);

/// So many equal messages, all at once, into one port of the line rate.
std::vector<PortMessage> incast(unsigned senders, double bytes) {
  return std::vector<PortMessage>(senders, {.bytes = Bytes{bytes} / kRoceFraming.efficiency(),
                                            .most = kLine,
                                            .line_rate = kLine,
                                            .start = {}});
}
DcqcnPort port() {
  return {.capacity = kLine, .packet = kRoceFraming.wire(), .feedback = microseconds(1)};
}
double use(const std::vector<PortMessage>& messages) {
  return dcqcn_use(port(), messages, vendor_tuning(kLine)).use;
}
constexpr int kDraws = 4;
double mean_use(const std::vector<PortMessage>& messages) {
  double sum = 0;
  for (std::uint32_t draw = 1; draw <= kDraws; ++draw) {
    DcqcnPort of_draw = port();
    of_draw.number = draw;
    sum += dcqcn_use(of_draw, messages, vendor_tuning(kLine)).use;
  }
  return sum / kDraws;
}

}  // namespace

TEST_CASE("a contended port: the fluid keeps it as busy as packets do, within 5 %") {
  // Messages that begin together: of 16 MB, which the start decides, and of 60 MB. Marks fall by
  // chance: another draw of either side differs by 2 to 4 %, so that means of a few are compared.
  for (const unsigned senders : {2U, 3U, 4U, 8U}) {
    for (const unsigned bytes : {16000000U, 60000000U}) {
      CAPTURE(senders);
      CAPTURE(bytes);
      const PacketNetwork network = parking_lot(senders, 0, kLine, bytes);
      EthernetControl control = ethernet_for(kLine);
      const double wire = double{1} * senders * bytes / control.framing.efficiency();
      double packets = 0;
      for (control.seed = 1; control.seed <= kDraws; ++control.seed) {
        packets += wire / kLine.base_units() / last_end(simulate(network, control)) / kDraws;
      }
      CHECK(mean_use(incast(senders, bytes)) == near(packets).epsilon(0.05));
    }
  }
}

TEST_CASE("a contended port loses nothing while its first queue lasts until all is sent") {
  // Three senders at line rate: the queue grows by two bytes for each that is sent, and the first
  // mark is heeded after 1.6 MB of queue. 0.5 MB each end before.
  CHECK(use(incast(3, 0.5e6)) == near(1).epsilon(1e-6));
  // 4.5 MB each do not, and the sources wait for their rate timer.
  CHECK(use(incast(3, 4.5e6)) < 0.7);
}

TEST_CASE("a port that is not contended loses nothing") {
  std::vector<PortMessage> half = incast(2, 50e6);
  for (PortMessage& message : half) message.most = 0.5 * kLine;
  CHECK(use(half) == 1);
  CHECK(use(incast(1, 50e6)) == 1);
  // One after the other, with a pause between: the port is never wanted twice.
  std::vector<PortMessage> turns = incast(2, 5e6);
  turns[1].start = microseconds(200);
  CHECK(use(turns) == 1);
}

TEST_CASE("a contended port: the same answer whenever it begins") {
  std::vector<PortMessage> later = incast(4, 16e6);
  for (PortMessage& message : later) message.start = Seconds{3e-3};
  CHECK(use(later) == use(incast(4, 16e6)));
}

namespace {

/// A NIC at line rate for each sender, which divides it among so many messages.
std::vector<PortMessage> senders_of(std::initializer_list<unsigned> messages) {
  std::vector<PortMessage> out;
  std::uint32_t sender = 0;
  for (const unsigned count : messages) {
    out.insert(out.end(), count,
               {.bytes = Bytes{64e6 / count} / kRoceFraming.efficiency(),
                .most = (1.0 / count) * kLine,
                .line_rate = kLine,
                .start = {},
                .sender = sender++});
  }
  return out;
}
DcqcnUse shares(const std::vector<PortMessage>& messages) {
  return dcqcn_use(port(), messages, vendor_tuning(kLine));
}

}  // namespace

TEST_CASE("a contended port: DCQCN limits messages, so that a NIC with more of them gets more") {
  // Once each message is limited to the same rate, 8 get four times what 2 do; before, NICs share
  // evenly. Between the two lies what all of it comes to.
  const std::vector<double> passed = shares(senders_of({8, 2})).passed;
  REQUIRE(passed.size() == 2);
  CHECK(passed[0] / passed[1] > 1.2);
  CHECK(passed[0] / passed[1] < 4);
  const std::vector<double> turned = shares(senders_of({2, 8})).passed;
  CHECK(turned[1] > turned[0]);
  const std::vector<double> weights = dcqcn_weights(passed, std::array{1.0, 1.0});
  CHECK(weights[0] / weights[1] == near(passed[0] / passed[1]).epsilon(1e-12));
  CHECK(weights[0] + weights[1] == near(2).epsilon(1e-12));
  // Twice the bytes over the port for a byte of progress: half the progress for the same share.
  const std::vector<double> loaded = dcqcn_weights(passed, std::array{2.0, 1.0});
  CHECK(loaded[0] / loaded[1] == near(weights[0] / weights[1] / 2).epsilon(1e-12));
}

TEST_CASE("a contended port: senders that begin alike share alike, whatever they have to send") {
  std::vector<PortMessage> messages = senders_of({4, 4});
  for (std::size_t m = 0; m < 4; ++m) messages[m].bytes *= 3.0;
  const std::vector<double> passed = shares(messages).passed;
  REQUIRE(passed.size() == 2);
  CHECK(passed[0] == passed[1]);
  // One sender has nobody to share with, and one that is through has not met the other.
  CHECK(shares(senders_of({4})).passed.empty());
  for (std::size_t m = 4; m < 8; ++m) messages[m].start = Seconds{1};
  CHECK(shares(messages).passed.empty());
}

TEST_CASE("a contended port: who comes later waits behind what is queued") {
  // Sources that cannot be slowed: K_min out of reach. A queue grows by as much as the port sends
  // from the two NICs that began, for 200 us; then a third one's 5 MB take 100 us to send, as four
  // thirds of the port's time pass: what was queued, and a third each of what comes.
  DcqcnTuning tuning = vendor_tuning(kLine);
  tuning.marking.k_min = tuning.marking.k_max = 4'000'000'000;
  std::vector<PortMessage> messages;
  for (std::uint32_t sender = 0; sender < 3; ++sender) {
    messages.push_back({.bytes = Bytes{sender < 2 ? 64e6 : 5e6},
                        .most = kLine,
                        .line_rate = kLine,
                        .start = microseconds(sender < 2 ? 0 : 200),
                        .sender = sender});
  }
  const std::vector<double> passed = dcqcn_use(port(), messages, tuning).passed;
  REQUIRE(passed.size() == 3);
  CHECK(passed[2] == near(5e6).epsilon(1e-9));
  // 10 MB of 20 had been sent: each of the first has 5 MB in the queue and sends 5 more. A step of
  // the fluid is half of the alpha timer, 27.5 us, of which the last may bring up to 1.4 MB.
  CHECK(passed[0] == near(10e6).epsilon(0.2));
  CHECK(passed[0] == passed[1]);
}
