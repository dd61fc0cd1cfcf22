#include "sim/cluster/reserved_nodes.hpp"

#include <algorithm>
#include <limits>

namespace lockstep {

ReservedNodes::ReservedNodes(const QueueSpec& spec) : spec_(&spec) {
  for (const AdvanceReservation& of : spec.reservations) {
    NodeSet nodes(spec.cluster.nodes);
    for (const int node : of.nodes) nodes.add(node);
    nodes_.push_back(std::move(nodes));
  }
}

RunTime ReservedNodes::next_change(RunTime now) const {
  RunTime out = std::numeric_limits<RunTime>::max();
  for (const AdvanceReservation& of : spec_->reservations) {
    for (const RunTime at : {of.announced, of.start, of.end}) {
      if (at > now) out = std::min(out, at);
    }
  }
  return out;
}

NodeSet ReservedNodes::open_to(const NodeSet* within, std::uint16_t reservation, RunTime start,
                               RunTime end, RunTime now) const {
  NodeSet out(spec_->cluster.nodes);
  if (reservation != 0) {
    const AdvanceReservation& own = of(reservation);
    const bool open = own.flex || (start >= own.start && start < own.end);
    if (!open || own.announced > now) return out;
    if (!own.flex) out = nodes_[reservation - std::size_t{1}];
  }
  if (reservation == 0 || of(reservation).flex) {
    for (int node = 0; node < spec_->cluster.nodes; ++node) out.add(node);
  }
  if (within != nullptr) out &= *within;
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    const AdvanceReservation& other = spec_->reservations[r];
    const bool meets = other.announced <= now && other.start < end && other.end > start;
    if (meets && r + 1 != reservation) out -= nodes_[r];
  }
  return out;
}

NodeSet ReservedNodes::reserved_at(RunTime now) const {
  NodeSet out(spec_->cluster.nodes);
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    const AdvanceReservation& of = spec_->reservations[r];
    if (of.announced <= now && of.start <= now && of.end > now) out |= nodes_[r];
  }
  return out;
}

RunTime ReservedNodes::stops_at(std::uint16_t reservation) const {
  if (reservation == 0 || of(reservation).flex) return std::numeric_limits<RunTime>::max();
  return of(reservation).end;
}

}  // namespace lockstep
