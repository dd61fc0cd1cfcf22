#include "tools/calibrate/hang_guard.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <string>
#include <thread>

using namespace lockstep;

TEST_CASE("hang guard: a call that does not come back is named, one that does is not") {
  std::atomic<const char*> hung = nullptr;
  HangGuard guard([&](const char* call) { hung.store(call); });
  {
    const HangGuard::Watched watched(guard, "quick", Seconds{3600});
  }
  CHECK(hung.load() == nullptr);
  const HangGuard::Watched watched(guard, "slow", Seconds{0});
  while (hung.load() == nullptr) std::this_thread::yield();
  CHECK(std::string(hung.load()) == "slow");
}
