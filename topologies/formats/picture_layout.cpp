#include "topologies/formats/picture_layout.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostCounts = 48;  // bundles with their count beside them
constexpr double kShortLine = 2.5;       // widths of a box, between centres

std::string short_rate(BytesPerSecond rate) {
  return fmt::format("{} Gb/s", plain_number(double{rate / gigabits_per_second(1)}, 4));
}

/// "leaf 0 ... leaf 31", or the one name.
std::string range_text(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} \u2026 {}", names.front(), names.back());
}

/// The same, shorter and shorter: "leaf 0 ... 31", "0-31". Of "plane 0 leaf 3 ... plane 1 leaf 3"
/// the shortest is "leaf 3".
std::vector<std::string> range_texts(const std::vector<std::string>& names) {
  const std::string &first = names.front(), &last = names.back();
  std::size_t same = 0, tail = 0;
  const std::size_t shorter = std::min(first.size(), last.size());
  while (same < shorter && first[same] == last[same]) ++same;
  while (same > 0 && first[same - 1] >= '0' && first[same - 1] <= '9') --same;
  while (tail < shorter - same && first[first.size() - 1 - tail] == last[last.size() - 1 - tail]) {
    ++tail;
  }
  const std::string from = first.substr(same), to = last.substr(same);
  const std::string common = first.substr(first.size() - tail);
  std::vector<std::string> out{range_text(names), fmt::format("{} \u2026 {}", first, to)};
  const bool words = from.find(' ') != std::string::npos || to.find(' ') != std::string::npos;
  if (!words) {
    out.push_back(fmt::format("{}\u2013{}", from, to));
  } else if (const std::size_t blank = common.find(' '); blank != std::string::npos) {
    out.push_back(common.substr(blank + 1));
  } else {
    out.emplace_back();
  }
  return out;
}

/// "group 0 leaf 12", and shorter: "leaf 12", "12".
std::vector<std::string> name_texts(const std::string& name) {
  std::vector<std::string> out{name};
  for (std::size_t at = name.find(' '); at != std::string::npos; at = name.find(' ', at + 1)) {
    const std::string rest = name.substr(at + 1);
    const bool number = rest.find_first_not_of("0123456789,") == std::string::npos;
    if (number || rest.find_first_of("0123456789") != 0) out.push_back(rest);
  }
  return out;
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

PictureLayout::PictureLayout(const DrawnFabric& fabric)
    : fabric_(fabric), graph_(fabric.graph), box_of_(graph_.vertex_count(), -1) {}

Picture PictureLayout::finish() {
  const std::vector<Content> all = contents();
  for (std::size_t b = 0; b < all.size(); ++b) describe(all[b], picture_.boxes[b]);
  find_usual_rates();
  add_bundles();
  picture_.title = fabric_.about.empty() ? fabric_.source : fabric_.about;
  picture_.subtitle = fmt::format(
      "{}, {}, {}, {}{}", counted(fabric_.hosts.size(), "host", "hosts"),
      counted(graph_.port_count(), "NIC", "NICs"),
      counted(graph_.vertex_count() - graph_.port_count(), "switch", "switches"),
      counted(graph_.cables().size(), "cable", "cables"),
      fabric_.down.empty() ? "" : fmt::format(", {} more are down", fabric_.down.size()));
  return std::move(picture_);
}

std::vector<Vertex> PictureLayout::neighbours(Vertex v) const {
  std::vector<Vertex> out;
  for (GraphLink i = graph_.first_link()[v]; i < graph_.first_link()[v + 1]; ++i) {
    out.push_back(graph_.target()[i]);
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

int PictureLayout::add_box(const std::vector<Vertex>& vertices) {
  const int number = static_cast<int>(picture_.boxes.size());
  picture_.boxes.emplace_back();
  for (const Vertex v : vertices) box_of_[v] = number;
  return number;
}

void PictureLayout::fold_hosts() {
  for (Vertex nic = 0; nic < graph_.port_count(); ++nic) {
    for (const Vertex to : neighbours(nic)) {
      if (box_of_[nic] < 0) box_of_[nic] = box_of_[to];
    }
  }
}

std::vector<PictureLayout::Content> PictureLayout::contents() const {
  std::vector<Content> out(picture_.boxes.size());
  std::set<std::pair<int, int>> seen;  // node and box
  for (Vertex v = 0; v < graph_.vertex_count(); ++v) {
    if (box_of_[v] < 0) continue;
    Content& in = out[static_cast<std::size_t>(box_of_[v])];
    const GraphVertex& at = vertex(v);
    in.unplugged += graph_.first_link()[v] == graph_.first_link()[v + 1] ? 1 : 0;
    in.nics += at.is_port() ? 1 : 0;
    if (!at.is_port()) in.switches.push_back(at.name);
    if (at.is_port() && seen.emplace(at.node, box_of_[v]).second) {
      in.hosts.push_back(fabric_.hosts[static_cast<std::size_t>(at.node)]);
    }
  }
  return out;
}

void PictureLayout::describe(const Content& in, PictureBox& box) {
  box.hosts = in.switches.empty();
  box.cut_off = in.unplugged > 0;
  const auto& names = box.hosts ? in.hosts : in.switches;
  if (names.empty()) return;
  const std::string switches = counted(in.switches.size(), "switch", "switches");
  const std::string hosts = counted(in.hosts.size(), "host", "hosts");
  if (!box.title.empty()) {  // a group's name
    box.detail = {switches + ", " + hosts, switches};
  } else if (names.size() == 1) {
    box.title = name_texts(names.front());
  } else {
    box.title = {box.hosts ? hosts : switches, fmt::format("\u00d7{}", names.size())};
    box.detail = range_texts(names);
  }
  box.tooltip = range_text(names);
  if (names.size() > 1) box.tooltip += fmt::format(" ({})", box.hosts ? hosts : switches);
  if (box.hosts && names.size() == 1 && in.nics > 1) {
    box.detail = {fmt::format("{} NICs", in.nics), fmt::format("\u00d7{}", in.nics)};
  }
  if (box.hosts) box.tooltip += fmt::format(", {} NICs", in.nics);
  if (!box.hosts && !in.hosts.empty()) {
    box.tooltip += fmt::format("; {}: {}", hosts, range_text(in.hosts));
  }
  if (in.unplugged > 0) box.tooltip += fmt::format("; {} without a cable", in.unplugged);
}

void PictureLayout::find_usual_rates() {
  std::map<std::pair<int, int>, std::map<BytesPerSecond, int>> counts;
  for (const GraphCable& cable : graph_.cables()) ++counts[layers(cable)][cable.capacity];
  for (const auto& [between, of] : counts) {
    const auto most = std::ranges::max_element(
        of, [](const auto& a, const auto& b) { return a.second < b.second; });
    usual_[between] = most->first;
  }
}

std::pair<int, int> PictureLayout::layers(const GraphCable& cable) const {
  return std::minmax({vertex(cable.a).level, vertex(cable.b).level});
}

std::optional<std::pair<int, int>> PictureLayout::boxes_of(const GraphCable& cable) const {
  const int a = box_of_[cable.a], b = box_of_[cable.b];
  if (a < 0 || b < 0) return std::nullopt;
  return std::minmax({a, b});
}

void PictureLayout::add_bundles() {
  std::map<std::pair<int, int>, Cables> bundles;
  for (const GraphCable& cable : graph_.cables()) {
    const auto ends = boxes_of(cable);
    if (!ends) continue;
    Cables& bundle = bundles[*ends];
    ++bundle.working[cable.capacity];
    bundle.slow += cable.capacity < usual_.at(layers(cable)) ? 1 : 0;
  }
  for (const GraphCable& cable : fabric_.down) {
    if (const auto ends = boxes_of(cable)) ++bundles[*ends].down;
  }
  std::set<BytesPerSecond> rates;
  for (const auto& [ends, cables] : bundles) {
    if (ends.first == ends.second) {
      box(ends.first).slow = cables.slow;
      box(ends.first).down = cables.down;
      continue;
    }
    add_bundle(ends.first, ends.second, cables);
    if (picture_.bundles.back().cables > 0) rates.insert(picture_.bundles.back().rate);
  }
  picture_.rates.assign(rates.rbegin(), rates.rend());
  const bool dots =
      std::ranges::any_of(picture_.boxes, [](const PictureBox& at) { return at.round; });
  picture_.counts = !dots && picture_.bundles.size() <= kMostCounts;
}

void PictureLayout::add_bundle(int low, int high, const Cables& cables) {
  const PictureBox &a = box(low), &b = box(high);
  PictureBundle bundle;
  std::tie(bundle.x1, bundle.y1, bundle.x2, bundle.y2) = std::tuple(a.x, a.y, b.x, b.y);
  if (upright_ && a.y != b.y) {
    const double way = a.y < b.y ? 0.5 : -0.5;
    bundle.y1 += way * a.height;
    bundle.y2 -= way * b.height;
  } else {
    bundle.bend = bend(low, high);
    const double length = std::hypot(a.x - b.x, a.y - b.y);
    if (length < kShortLine * a.width) bundle.count_at = 0.5;
  }
  bundle.slow = cables.slow;
  bundle.down = cables.down;
  bundle.tooltip = fmt::format("{} to {}:", a.tooltip, b.tooltip);
  int most = 0;
  for (const auto& [rate, count] : cables.working) {
    bundle.cables += count;
    bundle.tooltip += fmt::format(" {} \u00d7 {}", count, short_rate(rate));
    if (count >= most) std::tie(most, bundle.rate) = std::pair(count, rate);
  }
  if (cables.slow > 0) bundle.tooltip += fmt::format(", {} slow", cables.slow);
  if (cables.down > 0) bundle.tooltip += fmt::format(", {} down", cables.down);
  picture_.bundles.push_back(std::move(bundle));
}

}  // namespace lockstep
