#include "topologies/infiniband/net_records.hpp"

#include <array>
#include <fmt/format.h>
#include <optional>
#include <string>

#include "models/base/input_error.hpp"
#include "topologies/infiniband/link_rate.hpp"

namespace lockstep {
namespace {

struct BoxWord {
  std::string_view word;
  InfinibandKind kind;
};
constexpr std::array kBoxWords{
    BoxWord{"Switch", InfinibandKind::switch_box}, BoxWord{"Hca", InfinibandKind::adapter},
    BoxWord{"Ca", InfinibandKind::adapter}, BoxWord{"Rt", InfinibandKind::router}};
constexpr std::array kGuidWords{
    BoxWord{"switchguid=", InfinibandKind::switch_box}, BoxWord{"caguid=", InfinibandKind::adapter},
    BoxWord{"hcaguids=", InfinibandKind::adapter}, BoxWord{"rtguid=", InfinibandKind::router}};
/// Say nothing of what we need.
constexpr std::array<std::string_view, 5> kIgnored{"vendid=", "devid=", "sysimgguid=", "Chassis",
                                                   "Non-Chassis"};
constexpr std::string_view kNetLines =
    "a box (Switch, Ca, Hca, Rt), a port ([1] \"box\"[1]), switchguid=, caguid=, rtguid=, "
    "sysimgguid=, vendid=, devid=, width=, speed=, speedext=, Chassis, a comment (#)";

std::string allowed_rates() {
  std::string text = "a width of 1x, 2x, 4x, 8x or 12x with one of";
  for (const LaneSpeed& speed : lane_speeds()) text += fmt::format(" {}", speed.name);
  return text;
}

class NetRecordReader {
 public:
  explicit NetRecordReader(TextLines& lines) : lines_(lines) {}

  std::vector<NetBox> read() {
    while (lines_.next()) line();
    return std::move(boxes_);
  }

 private:
  void line() {
    LineCursor at(lines_.line());
    at.skip_spaces();
    if (at.empty()) {
      in_box_ = false;
    } else if (at.rest().front() == '[') {
      plug(at);
    } else if (at.rest().front() != '#') {
      in_box_ = false;
      outside(at);
    }
  }

  void outside(LineCursor at) {
    for (const BoxWord& word : kGuidWords) {
      if (!at.skip(word.word)) continue;
      next_guid_[static_cast<std::size_t>(word.kind)] = guid(at);
      return;
    }
    for (const BoxWord& word : kBoxWords) {
      if (at.skip(word.word)) return box(at, word.kind);
    }
    if (at.skip("width=")) return code(at, codes_.width);
    if (at.skip("speedext=")) return code(at, codes_.extended);
    if (at.skip("speed=")) return code(at, codes_.speed);
    for (const std::string_view word : kIgnored) {
      if (at.skip(word)) return;
    }
    lines_.refuse(in_quotes(lines_.line()), std::string(kNetLines));
  }

  std::uint64_t guid(LineCursor& at) const {
    const auto value = at.skip("0x") ? at.number(16) : at.number();
    if (!value) lines_.refuse(in_quotes(lines_.line()), "a GUID, as in caguid=0x100000");
    return *value;
  }

  void code(LineCursor& at, int& out) const {
    const auto value = at.number();
    if (!value || *value > 15 || *value == 0) {
      lines_.refuse(in_quotes(lines_.line()), "a code of ibsim from 1 to 15");
    }
    out = static_cast<int>(*value);
  }

  void box(LineCursor at, InfinibandKind kind) {
    at.skip_spaces();
    const auto ports = at.number();
    at.skip_spaces();
    const auto id = at.quoted();
    if (!ports || !id || id->empty()) {
      lines_.refuse(in_quotes(lines_.line()), "a number of ports and a name, as in Ca 1 \"h0\"");
    }
    if (*ports == 0 || *ports > static_cast<std::uint64_t>(kMostBoxPorts)) {
      lines_.refuse(fmt::format("{} ports", *ports), fmt::format("1 to {}", kMostBoxPorts));
    }
    NetBox out;
    out.kind = kind;
    out.id = *id;
    out.description = *id;
    out.ports = static_cast<int>(*ports);
    out.line = lines_.number();
    out.guid = next_guid_[static_cast<std::size_t>(kind)];
    next_guid_[static_cast<std::size_t>(kind)] +=
        kind == InfinibandKind::switch_box ? 1 : *ports + 1;
    if (at.until('#')) {
      at.skip_spaces();
      if (const auto text = at.quoted(); text && !text->empty()) out.description = *text;
      while (!at.empty()) {
        if (at.word() == "lid") out.lid = lid(at);
      }
    }
    boxes_.push_back(std::move(out));
    in_box_ = true;
  }

  Lid lid(LineCursor& at) const {
    at.skip_spaces();
    const auto value = at.number();
    if (!value || *value > kLastUnicastLid) {
      lines_.refuse(in_quotes(lines_.line()), fmt::format("a LID from 0 to {}", kLastUnicastLid));
    }
    return static_cast<Lid>(*value);
  }

  std::optional<int> port_number(LineCursor& at) const {
    if (!at.skip("[")) return std::nullopt;
    const auto value = at.number();
    if (!value || !at.skip("]") || *value == 0 ||
        *value > static_cast<std::uint64_t>(kMostBoxPorts)) {
      lines_.refuse(in_quotes(lines_.line()),
                    fmt::format("a port number from 1 to {}, as in [1]", kMostBoxPorts));
    }
    return static_cast<int>(*value);
  }

  std::uint64_t port_guid(LineCursor& at) const {
    if (!at.skip("(")) return 0;
    const auto value = at.number(16);
    if (!value || !at.skip(")")) {
      lines_.refuse(in_quotes(lines_.line()), "a port's GUID, as in (100001)");
    }
    return *value;
  }

  void plug(LineCursor at) {
    if (!in_box_) {
      lines_.refuse(in_quotes(lines_.line()), "ports below a box (Switch, Ca, Hca, Rt)");
    }
    NetPlug out;
    out.line = lines_.number();
    out.port = *port_number(at);
    if (at.skip("[ext")) (void)at.until(']');
    out.port_guid = port_guid(at);
    at.skip_spaces();
    const auto far = at.quoted();
    if (!far) lines_.refuse(in_quotes(lines_.line()), "the far end in quotes, as in [1] \"h0\"[1]");
    out.far_id = *far;
    out.far_port = port_number(at).value_or(1);
    out.far_port_guid = port_guid(at);
    NetBox& box = boxes_.back();
    if (out.port > box.ports) {
      lines_.refuse(fmt::format("port {}", out.port),
                    fmt::format("1 to {}, the ports of {}", box.ports, in_quotes(box.id)));
    }
    remarks(at, out);
    box.plugs.push_back(out);
  }

  /// Options before the comment, and what the comment says; its own `w=` and `s=` mean other
  /// things.
  void remarks(LineCursor& at, NetPlug& out) const {
    IbsimCodes codes = codes_;
    std::optional<BytesPerSecond> named;
    bool comment = false, far_side = false;
    for (at.skip_spaces(); !at.empty(); at.skip_spaces()) {
      if (at.quoted()) {
        far_side = true;
        continue;
      }
      if (at.skip("#")) {
        comment = true;
        continue;
      }
      LineCursor word(at.word());
      if (!comment && word.skip("w=")) code(word, codes.width);
      if (!comment && word.skip("s=")) code(word, codes.speed);
      if (!comment && word.skip("e=")) code(word, codes.extended);
      if (comment && word.rest() == "lid" && !far_side) out.lid = lid(at);
      if (comment && !named) named = rate(word.rest());
    }
    const auto coded = ibsim_rate(codes);
    if (!named && !coded) lines_.refuse(in_quotes(lines_.line()), "w=, s= and e= that ibsim knows");
    out.rate = named ? *named : *coded;
  }

  std::optional<BytesPerSecond> rate(std::string_view word) const {
    const auto value = link_rate(word);
    LineCursor at(word);
    if (!value && at.number() && at.skip("x")) lines_.refuse(in_quotes(word), allowed_rates());
    return value;
  }

  TextLines& lines_;
  std::vector<NetBox> boxes_;
  bool in_box_ = false;
  IbsimCodes codes_;
  // By kind, as ibsim 0.10 starts them (ibsim/sim_net.c, `guids`); it has none for routers.
  std::array<std::uint64_t, 3> next_guid_{0x100000, 0x200000, 0x300000};
};

}  // namespace

std::vector<NetBox> read_net_records(TextLines& lines) { return NetRecordReader(lines).read(); }

}  // namespace lockstep
