// Tori: a grid of switches; a third dimension puts grids one behind the other.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <set>

#include "topologies/formats/picture_layout.hpp"

namespace lockstep {
namespace {

using TorusPlace = std::array<int, 3>;  // row, column, depth

constexpr int kMostAlong = 1024;
constexpr std::size_t kFewestTorusSwitches = 4;
constexpr std::size_t kMostTorusSwitches = 4096;
constexpr std::size_t kMostTorusNames = 72;

/// "switch 3,0,1" as its numbers; nothing: another name.
std::optional<std::vector<int>> torus_coordinates(const std::string& name) {
  const std::size_t start = name.find_first_of("0123456789");
  if (start == std::string::npos) return std::nullopt;
  std::vector<int> out;
  const char* at = name.data() + start;
  const char* end = name.data() + name.size();
  while (true) {
    int value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 0 || value > kMostAlong) return std::nullopt;
    out.push_back(value);
    if (stop == end) break;
    if (*stop != ',') return std::nullopt;
    at = stop + 1;
  }
  const bool fits = out.size() == 2 || out.size() == 3;
  return fits ? std::optional(std::move(out)) : std::nullopt;
}

/// Of every switch; nothing: some has none, or shares its own.
std::optional<std::vector<TorusPlace>> torus_places(const ClusterGraph& graph) {
  std::vector<TorusPlace> out;
  std::set<TorusPlace> seen;
  std::size_t dimensions = 0;
  for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
    const auto at = torus_coordinates(graph.vertex_name(v));
    if (!at || (dimensions > 0 && at->size() != dimensions)) return std::nullopt;
    dimensions = at->size();
    out.push_back({(*at)[0], (*at)[1], dimensions == 3 ? (*at)[2] : 0});
    if (!seen.insert(out.back()).second) return std::nullopt;
  }
  if (out.size() < kFewestTorusSwitches || out.size() > kMostTorusSwitches) return std::nullopt;
  return out;
}

class TorusLayout : public PictureLayout {
 public:
  TorusLayout(const DrawnFabric& fabric, std::vector<TorusPlace> places)
      : PictureLayout(fabric), places_(std::move(places)) {
    TorusPlace most{};
    for (const TorusPlace& at : places_) {
      for (std::size_t d = 0; d < at.size(); ++d) most[d] = std::max(most[d], at[d]);
    }
    // Grids farther back are up and to the right, and a cell has room for all of them.
    const double depth = most[2], right = depth > 5 ? 15 : 24, up = depth > 5 ? 11 : 17;
    const double step = kStep + depth * right;
    const double top = page::kTop + 40 + depth * up;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto [row, column, back] = places_[i];
      PictureBox& at = box(add_box({graph_.port_count() + static_cast<Vertex>(i)}));
      at.x = page::kMargin + 40 + step * column + right * back;
      at.y = top + step * row - up * back;
      at.width = at.height = depth > 5 ? 10 : 14;
      at.round = true;
      if (places_.size() <= kMostTorusNames) {
        at.label_x = -8;  // cables to what is behind leave to the right
        at.label_y = -7;
      }
    }
    picture_.width = 2 * page::kMargin + 120 + step * most[1] + right * depth;
    picture_.height = top + step * most[0] + 90;
    fold_hosts();
  }

 private:
  static constexpr double kStep = 56;

  /// Around the ring, beside the switches that are between.
  [[nodiscard]] double bend(int a, int b) const override {
    const TorusPlace &x = places_[static_cast<std::size_t>(a)],
                     &y = places_[static_cast<std::size_t>(b)];
    constexpr double kAlong = 24, kBack = 10;
    if (std::abs(x[2] - y[2]) > 1) return kBack;
    return std::abs(x[0] - y[0]) > 1 || std::abs(x[1] - y[1]) > 1 ? kAlong : 0;
  }

  std::vector<TorusPlace> places_;  ///< by box
};

}  // namespace

std::optional<Picture> torus_picture(const DrawnFabric& fabric) {
  std::optional<std::vector<TorusPlace>> at = torus_places(fabric.graph);
  if (!at) return std::nullopt;
  return TorusLayout(fabric, std::move(*at)).finish();
}

}  // namespace lockstep
