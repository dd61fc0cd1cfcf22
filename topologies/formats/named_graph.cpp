#include "topologies/formats/named_graph.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "models/base/quantity.hpp"
#include "topologies/formats/fabric_json.hpp"

namespace lockstep {
namespace {

enum class Kind : std::uint8_t { open, nic, switch_box, host };

struct KindWord {
  std::string_view word;
  Kind kind;
};
constexpr std::array kKindWords{
    KindWord{"nic", Kind::nic},           KindWord{"hca", Kind::nic},
    KindWord{"switch", Kind::switch_box}, KindWord{"leaf", Kind::switch_box},
    KindWord{"spine", Kind::switch_box},  KindWord{"core", Kind::switch_box},
    KindWord{"router", Kind::switch_box}, KindWord{"tor", Kind::switch_box},
    KindWord{"host", Kind::host},         KindWord{"server", Kind::host},
    KindWord{"node", Kind::host},         KindWord{"compute", Kind::host},
    KindWord{"terminal", Kind::host},     KindWord{"gpu", Kind::host},
};

/// The first of the attributes that is there, capital letters aside.
const std::string* find(const Attributes& attributes, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    for (const auto& [key, value] : attributes) {
      if (!value.empty() && lowered(key) == name) return &value;
    }
  }
  return nullptr;
}
const std::string* find(const Attributes& attributes, std::string_view name) {
  return find(attributes, std::array{name});
}

/// "100Gbps" and "100G" as parse_quantity() knows them.
std::string with_known_unit(std::string text) {
  struct Spelling {
    std::string_view end, unit;
  };
  constexpr std::array kSpellings{Spelling{"Tbps", " Tb/s"}, Spelling{"Gbps", " Gb/s"},
                                  Spelling{"Mbps", " Mb/s"}, Spelling{"Gbit/s", " Gb/s"},
                                  Spelling{"GbE", " Gb/s"},  Spelling{"Gb", " Gb/s"},
                                  Spelling{"GBps", " GB/s"}, Spelling{"G", " Gb/s"}};
  for (const Spelling& spelling : kSpellings) {
    if (!text.ends_with(spelling.end)) continue;
    text.resize(text.size() - spelling.end.size());
    return text + std::string(spelling.unit);
  }
  return text;
}

class NamedGraphReader {
 public:
  NamedGraphReader(const std::string& file, const NamedGraph& graph, const ImportOptions& options)
      : file_(file), graph_(graph), options_(options), kinds_(graph.nodes.size(), Kind::open) {}

  DrawnFabric read() {
    check_size();
    find_kinds();
    add_vertices();
    for (const auto& edge : graph_.edges) add_edge(edge);
    if (sketch_.hosts() == 0) {
      fail(1, "no hosts",
           "vertices with kind=host or kind=nic, vertices with one edge, or --hosts FILE");
    }
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      // A host without an edge has a NIC that is not plugged in.
      if (kinds_[i] == Kind::host && ends_[i] == kNone) new_nic(i);
    }
    return sketch_.finish();
  }

 private:
  static constexpr SketchVertex kNone = ~SketchVertex{0};

  [[noreturn]] void fail(int line, std::string found, std::string allowed,
                         std::string nearest = {}) const {
    throw InputError({fmt::format("{}:{}", file_, line), "", std::move(found), std::move(allowed),
                      std::move(nearest)});
  }

  void check_size() const {
    if (graph_.nodes.size() > std::size_t{kMaxSwitches}) {
      fail(graph_.nodes.back().line, fmt::format("{} vertices", graph_.nodes.size()),
           fmt::format("at most {}", kMaxSwitches));
    }
    std::set<std::string_view> names;
    for (const NamedGraph::Node& node : graph_.nodes) {
      if (node.name.empty()) fail(node.line, "a vertex with an empty name", "a name");
      if (!names.insert(node.name).second) {
        fail(node.line, in_quotes(node.name), "a name that no other vertex has");
      }
    }
  }

  void find_kinds() {
    constexpr std::array<std::string_view, 3> kKeys{"kind", "type", "role"};
    bool told = !options_.hosts.empty();
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const NamedGraph::Node& node = graph_.nodes[i];
      const std::string* word = find(node.attributes, kKeys);
      if (word == nullptr) continue;
      const std::string wanted = lowered(*word);
      const auto row =
          std::ranges::find_if(kKindWords, [&](const KindWord& k) { return k.word == wanted; });
      if (row == kKindWords.end()) {
        std::vector<std::string> words;
        words.reserve(kKindWords.size());
        for (const KindWord& k : kKindWords) words.emplace_back(k.word);
        fail(node.line, in_quotes(*word), listed(words), nearest_name(*word, words));
      }
      kinds_[i] = row->kind;
      told = told || row->kind != Kind::switch_box;
    }
    std::set<std::string_view> hosts(options_.hosts.begin(), options_.hosts.end());
    std::vector<int> degree(kinds_.size(), 0);
    for (const NamedGraph::Edge& edge : graph_.edges) {
      ++degree[edge.a];
      ++degree[edge.b];
    }
    const int one_edge = graph_.directed ? 2 : 1;  // there and back
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] == Kind::nic) continue;
      if (hosts.contains(graph_.nodes[i].name)) kinds_[i] = Kind::host;
      if (kinds_[i] != Kind::open) continue;
      const bool leaf = !told && degree[i] > 0 && degree[i] <= one_edge;
      kinds_[i] = leaf ? Kind::host : Kind::switch_box;
    }
  }

  int whole_number(const NamedGraph::Node& node, std::string_view key, int low, int high) const {
    const std::string* text = find(node.attributes, key);
    return text == nullptr ? -1 : whole_number(*text, node.line, low, high);
  }
  int whole_number(const std::string& text, int line, int low, int high) const {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || value < low || value > high) {
      fail(line, in_quotes(text), fmt::format("a whole number from {} to {}", low, high));
    }
    return value;
  }

  void add_vertices() {
    ends_.assign(kinds_.size(), kNone);
    nics_.assign(kinds_.size(), 0);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const NamedGraph::Node& node = graph_.nodes[i];
      if (kinds_[i] == Kind::host && !sketch_.find_host(node.name)) sketch_.add_host(node.name);
      if (kinds_[i] != Kind::nic) continue;
      const std::string* host = find(node.attributes, "host");
      const std::string& name = host != nullptr ? *host : node.name;
      const std::optional<SketchHost> known = sketch_.find_host(name);
      ends_[i] = sketch_.add_nic(known ? *known : sketch_.add_host(name), node.name);
    }
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] != Kind::switch_box) continue;
      const NamedGraph::Node& node = graph_.nodes[i];
      const int level = whole_number(node, "level", 1, kMaxLevel);
      ends_[i] = sketch_.add_switch(node.name, level, whole_number(node, "group", 0, kMaxSwitches));
    }
  }

  SketchVertex new_nic(std::size_t i) {
    const NamedGraph::Node& node = graph_.nodes[i];
    std::string name;
    do {
      name = fmt::format("{} nic {}", node.name, nics_[i]++);
    } while (sketch_.find(name));
    return ends_[i] = sketch_.add_nic(*sketch_.find_host(node.name), std::move(name));
  }

  BytesPerSecond rate_of(const NamedGraph::Edge& edge) const {
    constexpr std::array<std::string_view, 4> kKeys{"rate", "bandwidth", "speed", "capacity"};
    constexpr double kLeast = 1e6, kMost = 1e15;  // as in fabric.json
    const std::string* text = find(edge.attributes, kKeys);
    if (text == nullptr) {
      if (options_.rate > BytesPerSecond{}) return options_.rate;
      fail(edge.line, "an edge without a rate", "rate=\"400 Gb/s\" on every edge, or --rate");
    }
    const auto rate = parse_quantity(with_known_unit(*text), Dimension::data_rate);
    if (const auto* mistake = std::get_if<QuantityMistake>(&rate)) {
      fail(edge.line, in_quotes(*text), mistake->allowed, mistake->nearest);
    }
    const double value = std::get<double>(rate);
    if (!(value >= kLeast && value <= kMost)) {
      fail(edge.line, in_quotes(*text), "a rate from 8 Mb/s to 8 Pb/s");
    }
    return BytesPerSecond{value};
  }

  /// In a directed graph: whether the edge is the way back of one that was seen.
  bool goes_back(const NamedGraph::Edge& edge) {
    if (!graph_.directed) return false;
    int& open = one_way_[{edge.b, edge.a}];
    if (open > 0) {
      --open;
      return true;
    }
    ++one_way_[{edge.a, edge.b}];
    return false;
  }

  void add_edge(const NamedGraph::Edge& edge) {
    if (goes_back(edge)) return;
    const std::string* state = find(edge.attributes, "state");
    const std::string word = state == nullptr ? "up" : lowered(*state);
    if (word != "up" && word != "down") fail(edge.line, in_quotes(*state), "up, down");
    const std::string* count = find(edge.attributes, "count");
    const int copies = count == nullptr ? 1 : whole_number(*count, edge.line, 1, kMaxPortNumber);
    if (edge.a == edge.b) {
      fail(edge.line, "an edge from " + in_quotes(graph_.nodes[edge.a].name) + " to itself",
           "edges between different vertices");
    }
    if (sketch_.cables() + static_cast<std::size_t>(copies) > std::size_t{kMaxCables}) {
      fail(edge.line, "too many edges", fmt::format("at most {} cables in all", kMaxCables));
    }
    GraphCable cable;
    cable.capacity = rate_of(edge);
    for (const auto& [key, port] :
         {std::pair{"port_a", &cable.port_a}, {"port_b", &cable.port_b}}) {
      const std::string* text = find(edge.attributes, key);
      if (text != nullptr) *port = whole_number(*text, edge.line, 0, kMaxPortNumber);
    }
    for (int i = 0; i < copies; ++i) {
      cable.a = end_of(edge, edge.a);
      cable.b = end_of(edge, edge.b);
      sketch_.add_cable(cable, word == "down");
    }
  }

  SketchVertex end_of(const NamedGraph::Edge& edge, std::size_t i) {
    if (kinds_[i] != Kind::host) return ends_[i];
    if (nics_[i] >= kMaxNicsPerHost) {
      fail(edge.line, in_quotes(graph_.nodes[i].name) + " with many cables",
           fmt::format("at most {} cables of a host", kMaxNicsPerHost));
    }
    return new_nic(i);
  }

  const std::string& file_;
  const NamedGraph& graph_;
  const ImportOptions& options_;
  std::vector<Kind> kinds_;         ///< by vertex
  std::vector<SketchVertex> ends_;  ///< by vertex; of a host: its last NIC
  std::vector<int> nics_;           ///< by vertex: numbers used for NICs of a host
  std::map<std::pair<std::size_t, std::size_t>, int> one_way_;
  FabricSketch sketch_;
};

}  // namespace

DrawnFabric fabric_of(const std::string& file, const NamedGraph& graph,
                      const ImportOptions& options) {
  return NamedGraphReader(file, graph, options).read();
}

NamedGraph named_graph(const DrawnFabric& fabric) {
  NamedGraph out;
  for (const GraphVertex& v : fabric.graph.vertices()) {
    NamedGraph::Node& node = out.nodes.emplace_back();
    node.name = v.name;
    node.attributes["kind"] = v.is_port() ? "nic" : "switch";
    if (v.is_port()) node.attributes["host"] = fabric.hosts[static_cast<std::size_t>(v.node)];
    if (!v.is_port() && v.level >= 1) node.attributes["level"] = std::to_string(v.level);
    if (v.group >= 0) node.attributes["group"] = std::to_string(v.group);
  }
  const auto add = [&out](const GraphCable& cable, bool down) {
    NamedGraph::Edge& edge = out.edges.emplace_back();
    edge.a = cable.a;
    edge.b = cable.b;
    if (cable.capacity > BytesPerSecond{}) edge.attributes["rate"] = rate_text(cable.capacity);
    if (cable.port_a > 0) edge.attributes["port_a"] = std::to_string(cable.port_a);
    if (cable.port_b > 0) edge.attributes["port_b"] = std::to_string(cable.port_b);
    if (down) edge.attributes["state"] = "down";
  };
  for (const GraphCable& cable : fabric.graph.cables()) add(cable, false);
  for (const GraphCable& cable : fabric.down) add(cable, true);
  return out;
}

DrawnFabric with_hosts_first(const DrawnFabric& fabric, std::span<const std::string> hosts,
                             const std::string& hosts_file) {
  std::map<std::string_view, int> rank;
  for (const std::string& host : hosts) rank.emplace(host, static_cast<int>(rank.size()));
  const std::set<std::string_view> known(fabric.hosts.begin(), fabric.hosts.end());
  for (const auto& host : hosts) {
    if (known.contains(host)) continue;
    throw InputError({hosts_file, "", in_quotes(host), "a host of the fabric",
                      nearest_name(host, fabric.hosts)});
  }
  const ClusterGraph& graph = fabric.graph;
  const auto nodes = static_cast<std::size_t>(graph.nodes());
  std::vector<int> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  const auto rank_of = [&](int node) {
    const auto at = rank.find(fabric.hosts[static_cast<std::size_t>(node)]);
    return at == rank.end() ? static_cast<int>(rank.size()) : at->second;
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return rank_of(a) < rank_of(b); });

  FabricSketch sketch;
  std::vector<SketchVertex> place(graph.vertex_count());
  for (const int node : order) {
    const SketchHost host = sketch.add_host(fabric.hosts[static_cast<std::size_t>(node)]);
    for (int nic = 0; nic < graph.nics(node); ++nic) {
      const Vertex v = graph.nic_port(node, nic);
      place[v] = sketch.add_nic(host, graph.vertex_name(v));
    }
  }
  for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
    const GraphVertex& at = graph.vertices()[v];
    place[v] = sketch.add_switch(at.name, at.level, at.group);
  }
  const auto add = [&](GraphCable cable, bool down) {
    cable.a = place[cable.a];
    cable.b = place[cable.b];
    sketch.add_cable(cable, down);
  };
  for (const GraphCable& cable : graph.cables()) add(cable, false);
  for (const GraphCable& cable : fabric.down) add(cable, true);
  DrawnFabric out = sketch.finish();
  out.about = fabric.about;
  out.source = fabric.source;
  out.assumptions = fabric.assumptions;
  out.carriage = fabric.carriage;
  return out;
}

}  // namespace lockstep
