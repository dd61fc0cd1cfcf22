/// A part of a cluster whose nodes are all of one kind.
#pragma once

#include "models/spec/hardware.hpp"

namespace lockstep {

struct NodePool {
  NodeSpec node;
  int nodes = 1;
};

}  // namespace lockstep
