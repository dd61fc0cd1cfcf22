/// "power", "cost" and "price" of a scenario whose machines serve requests or work off a queue.
#pragma once

#include <cstdint>
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

/// What "power" may say: what is around the machines, with what the site allows, with what cards
/// keep to and meters see.
enum class PowerKeys : std::uint8_t { site, limited_site, cards };

/// Reads them where they are, and takes the node's list price where no price is and all nodes are
/// of one kind. Throws InputError.
MachinePower read_machine_power(const JsonCursor& root, const PresetStore& presets,
                                const Cluster& cluster, PowerKeys keys,
                                std::vector<std::string>& assumptions);

/// For the schema; `sentence` is that of "power".
void describe_machine_power(const DeclaredMembers& member, std::string_view sentence,
                            PowerKeys keys);

}  // namespace lockstep
