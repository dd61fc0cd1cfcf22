/// Repeats: how many, and what becomes of them.
#pragma once

#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

/// What a profile's point says.
struct Timing {
  Seconds median;
  double spread;  ///< the quartiles' distance over the median
};
/// Requires at least one sample, and a median above 0.
Timing timing_of(const std::vector<double>& seconds);

/// How a kernel is repeated for a burst. A sample is a CUDA graph of `launches` between two events,
/// behind one like it that is not timed; the card rests for `pause` after it, so that its mean
/// power stays far below the limit and its clock at the top.
struct Repeats {
  int launches;  ///< in one graph
  int samples;
  Seconds pause;
  /// From the first launch to the end of the last pause.
  [[nodiscard]] Seconds together(Seconds one) const {
    return samples * (2.0 * launches * one + pause);
  }
};
/// For a kernel that takes `one` and rotates through `sets` of buffers: a graph long enough for the
/// events' resolution (0.5 us) and for the gap between two graphs, that touches every set.
Repeats burst_repeats(Seconds one, int sets);
/// Launches of a graph of a sustained load: short enough that the samples are many.
int sustained_launches(Seconds one, int sets);

/// Sets of buffers of `bytes` each that a kernel goes through so that none is found in an L2 cache
/// of `l2`: twice its size, but no more than fit into `room`, and at least one.
int rotating_sets(double bytes, double l2, double room);

}  // namespace lockstep
