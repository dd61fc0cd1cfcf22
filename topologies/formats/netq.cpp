#include "topologies/formats/netq.hpp"

#include <fmt/format.h>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNetqCables = std::size_t{1} << 20;

class NetqReader {
 public:
  NetqReader(const std::string& file, BytesPerSecond rate) : file_(file), rate_(rate) {}

  DrawnFabric read(const Json& root) {
    if (root.is_array()) {
      for (const Json& one : root) read_graph(one);
    } else {
      read_graph(root);
    }
    if (sketch_.hosts() == 0) fail("no cable of a host", "a device that is no switch, with links");
    DrawnFabric fabric = sketch_.finish();
    fabric.assumptions.push_back(fmt::format("Every cable has {} Gb/s: NetQ's graph does not say.",
                                             plain_number(rate_.base_units() * 8 / 1e9)));
    return fabric;
  }

 private:
  struct Device {
    std::string name;
    bool is_switch = false;
    int tier = -1;
  };

  [[noreturn]] void fail(const std::string& found, const std::string& allowed) const {
    throw InputError({file_, "", found, allowed, ""});
  }

  static std::string text(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }
  static const Json& list(const Json& object, const char* key) {
    static const Json kNone = Json::array();
    if (!object.is_object()) return kNone;
    const auto found = object.find(key);
    return found != object.end() && found->is_array() ? *found : kNone;
  }

  void read_graph(const Json& graph) {
    for (const Json& tier : list(graph, "nodes")) {
      add_device(tier);
      for (const Json& node : list(tier, "compounded_nodes")) add_device(node);
    }
    for (const Json& link : list(graph, "links")) {
      const Json& parts = list(link, "compounded_links");
      for (const Json& part : parts) add_cable(part);
      if (parts.empty()) add_cable(link);
    }
  }

  void add_device(const Json& node) {
    const std::string id = text(node, "id"), kind = text(node, "device_type");
    if (id.empty() || kind.empty()) return;
    const std::string name = text(node, "name");
    const auto tier = node.find("tier");
    devices_[id] = {
        .name = name.empty() ? id : name,
        .is_switch = kind.find("switch") != std::string::npos,
        .tier = tier != node.end() && tier->is_number_integer() ? tier->get<int>() : -1};
  }

  /// What a cable is on: the device's switch, or a new NIC of the host.
  SketchVertex end_of(const Json& interface) {
    const std::string id = text(interface, "node");
    const auto device = devices_.find(id);
    if (device == devices_.end()) {
      fail("a cable of " + in_quotes(id), "a device that \"nodes\" has");
    }
    const std::string& name = device->second.name;
    if (device->second.is_switch) {
      const auto there = sketch_.find(name);
      return there ? *there : sketch_.add_switch(name);
    }
    const auto known = sketch_.find_host(name);
    const SketchHost host = known ? *known : sketch_.add_host(name);
    std::string nic = name + " " + text(interface, "interface");
    while (sketch_.find(nic)) nic += "'";
    return sketch_.add_nic(host, nic);
  }

  void add_cable(const Json& link) {
    const Json& ends = list(link, "interfaces");
    if (ends.size() != 2)
      fail("a link without two interfaces", "interfaces: [{node, interface}, ...]");
    const auto is_switch = [&](const Json& end) {
      const auto device = devices_.find(text(end, "node"));
      return device != devices_.end() && device->second.is_switch;
    };
    if (!is_switch(ends[0]) && !is_switch(ends[1])) {
      fail("a cable between two hosts", "cables of switches");
    }
    const SketchVertex a = end_of(ends[0]), b = end_of(ends[1]);
    if (a == b) fail("a cable from a device to itself", "cables between two devices");
    sketch_.add_cable({.a = a, .b = b, .capacity = rate_, .port_a = 0, .port_b = 0});
    if (sketch_.cables() > kMostNetqCables) fail("too many cables", "at most 1,048,576");
  }

  const std::string& file_;
  BytesPerSecond rate_;
  std::map<std::string, Device> devices_;
  FabricSketch sketch_;
};

}  // namespace

bool is_netq(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && (text[at] == '[' || text[at] == '{') &&
         text.find("\"compounded_links\"") != std::string_view::npos;
}

DrawnFabric read_netq(const std::string& file, std::string_view text, BytesPerSecond rate) {
  return NetqReader(file, rate).read(parse_json_text(file, text));
}

}  // namespace lockstep
