// What DCQCN costs a contended port: the fluid port against the same messages as packets.
#include "sim/packet/dcqcn_port.hpp"

#include <array>
#include <doctest/doctest.h>
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
  return dcqcn_use(port(), messages, vendor_tuning(kLine));
}
constexpr int kDraws = 4;
double mean_use(const std::vector<PortMessage>& messages) {
  double sum = 0;
  for (std::uint32_t draw = 1; draw <= kDraws; ++draw) {
    DcqcnPort of_draw = port();
    of_draw.number = draw;
    sum += dcqcn_use(of_draw, messages, vendor_tuning(kLine));
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
