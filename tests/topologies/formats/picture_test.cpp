#include "topologies/formats/picture.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/formats/label_room.hpp"
#include "topologies/formats/xml_text.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kPictureRate = gigabits_per_second(400);

DrawnFabric preset_fabric(const FabricSpec& spec, int nodes) {
  const Fabric fabric(spec, nodes, 8, kPictureRate);
  return drawn_fabric(fabric.is_drawn() ? *fabric.graph() : graph_of(fabric), spec.name);
}

bool boxes_overlap(const PictureBox& a, const PictureBox& b) {
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
    for (std::size_t j = i + 1; j < boxes.size(); ++j) out += boxes_overlap(at, boxes[j]) ? 1 : 0;
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

/// Of the texts within the picture (not its title and legend): those written over another.
std::vector<std::string> written_over(const std::string& svg) {
  const XmlText document("svg", svg);
  std::vector<std::pair<PageArea, std::string>> texts;
  const pugi::xpath_node_set all = document.root().select_nodes("g[@transform]//text");
  for (const pugi::xpath_node& at : all) {
    const pugi::xml_node node = at.node();
    const std::string text = node.child_value(), anchor = node.attribute("text-anchor").value();
    const double x = node.attribute("x").as_double(), y = node.attribute("y").as_double();
    const double size = node.attribute("font-size").as_double(11);
    const auto letters = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
    const double width = 0.6 * size * static_cast<double>(letters);  // DejaVu Sans, about
    const double left = anchor == "end" ? x - width : anchor == "middle" ? x - width / 2 : x;
    texts.push_back({{left, y - 0.75 * size, left + width, y + 0.1 * size}, text});
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t j = i + 1; j < texts.size(); ++j) {
      if (overlap(texts[i].first, texts[j].first)) {
        out.push_back(texts[i].second + " and " + texts[j].second);
      }
    }
  }
  return out;
}

TEST_CASE("no label of a picture is written over another, small or large") {
  const PresetStore presets;
  std::size_t labels = 0;
  for (const std::string& name : presets.names("fabrics")) {
    for (const int nodes : {2, 8, 24, 128}) {
      const FabricSpec& spec = presets.fabric(name);
      if (check(spec, nodes, 8, kPictureRate)) continue;
      CAPTURE(name);
      CAPTURE(nodes);
      const std::string svg = write_svg(picture_of(preset_fabric(spec, nodes)));
      const std::vector<std::string> over = written_over(svg);
      CHECK_MESSAGE(over.empty(), (over.empty() ? std::string() : over.front()));
      const XmlText document("svg", svg);
      labels += document.root().select_nodes("g[@transform]//text").size();
    }
  }
  CHECK(labels > 500);  // room is found for most
}

TEST_CASE("what has no room beside it says its count and its name in its tooltip") {
  Picture picture;
  picture.width = 900;
  picture.height = 400;
  picture.counts = true;
  for (int i = 0; i < 2; ++i) {
    picture.bundles.push_back({.x1 = 100,
                               .y1 = 100,
                               .x2 = 104,
                               .y2 = 104,
                               .cables = 1234,
                               .rate = kPictureRate,
                               .tooltip = "1234 cables"});
    PictureBox& dot = picture.boxes.emplace_back();
    dot.x = 300 + 2 * i;
    dot.y = 200;
    dot.width = dot.height = 12;
    dot.round = true;
    dot.label_x = 15;
    dot.title = {"a dot"};
    dot.tooltip = "a dot";
  }
  picture.rates = {kPictureRate};
  const std::string svg = write_svg(picture);
  const XmlText document("svg", svg);
  CHECK(document.root().select_nodes("//text[.='\u00d71234']").size() == 1);
  CHECK(document.root().select_nodes("//text[.='a dot']").size() == 1);
  CHECK(document.root().select_nodes("//title[.='1234 cables']").size() == 2);
  CHECK(document.root().select_nodes("//title[.='a dot']").size() == 2);
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
