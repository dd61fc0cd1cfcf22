#include "topologies/formats/ufm.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/letter_case.hpp"
#include "topologies/formats/cabling.hpp"
#include "topologies/infiniband/host_name.hpp"
#include "topologies/infiniband/link_rate.hpp"

namespace lockstep {
namespace {

using UfmJson = nlohmann::ordered_json;

/// One end of a link as UFM writes it.
struct UfmEnd {
  std::string guid;         ///< of the system
  std::string number;       ///< of the port
  std::string dname;        ///< "1/3/1", "HCA-1/1", "36"
  std::string description;  ///< of the node; of a switch with the port behind it
  std::string name;         ///< of the port: "900a840300ac8c40_5"
};

struct UfmSystem {
  std::string name;
  CabledKind kind = CabledKind::open;
};

/// "NDR" in lanes of "4x" or "IB_4x"; nothing: it is no rate.
std::optional<BytesPerSecond> ufm_rate(std::string width, const std::string& speed) {
  if (width.starts_with("IB_")) width.erase(0, 3);
  return link_rate(lowered(width) + speed);
}

class UfmReader {
 public:
  UfmReader(const std::string& file, const ImportOptions& options)
      : file_(file), options_(options) {}

  DrawnFabric read(const UfmJson& root) {
    const auto links = export_records(root, {"source_guid"});
    const auto ports = export_records(root, {"peer_node_guid", "active_speed"});
    // Ports lie within systems too, where these are asked for with their ports.
    for (const ExportRecord& system : export_records(root, {"system_name"})) add_system(system);
    for (const ExportRecord& port : ports) add_rate(*port.json);
    if (links.empty()) {
      for (const ExportRecord& port : ports) add_port(port);
    }
    for (const ExportRecord& link : links) add_link(link);
    if (cabling_.links.empty()) {
      throw InputError(
          {file_, "", "no link", "UFM's links (GET /ufmRest/resources/links) or ports", ""});
    }
    if (options_.rate > BytesPerSecond{}) {
      for (CabledLink& link : cabling_.links) link.rate = BytesPerSecond{};
    }
    if (aggregation_ > 0) {
      cabling_.assumptions.push_back(fmt::format(
          "{} of SHARP aggregation nodes {} left out.",
          aggregation_ == 1 ? std::string("1 link") : fmt::format("{} links", aggregation_),
          aggregation_ == 1 ? "is" : "are"));
    }
    return fabric_of_cabling(file_, std::move(cabling_), options_);
  }

 private:
  void add_system(const ExportRecord& record) {
    const UfmJson& json = *record.json;
    if (json.contains("peer_node_guid") || json.contains("active_speed")) return;  // a port
    const std::string kind = lowered(export_text(json, "type"));
    UfmSystem system{.name = export_text(json, "system_name")};
    for (const std::string_view word : {"switch", "router", "gateway", "bridge"}) {
      if (kind.find(word) != std::string::npos) system.kind = CabledKind::switch_box;
    }
    if (kind == "host" || kind == "hca") system.kind = CabledKind::host;
    for (const char* key : {"system_guid", "guid"}) {
      const std::string guid = export_text(json, key);
      if (!guid.empty()) systems_[guid] = system;
    }
  }

  void add_rate(const UfmJson& port) {
    const auto rate =
        ufm_rate(export_text(port, "active_width"), export_text(port, "active_speed"));
    if (!rate) return;  // a port that is down has neither
    const std::string name = export_text(port, "name");
    if (!name.empty()) rates_[name] = *rate;
    const std::string system = export_text(port, "systemID"), dname = export_text(port, "dname");
    if (!system.empty() && !dname.empty()) rates_[system + "/" + dname] = *rate;
  }

  /// A cable is named by both of its ports.
  void add_port(const ExportRecord& record) {
    const UfmJson& json = *record.json;
    UfmEnd here{.guid = export_text(json, "systemID"),
                .number = export_text(json, "number"),
                .dname = export_text(json, "dname"),
                .description = export_text(json, "node_description"),
                .name = export_text(json, "name")};
    UfmEnd there{.guid = export_text(json, "peer_node_guid"),
                 .number = {},
                 .dname = export_text(json, "peer_port_dname"),
                 .description = export_text(json, "peer_node_description"),
                 .name = export_text(json, "peer")};
    if (there.guid.empty() || there.guid == "N/A") return;
    if (here.guid.empty()) here.guid = export_text(json, "guid");
    const auto key = [](const UfmEnd& end) { return end.guid + "/" + end.dname; };
    if (!seen_.insert(std::minmax({key(here), key(there)})).second) return;
    add(here, there, json, record.pointer);
  }

  void add_link(const ExportRecord& record) {
    const UfmJson& json = *record.json;
    const auto end = [&](const std::string& side) {
      UfmEnd out{.guid = export_text(json, side + "_guid"),
                 .number = export_text(json, side + "_port"),
                 .dname = export_text(json, side + "_port_dname"),
                 .description = export_text(json, side + "_port_node_description"),
                 .name = export_text(json, side + "_port_name")};
      if (out.guid.empty()) {
        throw InputError({file_, record.pointer, "a link without " + side + "_guid",
                          "source_guid and destination_guid", ""});
      }
      if (out.dname.empty()) out.dname = out.number;
      return out;
    };
    UfmEnd source = end("source"), destination = end("destination");
    // Before version 6.20 only the link's own name tells those of its ports, in either order.
    const std::string name = export_text(json, "name");
    const std::size_t colon = name.find(':');
    if (source.name.empty() && colon != std::string::npos) {
      source.name = name.substr(0, colon);
      destination.name = name.substr(colon + 1);
    }
    add(source, destination, json, record.pointer);
  }

  void add(const UfmEnd& a, const UfmEnd& b, const UfmJson& json, const std::string& pointer) {
    for (const UfmEnd* end : {&a, &b}) {
      if (!is_aggregation_node(end->description)) continue;
      ++aggregation_;
      return;
    }
    CabledLink link{
        .a = port_of(a, pointer), .b = port_of(b, pointer), .rate = {}, .place = pointer};
    for (const UfmEnd* end : {&a, &b}) {
      for (const std::string& key : {end->name, end->guid + "/" + end->dname}) {
        const auto rate = rates_.find(key);
        if (rate == rates_.end()) continue;
        link.rate = link.rate > BytesPerSecond{} ? std::min(link.rate, rate->second) : rate->second;
      }
    }
    const auto own = ufm_rate(export_text(json, "width"), export_text(json, "speed"));
    if (own && link.rate <= BytesPerSecond{}) link.rate = *own;
    cabling_.links.push_back(std::move(link));
  }

  /// Which device it is of, whose kind is noted.
  CabledPort port_of(const UfmEnd& end, const std::string& pointer) {
    CabledPort out{.device = {}, .port = end.dname};
    const char* const stop = end.number.data() + end.number.size();
    std::from_chars(end.number.data(), stop, out.number);
    const auto system = systems_.find(end.guid);
    const AdapterName adapter = adapter_name(end.description);
    const std::string behind = ":" + end.dname;
    CabledKind kind = system == systems_.end() ? CabledKind::open : system->second.kind;
    if (kind == CabledKind::open) kind = kind_by_words(end, adapter, behind, pointer);
    if (kind == CabledKind::host) {
      out.device = adapter.device.empty() ? std::string() : std::string(adapter.host);
      if (!adapter.device.empty()) out.port = adapter.device;
    } else if (end.description.ends_with(behind)) {
      out.device = end.description.substr(0, end.description.size() - behind.size());
    }
    if (system != systems_.end() && !system->second.name.empty()) out.device = system->second.name;
    if (out.device.empty()) out.device = end.description.empty() ? end.guid : end.description;
    cabling_.kinds[out.device] = kind;
    return out;
  }

  CabledKind kind_by_words(const UfmEnd& end, const AdapterName& adapter, const std::string& behind,
                           const std::string& pointer) const {
    if (end.dname.starts_with("HCA-")) return CabledKind::host;
    if (!end.dname.empty() && end.description.ends_with(behind)) return CabledKind::switch_box;
    if (!adapter.device.empty()) return CabledKind::host;
    if (std::ranges::find(options_.hosts, end.description) != options_.hosts.end()) {
      return CabledKind::host;
    }
    // Ports of adapters are called HCA-1/1 where nothing describes them.
    if (end.description.empty() && !end.dname.empty()) return CabledKind::switch_box;
    throw InputError({file_, pointer,
                      fmt::format("a port of {}, which may be a host or a switch",
                                  in_quotes(end.description.empty() ? end.guid : end.description)),
                      "its system (GET /ufmRest/resources/systems) in the same file", ""});
  }

  const std::string& file_;
  const ImportOptions& options_;
  Cabling cabling_;
  std::size_t aggregation_ = 0;
  std::map<std::string, UfmSystem, std::less<>> systems_;     ///< by GUID
  std::map<std::string, BytesPerSecond, std::less<>> rates_;  ///< by port, in two spellings
  std::set<std::pair<std::string, std::string>> seen_;        ///< cables, by both ports
};

}  // namespace

bool is_ufm(std::string_view text) {
  return has_json_key(text, "source_guid") || has_json_key(text, "peer_node_guid");
}

DrawnFabric read_ufm(const std::string& file, std::string_view text, const ImportOptions& options) {
  return UfmReader(file, options).read(parse_json_text(file, text));
}

}  // namespace lockstep
