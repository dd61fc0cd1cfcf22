/// The event queue: a monotone radix heap. Equal times leave in the order of pushing.
#pragma once

#include <cstdint>

#include "sim/core/clock.hpp"

namespace lockstep {
// CONTRACT (the implementer replaces this file, keeping these names):
//
// struct Event { StepTime at; std::uint32_t kind; std::uint32_t subject; };   // 16 bytes
// class EventQueue {
//   void push(StepTime at, std::uint32_t kind, std::uint32_t subject);  // at >= last popped time
//   bool empty() const;  std::size_t size() const;
//   StepTime next_time();        // requires !empty(); does not move the clock
//   Event pop();                 // requires !empty()
//   void clear();
// };
}  // namespace lockstep
