#include "topologies/infiniband/lft_dump.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "models/base/input_error.hpp"
#include "topologies/infiniband/switch_fabric.hpp"
#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kDumpLines =
    "a switch (Unicast lids [0-9] of switch Lid 2 guid 0x200000), an entry (0x0001 003), their "
    "number (9 lids dumped)";

class DumpReader {
 public:
  DumpReader(TextLines& lines, const InfinibandSubnet& subnet)
      : lines_(lines), subnet_(subnet), tables_(empty_tables(subnet)) {
    for (Vertex v = 0; v < subnet.vertices.size(); ++v) {
      if (subnet.vertices[v].kind != InfinibandKind::switch_box) continue;
      switches_.emplace(subnet.vertices[v].node_guid, Seen{.vertex = v});
    }
  }

  LidTables read() {
    while (lines_.next()) line();
    if (!any_) lines_.refuse("no table", std::string(kDumpLines));
    return std::move(tables_);
  }

 private:
  struct Seen {
    Vertex vertex;
    int line = 0;  ///< of its table; 0: none yet
  };

  void line() {
    LineCursor at(lines_.line());
    at.skip_spaces();
    if (at.empty() || at.rest().front() == '#') return;
    if (at.skip("Unicast lids")) return head();
    if (at.skip("0x")) return entry(at);
    // Headings and the count at the end of a table.
    const std::string_view text = at.rest();
    if (text.starts_with("Lid ") || text.starts_with("Port ")) return;
    if (text.find("lids dumped") != std::string_view::npos) return;
    lines_.refuse(in_quotes(lines_.line()), std::string(kDumpLines));
  }

  void head() {
    const std::size_t at = lines_.line().find("guid 0x");
    std::optional<std::uint64_t> guid;
    if (at != std::string_view::npos) {
      LineCursor digits(lines_.line().substr(at + std::string_view("guid 0x").size()));
      guid = digits.number(16);
    }
    if (!guid) lines_.refuse(in_quotes(lines_.line()), "the switch's GUID, as in guid 0x200000");
    const auto found = switches_.find(*guid);
    if (found == switches_.end()) {
      lines_.refuse(fmt::format("a switch with GUID 0x{:x}", *guid),
                    fmt::format("the {} switches of the fabric", switches_.size()));
    }
    if (found->second.line != 0) {
      lines_.refuse(fmt::format("the table of GUID 0x{:x} again", *guid),
                    fmt::format("a table once; line {} has it", found->second.line));
    }
    found->second.line = lines_.number();
    row_ = &tables_.out_port[found->second.vertex];
    last_port_ = subnet_.vertices[found->second.vertex].box_ports;
    any_ = true;
  }

  void entry(LineCursor& at) {
    if (row_ == nullptr) lines_.refuse(in_quotes(lines_.line()), "entries below a switch");
    const auto lid = at.number(16);
    const bool spaced = at.skip(" ");
    at.skip_spaces();
    if (!lid || !spaced || *lid == 0 || *lid > kLastUnicastLid) {
      lines_.refuse(in_quotes(lines_.line()),
                    fmt::format("a LID from 0x1 to 0x{:x} and a port", kLastUnicastLid));
    }
    if (at.skip("UNREACHABLE")) return;
    const auto port = at.number();
    if (!port || (*port > static_cast<std::uint64_t>(last_port_) && *port != kNoPath)) {
      lines_.refuse(in_quotes(lines_.line()),
                    fmt::format("a port from 0 to {}, the switch's last", last_port_));
    }
    if (*lid < row_->size()) (*row_)[*lid] = static_cast<std::uint8_t>(*port);
  }

  TextLines& lines_;
  const InfinibandSubnet& subnet_;
  LidTables tables_;
  std::map<std::uint64_t, Seen> switches_;
  std::vector<std::uint8_t>* row_ = nullptr;
  int last_port_ = 0;
  bool any_ = false;
};

}  // namespace

LidTables read_lft_dump(const std::string& file, std::string_view text,
                        const InfinibandSubnet& subnet) {
  TextLines lines(file, text);
  return DumpReader(lines, subnet).read();
}

std::string write_lft_dump(const InfinibandSubnet& subnet, const LidTables& tables) {
  const SwitchFabric fabric(subnet);
  std::map<Lid, Vertex> with_lid;
  for (Vertex v = 0; v < subnet.vertices.size(); ++v) with_lid[subnet.vertices[v].lid] = v;
  std::string text;
  for (SwitchIndex s = 0; s < fabric.switches(); ++s) {
    const InfinibandVertex& at = subnet.vertices[fabric.vertex(s)];
    const auto& row = tables.out_port[fabric.vertex(s)];
    text += fmt::format("Unicast lids [0-{}] of switch Lid {} guid 0x{:016x} ('{}'):\n",
                        row.size() - 1, at.lid, at.node_guid, at.description);
    int known = 0;  // opensm counts LIDs without a path too
    for (std::size_t lid = 1; lid < row.size(); ++lid) {
      const auto found = with_lid.find(static_cast<Lid>(lid));
      if (found == with_lid.end()) continue;
      ++known;
      if (row[lid] == kNoPath) continue;
      const InfinibandVertex& to = subnet.vertices[found->second];
      const std::string_view what = to.kind == InfinibandKind::switch_box ? "Switch"
                                    : to.kind == InfinibandKind::adapter  ? "Channel Adapter"
                                                                          : "Router";
      text += fmt::format("0x{:04x} {:03} # {} portguid 0x{:016x}: '{}'\n", lid, row[lid], what,
                          to.port_guid, to.description);
    }
    text += fmt::format("{} lids dumped\n", known);
  }
  return text;
}

}  // namespace lockstep
