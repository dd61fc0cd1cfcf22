/// What a request has behind it on its replica.
#pragma once

#include <cstdint>

namespace lockstep {

struct RequestState {
  std::int32_t generated = 0;  ///< tokens of the answer
  std::int32_t visit = 0;      ///< how often it joined or left: an older end is void
  std::int64_t joined = 0;     ///< step at which it began to run
  std::int32_t context = 0;    ///< tokens in its cache then
  std::int32_t promised = 0;   ///< blocks that it was let in with, without shared ones
  std::int32_t shared = 0;     ///< blocks of its prompt that are held for others too
  std::int32_t held = -1;      ///< the beginning that these are of
  std::int16_t rank = -1;      ///< of attention; told apart only where prompts wait for each other
  bool sent = false;           ///< to a replica, which has it or will
  bool waits = false;          ///< to be let in
  bool seen = false;           ///< then: the scheduler knows of it
  bool running = false;
  bool swapped = false;       ///< host memory keeps its keys and values
  bool cached = false;        ///< its prompt came from another pool, with its first token
  std::int32_t sending = -1;  ///< of its keys and values to another pool; below 0: none
};

}  // namespace lockstep
