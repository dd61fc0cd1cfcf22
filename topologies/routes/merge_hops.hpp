/// Adds up the parts of a message that cross the same link.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// From position `first` on: links in ascending order, each once.
inline void merge_hops(std::vector<RouteHop>& hops, std::size_t first) {
  const auto begin = hops.begin() + static_cast<std::ptrdiff_t>(first);
  std::stable_sort(begin, hops.end(),
                   [](const RouteHop& a, const RouteHop& b) { return a.link < b.link; });
  std::size_t kept = first;
  for (std::size_t i = first + 1; i < hops.size(); ++i) {
    if (hops[i].link == hops[kept].link) {
      hops[kept].share += hops[i].share;
    } else {
      hops[++kept] = hops[i];
    }
  }
  if (hops.size() > first) hops.resize(kept + 1);
}

}  // namespace lockstep
