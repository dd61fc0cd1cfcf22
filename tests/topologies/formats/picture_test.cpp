#include "topologies/formats/picture.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/formats/xml_text.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kPictureRate = gigabits_per_second(400);

DrawnFabric preset_fabric(const FabricSpec& spec, int nodes) {
  const Fabric fabric(spec, nodes, 8, kPictureRate);
  return drawn_fabric(fabric.is_drawn() ? *fabric.graph() : graph_of(fabric), spec.name);
}

bool overlap(const PictureBox& a, const PictureBox& b) {
  return std::abs(a.x - b.x) < (a.width + b.width) / 2 &&
         std::abs(a.y - b.y) < (a.height + b.height) / 2;
}

/// Pairs of boxes that touch, and boxes that leave the page.
int misplaced(const Picture& picture) {
  int out = 0;
  const std::vector<PictureBox>& boxes = picture.boxes;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const PictureBox& at = boxes[i];
    const bool on_page = at.x - at.width / 2 >= 0 && at.x + at.width / 2 <= picture.width &&
                         at.y - at.height / 2 >= 0 && at.y + at.height / 2 <= picture.height;
    out += on_page ? 0 : 1;
    for (std::size_t j = i + 1; j < boxes.size(); ++j) out += overlap(at, boxes[j]) ? 1 : 0;
  }
  return out;
}

TEST_CASE("every fabric preset, small and large: boxes are apart and on the page, XML is sound") {
  const PresetStore presets;
  for (const std::string& name : presets.names("fabrics")) {
    for (const int nodes : {2, 8, 128}) {
      const FabricSpec& spec = presets.fabric(name);
      if (check(spec, nodes, 8, kPictureRate)) continue;
      CAPTURE(name);
      CAPTURE(nodes);
      const Picture picture = picture_of(preset_fabric(spec, nodes));
      CHECK(misplaced(picture) == 0);
      CHECK(picture.width < 3000);
      CHECK_FALSE(picture.boxes.empty());
      const XmlText svg("svg", write_svg(picture));
      CHECK(std::string_view(svg.root().name()) == "svg");
    }
  }
}

TEST_CASE("a picture of a tree: at most 24 boxes a layer and few lines, all cables in them") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.leaf_ports_down = 16;
  for (const int nodes : {4, 6, 30, 200}) {
    CAPTURE(nodes);
    const DrawnFabric fabric = preset_fabric(spec, nodes);
    const Picture picture = picture_of(fabric);
    std::map<double, int> rows;
    for (const PictureBox& at : picture.boxes) ++rows[at.y];
    CHECK(rows.size() == 3);
    for (const auto& [y, boxes] : rows) CHECK(boxes <= 24);
    CHECK(picture.bundles.size() <= 2 * 128);
    std::size_t cables = 0;
    for (const PictureBundle& bundle : picture.bundles) {
      cables += static_cast<std::size_t>(bundle.cables);
    }
    CHECK(cables == fabric.graph.cables().size());
  }
}

TEST_CASE("a picture of a dragonfly: each switch while they are few, then each group with counts") {
  FabricSpec spec;
  spec.kind = FabricKind::dragonfly;
  spec.leaf_ports_down = 4;
  spec.group_switches = 8;
  const Picture few = picture_of(preset_fabric(spec, 8));
  CHECK(few.boxes.size() == 16);
  CHECK(few.boxes.front().round);
  const Picture many = picture_of(preset_fabric(spec, 64));
  CHECK(many.boxes.size() == 16);
  CHECK(many.boxes.front().title.front() == "group 0");
  CHECK(many.boxes.front().detail.front() == "8 switches, 4 hosts");
  CHECK(many.bundles.size() == 16 * 15 / 2);
}

TEST_CASE("a picture shows what is slow, what is down and what has no cable") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.leaf_ports_down = 8;
  FabricFault slow, dead;
  slow.from = "leaf 0";
  slow.to = "spine 0";
  slow.rate = 0.5;
  dead.part = FabricFault::Part::box;
  dead.from = "spine 3";
  spec.faults = {slow, dead};
  DrawnFabric fabric = preset_fabric(spec, 4);
  fabric.down.push_back(fabric.graph.cables().back());
  const Picture picture = picture_of(fabric);
  const auto count = [&](auto member) {
    return std::count_if(picture.bundles.begin(), picture.bundles.end(),
                         [=](const PictureBundle& b) { return b.*member > 0; });
  };
  CHECK(count(&PictureBundle::slow) == 1);
  CHECK(count(&PictureBundle::down) == 1);
  CHECK(std::count_if(picture.boxes.begin(), picture.boxes.end(),
                      [](const PictureBox& at) { return at.cut_off; }) == 1);
  const std::string svg = write_svg(picture);
  CHECK(svg.find("slower than most between these layers") != std::string::npos);
  CHECK(svg.find("down, or without a cable") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
