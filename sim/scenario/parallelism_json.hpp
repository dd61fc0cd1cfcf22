/// A layout as a scenario's "parallelism" has it: the one list of its keys that answers and written
/// scenarios are made from.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/spec/transformer.hpp"

namespace lockstep {

/// Every key, after defaults; null where the layout has no use for it.
nlohmann::ordered_json parallelism_json(const Parallelism& layout);

/// The keys that are not null: what a scenario can say. Reads back to the same layout.
nlohmann::ordered_json written_parallelism(const Parallelism& layout);

/// Keys that differ between layouts of one job; the others are the software's, which all share.
std::vector<std::string_view> layout_keys();

}  // namespace lockstep
