// Random links and flows, for solver tests: the same network twice, ours and the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/max_min.hpp"
#include "sim/core/random.hpp"
#include "tests/sim/core/reference_max_min.hpp"

namespace lockstep::test {

/// 2 to 31 links and 2 to 121 flows of up to 6 links (now and then up to all), with whole or broken
/// coefficients, equal or different capacities. `add_link` and `add_flow` are those of what is
/// tested.
template <typename Network>
ReferenceNetwork random_network(RandomStream& random, Network& network) {
  ReferenceNetwork reference;
  const std::uint32_t links = 2 + random.below(30);
  const std::uint32_t flows = 2 + random.below(120);
  const bool broken = random.below(2) == 0;
  const bool equal = random.below(2) == 0;
  const bool wide = random.below(3) == 0;
  for (std::uint32_t l = 0; l < links; ++l) {
    const double capacity = equal ? 50e9 : 1e9 * (1 + random.below(8));
    reference.capacity.push_back(capacity);
    network.add_link(BytesPerSecond{capacity});
  }
  for (std::uint32_t f = 0; f < flows; ++f) {
    const std::uint32_t most = wide && random.below(8) == 0 ? links : 6;
    ReferenceFlow flow;
    std::vector<FlowEdge> edges;
    for (std::uint32_t uses = 1 + random.below(most); uses > 0; --uses) {
      const LinkIndex link = random.below(links);
      const double coefficient = random.below(2) == 0 ? 1.0
                                 : broken             ? 0.1 + random.below(1000) / 77.0
                                                      : 1.0 + random.below(5);
      flow.uses.emplace_back(link, coefficient);
      edges.push_back({link, coefficient});
    }
    reference.flows.push_back(flow);
    network.add_flow(edges);
  }
  return reference;
}

}  // namespace lockstep::test
