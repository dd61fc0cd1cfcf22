#include "topologies/formats/netbox.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/letter_case.hpp"
#include "topologies/formats/cabling.hpp"
#include "topologies/formats/netbox_cables.hpp"
#include "topologies/formats/netbox_csv.hpp"
#include "topologies/infiniband/link_rate.hpp"

namespace lockstep {
namespace {

using NetboxJson = nlohmann::ordered_json;

/// Of what words of a role begin with: sites name roles as they like.
constexpr std::array<std::string_view, 7> kOtherRoles{"pdu",     "power", "patch",   "panel",
                                                      "console", "kvm",   "firewall"};
constexpr std::array<std::string_view, 4> kManagementRoles{"management", "mgmt", "oob", "bmc"};
constexpr std::array<std::string_view, 12> kSwitchRoles{
    "switch", "leaf",        "spine",        "superspine", "tor",     "router",
    "core",   "aggregation", "distribution", "access",     "gateway", "border"};
constexpr std::array<std::string_view, 11> kHostRoles{"server",  "host",       "compute", "gpu",
                                                      "node",    "storage",    "worker",  "login",
                                                      "machine", "hypervisor", "head"};

bool is_role_of(const std::string& role, std::span<const std::string_view> words) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::size_t from = role.find_first_of(kLetters);
  while (from != std::string::npos) {
    const std::size_t end = std::min(role.find_first_not_of(kLetters, from), role.size());
    const std::string word = role.substr(from, end - from);
    if (std::ranges::any_of(words, [&](std::string_view w) { return word.starts_with(w); })) {
      return true;
    }
    from = role.find_first_of(kLetters, end);
  }
  return false;
}

CabledKind kind_of_role(const std::string& role) {
  const bool management = is_role_of(role, kManagementRoles);
  if (is_role_of(role, kOtherRoles)) return CabledKind::other;
  if (is_role_of(role, kSwitchRoles)) {
    return management ? CabledKind::other : CabledKind::switch_box;
  }
  if (is_role_of(role, kHostRoles)) return CabledKind::host;
  return management ? CabledKind::other : CabledKind::open;
}

/// The value of a choice, which NetBox writes with its label; before version 2.7 a cable's status
/// was true or false.
std::string choice(const NetboxJson& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (!found->is_object()) return export_text(object, key);
  const auto value = found->find("value");
  if (value != found->end() && value->is_boolean()) {
    return value->get<bool>() ? "connected" : "planned";
  }
  return export_text(*found, "value");
}

bool is_true(const NetboxJson& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}
bool is_false(const NetboxJson& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && !found->get<bool>();
}

/// What follows "infiniband-"; empty: the type is another.
std::string_view infiniband_speed(std::string_view type) {
  constexpr std::string_view kStart = "infiniband-";
  return type.starts_with(kStart) ? type.substr(kStart.size()) : std::string_view();
}

/// Of "400gbase-x-osfp", "1.6tbase-x-osfp1600", "100base-tx" (Mb/s) and, with four lanes,
/// "infiniband-ndr"; 0: a type that tells none.
BytesPerSecond rate_of_type(const std::string& type) {
  std::string lane(infiniband_speed(type));
  if (!lane.empty()) {
    for (char& c : lane) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return link_rate("4x" + lane).value_or(BytesPerSecond{});
  }
  double number = 0;
  const char* const stop = type.data() + type.size();
  const auto [end, error] = std::from_chars(type.data(), stop, number, std::chars_format::fixed);
  if (error != std::errc() || !(number > 0 && number < 1e6)) return {};
  const std::string_view unit(end, static_cast<std::size_t>(stop - end));
  if (unit.starts_with("tbase-")) return gigabits_per_second(number * 1000);
  if (unit.starts_with("gbase-")) return gigabits_per_second(number);
  return unit.starts_with("base-") ? gigabits_per_second(number / 1000) : BytesPerSecond{};
}

class NetboxReader {
 public:
  NetboxReader(const std::string& file, const ImportOptions& options)
      : file_(file), options_(options) {}

  DrawnFabric read(const NetboxJson& root) {
    // Templates of interfaces have a device type, and no device.
    for (const ExportRecord& one : export_records(root, {"mgmt_only"})) {
      if (one.json->contains("device")) interfaces_[export_text(*one.json, "id")] = one;
    }
    for (const ExportRecord& one : export_records(root, {"device_type"})) add_device(*one.json);
    for (const ExportRecord& one : export_records(root, {"a_terminations", "termination_a_type"})) {
      add_cable(one);
    }
    for (const auto& [id, one] : interfaces_) add_connections(id, one);
    Cabling cabling{.kinds = std::move(kinds_), .links = {}, .assumptions = {}};
    say_roles(cabling);
    if (four_lanes_) {
      cabling.assumptions.emplace_back(
          "InfiniBand interfaces without a speed are taken to have four lanes.");
    }
    return fabric_of_cabling(file_, with_netbox_cables(file_, cables_, std::move(cabling)),
                             options_);
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, std::string found, std::string allowed) const {
    throw InputError({file_, pointer, std::move(found), std::move(allowed), ""});
  }

  void add_device(const NetboxJson& device) {
    for (const char* key : {"role", "device_role"}) {
      const auto role = device.find(key);
      if (role == device.end() || !role->is_object()) continue;
      const std::string name = export_text(*role, "name"), slug = export_text(*role, "slug");
      const CabledKind kind = kind_of_role(lowered(fmt::format("{} {}", slug, name)));
      kind_by_id_[export_text(device, "id")] = kind;
      const std::string& said = name.empty() ? slug : name;
      if (!said.empty()) roles_[kind].insert(said);
    }
  }

  void say_roles(Cabling& cabling) const {
    std::string said;
    for (const auto& [kind, words] :
         {std::pair{CabledKind::host, "as hosts"}, std::pair{CabledKind::switch_box, "as switches"},
          std::pair{CabledKind::other, "as neither"}}) {
      const auto found = roles_.find(kind);
      if (found == roles_.end()) continue;
      const std::vector<std::string> names(found->second.begin(), found->second.end());
      said += fmt::format("{} {} {}", said.empty() ? "" : ";", words, listed(names));
    }
    if (!said.empty())
      cabling.assumptions.push_back("Devices are taken by their role:" + said + ".");
  }

  void add_cable(const ExportRecord& record) {
    const NetboxJson& json = *record.json;
    NetboxCable cable{.a = side(record, 'a'),
                      .b = side(record, 'b'),
                      .status = lowered(choice(json, "status")),
                      .place = record.pointer};
    const auto fits = [](const NetboxEnd& end) { return is_netbox_type(end.type, "interface"); };
    is_direct_[export_text(json, "id")] =
        std::ranges::all_of(cable.a, fits) && std::ranges::all_of(cable.b, fits);
    cables_.push_back(std::move(cable));
  }

  std::vector<NetboxEnd> side(const ExportRecord& record, char letter) {
    const NetboxJson& json = *record.json;
    std::vector<NetboxEnd> out;
    const auto list = json.find(fmt::format("{}_terminations", letter));
    if (list != json.end() && list->is_array()) {
      for (const NetboxJson& one : *list) {
        if (!one.is_object()) fail(record.pointer, "an end that is no object", "NetBox's answer");
        out.push_back(end_of(export_text(one, "object_type"), export_text(one, "object_id"), one,
                             "object", record.pointer));
      }
      return out;
    }
    const std::string key = fmt::format("termination_{}", letter);
    const std::string type = export_text(json, key + "_type");
    if (!type.empty()) {
      out.push_back(end_of(type, export_text(json, key + "_id"), json, key, record.pointer));
    }
    return out;
  }

  /// `holder[key]`: what the answer says of the port itself; it may be missing.
  NetboxEnd end_of(const std::string& type, const std::string& id, const NetboxJson& holder,
                   std::string_view key, const std::string& pointer) {
    if (!is_netbox_type(type, "interface")) {
      NetboxEnd out;
      out.type = type;
      return out;
    }
    const auto told = holder.find(key);
    return interface_end(id, told == holder.end() ? holder : *told, pointer);
  }

  NetboxEnd interface_end(const std::string& id, const NetboxJson& brief,
                          const std::string& pointer) {
    const auto full = interfaces_.find(id);
    const NetboxJson& json = full == interfaces_.end() ? brief : *full->second.json;
    NetboxEnd out;
    out.port.port = export_text(json, "name");
    const auto device = json.is_object() ? json.find("device") : json.end();
    if (!json.is_object() || device == json.end() || !device->is_object()) {
      fail(pointer, fmt::format("interface {}, of which the file tells no device", id),
           "interfaces (GET /api/dcim/interfaces/) in the same file");
    }
    out.port.device = device_name(*device);
    out.rate = rate_of(json);
    out.management = is_true(json, "mgmt_only");
    out.down = is_false(json, "enabled");
    return out;
  }

  BytesPerSecond rate_of(const NetboxJson& interface) {
    const auto speed = interface.find("speed");  // kb/s
    if (speed != interface.end() && speed->is_number() && speed->get<double>() > 0) {
      return gigabits_per_second(speed->get<double>() / 1e6);
    }
    const std::string type = choice(interface, "type");
    four_lanes_ = four_lanes_ || !infiniband_speed(type).empty();
    return rate_of_type(type);
  }

  /// Devices of two sites may have the same name, and a device may have none.
  std::string device_name(const NetboxJson& device) {
    std::string name, id = export_text(device, "id");
    for (const char* key : {"name", "display", "display_name"}) {
      if (name.empty()) name = export_text(device, key);
    }
    if (name.empty()) name = "device " + id;
    if (id.empty()) id = name;
    const auto known = names_.find(id);
    if (known != names_.end()) return known->second;
    if (kinds_.contains(name)) name += fmt::format(" ({})", id);
    while (kinds_.contains(name)) name += "'";
    const auto kind = kind_by_id_.find(id);
    kinds_[name] = kind == kind_by_id_.end() ? CabledKind::open : kind->second;
    return names_[id] = name;
  }

  /// What an interface is connected to other than by one cable that the file has.
  void add_connections(const std::string& id, const ExportRecord& record) {
    const NetboxJson& json = *record.json;
    const auto cable = json.find("cable");
    const std::string cable_id = cable != json.end() && cable->is_object()
                                     ? export_text(*cable, "id")
                                     : export_text(json, "cable");
    const auto told = is_direct_.find(cable_id);
    if (cable_id.empty() || (told != is_direct_.end() && told->second)) return;
    const std::vector<const NetboxJson*> peers = peers_of(json);
    for (const NetboxJson* peer : peers) {
      const std::string other = export_text(*peer, "id");
      const auto full = interfaces_.find(other);
      if (peers.size() > 1 && full != interfaces_.end() &&
          peers_of(*full->second.json).size() > 1) {
        fail(record.pointer, "a connection of several interfaces on both sides",
             "its cable (GET /api/dcim/cables/) in the same file");
      }
      if (!connections_.insert(std::minmax({id, other})).second) continue;
      const bool open = is_false(json, "connected_endpoints_reachable") ||
                        is_false(json, "connected_endpoint_reachable");
      cables_.push_back({.a = {interface_end(id, json, record.pointer)},
                         .b = {interface_end(other, *peer, record.pointer)},
                         .status = open ? "planned" : "connected",
                         .place = record.pointer,
                         .through_panels = told != is_direct_.end()});
    }
  }

  static std::vector<const NetboxJson*> peers_of(const NetboxJson& interface) {
    std::vector<const NetboxJson*> out;
    for (const std::string key : {"connected_endpoints", "connected_endpoint"}) {
      const auto found = interface.find(key);
      if (found == interface.end()) continue;
      if (!is_netbox_type(export_text(interface, key + "_type"), "interface")) continue;
      if (found->is_object()) out.push_back(&*found);
      if (!found->is_array()) continue;
      for (const NetboxJson& one : *found) {
        if (one.is_object()) out.push_back(&one);
      }
    }
    return out;
  }

  const std::string& file_;
  const ImportOptions& options_;
  std::map<std::string, ExportRecord> interfaces_;        ///< by id
  std::map<std::string, CabledKind> kind_by_id_;          ///< of devices whose role the file tells
  std::map<std::string, std::string> names_;              ///< of devices, by id
  std::map<std::string, CabledKind, std::less<>> kinds_;  ///< of devices, by name
  std::map<CabledKind, std::set<std::string>> roles_;
  std::vector<NetboxCable> cables_;
  std::map<std::string, bool> is_direct_;  ///< by cable: whether it joins interfaces
  std::set<std::pair<std::string, std::string>> connections_;  ///< told by interfaces
  bool four_lanes_ = false;
};

}  // namespace

bool is_netbox(std::string_view text) {
  const auto has = [text](std::string_view key) { return has_json_key(text, key); };
  return has("a_terminations") || has("termination_a_type") || has("mgmt_only") ||
         is_netbox_csv(text);
}

DrawnFabric read_netbox(const std::string& file, std::string_view text,
                        const ImportOptions& options) {
  if (is_netbox_csv(text)) {
    return fabric_of_cabling(file, with_netbox_cables(file, read_netbox_csv(file, text), {}),
                             options);
  }
  return NetboxReader(file, options).read(parse_json_text(file, text));
}

}  // namespace lockstep
