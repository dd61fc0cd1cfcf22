#include "topologies/formats/label_room.hpp"

#include <algorithm>

namespace lockstep {

bool overlap(const PageArea& a, const PageArea& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

bool LabelRoom::take(const PageArea& area) {
  const bool free =
      std::ranges::none_of(taken_, [&](const PageArea& other) { return overlap(area, other); });
  if (free) taken_.push_back(area);
  return free;
}

}  // namespace lockstep
