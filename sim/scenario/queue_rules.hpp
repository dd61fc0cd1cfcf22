/// Parts of a "queue" that say who may have how much and who comes first: qualities of service,
/// associations, factors of priority, advance reservations. Each function declares its member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

void declare_qos(const DeclaredMembers& member, QueueSpec& out);
void declare_accounts(const DeclaredMembers& member, QueueSpec& out);
void declare_priority_rules(const DeclaredMembers& member, PriorityRules& out);
void declare_reservations(const DeclaredMembers& member, QueueSpec& out);
void declare_breaks(const DeclaredMembers& member, QueueSpec& out);

/// Which nodes of the cluster a part of the scenario is about.
struct WrittenNodes {
  int first = -1, count = 0;
  std::string hosts;
};
void declare_nodes(const DeclaredMembers& member, WrittenNodes& out);
/// `next`: the first, where none is said. Throws InputError for nodes that the cluster lacks.
std::vector<int> nodes_of(const JsonCursor& at, const WrittenNodes& written, int next,
                          const Cluster& cluster);

/// "gres/gpu=16,node=2,cpu=64"; nothing for another text.
std::optional<TresAmount> tres_amount(std::string_view text);

/// The number of a quality of service; it is one of the scenario's. Throws InputError.
std::uint16_t qos_number(const JsonCursor& at, const std::string& name, const QueueSpec& spec);

}  // namespace lockstep
