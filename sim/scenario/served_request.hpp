/// A request as it is served: when it came, how long it is, and when its tokens came out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// What became of a request.
enum class ServedEnd : std::uint8_t {
  served,   ///< or not over yet
  refused,  ///< would not fit in an empty cache
  shed,     ///< found every replica busy
  gave_up,  ///< its user hung up while it waited
};
constexpr std::array<std::string_view, 4> kServedEndNames{"served", "refused", "shed", "gave_up"};

struct ServedRequest {
  RunTime arrival = 0;        ///< at the router; of closed-loop clients set when it is sent
  std::int32_t input = 1;     ///< tokens of the prompt
  std::int32_t output = 1;    ///< tokens of the answer
  std::int32_t replica = -1;  ///< of the pool that made the first token; below 0: turned away
  std::int32_t preempted = 0;
  std::int32_t prefix = -1;  ///< what of its prompt others may share, in the load's tree; none: < 0
  std::int32_t whole = -1;   ///< its prompt and answer there, where a later one begins with both
  std::int32_t next = -1;    ///< sent when this one has ended and its user has thought
  std::int32_t found = 0;    ///< tokens of the prompt that a replica held already
  std::int32_t loaded = 0;   ///< of these: from memory behind its GPUs
  std::int32_t population = 0;  ///< whose it is, where there are several
  std::int32_t adapter = -1;    ///< that it is answered with; below 0: the model alone
  ServedEnd became = ServedEnd::served;
  RunTime think = 0;       ///< of the user before this one, where it follows another
  RunTime scheduled = -1;  ///< first pass that worked on it began
  RunTime first = -1;      ///< its first token was there
  RunTime last = -1;       ///< its last one

  [[nodiscard]] bool served() const { return last >= 0; }
  [[nodiscard]] RunTime time_to_first() const { return first - arrival; }
  [[nodiscard]] RunTime end_to_end() const { return last - arrival; }
};

}  // namespace lockstep
