/// What the layouts of a picture share: which box each NIC and switch is in, and, once a layout has
/// placed the boxes, their titles and the cables between them. For picture*.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/formats/picture.hpp"

namespace lockstep {

namespace page {
constexpr double kMargin = 40;
constexpr double kTop = 90;  ///< below title and subtitle
}  // namespace page

class PictureLayout {
 public:
  explicit PictureLayout(const DrawnFabric& fabric);
  virtual ~PictureLayout() = default;

  /// Requires that the layout's constructor has placed its boxes.
  Picture finish();

 protected:
  [[nodiscard]] const GraphVertex& vertex(Vertex v) const { return graph_.vertices()[v]; }
  /// In ascending order, each once.
  [[nodiscard]] std::vector<Vertex> neighbours(Vertex v) const;
  int add_box(const std::vector<Vertex>& vertices);
  PictureBox& box(int number) { return picture_.boxes[static_cast<std::size_t>(number)]; }
  /// NICs join the box of their first switch.
  void fold_hosts();
  /// How far the line between two boxes is off the straight one; 0: not at all.
  [[nodiscard]] virtual double bend(int a, int b) const = 0;

  const DrawnFabric& fabric_;
  const ClusterGraph& graph_;
  std::vector<int> box_of_;  ///< by vertex; -1: not drawn
  Picture picture_;
  bool upright_ = false;  ///< lines leave boxes at their top and bottom, else at their centres

 private:
  struct Content {
    std::vector<std::string> switches, hosts;
    int nics = 0, unplugged = 0;
  };
  struct Cables {
    std::map<BytesPerSecond, int> working;
    int slow = 0, down = 0;
  };

  [[nodiscard]] std::vector<Content> contents() const;
  static void describe(const Content& in, PictureBox& box);
  void find_usual_rates();
  [[nodiscard]] std::pair<int, int> layers(const GraphCable& cable) const;
  void add_bundles();
  [[nodiscard]] std::optional<std::pair<int, int>> boxes_of(const GraphCable& cable) const;
  void add_bundle(int low, int high, const Cables& cables);

  std::map<std::pair<int, int>, BytesPerSecond> usual_;  ///< by layers: the rate that most have
};

/// Layers of boxes, the hosts at the bottom.
Picture layered_picture(const DrawnFabric& fabric);
/// A torus by the coordinates in its switches' names; nothing: it is none.
std::optional<Picture> torus_picture(const DrawnFabric& fabric);
/// Groups of switches around a circle; many switches of a group are one box.
Picture circle_picture(const DrawnFabric& fabric);

}  // namespace lockstep
