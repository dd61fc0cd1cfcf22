#include "topologies/formats/graphml.hpp"

#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "topologies/formats/xml_text.hpp"

namespace lockstep {
namespace {

class GraphmlReader {
 public:
  GraphmlReader(const std::string& file, std::string_view text) : xml_(file, text) {}

  NamedGraph read() {
    const pugi::xml_node root = xml_.root();
    if (std::string_view(root.name()) != "graphml") {
      xml_.fail(root, fmt::format("<{}>", root.name()), "<graphml>");
    }
    for (const pugi::xml_node key : root.children("key")) {
      const std::string name = key.attribute("attr.name").value();
      keys_[key.attribute("id").value()] = name.empty() ? key.attribute("id").value() : name;
      const pugi::xml_node text = key.child("default");
      const std::string_view of = key.attribute("for").value();
      if (text && of != "edge") node_defaults_[name] = text.child_value();
      if (text && of != "node") edge_defaults_[name] = text.child_value();
    }
    const pugi::xml_node graph = root.child("graph");
    if (!graph) xml_.fail(root, "no <graph>", "a <graph> in <graphml>");
    graph_.directed = std::string_view(graph.attribute("edgedefault").value()) == "directed";
    for (const pugi::xml_node child : graph.children("node")) read_node(child);
    for (const pugi::xml_node child : graph.children("edge")) read_edge(child);
    if (const pugi::xml_node hyper = graph.child("hyperedge")) {
      xml_.fail(hyper, "<hyperedge>", "edges with two ends");
    }
    return std::move(graph_);
  }

 private:
  Attributes attributes(pugi::xml_node element, const Attributes& defaults) const {
    Attributes out = defaults;
    for (const pugi::xml_node data : element.children("data")) {
      const auto key = keys_.find(data.attribute("key").value());
      if (key == keys_.end()) {
        xml_.fail(data, fmt::format("key={}", in_quotes(data.attribute("key").value())),
                  "the id of a <key>");
      }
      out[key->second] = data.child_value();
    }
    return out;
  }

  void read_node(pugi::xml_node element) {
    if (element.child("graph")) xml_.fail(element, "a graph in a vertex", "one flat <graph>");
    NamedGraph::Node node{.name = element.attribute("id").value(),
                          .attributes = attributes(element, node_defaults_),
                          .line = xml_.line(element)};
    if (node.name.empty()) xml_.fail(element, "<node> without an id", "<node id=...>");
    if (!index_.emplace(node.name, graph_.nodes.size()).second) {
      xml_.fail(element, in_quotes(node.name), "an id that no other <node> has");
    }
    for (const std::string_view key : {"name", "label"}) {
      const auto name = node.attributes.find(key);
      if (name == node.attributes.end() || name->second.empty()) continue;
      node.name = name->second;
      break;
    }
    graph_.nodes.push_back(std::move(node));
  }

  std::size_t end_of(pugi::xml_node element, const char* attribute) const {
    const auto at = index_.find(element.attribute(attribute).value());
    if (at != index_.end()) return at->second;
    std::vector<std::string> ids;
    ids.reserve(index_.size());
    for (const auto& [id, i] : index_) ids.push_back(id);
    const std::string_view found = element.attribute(attribute).value();
    xml_.fail(element, fmt::format("{}={}", attribute, in_quotes(found)), "the id of a <node>",
              nearest_name(found, ids));
  }

  void read_edge(pugi::xml_node element) {
    graph_.edges.push_back({.a = end_of(element, "source"),
                            .b = end_of(element, "target"),
                            .attributes = attributes(element, edge_defaults_),
                            .line = xml_.line(element)});
  }

  XmlText xml_;
  NamedGraph graph_;
  std::map<std::string, std::string, std::less<>> keys_;  ///< name by id
  Attributes node_defaults_, edge_defaults_;
  std::map<std::string, std::size_t, std::less<>> index_;  ///< of vertices by id
};

std::string data(std::string_view key, const Attributes& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes) {
    out += fmt::format("<data key=\"{}_{}\">{}</data>", key, xml_escaped(name), xml_escaped(value));
  }
  return out;
}

template <class Elements>
std::string keys(std::string_view of, const Elements& elements) {
  std::set<std::string> names;
  for (const auto& element : elements) {
    for (const auto& [name, value] : element.attributes) names.insert(name);
  }
  std::string out;
  for (const std::string& name : names) {
    out +=
        fmt::format("  <key id=\"{0}_{1}\" for=\"{0}\" attr.name=\"{1}\" attr.type=\"string\"/>\n",
                    of, xml_escaped(name));
  }
  return out;
}

}  // namespace

NamedGraph read_graphml(const std::string& file, std::string_view text) {
  return GraphmlReader(file, text).read();
}

std::string write_graphml(const NamedGraph& graph) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
      "  <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n";
  out += keys("node", graph.nodes) + keys("edge", graph.edges);
  out += fmt::format("  <graph id=\"fabric\" edgedefault=\"{}directed\">\n",
                     graph.directed ? "" : "un");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const NamedGraph::Node& node = graph.nodes[i];
    out += fmt::format("    <node id=\"n{}\"><data key=\"name\">{}</data>{}</node>\n", i,
                       xml_escaped(node.name), data("node", node.attributes));
  }
  for (const NamedGraph::Edge& edge : graph.edges) {
    out += fmt::format("    <edge source=\"n{}\" target=\"n{}\">{}</edge>\n", edge.a, edge.b,
                       data("edge", edge.attributes));
  }
  return out + "  </graph>\n</graphml>\n";
}

}  // namespace lockstep
