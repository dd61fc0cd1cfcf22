/// Reads dumps of the forwarding tables in real switches: opensm's opensm-lfts.dump and what
/// dump_fts and ibroute of infiniband-diags print.
#pragma once

#include <string>
#include <string_view>

#include "topologies/infiniband/forwarding.hpp"

namespace lockstep {

/// The tables in the dump, for a subnet with the same switches (by GUID). LIDs that no vertex has
/// and entries for other LIDs than those dumped have no path. Throws InputError, with the number of
/// the line, for an unknown switch, a switch twice, a LID or port out of range, and text that is no
/// dump.
[[nodiscard]] LidTables read_lft_dump(const std::string& file, std::string_view text,
                                      const InfinibandSubnet& subnet);

/// As opensm writes opensm-lfts.dump.
[[nodiscard]] std::string write_lft_dump(const InfinibandSubnet& subnet, const LidTables& tables);

}  // namespace lockstep
