/// NetBox's cables, however they are written down, as cables between two ports each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "topologies/formats/cabling.hpp"

namespace lockstep {

/// What a cable is plugged into.
struct NetboxEnd {
  std::string type = "dcim.interface";  ///< or "dcim.frontport", "dcim.powerport", ...
  CabledPort port;                      ///< of an interface
  BytesPerSecond rate;                  ///< of the whole interface; 0: not told
  bool management = false;
  bool down = false;
};

/// Several ends on a side: a breakout cable.
struct NetboxCable {
  std::vector<NetboxEnd> a, b;
  std::string status;  ///< "connected", "planned", "decommissioning"; empty: connected
  std::string place;   ///< of the file, for messages
  bool through_panels = false;
};

/// Whether `type` is NetBox's `kind`, such as "interface", with or without "dcim." before it.
bool is_netbox_type(std::string_view type, std::string_view kind);

/// Adds the cables to `cabling`. Ends on the two sides of a breakout cable are joined in order,
/// and a port of several cables is shared by them in equal parts; a cable has the rate of its
/// slower end. Left out and counted: cables that are not connected, unless all that join interfaces
/// are planned; those of other ports than interfaces; those of interfaces for management only.
/// Throws InputError for sides of which neither is a multiple of the other, and for no cable.
Cabling with_netbox_cables(const std::string& file, const std::vector<NetboxCable>& cables,
                           Cabling cabling);

}  // namespace lockstep
