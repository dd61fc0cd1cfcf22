/// Where a picture has room for labels: none is written over another, or over a box.
#pragma once

#include <vector>

namespace lockstep {

/// A rectangle on the page, by its edges.
struct PageArea {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// Those that touch at their edges do not overlap.
bool overlap(const PageArea& a, const PageArea& b);

class LabelRoom {
 public:
  /// What is drawn whatever else is: a box, a dot, a title.
  void reserve(const PageArea& area) { taken_.push_back(area); }
  /// Whether nothing is there yet; then it is taken.
  bool take(const PageArea& area);

 private:
  std::vector<PageArea> taken_;
};

}  // namespace lockstep
