#include "topologies/formats/picture.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "topologies/formats/fabric_json.hpp"

namespace lockstep {
namespace {

constexpr double kPageWidth = 1480;
constexpr double kMargin = 40;
constexpr double kNamesWidth = 110;  // left of the layers
constexpr double kTop = 90;          // below title and subtitle
constexpr double kLayerGap = 210;
constexpr int kMostBoxes = 24;   // of a layer
constexpr int kMostDots = 320;   // around circles and on grids
constexpr int kMostCounts = 48;  // bundles with their count beside them

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// "leaf 0 ... leaf 31", or the one name.
std::string range_text(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} \u2026 {}", names.front(), names.back());
}

/// The same, shorter and shorter: "leaf 0 ... 31", "0-31".
std::vector<std::string> range_texts(const std::vector<std::string>& names) {
  const std::string &first = names.front(), &last = names.back();
  std::size_t same = 0;
  while (same < std::min(first.size(), last.size()) && first[same] == last[same]) ++same;
  while (same > 0 && first[same - 1] >= '0' && first[same - 1] <= '9') --same;
  std::vector<std::string> out{range_text(names)};
  out.push_back(fmt::format("{} \u2026 {}", first, last.substr(same)));
  out.push_back(fmt::format("{}\u2013{}", first.substr(same), last.substr(same)));
  return out;
}

/// What every layout fills in: which box each vertex is in, and where the boxes are.
class Layout {
 public:
  explicit Layout(const DrawnFabric& fabric)
      : fabric_(fabric), graph_(fabric.graph), box_of_(graph_.vertex_count(), -1) {}

  Picture finish() {
    describe();
    count_rates();
    add_bundles();
    picture_.title = fabric_.about.empty() ? fabric_.source : fabric_.about;
    picture_.subtitle = fmt::format(
        "{} hosts, {} NICs, {} switches, {} cables{}", fabric_.hosts.size(), graph_.port_count(),
        graph_.vertex_count() - graph_.port_count(), graph_.cables().size(),
        fabric_.down.empty() ? "" : fmt::format(", {} more are down", fabric_.down.size()));
    return std::move(picture_);
  }

 protected:
  [[nodiscard]] const GraphVertex& vertex(Vertex v) const { return graph_.vertices()[v]; }
  [[nodiscard]] std::vector<Vertex> neighbours(Vertex v) const {
    std::vector<Vertex> out;
    for (GraphLink i = graph_.first_link()[v]; i < graph_.first_link()[v + 1]; ++i) {
      out.push_back(graph_.target()[i]);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  int add_box(const std::vector<Vertex>& vertices) {
    const int box = static_cast<int>(picture_.boxes.size());
    picture_.boxes.emplace_back();
    for (const Vertex v : vertices) box_of_[v] = box;
    return box;
  }
  /// NICs join the box of their first switch.
  void fold_hosts() {
    for (Vertex nic = 0; nic < graph_.port_count(); ++nic) {
      for (const Vertex to : neighbours(nic)) {
        if (box_of_[nic] < 0) box_of_[nic] = box_of_[to];
      }
    }
  }

  const DrawnFabric& fabric_;
  const ClusterGraph& graph_;
  std::vector<int> box_of_;  ///< by vertex; -1: not drawn
  Picture picture_;
  bool straight_ = true;  ///< lines go from top to bottom, not from centre to centre

 private:
  /// Titles of all boxes from what is in them.
  void describe() {
    struct Content {
      std::vector<std::string> switches, hosts;
      int nics = 0, unplugged = 0;
    };
    std::vector<Content> contents(picture_.boxes.size());
    std::set<std::pair<int, int>> seen;
    for (Vertex v = 0; v < graph_.vertex_count(); ++v) {
      if (box_of_[v] < 0) continue;
      Content& in = contents[index(box_of_[v])];
      const GraphVertex& at = vertex(v);
      in.unplugged += graph_.first_link()[v] == graph_.first_link()[v + 1] ? 1 : 0;
      in.nics += at.is_port() ? 1 : 0;
      if (!at.is_port()) in.switches.push_back(at.name);
      if (at.is_port() && seen.emplace(at.node, box_of_[v]).second) {
        in.hosts.push_back(fabric_.hosts[index(at.node)]);
      }
    }
    for (std::size_t b = 0; b < contents.size(); ++b) {
      const Content& in = contents[b];
      PictureBox& box = picture_.boxes[b];
      box.hosts = in.switches.empty();
      box.cut_off = in.unplugged > 0;
      const auto& names = box.hosts ? in.hosts : in.switches;
      if (names.empty()) continue;
      const std::string_view what = box.hosts ? "hosts" : "switches";
      if (names.size() == 1) {
        box.title = {names.front()};
      } else {
        box.title = {fmt::format("{} {}", names.size(), what),
                     fmt::format("\u00d7{}", names.size())};
        box.detail = range_texts(names);
      }
      box.tooltip = range_text(names);
      if (names.size() > 1) box.tooltip += fmt::format(" ({} {})", names.size(), what);
      if (box.hosts && names.size() == 1 && in.nics > 1) {
        box.detail = {fmt::format("{} NICs", in.nics), fmt::format("\u00d7{}", in.nics)};
      }
      if (box.hosts) box.tooltip += fmt::format(", {} NICs", in.nics);
      if (!box.hosts && !in.hosts.empty()) {
        box.tooltip += fmt::format("; {} hosts: {}", in.hosts.size(), range_text(in.hosts));
      }
      if (in.unplugged > 0) box.tooltip += fmt::format("; {} without a cable", in.unplugged);
    }
  }

  /// Rates, and which of them most cables between two layers have.
  void count_rates() {
    std::set<BytesPerSecond> rates;
    std::map<std::pair<int, int>, std::map<BytesPerSecond, int>> counts;
    for (const GraphCable& cable : graph_.cables()) {
      rates.insert(cable.capacity);
      ++counts[layers(cable)][cable.capacity];
    }
    picture_.rates.assign(rates.rbegin(), rates.rend());
    for (const auto& [between, of] : counts) {
      const auto most = std::max_element(
          of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      usual_[between] = most->first;
    }
  }
  [[nodiscard]] std::pair<int, int> layers(const GraphCable& cable) const {
    return std::minmax({vertex(cable.a).level, vertex(cable.b).level});
  }

  struct Cables {
    std::map<BytesPerSecond, int> working;
    int slow = 0, down = 0;
  };

  void add_bundles() {
    std::map<std::pair<int, int>, Cables> bundles;
    for (const GraphCable& cable : graph_.cables()) {
      Cables* bundle = bundle_of(cable, bundles);
      if (bundle == nullptr) continue;
      ++bundle->working[cable.capacity];
      bundle->slow += cable.capacity < usual_.at(layers(cable)) ? 1 : 0;
    }
    for (const GraphCable& cable : fabric_.down) {
      if (Cables* bundle = bundle_of(cable, bundles)) ++bundle->down;
    }
    for (const auto& [ends, cables] : bundles) {
      if (ends.first == ends.second) {
        picture_.boxes[index(ends.first)].slow = cables.slow;
        picture_.boxes[index(ends.first)].down = cables.down;
      } else {
        add_bundle(ends.first, ends.second, cables);
      }
    }
    picture_.counts = straight_ && picture_.bundles.size() <= std::size_t{kMostCounts};
  }
  Cables* bundle_of(const GraphCable& cable, std::map<std::pair<int, int>, Cables>& bundles) const {
    const int a = box_of_[cable.a], b = box_of_[cable.b];
    if (a < 0 || b < 0) return nullptr;
    return &bundles[std::minmax({a, b})];
  }

  void add_bundle(int low, int high, const Cables& cables) {
    const PictureBox &a = picture_.boxes[index(low)], &b = picture_.boxes[index(high)];
    PictureBundle bundle;
    std::tie(bundle.x1, bundle.y1, bundle.x2, bundle.y2) = std::tuple(a.x, a.y, b.x, b.y);
    if (straight_ && a.y != b.y) {
      const double way = a.y < b.y ? 0.5 : -0.5;
      bundle.y1 += way * a.height;
      bundle.y2 -= way * b.height;
    } else if (straight_ || std::hypot(a.x - b.x, a.y - b.y) > longest_step_) {
      bundle.bend = straight_ ? 40 : 24;  // not through the boxes between
    }
    bundle.slow = cables.slow;
    bundle.down = cables.down;
    bundle.tooltip = fmt::format("{} to {}:", a.tooltip, b.tooltip);
    int most = 0;
    for (const auto& [rate, count] : cables.working) {
      bundle.cables += count;
      bundle.tooltip += fmt::format(" {} \u00d7 {}", count, rate_text(rate));
      if (count >= most) std::tie(most, bundle.rate) = std::pair(count, rate);
    }
    if (cables.slow > 0) bundle.tooltip += fmt::format(", {} slow", cables.slow);
    if (cables.down > 0) bundle.tooltip += fmt::format(", {} down", cables.down);
    picture_.bundles.push_back(std::move(bundle));
  }

  std::map<std::pair<int, int>, BytesPerSecond> usual_;

 protected:
  double longest_step_ = 1e9;  ///< longer lines between centres are bent
};

/// Layers of boxes, the hosts at the bottom.
class LayeredLayout : public Layout {
 public:
  explicit LayeredLayout(const DrawnFabric& fabric) : Layout(fabric) {
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

  /// At most kMostBoxes: first those that hang on the same, then pods, then neighbours.
  std::vector<Group> folded(std::vector<Group> groups) const {
    if (groups.size() > kMostBoxes) {
      std::vector<std::set<int>> keys;
      for (const Group& group : groups) keys.push_back(below(group));
      groups = merge(std::move(groups), numbered(keys));
    }
    if (groups.size() > kMostBoxes) {
      std::vector<std::pair<int, int>> keys;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const int alone = groups[i].group < 0 ? static_cast<int>(i) : -1;
        keys.emplace_back(groups[i].group, alone);
      }
      groups = merge(std::move(groups), numbered(keys));
    }
    if (groups.size() > kMostBoxes) {
      const std::size_t each = chunk_size(groups.size());
      std::vector<std::size_t> keys;
      for (std::size_t i = 0; i < groups.size(); ++i) keys.push_back(i / each);
      groups = merge(std::move(groups), numbered(keys));
    }
    return groups;
  }

  /// As few as kMostBoxes allows, and more where that makes chunks of one size: 64 units are 16 of
  /// 4, which keeps pods together, and not 21 of 3 and one more.
  static std::size_t chunk_size(std::size_t count) {
    constexpr std::size_t kFewestBoxes = 8;
    const std::size_t least = (count + kMostBoxes - 1) / kMostBoxes;
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
    const double slot = (kPageWidth - 2 * kMargin - kNamesWidth) /
                        static_cast<double>(std::max<std::size_t>(1, groups.size()));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      PictureBox& box = picture_.boxes[index(add_box(groups[i].vertices))];
      box.x = kMargin + kNamesWidth + (static_cast<double>(i) + 0.5) * slot;
      box.y = static_cast<double>(row_);
      box.width = std::min(slot - 6, 170.0);
      box.height = 40;
    }
    const std::string name = level == 0 ? "hosts"
                             : no_layer ? "no layer"
                                        : fmt::format("layer {}", level);
    picture_.texts.push_back(
        {kMargin, static_cast<double>(row_), fmt::format("{} ({})", name, count)});
    ++row_;
  }

  /// Rows were numbered from below; the page counts from above.
  void finish_page() {
    const double bottom = kTop + 40 + (row_ - 1) * kLayerGap;
    for (PictureBox& box : picture_.boxes) box.y = bottom - box.y * kLayerGap;
    for (PictureText& text : picture_.texts) text.y = bottom - text.y * kLayerGap + 4;
    picture_.width = kPageWidth;
    picture_.height = bottom + 120;
  }

  int row_ = 0;
};

/// Groups around a circle, their switches around circles of their own.
class CircleLayout : public Layout {
 public:
  explicit CircleLayout(const DrawnFabric& fabric) : Layout(fabric) {
    straight_ = false;
    std::map<int, std::vector<Vertex>> groups;
    for (Vertex v = graph_.port_count(); v < graph_.vertex_count(); ++v) {
      groups[vertex(v).group].push_back(v);
    }
    if (groups.size() == 1) {
      place_ring(chunks(groups.begin()->second, kMostDots), 0, 0, ring_radius(kMostDots));
    } else {
      place_groups(groups);
    }
    fold_hosts();
    finish_page();
  }

 private:
  static constexpr double kDotStep = 17;  // between neighbours on a ring

  static double ring_radius(int dots) {
    return std::max(24.0, kDotStep * dots / (2 * std::numbers::pi));
  }

  static std::vector<std::vector<Vertex>> chunks(const std::vector<Vertex>& all, int most) {
    const std::size_t each = (all.size() + index(most) - 1) / index(most);
    std::vector<std::vector<Vertex>> out;
    for (std::size_t i = 0; i < all.size(); i += each) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + each));
      out.emplace_back(first, last);
    }
    return out;
  }

  void place_ring(const std::vector<std::vector<Vertex>>& dots, double x, double y, double most) {
    const double radius = std::min(most, ring_radius(static_cast<int>(dots.size())));
    for (std::size_t i = 0; i < dots.size(); ++i) {
      const double turn =
          dots.size() == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(dots.size());
      const double angle = 2 * std::numbers::pi * turn - std::numbers::pi / 2;
      PictureBox& box = picture_.boxes[index(add_box(dots[i]))];
      const double far = dots.size() == 1 ? 0 : radius;
      box.x = x + far * std::cos(angle);
      box.y = y + far * std::sin(angle);
      box.width = box.height = 12;
      box.round = true;
    }
  }

  void place_groups(const std::map<int, std::vector<Vertex>>& groups) {
    std::size_t largest = 1;
    for (const auto& [group, members] : groups) largest = std::max(largest, members.size());
    const int most = std::max(1, kMostDots / static_cast<int>(groups.size()));
    const double inner = ring_radius(std::min(static_cast<int>(largest), most));
    const double outer = std::max(
        160.0, (2 * inner + 50) * static_cast<double>(groups.size()) / (2 * std::numbers::pi));
    int i = 0;
    for (const auto& [group, members] : groups) {
      const double turn = static_cast<double>(i++) / static_cast<double>(groups.size());
      const double angle = 2 * std::numbers::pi * turn - std::numbers::pi / 2;
      const double x = outer * std::cos(angle), y = outer * std::sin(angle);
      place_ring(chunks(members, most), x, y, inner);
      // Names are wider than high.
      const double far = outer + inner + 26 + 26 * std::abs(std::cos(angle));
      picture_.texts.push_back({far * std::cos(angle), far * std::sin(angle),
                                group < 0 ? fmt::format("{} in no group", members.size())
                                          : fmt::format("group {}", group)});
    }
  }

  void finish_page() {
    double left = 0, right = 0, top = 0, bottom = 0;
    for (const PictureBox& box : picture_.boxes) {
      left = std::min(left, box.x);
      right = std::max(right, box.x);
      top = std::min(top, box.y);
      bottom = std::max(bottom, box.y);
    }
    constexpr double kBorder = 100;  // names stand outside of the dots
    picture_.width = std::max(760.0, right - left + 2 * kBorder);
    const double middle = picture_.width / 2 - (left + right) / 2;
    const auto shift = [&](auto& at) {
      at.x += middle;
      at.y += kTop + kBorder - top;
    };
    std::for_each(picture_.boxes.begin(), picture_.boxes.end(), shift);
    std::for_each(picture_.texts.begin(), picture_.texts.end(), shift);
    picture_.height = kTop + bottom - top + 2 * kBorder + 60;
  }
};

/// "switch 3,0,1" as its numbers; nothing: another name.
std::optional<std::vector<int>> coordinates(const std::string& name) {
  const std::size_t start = name.find_first_of("0123456789");
  if (start == std::string::npos) return std::nullopt;
  std::vector<int> out;
  const char* at = name.data() + start;
  const char* end = name.data() + name.size();
  while (true) {
    int value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 0 || value > 1024) return std::nullopt;
    out.push_back(value);
    if (stop == end) break;
    if (*stop != ',') return std::nullopt;
    at = stop + 1;
  }
  const bool fits = out.size() == 2 || out.size() == 3;
  return fits ? std::optional(std::move(out)) : std::nullopt;
}

/// A torus by the coordinates in its names; a third one puts grids side by side.
class GridLayout : public Layout {
 public:
  static bool fits(const DrawnFabric& fabric) {
    const ClusterGraph& graph = fabric.graph;
    std::set<std::vector<int>> seen;
    for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
      const auto at = coordinates(graph.vertex_name(v));
      if (!at || at->size() != coordinates(graph.vertex_name(graph.port_count()))->size())
        return false;
      if (!seen.insert(*at).second) return false;
    }
    return seen.size() > 3 && seen.size() <= kMostSwitches;
  }

  explicit GridLayout(const DrawnFabric& fabric) : Layout(fabric) {
    straight_ = false;
    int columns = 0, rows = 0, planes = 1;
    for (Vertex v = graph_.port_count(); v < graph_.vertex_count(); ++v) {
      const std::vector<int> at = *coordinates(graph_.vertex_name(v));
      rows = std::max(rows, at[0] + 1);
      columns = std::max(columns, at[1] + 1);
      if (at.size() == 3) planes = std::max(planes, at[2] + 1);
    }
    const int across = std::max(1, static_cast<int>(std::ceil(std::sqrt(planes))));
    longest_step_ = kStep * 1.5;
    for (Vertex v = graph_.port_count(); v < graph_.vertex_count(); ++v) {
      const std::vector<int> at = *coordinates(graph_.vertex_name(v));
      const int plane = at.size() == 3 ? at[2] : 0;
      PictureBox& box = picture_.boxes[index(add_box({v}))];
      box.x = kMargin + 60 + kStep * (at[1] + (plane % across) * (columns + 1));
      box.y = kTop + 60 + kStep * (at[0] + (plane / across) * (rows + 1));
      box.width = box.height = 14;
      box.round = true;
      picture_.width = std::max(picture_.width, box.x + kMargin + 90);
      picture_.height = std::max(picture_.height, box.y + 130);
    }
    picture_.width = std::max(picture_.width, 760.0);
    fold_hosts();
  }

 private:
  static constexpr double kStep = 56;
  static constexpr std::size_t kMostSwitches = 1100;
};

/// Whether cables go from layer to layer only.
bool is_layered(const ClusterGraph& graph) {
  const auto level = [&graph](Vertex v) { return graph.vertices()[v].level; };
  return std::none_of(graph.cables().begin(), graph.cables().end(), [&](const GraphCable& cable) {
    return level(cable.a) == level(cable.b) && level(cable.a) != 0;
  });
}

}  // namespace

Picture picture_of(const DrawnFabric& fabric) {
  if (is_layered(fabric.graph)) return LayeredLayout(fabric).finish();
  if (GridLayout::fits(fabric)) return GridLayout(fabric).finish();
  return CircleLayout(fabric).finish();
}

}  // namespace lockstep
