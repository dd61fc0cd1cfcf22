// The seed of random tests: fixed, or what LOCKSTEP_TEST_SEED says. Random tests CAPTURE it.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace lockstep::test {

inline std::uint64_t test_seed() {
  constexpr std::uint64_t kDefault = 20240607;
  const char* text = std::getenv("LOCKSTEP_TEST_SEED");
  return text == nullptr ? kDefault : std::strtoull(text, nullptr, 10);
}

}  // namespace lockstep::test
