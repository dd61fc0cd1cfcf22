#include "topologies/formats/fabric_json.hpp"

#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

constexpr Interval kCableRate{1e6, 1e15};  // bytes per second: 8 Mb/s to 8 Pb/s

std::string read_name(const JsonCursor& from) {
  std::string name = from.string();
  if (name.empty()) from.fail("a name of at least one letter");
  return name;
}

class FabricJsonReader {
 public:
  explicit FabricJsonReader(JsonCursor root) : root_(std::move(root)) {}

  DrawnFabric read() {
    (void)root_.find("$schema");
    for (const JsonCursor& host : root_.at("hosts").elements(kMaxHosts)) read_host(host);
    if (sketch_.hosts() == 0) root_.at("hosts").fail("an array of at least one host");
    for (const JsonCursor& at : root_.at("switches").elements(kMaxSwitches)) read_switch(at);
    if (const auto rate = root_.find("rate")) rate_ = rate->data_rate(kCableRate);
    for (const JsonCursor& cable : root_.at("cables").elements(kMaxCables)) read_cable(cable);
    std::string about = text_of("about"), source = text_of("source");
    FabricCarriage carriage = read_carriage();
    std::vector<std::string> assumptions;
    if (const auto list = root_.find("assumptions")) {
      constexpr std::size_t kMostAssumptions = 100;
      for (const JsonCursor& at : list->elements(kMostAssumptions)) {
        assumptions.push_back(at.string());
      }
    }
    root_.finish();
    DrawnFabric fabric = sketch_.finish();
    fabric.about = std::move(about);
    fabric.source = std::move(source);
    fabric.assumptions = std::move(assumptions);
    fabric.carriage = std::move(carriage);
    return fabric;
  }

 private:
  std::string text_of(std::string_view key) const {
    const std::optional<JsonCursor> at = root_.find(key);
    return at ? at->string() : std::string();
  }

  FabricCarriage read_carriage() const {
    FabricCarriage out;
    if (const auto at = root_.find("routing")) {
      std::vector<std::string_view> names;
      for (const RoutingInfo& row : routings()) {
        if (row.routing != Routing::tables) names.push_back(row.name);
      }
      out.routing = static_cast<Routing>(at->choice(names));
    }
    if (const auto at = root_.find("hash_seed")) {
      out.hash_seed = static_cast<HashSeed>(at->choice(hash_seed_names()));
    }
    if (const auto at = root_.find("hash_draw")) out.hash_draw = at->integer(1, kMostHashDraw);
    if (const auto at = root_.find("queue_pairs")) out.queue_pairs = at->integer(1, 1024);
    if (const auto at = root_.find("pxn")) out.pxn = at->boolean();
    if (const auto at = root_.find("nonminimal_share")) {
      out.nonminimal_share = at->number(Interval{0, 1});
    }
    if (const auto at = root_.find("switch_latency")) {
      out.switch_latency = at->seconds(Interval{0, 1});
    }
    if (const auto at = root_.find("transport")) out.transport = read_name(*at);
    return out;
  }

  std::string read_new_name(const JsonCursor& from) const {
    std::string name = read_name(from);
    if (sketch_.find(name)) from.fail("a name that no other NIC or switch has");
    return name;
  }

  void read_host(const JsonCursor& from) {
    const JsonCursor at = from.at("name");
    const std::string name = read_name(at);
    if (sketch_.find_host(name)) at.fail("a name that no other host has");
    const SketchHost host = sketch_.add_host(name);
    const JsonCursor nics = from.at("nics");
    if (nics.is_array()) {
      const std::vector<JsonCursor> names = nics.elements(kMaxNicsPerHost);
      if (names.empty()) nics.fail("an array of at least one name");
      for (const JsonCursor& nic : names) sketch_.add_nic(host, read_new_name(nic));
    } else {
      const int count = nics.integer(1, kMaxNicsPerHost);
      for (int i = 0; i < count; ++i) {
        std::string nic = fmt::format("{} nic {}", name, i);
        if (sketch_.find(nic)) at.fail("a name that gives NICs (" + nic + ") nobody else has");
        sketch_.add_nic(host, std::move(nic));
      }
    }
    from.finish();
  }

  void read_switch(const JsonCursor& from) {
    int level = -1, group = -1;
    std::string name = read_new_name(from.at("name"));
    if (const auto at = from.find("level")) level = at->integer(1, kMaxLevel);
    if (const auto at = from.find("group")) group = at->integer(0, kMaxSwitches);
    sketch_.add_switch(std::move(name), level, group);
    from.finish();
  }

  SketchVertex read_end(const JsonCursor& from) const {
    const std::string name = from.string();
    const std::optional<SketchVertex> vertex = sketch_.find(name);
    if (vertex) return *vertex;
    // The nearest name is sought only here: a whole fabric's names are many.
    std::vector<std::string> names;
    names.reserve(sketch_.vertices());
    for (SketchVertex v = 0; v < sketch_.vertices(); ++v) names.push_back(sketch_.name(v));
    from.fail_name(names);
  }

  static int read_port(const JsonCursor& from, std::string_view key) {
    const std::optional<JsonCursor> at = from.find(key);
    return at ? at->integer(0, kMaxPortNumber) : 0;
  }

  void read_cable(const JsonCursor& from) {
    GraphCable cable;
    const JsonCursor a = from.at("a"), b = from.at("b");
    (void)a.string(), (void)b.string();
    const bool joined = !a.is_missing() && !b.is_missing();
    if (joined) cable.a = read_end(a), cable.b = read_end(b);
    if (joined && cable.a == cable.b) b.fail("another NIC or switch than \"a\"");
    cable.port_a = read_port(from, "port_a");
    cable.port_b = read_port(from, "port_b");
    cable.capacity = rate_;
    const auto down = from.find("down");
    const bool is_down = down && down->boolean();
    if (const auto rate = from.find("rate")) {
      cable.capacity = rate->data_rate(kCableRate);
    } else if (rate_ == BytesPerSecond{} && !is_down) {
      cable.capacity = from.at("rate").data_rate(kCableRate);
    }
    const auto count = from.find("count");
    const int copies = count ? count->integer(1, kMaxPortNumber) : 1;
    if (copies > 1 && (cable.port_a > 0 || cable.port_b > 0)) {
      count->fail("1 where the cable names its ports");
    }
    if (sketch_.cables() + static_cast<std::size_t>(copies) > std::size_t{kMaxCables}) {
      from.fail(fmt::format("at most {} cables in all", kMaxCables));
    }
    for (int i = 0; joined && i < copies; ++i) sketch_.add_cable(cable, is_down);
    from.finish();
  }

  JsonCursor root_;
  FabricSketch sketch_;
  BytesPerSecond rate_;
};

bool same(const GraphCable& x, const GraphCable& y) {
  return x.a == y.a && x.b == y.b && x.capacity == y.capacity && x.port_a == 0 && x.port_b == 0 &&
         y.port_a == 0 && y.port_b == 0;
}

class FabricJsonWriter {
 public:
  explicit FabricJsonWriter(const DrawnFabric& fabric)
      : fabric_(fabric), usual_(usual_rate(fabric.graph)) {}

  std::string text() {
    out_ = "{\n";
    if (!fabric_.about.empty())
      out_ += fmt::format("  \"about\": {},\n", json_string(fabric_.about));
    if (!fabric_.source.empty()) {
      out_ += fmt::format("  \"source\": {},\n", json_string(fabric_.source));
    }
    assumptions();
    carriage();
    if (usual_ > BytesPerSecond{}) {
      out_ += fmt::format("  \"rate\": {},\n", json_string(rate_text(usual_)));
    }
    const ClusterGraph& graph = fabric_.graph;
    out_ += "  \"hosts\": [";
    for (int node = 0; node < graph.nodes(); ++node) out_ += host(node);
    out_ += "\n  ],\n  \"switches\": [";
    for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
      const GraphVertex& at = graph.vertices()[v];
      const std::string level = at.level > 0 ? fmt::format(", \"level\": {}", at.level) : "";
      const std::string group = at.group >= 0 ? fmt::format(", \"group\": {}", at.group) : "";
      out_ += fmt::format("{}\n    {{\"name\": {}{}{}}}", v == graph.port_count() ? "" : ",",
                          json_string(at.name), level, group);
    }
    out_ += "\n  ],\n  \"cables\": [";
    cables(graph.cables(), false);
    cables(fabric_.down, true);
    out_ += "\n  ]\n}\n";
    return std::move(out_);
  }

 private:
  void assumptions() {
    if (fabric_.assumptions.empty()) return;
    out_ += "  \"assumptions\": [";
    for (const std::string& text : fabric_.assumptions) {
      out_ += fmt::format("{}\n    {}", &text == fabric_.assumptions.data() ? "" : ",",
                          json_string(text));
    }
    out_ += "\n  ],\n";
  }

  void carriage() {
    const FabricCarriage& c = fabric_.carriage;
    const auto member = [this](std::string_view key, const std::string& value) {
      out_ += fmt::format("  \"{}\": {},\n", key, value);
    };
    if (c.routing) {
      member("routing",
             json_string(std::string(routings()[static_cast<std::size_t>(*c.routing)].name)));
    }
    if (c.hash_seed) {
      member("hash_seed",
             json_string(std::string(hash_seed_names()[static_cast<std::size_t>(*c.hash_seed)])));
    }
    if (c.hash_draw) member("hash_draw", std::to_string(*c.hash_draw));
    if (c.queue_pairs) member("queue_pairs", std::to_string(*c.queue_pairs));
    if (c.pxn) member("pxn", *c.pxn ? "true" : "false");
    if (c.nonminimal_share) member("nonminimal_share", fmt::format("{}", *c.nonminimal_share));
    if (c.switch_latency) {
      member("switch_latency", fmt::format("{}", c.switch_latency->base_units()));
    }
    if (!c.transport.empty()) member("transport", json_string(c.transport));
  }

  std::string host(int node) const {
    const ClusterGraph& graph = fabric_.graph;
    std::string nics;
    for (int nic = 0; nic < graph.nics(node); ++nic) {
      nics += (nic == 0 ? "" : ", ") + json_string(graph.vertex_name(graph.nic_port(node, nic)));
    }
    return fmt::format("{}\n    {{\"name\": {}, \"nics\": [{}]}}", node == 0 ? "" : ",",
                       json_string(fabric_.hosts[static_cast<std::size_t>(node)]), nics);
  }

  void cables(std::span<const GraphCable> list, bool down) {
    for (std::size_t i = 0, end = 0; i < list.size(); i = end) {
      for (end = i + 1; end < list.size() && same(list[i], list[end]); ++end) {
        if (end - i == std::size_t{kMaxPortNumber}) break;
      }
      const GraphCable& c = list[i];
      out_ += fmt::format("{}\n    {{\"a\": {}, \"b\": {}", first_ ? "" : ",",
                          json_string(fabric_.graph.vertex_name(c.a)),
                          json_string(fabric_.graph.vertex_name(c.b)));
      first_ = false;
      if (c.port_a > 0) out_ += fmt::format(", \"port_a\": {}", c.port_a);
      if (c.port_b > 0) out_ += fmt::format(", \"port_b\": {}", c.port_b);
      if (c.capacity != usual_ && c.capacity > BytesPerSecond{}) {
        out_ += fmt::format(", \"rate\": {}", json_string(rate_text(c.capacity)));
      }
      if (end - i > 1) out_ += fmt::format(", \"count\": {}", end - i);
      out_ += down ? ", \"down\": true}" : "}";
    }
  }

  const DrawnFabric& fabric_;
  BytesPerSecond usual_;
  std::string out_;
  bool first_ = true;
};

}  // namespace

DrawnFabric read_drawn_fabric(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] { return FabricJsonReader(root).read(); });
}

ClusterGraph read_fabric_json(const std::string& file, std::string_view text) {
  return read_drawn_fabric(file, text).graph;
}

std::string write_fabric_json(const DrawnFabric& fabric) { return FabricJsonWriter(fabric).text(); }

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{} Gb/s", rate / gigabits_per_second(1));
}

BytesPerSecond usual_rate(const ClusterGraph& graph) {
  std::map<BytesPerSecond, std::size_t> counts;
  for (const GraphCable& cable : graph.cables()) ++counts[cable.capacity];
  BytesPerSecond usual;
  std::size_t most = 0;
  for (const auto& [rate, count] : counts) {
    if (count >= most) std::tie(most, usual) = std::pair(count, rate);
  }
  return usual;
}

}  // namespace lockstep
