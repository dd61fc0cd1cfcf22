#include "tools/calibrate/hang_guard.hpp"

#include <chrono>

namespace lockstep {
namespace {

/// Looking costs nothing that could be timed, and nobody minds a tenth of a second.
constexpr std::chrono::milliseconds kBetweenChecks{100};

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

HangGuard::HangGuard(std::function<void(const char*)> action)
    : action_(std::move(action)), thread_([this] { keep_watch(); }) {}

HangGuard::~HangGuard() {
  over_.store(true);
  thread_.join();
}

HangGuard::Watched::Watched(HangGuard& guard, const char* call, Seconds patience) : guard_(guard) {
  guard_.call_.store(call);
  guard_.deadline_.store(steady_seconds() + patience.base_units());
}

HangGuard::Watched::~Watched() {
  const std::scoped_lock lock(guard_.acting_);
  guard_.deadline_.store(kNever);
}

void HangGuard::keep_watch() {
  while (!over_.load()) {
    {
      const std::scoped_lock lock(acting_);
      if (steady_seconds() > deadline_.load()) {
        action_(call_.load());
        return;
      }
    }
    std::this_thread::sleep_for(kBetweenChecks);
  }
}

}  // namespace lockstep
