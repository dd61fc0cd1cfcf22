#include "topologies/formats/cabling.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/number_text.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/node_drawing.hpp"

namespace lockstep {
namespace {

/// Whether a port of that name is of a host: what the system calls an RDMA device or an interface.
bool is_host_port(std::string_view port) {
  if (port.find('/') != std::string_view::npos) return false;  // "eth1/1" of a switch
  return !transport_of_name(port).empty() || is_interface_name(port) || port.starts_with("mlx") ||
         port.starts_with("rdma") || port.starts_with("HCA-");
}

class CablingReader {
 public:
  CablingReader(const std::string& file, Cabling cabling, const ImportOptions& options)
      : file_(file), cabling_(std::move(cabling)), options_(options) {}

  DrawnFabric read() {
    for (const std::string& host : options_.hosts) cabling_.kinds[host] = CabledKind::host;
    find_kinds();
    drop_links();
    add_devices();
    for (const CabledLink& link : cabling_.links) add_cable(link);
    DrawnFabric fabric = sketch_.finish();
    fabric.assumptions = std::move(cabling_.assumptions);
    return fabric;
  }

 private:
  [[noreturn]] void fail(const std::string& place, std::string found, std::string allowed) const {
    throw cabling_error(file_, place, std::move(found), std::move(allowed));
  }

  void find_kinds() {
    std::map<std::string, int, std::less<>> cables;
    std::map<std::string, bool, std::less<>> has_host_port;
    for (const CabledLink& link : cabling_.links) {
      for (const CabledPort* end : {&link.a, &link.b}) {
        ++cables[end->device];
        has_host_port[end->device] = has_host_port[end->device] || is_host_port(end->port);
      }
    }
    std::size_t guessed = 0;
    for (const auto& [device, count] : cables) {
      CabledKind& kind = cabling_.kinds[device];
      if (kind != CabledKind::open) continue;
      ++guessed;
      const bool host = has_host_port[device] || (count == 1 && options_.hosts.empty());
      kind = host ? CabledKind::host : CabledKind::switch_box;
    }
    if (guessed > 0 && options_.hosts.empty()) {
      cabling_.assumptions.push_back(fmt::format(
          "Of {} the file does not say whether they are hosts or switches: ports with names of "
          "adapters, or a single cable, are taken as a host's.",
          counted(static_cast<double>(guessed), "device")));
    }
  }

  CabledKind kind_of(const CabledPort& end) const { return cabling_.kinds.at(end.device); }

  void drop_links() {
    std::size_t others = 0, between_hosts = 0, loops = 0;
    std::erase_if(cabling_.links, [&](const CabledLink& link) {
      const CabledKind a = kind_of(link.a), b = kind_of(link.b);
      const bool other = a == CabledKind::other || b == CabledKind::other;
      const bool loop = !other && link.a.device == link.b.device;
      const bool hosts = !other && !loop && a == CabledKind::host && b == CabledKind::host;
      others += other ? 1 : 0;
      loops += loop ? 1 : 0;
      between_hosts += hosts ? 1 : 0;
      return other || loop || hosts;
    });
    say_left_out(others, "of devices that are neither hosts nor switches of this network");
    say_left_out(between_hosts, "between two hosts");
    say_left_out(loops, "from a device to itself");
  }

  void say_left_out(std::size_t count, std::string_view which) {
    if (count == 0) return;
    cabling_.assumptions.push_back(fmt::format("{} {} {} left out.",
                                               counted(static_cast<double>(count), "cable"), which,
                                               count == 1 ? "is" : "are"));
  }

  void add_devices() {
    if (cabling_.links.size() > std::size_t{kMaxCables}) {
      fail("", fmt::format("{} cables", cabling_.links.size()),
           fmt::format("at most {}", kMaxCables));
    }
    for (const CabledLink& link : cabling_.links) {
      for (const CabledPort* end : {&link.a, &link.b}) {
        if (kind_of(*end) == CabledKind::host) {
          if (!sketch_.find_host(end->device)) sketch_.add_host(end->device);
        } else if (!sketch_.find(end->device)) {
          sketch_.add_switch(end->device);
        }
      }
    }
    if (sketch_.hosts() == 0) {
      fail("", "no cable between a host and a switch",
           "such cables; --hosts FILE names the devices that are hosts");
    }
    if (sketch_.hosts() > std::size_t{kMaxHosts} ||
        sketch_.vertices() > std::size_t{kMaxSwitches}) {
      fail("", fmt::format("{} hosts and {} switches", sketch_.hosts(), sketch_.vertices()),
           fmt::format("at most {} of each", kMaxSwitches));
    }
  }

  SketchVertex vertex_of(const CabledPort& end, const std::string& place) {
    if (kind_of(end) != CabledKind::host) return *sketch_.find(end.device);
    if (++nics_[end.device] > kMaxNicsPerHost) {
      fail(place, in_quotes(end.device) + " with many cables",
           fmt::format("at most {} cables of a host", kMaxNicsPerHost));
    }
    std::string name = end.device + " " + end.port;
    if (sketch_.find(name) && end.number > 0) name += fmt::format(" port {}", end.number);
    while (sketch_.find(name)) name += "'";
    return sketch_.add_nic(*sketch_.find_host(end.device), name);
  }

  void add_cable(const CabledLink& link) {
    const BytesPerSecond rate = link.rate > BytesPerSecond{} ? link.rate : options_.rate;
    if (rate <= BytesPerSecond{}) {
      fail(link.place,
           fmt::format("a cable without a rate, from {} to {}", in_quotes(link.a.device),
                       in_quotes(link.b.device)),
           "rates of ports in the same file, or --rate, such as --rate \"400 Gb/s\"");
    }
    GraphCable cable{.a = 0, .b = 0, .capacity = rate, .port_a = 0, .port_b = 0};
    cable.a = vertex_of(link.a, link.place);
    cable.b = vertex_of(link.b, link.place);
    cable.port_a = port_number(link.a);
    cable.port_b = port_number(link.b);
    sketch_.add_cable(cable, link.down);
  }

  static int port_number(const CabledPort& end) {
    return end.number > 0 && end.number <= kMaxPortNumber ? end.number : 0;
  }

  const std::string& file_;
  Cabling cabling_;
  const ImportOptions& options_;
  std::map<std::string, int, std::less<>> nics_;  ///< by host
  FabricSketch sketch_;
};

void collect_records(const nlohmann::ordered_json& value, const std::string& pointer,
                     const std::vector<std::string_view>& keys, std::vector<ExportRecord>& out) {
  if (value.is_object()) {
    const auto has = [&](std::string_view key) { return value.contains(key); };
    if (std::ranges::any_of(keys, has)) {
      out.push_back({&value, pointer});
      return;
    }
    for (const auto& [key, part] : value.items()) {
      collect_records(part, pointer + "/" + pointer_part(key), keys, out);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      collect_records(value[i], fmt::format("{}/{}", pointer, i), keys, out);
    }
  }
}

}  // namespace

DrawnFabric fabric_of_cabling(const std::string& file, Cabling cabling,
                              const ImportOptions& options) {
  return CablingReader(file, std::move(cabling), options).read();
}

InputError cabling_error(const std::string& file, const std::string& place, std::string found,
                         std::string allowed) {
  const bool row = place.starts_with("row ");
  return InputError({row ? file + ", " + place : file, row ? std::string() : place,
                     std::move(found), std::move(allowed), ""});
}

std::vector<ExportRecord> export_records(const nlohmann::ordered_json& root,
                                         const std::vector<std::string_view>& keys) {
  std::vector<ExportRecord> out;
  collect_records(root, "", keys, out);
  return out;
}

std::string export_text(const nlohmann::ordered_json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? std::to_string(found->get<std::int64_t>()) : std::string();
}

bool has_json_key(std::string_view text, std::string_view key) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos || (text[at] != '[' && text[at] != '{')) return false;
  return text.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
}

}  // namespace lockstep
