#include "topologies/infiniband/net_cables.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <string_view>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// Joins the ends of cables and finds what does not fit.
class Joiner {
 public:
  Joiner(const TextLines& lines, std::span<const NetBox> boxes, bool cut)
      : lines_(lines), boxes_(boxes), cut_(cut) {
    index_boxes();
    index_plugs();
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      for (std::size_t p = 0; p < boxes_[b].plugs.size(); ++p) join(b, p);
    }
  }

  NetCables result;

 private:
  void index_boxes() {
    std::map<std::uint64_t, int> guids;
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      const NetBox& box = boxes_[b];
      const auto [first, fresh] = by_id_.emplace(box.id, b);
      if (!fresh) {
        lines_.refuse_line(box.line, in_quotes(box.id) + " again",
                           fmt::format("a name once; line {} has it", boxes_[first->second].line));
      }
      const auto [same, new_guid] = guids.emplace(box.guid, box.line);
      if (!new_guid) {
        lines_.refuse_line(box.line, fmt::format("GUID 0x{:x} again", box.guid),
                           fmt::format("a GUID once; line {} has it", same->second));
      }
    }
  }

  void index_plugs() {
    for (const NetBox& box : boxes_) {
      auto& plugs = plug_at_.emplace_back(static_cast<std::size_t>(box.ports) + 1, kNone);
      for (std::size_t p = 0; p < box.plugs.size(); ++p) {
        std::size_t& at = plugs[static_cast<std::size_t>(box.plugs[p].port)];
        if (at != kNone) {
          lines_.refuse_line(
              box.plugs[p].line, fmt::format("port {} again", box.plugs[p].port),
              fmt::format("a port once in a box; line {} has it", box.plugs[at].line));
        }
        at = p;
      }
    }
  }

  void join(std::size_t b, std::size_t p) {
    const NetPlug& plug = boxes_[b].plugs[p];
    const auto far = by_id_.find(plug.far_id);
    if (far == by_id_.end() || far->second == b) {
      if (!cut_) {
        lines_.refuse_line(plug.line, "a cable to " + in_quotes(plug.far_id),
                           far == by_id_.end() ? "a box that the file describes" : "another box");
      }
      // Both ends of a loop are ours; it is one cable.
      if (far == by_id_.end() || plug.port <= plug.far_port) ++result.cut;
      return;
    }
    const NetBox& other = boxes_[far->second];
    if (plug.far_port > other.ports) {
      lines_.refuse_line(plug.line, fmt::format("port {}", plug.far_port),
                         fmt::format("1 to {}, the ports of {}", other.ports, in_quotes(other.id)));
    }
    const std::size_t back = plug_at_[far->second][static_cast<std::size_t>(plug.far_port)];
    if (back == kNone) {
      if (!cut_) {
        lines_.refuse_line(plug.line,
                           fmt::format("a cable to {}[{}], which does not list it",
                                       in_quotes(plug.far_id), plug.far_port),
                           "cables that both ends list");
      }
      ++result.cut;
      return;
    }
    const NetPlug& end = other.plugs[back];
    if (end.far_id != boxes_[b].id || end.far_port != plug.port) {
      lines_.refuse_line(plug.line,
                         fmt::format("a cable to {}[{}], which line {} says leads elsewhere",
                                     in_quotes(plug.far_id), plug.far_port, end.line),
                         "the same cable on both ends");
    }
    if (b < far->second) result.cables.push_back({b, p, far->second, back});
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  const TextLines& lines_;
  std::span<const NetBox> boxes_;
  bool cut_;
  std::map<std::string_view, std::size_t> by_id_;
  std::vector<std::vector<std::size_t>> plug_at_;  ///< by box and port
};

}  // namespace

NetCables join_cables(const TextLines& lines, std::span<const NetBox> boxes, bool cut_dangling) {
  return Joiner(lines, boxes, cut_dangling).result;
}

}  // namespace lockstep
