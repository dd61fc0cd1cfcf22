/// "power" and "cost" of a scenario.
#pragma once

#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/cluster_site.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/power_spec.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The facility of a scenario that names none, on a cluster whose preset names none.
constexpr std::string_view kDefaultFacility = "air_chiller";

// What the two objects may have; `scenario` is the file whose folder paths start from.
void declare_power(const DeclaredMembers& member, PowerSpec& out);
/// Those of its members that are about the site alone.
void declare_site_power(const DeclaredMembers& member, PowerSpec& out);
/// The members about the site, and what the site allows.
void declare_limited_site(const DeclaredMembers& member, PowerSpec& out);
void declare_cost(const DeclaredMembers& member, const std::string& scenario, CostSpec& out);

/// Reads both, each with its files relative to the folder of `file`; finished. What is left open is
/// the site's, or a default: `assumptions` says which. Throws InputError.
PowerSpec read_power(const JsonCursor& from, const PresetStore& presets, const ClusterSite& site,
                     std::vector<std::string>& assumptions);
/// Of the site alone.
PowerSpec read_site_power(const JsonCursor& from, const PresetStore& presets,
                          const ClusterSite& site, std::vector<std::string>& assumptions);
PowerSpec read_limited_site(const JsonCursor& from, const PresetStore& presets,
                            const ClusterSite& site, std::vector<std::string>& assumptions);
void read_cost(const JsonCursor& from, const std::string& file, CostSpec& out,
               std::vector<std::string>& assumptions);

}  // namespace lockstep
