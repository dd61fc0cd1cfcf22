/// A line over time, by its corners.
#pragma once

namespace lockstep {

/// A corner of a line that is straight between its corners.
struct PowerCorner {
  double s = 0, watts = 0;
};

}  // namespace lockstep
