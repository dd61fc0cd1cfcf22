/// "power", "cost" and "price" of a scenario whose machines serve requests or work off a queue.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/power_spec.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

/// What the machines draw and cost, as far as the scenario says.
struct MachinePower {
  std::optional<PowerSpec> power;
  std::optional<double> usd_per_gpu_hour;  ///< what a cloud asks for a GPU
};

/// Whether "power" may say what the site allows.
enum class SiteLimit : bool { unsaid, said };

/// Reads them where they are, and takes the node's list price where no price is and all nodes are
/// of one kind. Throws InputError.
MachinePower read_machine_power(const JsonCursor& root, const PresetStore& presets,
                                const Cluster& cluster, SiteLimit limit,
                                std::vector<std::string>& assumptions);

/// For the schema; `sentence` is that of "power".
void describe_machine_power(const DeclaredMembers& member, std::string_view sentence,
                            SiteLimit limit);

}  // namespace lockstep
