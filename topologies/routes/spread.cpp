#include "topologies/routes/spread.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace lockstep {

void MessageSpread::aim(const Goal& goal) {
  goal_ = goal;
  for (Level& level : levels_) level.clear();
}

std::size_t MessageSpread::distance(Vertex at) const {
  if (at == goal_.port) return 0;
  const Vertex ports = graph_.port_count();
  if (at >= ports) return goal_.distance[at - ports];
  std::size_t nearest = std::numeric_limits<std::uint8_t>::max();
  for (GraphLink i = graph_.first_link()[at]; i < graph_.first_link()[at + 1]; ++i) {
    nearest = std::min<std::size_t>(nearest, goal_.distance[graph_.target()[i] - ports]);
  }
  return nearest + 1;
}

void MessageSpread::add(Vertex at, double share) {
  const std::size_t far = distance(at);
  assert(far < std::numeric_limits<std::uint8_t>::max() && "check() refuses such fabrics");
  if (levels_.size() <= far) levels_.resize(far + 1);
  levels_[far].push_back({.at = at, .share = share});
}

void MessageSpread::merge(Level& level) {
  std::ranges::stable_sort(level, {}, &Stop::at);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < level.size(); ++i) {
    if (level[i].at == level[kept].at) {
      level[kept].share += level[i].share;
    } else {
      level[++kept] = level[i];
    }
  }
  if (!level.empty()) level.resize(kept + 1);
}

MessageSpread::Stop& MessageSpread::find(Level& level, Vertex at) {
  const auto it = std::ranges::lower_bound(level, at, {}, &Stop::at);
  assert(it != level.end() && it->at == at);
  return *it;
}

/// All vertices on the ways, those where nothing waits with a share of 0.
void MessageSpread::discover() {
  for (std::size_t far = levels_.size(); far-- > 0;) {
    merge(levels_[far]);
    if (far == 0) continue;
    for (const Stop& stop : levels_[far]) {
      for_next_links(graph_, stop.at, goal_, [&](GraphLink link) {
        levels_[far - 1].push_back({.at = graph_.target()[link], .share = 0});
      });
    }
  }
}

/// Capacities from the goal backwards.
void MessageSpread::measure() {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  for (std::size_t far = 0; far < levels_.size(); ++far) {
    for (Stop& stop : levels_[far]) {
      stop.beyond = stop.last = far == 0 ? kUnbounded : 0;
      if (far == 0) continue;
      const bool at_port = far == 1 && goal_.port != Goal::kNoPort;
      for_next_links(graph_, stop.at, goal_, [&](GraphLink link) {
        const double own = graph_.capacity()[link].base_units();
        const Stop& next = find(levels_[far - 1], graph_.target()[link]);
        if (at_port) {
          stop.last += own;
        } else {
          stop.beyond += std::min(own, next.beyond);
          stop.last = std::max(stop.last, next.last);
        }
      });
      if (at_port) stop.beyond = kUnbounded;
    }
  }
}

double MessageSpread::weight(GraphLink link, const Stop& next) const {
  const double own = std::min(graph_.capacity()[link].base_units(), next.beyond);
  return graph_.source()[link] < graph_.port_count() ? std::min(own, next.last) : own;
}

void MessageSpread::send(bool by_capacity, std::vector<RouteHop>& hops) {
  discover();
  if (by_capacity) measure();
  for (std::size_t far = levels_.size(); far-- > 1;) {
    for (const Stop& stop : levels_[far]) {
      const std::size_t first = hops.size();
      double sum = 0;
      for_next_links(graph_, stop.at, goal_, [&](GraphLink link) {
        const double weighs =
            by_capacity ? weight(link, find(levels_[far - 1], graph_.target()[link])) : 1.0;
        hops.push_back({link, weighs});
        sum += weighs;
      });
      assert(hops.size() > first && "a way ended before the goal");
      for (std::size_t i = first; i < hops.size(); ++i) {
        hops[i].share *= stop.share / sum;
        find(levels_[far - 1], graph_.target()[hops[i].link]).share += hops[i].share;
      }
    }
  }
}

}  // namespace lockstep
