// Trees, and whatever else has layers: a row of boxes for each, the hosts at the bottom.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/picture_layout.hpp"

namespace lockstep {
namespace {

constexpr double kPageWidth = 1480;
constexpr double kNamesWidth = 110;  // left of the layers
constexpr double kLayerGap = 210;
constexpr std::size_t kMostLayerBoxes = 24;   // of a layer
constexpr std::size_t kMostLayerLines = 128;  // between two layers

class LayeredLayout : public PictureLayout {
 public:
  explicit LayeredLayout(const DrawnFabric& fabric) : PictureLayout(fabric) {
    upright_ = true;
    std::map<int, std::vector<Group>> layers;
    for (Vertex v = graph_.port_count(); v < graph_.vertex_count(); ++v) {
      // Switches in no layer are above all.
      const int level = vertex(v).level < 0 ? kMaxLevel + 1 : vertex(v).level;
      layers[level].push_back({{v}, vertex(v).group});
    }
    std::vector<Group> hosts;
    for (int node = 0; node < graph_.nodes(); ++node) {
      Group host;
      for (int nic = 0; nic < graph_.nics(node); ++nic) {
        host.vertices.push_back(graph_.nic_port(node, nic));
      }
      if (!host.vertices.empty()) hosts.push_back(std::move(host));
    }
    place(std::move(hosts), 0, false);
    for (auto& [level, groups] : layers) place(std::move(groups), level, level == kMaxLevel + 1);
    finish_page();
  }

 private:
  struct Group {
    std::vector<Vertex> vertices;
    int group = -1;
  };

  static std::vector<Group> merge(std::vector<Group> groups, const std::vector<int>& key) {
    std::map<int, std::size_t> place;
    std::vector<Group> out;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto [at, is_new] = place.emplace(key[i], out.size());
      if (is_new) {
        out.push_back(std::move(groups[i]));
      } else {
        auto& into = out[at->second].vertices;
        into.insert(into.end(), groups[i].vertices.begin(), groups[i].vertices.end());
      }
    }
    return out;
  }

  /// Same number for equal values.
  template <class Value>
  static std::vector<int> numbered(const std::vector<Value>& values) {
    std::map<Value, int> numbers;
    std::vector<int> out;
    out.reserve(values.size());
    for (const Value& value : values) {
      out.push_back(numbers.emplace(value, static_cast<int>(numbers.size())).first->second);
    }
    return out;
  }

  /// What the group hangs on: boxes below; of hosts: the switches above.
  [[nodiscard]] std::set<int> below(const Group& group) const {
    std::set<int> out;
    for (const Vertex v : group.vertices) {
      for (const Vertex to : neighbours(v)) {
        if (vertex(v).is_port()) {
          out.insert(static_cast<int>(to));
        } else if (box_of_[to] >= 0) {
          out.insert(box_of_[to]);
        }
      }
    }
    return out;
  }

  /// At most kMostLayerBoxes: first those that hang on the same, which also spares the page a
  /// layer's many lines, then pods, then neighbours.
  std::vector<Group> folded(std::vector<Group> groups) const {
    std::vector<std::set<int>> keys;
    std::size_t lines = 0;
    for (const Group& group : groups) {
      keys.push_back(below(group));
      lines += keys.back().size();
    }
    if (groups.size() > kMostLayerBoxes || lines > kMostLayerLines) {
      groups = merge(std::move(groups), numbered(keys));
    }
    if (groups.size() > kMostLayerBoxes) {
      std::vector<std::pair<int, int>> pods;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const int alone = groups[i].group < 0 ? static_cast<int>(i) : -1;
        pods.emplace_back(groups[i].group, alone);
      }
      groups = merge(std::move(groups), numbered(pods));
    }
    if (groups.size() > kMostLayerBoxes) {
      const std::size_t each = chunk_size(groups.size());
      std::vector<std::size_t> chunks;
      chunks.reserve(groups.size());
      for (std::size_t i = 0; i < groups.size(); ++i) chunks.push_back(i / each);
      groups = merge(std::move(groups), numbered(chunks));
    }
    return groups;
  }

  /// As few as kMostLayerBoxes allows, and more where that makes chunks of one size: 64 units are
  /// 16 of 4, which keeps pods together, and not 21 of 3 and one more.
  static std::size_t chunk_size(std::size_t count) {
    constexpr std::size_t kFewestBoxes = 8;
    const std::size_t least = (count + kMostLayerBoxes - 1) / kMostLayerBoxes;
    for (std::size_t each = least; each * kFewestBoxes <= count; ++each) {
      if (count % each == 0) return each;
    }
    return least;
  }

  void place(std::vector<Group> groups, int level, bool no_layer) {
    std::size_t count = 0;
    for (const Group& group : groups) {
      count += level == 0 ? 1 : group.vertices.size();
    }
    groups = folded(std::move(groups));
    const double slot = (kPageWidth - 2 * page::kMargin - kNamesWidth) /
                        static_cast<double>(std::max<std::size_t>(1, groups.size()));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      PictureBox& at = box(add_box(groups[i].vertices));
      at.x = page::kMargin + kNamesWidth + (static_cast<double>(i) + 0.5) * slot;
      at.y = static_cast<double>(row_);
      at.width = std::min(slot - 6, 170.0);
      at.height = 40;
    }
    const std::string name = level == 0 ? "hosts"
                             : no_layer ? "no layer"
                                        : fmt::format("layer {}", level);
    picture_.texts.push_back({.x = page::kMargin,
                              .y = static_cast<double>(row_),
                              .text = fmt::format("{} ({})", name, count),
                              .anchor = TextAnchor::start});
    ++row_;
  }

  /// Rows were numbered from below; the page counts from above.
  void finish_page() {
    const double bottom = page::kTop + 40 + (row_ - 1) * kLayerGap;
    for (PictureBox& at : picture_.boxes) at.y = bottom - at.y * kLayerGap;
    for (PictureText& text : picture_.texts) text.y = bottom - text.y * kLayerGap + 4;
    picture_.width = kPageWidth;
    picture_.height = bottom + 90;
  }

  [[nodiscard]] double bend(int, int) const override { return kBend; }

  static constexpr double kBend = 40;  // of a line within a layer
  int row_ = 0;
};

}  // namespace

Picture layered_picture(const DrawnFabric& fabric) { return LayeredLayout(fabric).finish(); }

}  // namespace lockstep
