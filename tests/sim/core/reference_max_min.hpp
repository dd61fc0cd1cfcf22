// Max-min fair rates the slow way, as textbooks give it: fill all flows at one speed until a link
// is full, freeze its flows, go on with the rest. Shares no code with the solver that it judges.
// Source: Bertsekas and Gallager 1992, Data Networks, section 6.5.2.
#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace lockstep::test {

struct ReferenceFlow {
  std::vector<std::pair<std::size_t, double>> uses;  ///< link, coefficient; a link may repeat
  bool active = false;
  double weight = 1;  ///< how many flows of weight 1 it counts as
};

struct ReferenceNetwork {
  std::vector<double> capacity;
  std::vector<ReferenceFlow> flows;

  /// The rate of each flow, 0 where not active.
  [[nodiscard]] std::vector<double> rates() const {
    std::vector<double> rate(flows.size(), 0.0);
    std::vector<bool> frozen(flows.size());
    for (std::size_t f = 0; f < flows.size(); ++f) frozen[f] = !flows[f].active;
    std::vector<double> left = capacity;
    for (;;) {
      std::vector<double> weight(capacity.size(), 0.0);
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (frozen[f]) continue;
        for (const auto& [link, coefficient] : flows[f].uses)
          weight[link] += flows[f].weight * coefficient;
      }
      std::size_t tightest = 0;
      double level = std::numeric_limits<double>::infinity();
      for (std::size_t l = 0; l < capacity.size(); ++l) {
        if (weight[l] == 0 || left[l] / weight[l] >= level) continue;
        level = left[l] / weight[l];
        tightest = l;
      }
      if (level == std::numeric_limits<double>::infinity()) return rate;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (frozen[f] || !crosses(flows[f], tightest)) continue;
        frozen[f] = true;
        rate[f] = flows[f].weight * level;
        for (const auto& [link, coefficient] : flows[f].uses) left[link] -= coefficient * rate[f];
      }
    }
  }

  static bool crosses(const ReferenceFlow& flow, std::size_t link) {
    for (const auto& use : flow.uses) {
      if (use.first == link) return true;
    }
    return false;
  }
};

}  // namespace lockstep::test
