// Everything that is neither layers nor a torus: switches around circles, a circle for each group.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numbers>

#include "topologies/formats/picture_layout.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostSingleDots = 72;  // each with a dot; of more, groups are drawn
constexpr std::size_t kMostGroupBoxes = 24;  // groups with a box each; more are dots
constexpr std::size_t kMostDots = 320;
constexpr double kDotStep = 17;  // between neighbours on a ring

double ring_radius(double step, std::size_t dots) {
  return std::max(24.0, step * static_cast<double>(dots) / (2 * std::numbers::pi));
}

/// From the middle of a ring to the place `i` of `count`, the first at the top.
struct Direction {
  double x, y;
};
Direction direction(std::size_t i, std::size_t count) {
  const double turn = static_cast<double>(i) / static_cast<double>(count);
  const double angle = 2 * std::numbers::pi * turn - std::numbers::pi / 2;
  return {std::cos(angle), std::sin(angle)};
}

/// Neighbours together, at most so many sets.
std::vector<std::vector<Vertex>> chunks(const std::vector<Vertex>& all, std::size_t most) {
  const std::size_t each = (all.size() + most - 1) / most;
  std::vector<std::vector<Vertex>> out;
  for (std::size_t i = 0; i < all.size(); i += each) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + each));
    out.emplace_back(first, last);
  }
  return out;
}

std::string group_name(int group) {
  return group < 0 ? std::string("in no group") : fmt::format("group {}", group);
}

class CircleLayout : public PictureLayout {
 public:
  explicit CircleLayout(const DrawnFabric& fabric) : PictureLayout(fabric) {
    Groups groups;
    for (Vertex v = graph_.port_count(); v < graph_.vertex_count(); ++v) {
      groups[vertex(v).group].push_back(v);
    }
    const std::size_t switches = graph_.vertex_count() - graph_.port_count();
    if (groups.size() == 1) {
      const auto dots = chunks(groups.begin()->second, kMostDots);
      place_ring(dots, 0, 0, ring_radius(kDotStep, dots.size()));
    } else if (switches <= kMostSingleDots) {
      place_rings(groups);
    } else if (groups.size() <= kMostGroupBoxes) {
      place_boxes(groups);
    } else {
      place_dots(groups);
    }
    fold_hosts();
    finish_page();
  }

 private:
  using Groups = std::map<int, std::vector<Vertex>>;

  void place_dot(int number, double x, double y, Direction outwards) {
    PictureBox& at = box(number);
    at.x = x;
    at.y = y;
    at.width = at.height = 12;
    at.round = true;
    at.label_x = 15 * outwards.x;
    at.label_y = 15 * outwards.y;
  }

  void place_ring(const std::vector<std::vector<Vertex>>& dots, double x, double y, double radius) {
    for (std::size_t i = 0; i < dots.size(); ++i) {
      const Direction way = direction(i, dots.size());
      const double far = dots.size() == 1 ? 0 : radius;
      place_dot(add_box(dots[i]), x + far * way.x, y + far * way.y, way);
    }
  }

  void place_rings(const Groups& groups) {
    std::size_t largest = 1;
    for (const auto& [group, members] : groups) largest = std::max(largest, members.size());
    const double inner = ring_radius(kDotStep, largest);
    const double outer = std::max(2 * inner + 60, ring_radius(2 * inner + 90, groups.size()));
    std::size_t i = 0;
    for (const auto& [group, members] : groups) {
      const Direction way = direction(i++, groups.size());
      std::vector<std::vector<Vertex>> dots;
      for (const Vertex v : members) dots.push_back({v});
      place_ring(dots, outer * way.x, outer * way.y, inner);
      name_outside(group_name(group), outer + inner + 40, way);
    }
  }

  void place_boxes(const Groups& groups) {
    constexpr double kWidth = 170, kHeight = 44;
    const double radius = std::max(200.0, ring_radius(kWidth + 30, groups.size()));
    std::size_t i = 0;
    for (const auto& [group, members] : groups) {
      const Direction way = direction(i++, groups.size());
      PictureBox& at = box(add_box(members));
      at.x = radius * way.x;
      at.y = radius * way.y;
      at.width = kWidth;
      at.height = kHeight;
      at.title = {group_name(group)};
    }
  }

  void place_dots(const Groups& all) {
    constexpr double kStep = 34;
    // Neighbouring groups share a dot where they are too many.
    const std::size_t each = (all.size() + kMostDots - 1) / kMostDots;
    std::vector<std::vector<Vertex>> dots;
    std::vector<std::string> names;
    std::size_t i = 0;
    for (const auto& [group, members] : all) {
      if (i++ % each == 0) {
        dots.emplace_back();
        names.push_back(group_name(group));
      }
      dots.back().insert(dots.back().end(), members.begin(), members.end());
    }
    const double radius = ring_radius(kStep, dots.size());
    for (std::size_t d = 0; d < dots.size(); ++d) {
      const Direction way = direction(d, dots.size());
      const int number = add_box(dots[d]);
      place_dot(number, radius * way.x, radius * way.y, way);
      box(number).title = {names[d]};
    }
  }

  void name_outside(std::string text, double far, Direction way) {
    constexpr double kMiddle = 0.3;
    const TextAnchor anchor = way.x > kMiddle    ? TextAnchor::start
                              : way.x < -kMiddle ? TextAnchor::end
                                                 : TextAnchor::middle;
    picture_.texts.push_back(
        {.x = far * way.x, .y = far * way.y + 4, .text = std::move(text), .anchor = anchor});
  }

  void finish_page() {
    double left = 0, right = 0, top = 0, bottom = 0;
    for (const PictureBox& at : picture_.boxes) {
      left = std::min(left, at.x - at.width / 2);
      right = std::max(right, at.x + at.width / 2);
      top = std::min(top, at.y - at.height / 2);
      bottom = std::max(bottom, at.y + at.height / 2);
    }
    const double border = picture_.texts.empty() ? 30 : 70;  // names stand outside of the dots
    const double side = picture_.texts.empty() ? 40 : 120;
    picture_.width = right - left + 2 * side;
    const auto shift = [&](auto& at) {
      at.x += side - left;
      at.y += page::kTop + border - top;
    };
    std::ranges::for_each(picture_.boxes, shift);
    std::ranges::for_each(picture_.texts, shift);
    picture_.height = page::kTop + bottom - top + 2 * border + 50;
  }

  [[nodiscard]] double bend(int, int) const override { return 0; }
};

}  // namespace

Picture circle_picture(const DrawnFabric& fabric) { return CircleLayout(fabric).finish(); }

}  // namespace lockstep
