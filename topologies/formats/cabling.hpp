/// Cables between named ports of named devices: what exports of UFM and NetBox come down to.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"
#include "models/base/units.hpp"
#include "topologies/formats/drawn_fabric.hpp"
#include "topologies/formats/named_graph.hpp"

namespace lockstep {

enum class CabledKind : std::uint8_t {
  open,  ///< not told
  host,
  switch_box,
  other,  ///< neither, such as a power strip: its cables are left out
};

struct CabledPort {
  std::string device;
  std::string port;  ///< "mlx5_0", "1/3/1"; with the host's name that of a NIC
  int number = 0;    ///< 0: not told
};

struct CabledLink {
  CabledPort a, b;
  BytesPerSecond rate;  ///< 0: not told
  bool down = false;
  std::string place;  ///< of the file, for messages: a JSON pointer, or "row 12"
};

struct Cabling {
  std::map<std::string, CabledKind, std::less<>> kinds;  ///< by device
  std::vector<CabledLink> links;
  std::vector<std::string> assumptions;
};

/// The fabric of those cables. A device of no known kind is a host if `options` name it, if one of
/// its ports has the name of an RDMA device or network interface, or if it has one cable; else a
/// switch, which the assumptions say. A host has a NIC for each cable. Cables without a rate have
/// that of `options`. Left out and counted: cables of other devices, between two hosts, and from a
/// device to itself. Throws InputError for no host, no rate, and too many of anything.
DrawnFabric fabric_of_cabling(const std::string& file, Cabling cabling,
                              const ImportOptions& options);

/// What is wrong at a place of the file, as CabledLink has it; empty: with the file.
InputError cabling_error(const std::string& file, const std::string& place, std::string found,
                         std::string allowed);

/// A JSON object of an export, and its pointer.
struct ExportRecord {
  const nlohmann::ordered_json* json;
  std::string pointer;
};
/// All objects of an export that have one of the keys: in lists, in pages ("results") and under
/// other keys, however several answers were put into one file; not objects within them.
std::vector<ExportRecord> export_records(const nlohmann::ordered_json& root,
                                         const std::vector<std::string_view>& keys);

/// The text of a key, or its whole number as text; empty: neither is there.
std::string export_text(const nlohmann::ordered_json& object, std::string_view key);

/// Whether the text is JSON and has the word as a key.
bool has_json_key(std::string_view text, std::string_view key);

}  // namespace lockstep
