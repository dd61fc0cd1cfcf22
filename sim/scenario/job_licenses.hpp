/// Licences that jobs hold while they run: how many there are, and how many a job asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

using LicenseAmounts = std::vector<std::pair<std::string, int>>;

/// "matlab:2,ansys" as Slurm writes it in Licenses= and --licenses: names with how many of each, 1
/// where it is not said. A name that comes twice counts once for each. Nothing for another text,
/// such as "a|b", either of which would do.
std::optional<LicenseAmounts> license_amounts(std::string_view text);

/// "licenses" of a queue.
void declare_licenses(const DeclaredMembers& member, QueueSpec& out);

/// The number of a job's set (QueueSpec::license_sets), which is added where it is new; nothing
/// where a licence is not declared, or fewer of it are.
std::optional<std::uint16_t> license_set(std::string_view text, QueueSpec& out);

/// What license_set() takes, for messages.
std::string allowed_licenses(const QueueSpec& spec);

}  // namespace lockstep
