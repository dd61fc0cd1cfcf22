// The lines of most formats have no order: a file with the same lines in another one is the same
// fabric, link for link, and no figure of it moves.
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/text_file.hpp"
#include "sim/core/random.hpp"
#include "tests/support/presets.hpp"
#include "tools/views/tables/topology_report.hpp"
#include "topologies/analysis/analysis.hpp"
#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/formats/dot.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/graphml.hpp"
#include "topologies/formats/import.hpp"
#include "topologies/formats/slurm_topology.hpp"

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view text, std::string_view separator) {
  Lines out;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + separator.size());
  }
  return out;
}

/// Shuffles what stands between the first `head` and the last `tail` lines.
std::string shuffled_text(Lines lines, std::size_t head, std::size_t tail,
                          std::string_view separator, std::uint64_t seed) {
  RandomStream stream({.seed = seed, .purpose = 2});
  for (std::size_t i = lines.size() - tail; i > head + 1; --i) {
    std::swap(lines[i - 1], lines[head + stream.below(static_cast<std::uint32_t>(i - head))]);
  }
  std::string out;
  for (const std::string& line : lines) out += line + std::string(separator);
  return out;
}

DrawnFabric fabric_of_text(const std::string& text) {
  const ImportOptions options{.rate = gigabits_per_second(100), .hosts = {}, .hosts_file = {}};
  return std::get<DrawnFabric>(import_text("file", text, recognise("file", text), options));
}

void check_order_free(const std::string& text, std::size_t head, std::size_t tail,
                      std::string_view separator = "\n") {
  const DrawnFabric plain = fabric_of_text(text);
  const std::string figures = topology_json(plain, analyse(plain)).str();
  const Lines lines = lines_of(text, separator);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    const DrawnFabric other = fabric_of_text(shuffled_text(lines, head, tail, separator, seed));
    CHECK(write_fabric_json(other) == write_fabric_json(plain));
    CHECK(topology_json(other, analyse(other)).str() == figures);
  }
}

std::vector<DrawnFabric> some_fabrics() {
  std::vector<DrawnFabric> out;
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised,
                                FabricKind::dragonfly, FabricKind::torus}) {
    FabricSpec spec;
    spec.kind = kind;
    spec.leaf_ports_down = 4;
    out.push_back(drawn_fabric(*draw_fabric(spec, 16, 2, gigabits_per_second(100)), "test"));
  }
  return out;
}

TEST_CASE("permuted lines: DOT and GraphML are the same fabric in any order") {
  for (const DrawnFabric& fabric : some_fabrics()) {
    check_order_free(write_dot(named_graph(fabric)), 2, 1);
    const std::string graphml = write_graphml(named_graph(fabric));
    const Lines lines = lines_of(graphml, "\n");
    std::size_t head = 0, tail = 0;
    while (lines[head].find("<node") == std::string::npos) ++head;
    while (lines[lines.size() - 1 - tail].find("</graph>") == std::string::npos) ++tail;
    check_order_free(graphml, head, tail + 1);
  }
}

TEST_CASE("permuted lines: Slurm's topology.conf is the same fabric in any order") {
  check_order_free(write_slurm_topology(some_fabrics()[0]), 1, 0);
  check_order_free(
      "SwitchName=s1 Nodes=n[0-3]\nSwitchName=s2 Nodes=n[4-9]\nSwitchName=s3 Nodes=n[10-12]\n"
      "SwitchName=a Switches=s[1-3]\nSwitchName=b Switches=s[1-3]\n",
      0, 0);
}

TEST_CASE("permuted lines: ibnetdiscover's records are the same fabric in any order") {
  for (const char* name : {"tree16.ibnetdiscover", "rails4x4.net"}) {
    CAPTURE(name);
    const std::string text =
        read_text_file(std::string(LOCKSTEP_SOURCE_DIR "/tests/reference/infiniband/") + name);
    check_order_free(text, 0, 0, "\n\n");
  }
}

}  // namespace
}  // namespace lockstep
