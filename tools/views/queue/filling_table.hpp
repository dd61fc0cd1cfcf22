/// What `lockstep queue fill` prints.
#pragma once

#include <string>

#include "sim/cluster/fill_cluster.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// For people: what each policy allocates.
std::string filling_table(const FillingSpec& spec, const FillingResult& result,
                          const TextStyle& style);

}  // namespace lockstep
