/// Flows that share links by max-min fairness and advance in fluid time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/units.hpp"
#include "sim/core/clock.hpp"

namespace lockstep {
// CONTRACT (the implementer replaces this file, keeping these names; max_min.hpp beside it holds the
// solver alone):
//
// using LinkIndex = std::uint32_t;  using FlowIndex = std::uint32_t;
// struct FlowEdge { LinkIndex link; double coefficient; };  // bytes over the link per byte of progress
//
// class FlowNetwork {
//   LinkIndex add_link(BytesPerSecond capacity);              // capacity > 0, finite
//   /// A flow is a channel that can be started again and again, one message at a time.
//   /// Repeated links of `edges` are added up. At least one edge, coefficients > 0.
//   FlowIndex add_flow(std::span<const FlowEdge> edges);
//   void start(FlowIndex flow, Bytes amount, StepTime now);   // requires !active(flow); amount > 0
//   bool active(FlowIndex) const;
//   /// Solves for all starts and ends of this instant. Call once per instant, after all of them.
//   void settle(StepTime now);
//   bool idle() const;
//   StepTime next_end() const;                                // requires !idle() and settled
//   /// Ends every flow due at `now`, in flow order, and appends them to `ended`.
//   void collect_ended(StepTime now, std::vector<FlowIndex>& ended);
//   BytesPerSecond rate(FlowIndex) const;                     // 0 when not active
//   BytesPerSecond load(LinkIndex) const;                     // what active flows take of it now
//   Bytes carried(LinkIndex) const;                           // since construction; for conservation tests
// };
//
// Fast path that must exist: a flow none of whose links is used by another active flow starts and
// ends in O(edges) without touching the solver's heap.
}  // namespace lockstep
