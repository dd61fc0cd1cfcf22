/// What `lockstep comm` prints of a collective.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/comm_collective.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// A table for people, and which algorithm is taken at which sizes and why.
std::string collective_table(const CollectiveStudy& study, const TextStyle& style);
/// "sum" where the operation reduces, else "none".
std::string_view reduction_of(CollectiveOp op);
/// Elements as nccl-tests counts them: of one rank's part where the buffer has one for each.
double collective_count(const CollectiveRow& row, const CollectiveStudy& study);

/// The members of collective_fields(). The first level has, for --assert, the time of the first
/// operation at the largest size, and the best bus bandwidth of any row; "operations" has both
/// numbers of each operation's largest size.
nlohmann::ordered_json collective_json(const CollectiveStudy& study);
/// A header line, then a row a line.
CsvText collective_csv(const CollectiveStudy& study);

}  // namespace lockstep
