#include "tools/console/interrupt.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace lockstep {
namespace {

// Read by other threads than the one that the signal interrupts, so not a sig_atomic_t.
std::atomic<bool> interrupt_seen = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may write nothing else");

extern "C" void lockstep_note_interrupt(int) { interrupt_seen.store(true); }

/// What the guards that live share. The first of them sets the handler and the last one puts back
/// what was there: guards of several threads end in any order.
struct SharedHandler {
  std::mutex mutex;
  int guards = 0;
  std::vector<std::pair<int, struct sigaction>> before{};
};
SharedHandler& shared_handler() {
  static SharedHandler handler;
  return handler;
}

}  // namespace

InterruptGuard::InterruptGuard(Second second, const std::vector<int>& signals) {
  SharedHandler& handler = shared_handler();
  const std::scoped_lock lock(handler.mutex);
  if (handler.guards++ > 0) return;
  interrupt_seen.store(false);
  struct sigaction action{};
  action.sa_handler = lockstep_note_interrupt;
  // Once: the second one is the default action again.
  if (second == Second::ends_program) action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : signals) {
    struct sigaction before{};
    sigaction(signal, &action, &before);
    handler.before.emplace_back(signal, before);
  }
}
InterruptGuard::~InterruptGuard() {
  SharedHandler& handler = shared_handler();
  const std::scoped_lock lock(handler.mutex);
  if (--handler.guards > 0) return;
  for (const auto& [signal, before] : handler.before) sigaction(signal, &before, nullptr);
  handler.before.clear();
}

bool InterruptGuard::interrupted() { return interrupt_seen.load(); }

}  // namespace lockstep
