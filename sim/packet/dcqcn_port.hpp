/// What DCQCN costs a port at which messages meet, and whose messages get how much of it, without a
/// packet: its sources follow their own equations, the port's queue is a fluid. These are the flow
/// level's start-up term and its weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  std::uint32_t sender = 0;  ///< who moves its messages as one, from 0 on: a collective
};

/// A port with a queue.
struct DcqcnPort {
  BytesPerSecond capacity;
  std::uint32_t packet = 0;  ///< bytes of the wire
  Seconds feedback;          ///< from an empty queue to the receiver, and back to the source
  std::uint32_t number = 0;  ///< names its draws
};

struct DcqcnUse {
  /// The part of the time until the port has sent all messages in which it would be busy if their
  /// sources could not be slowed; 1: DCQCN costs nothing.
  double use = 1;
  /// By sender: bytes that the port passes on from the start of the last one until all messages of
  /// one of them have come in; the same for senders whose messages begin alike, however the draws
  /// of marks fall. Empty: there is one sender, or one is through before the last begins.
  std::vector<double> passed;
};

/// A source begins at line rate (Zhu et al. 2015, SIGCOMM, section 3.3), so that a queue grows by
/// what arrives above the capacity; its packets are marked by its length (figure 5), which the
/// source learns after it has drained. So it is cut several times too often, the port idles, and
/// fills again in steps of the rate timer. DcqcnRate is each source; of n packets that find the
/// marking probability p, none is marked with probability (1 - p)^n (equation 6). With many
/// sources, or short messages, the first queue lasts until all is sent, and nothing is lost.
///
/// The queue is first in, first out: a sender gets of the port what its messages have of what
/// arrives, which is a share by line rates at first and one by messages once all are limited; who
/// comes later waits behind what is queued.
///
/// Leaves out: pauses, what other ports do to the same sources meanwhile, and that messages which
/// have ended leave their source's link to others. Requires a message, positive rates, and senders
/// without gaps.
DcqcnUse dcqcn_use(const DcqcnPort& port, std::span<const PortMessage> messages,
                   const DcqcnTuning& tuning);

/// By sender, the weight (MaxMin::set_weight()) with which a flow gets its part of what is passed
/// on, where `loads` are bytes over the port for each byte of its progress. 1 for all where equal
/// progress gives them that. Requires as many of each, all above 0.
std::vector<double> dcqcn_weights(std::span<const double> passed, std::span<const double> loads);

}  // namespace lockstep
