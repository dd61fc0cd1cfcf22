/// ibnetdiscover's text as records, before anything is made of them: what read_ibnetdiscover()
/// works on. Views point into the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "topologies/infiniband/subnet.hpp"
#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {

/// One end of a cable, as the box lists it.
struct NetPlug {
  int port = 0;
  std::uint64_t port_guid = 0;  ///< of an adapter's port; 0: not given
  Lid lid = 0;                  ///< of an adapter's port; 0: not given
  std::string_view far_id;
  int far_port = 1;
  std::uint64_t far_port_guid = 0;
  BytesPerSecond rate;
  int line = 0;
};

struct NetBox {
  InfinibandKind kind = InfinibandKind::adapter;
  std::string_view id;  ///< "S-0000000000200000", or any name in a net file of ibsim
  std::string_view description;
  std::uint64_t guid = 0;
  int ports = 0;
  Lid lid = 0;  ///< of a switch; 0: not given
  int line = 0;
  std::vector<NetPlug> plugs;
};

/// The boxes in the order of the text; GUIDs that it does not give are numbered as ibsim does.
/// Throws InputError for a line that is neither a box, nor a plug, nor one of the assignments.
[[nodiscard]] std::vector<NetBox> read_net_records(TextLines& lines);

}  // namespace lockstep
