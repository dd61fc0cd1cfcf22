// Fuzz target: whatever bytes a description of a network or server has, each importer gives one or
// an InputError of one line. What was read is drawn, analysed and written in every format, and the
// formats that keep everything read back as the same fabric.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "models/base/input_error.hpp"
#include "topologies/analysis/analysis.hpp"
#include "topologies/formats/dot.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/graphml.hpp"
#include "topologies/formats/import.hpp"
#include "topologies/formats/picture.hpp"
#include "topologies/formats/slurm_topology.hpp"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Numbers of 5 to 7 digits are legal counts of hosts and cables, and only slow.
bool is_large(std::string_view text) {
  int digits = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && digits >= 5 && digits <= 7) return true;
    digits = digit ? digits + 1 : 0;
  }
  return digits >= 5 && digits <= 7;
}

void same(const DrawnFabric& a, const DrawnFabric& b) {
  require(a.hosts == b.hosts && a.down.size() == b.down.size());
  require(a.graph.vertex_count() == b.graph.vertex_count());
  require(a.graph.cables().size() == b.graph.cables().size());
}

/// Control characters that a format has escapes for; others write them as spaces.
bool is_plain(const DrawnFabric& fabric) {
  const auto plain = [](std::string_view name) {
    return std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  };
  return std::ranges::all_of(fabric.hosts, plain) &&
         std::ranges::all_of(fabric.graph.vertices(), plain, &GraphVertex::name);
}

void use(const DrawnFabric& fabric) {
  constexpr std::size_t kMostCables = 1000;
  if (fabric.graph.vertex_count() + fabric.graph.cables().size() > kMostCables) return;
  require(!write_svg(picture_of(fabric)).empty());
  (void)analyse(fabric);
  const std::string text = write_fabric_json(fabric);
  require(write_fabric_json(read_drawn_fabric("own.json", text)) == text);
  if (!is_plain(fabric)) return;
  const NamedGraph graph = named_graph(fabric);
  same(fabric_of("own.dot", read_dot("own.dot", write_dot(graph)), {}), fabric);
  same(fabric_of("own.graphml", read_graphml("own.graphml", write_graphml(graph)), {}), fabric);
  const std::string slurm = write_slurm_topology(fabric);
  if (slurm.find("SwitchName=") == std::string::npos) return;
  (void)read_slurm_topology("own.conf", slurm, gigabits_per_second(400));
}

void read(std::string_view text, const ImportFormat* format) {
  const ImportOptions options{
      .rate = gigabits_per_second(400), .hosts = {}, .hosts_file = "hosts.txt"};
  const Import found =
      import_text("fuzz", text, format == nullptr ? recognise("fuzz", text) : *format, options);
  if (const auto* fabric = std::get_if<DrawnFabric>(&found)) use(*fabric);
  if (const auto* node = std::get_if<NodeDrawing>(&found)) (void)nearest_nics(*node);
}

}  // namespace

// A first byte below the number of formats names one, else the text has to tell.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (is_large(text)) return 0;
  const ImportFormat* format = nullptr;
  if (size > 0 && data[0] < import_formats().size()) {
    format = &import_formats()[data[0]];
    text.remove_prefix(1);
  }
  try {
    read(text, format);
  } catch (const InputError& error) {
    const std::string_view line = error.what();
    require(!line.empty() && line.find('\n') == std::string_view::npos);
  }
  return 0;
}
