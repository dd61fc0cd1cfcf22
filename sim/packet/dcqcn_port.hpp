/// What DCQCN costs a port at which messages meet, without a packet: its sources follow their own
/// equations, the port's queue is a fluid. This is the flow level's start-up term.
#pragma once

#include <cstdint>
#include <span>

#include "models/base/units.hpp"
#include "sim/packet/dcqcn.hpp"

namespace lockstep {

/// A message as a port sees it.
struct PortMessage {
  Bytes bytes;               ///< on the wire, over this port
  BytesPerSecond most;       ///< as they arrive while its source sends at line rate
  BytesPerSecond line_rate;  ///< of its source
  double share = 1;          ///< of its packets that take this port; the others, ones as full
  Seconds start;
};

/// A port with a queue.
struct DcqcnPort {
  BytesPerSecond capacity;
  std::uint32_t packet = 0;  ///< bytes of the wire
  Seconds feedback;          ///< from an empty queue to the receiver, and back to the source
  std::uint32_t number = 0;  ///< names its draws
};

/// The part of the time until the port has sent all messages in which it would be busy if their
/// sources could not be slowed; 1: DCQCN costs nothing.
///
/// A source begins at line rate (Zhu et al. 2015, SIGCOMM, section 3.3), so that a queue grows by
/// what arrives above the capacity; its packets are marked by its length (figure 5), which the
/// source learns after it has drained. So it is cut several times too often, the port idles, and
/// fills again in steps of the rate timer. DcqcnRate is each source; of n packets that find the
/// marking probability p, none is marked with probability (1 - p)^n (equation 6). With many
/// sources, or short messages, the first queue lasts until all is sent, and nothing is lost.
///
/// Leaves out: pauses, what other ports do to the same sources meanwhile, and that messages which
/// have ended leave their source's link to others. Requires a message, and positive rates.
double dcqcn_use(const DcqcnPort& port, std::span<const PortMessage> messages,
                 const DcqcnTuning& tuning);

}  // namespace lockstep
