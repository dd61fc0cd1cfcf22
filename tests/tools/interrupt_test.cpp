// Ctrl-C while commands of several threads are at work.
#include "tools/console/interrupt.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <memory>

namespace lockstep {
namespace {

using Second = InterruptGuard::Second;

extern "C" void note_nothing(int) {}

/// While it lives the handler of SIGINT is another one, as in a program that has its own.
class OtherHandler {
 public:
  OtherHandler() : before_(std::signal(SIGINT, note_nothing)) {}
  ~OtherHandler() { (void)std::signal(SIGINT, before_); }
  OtherHandler(const OtherHandler&) = delete;
  OtherHandler& operator=(const OtherHandler&) = delete;

 private:
  void (*before_)(int);
};

bool is_in_force() {
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  return now.sa_handler == note_nothing;
}

}  // namespace

TEST_CASE("interrupt: guards end in any order, and the last one puts back what was there") {
  const OtherHandler other;
  auto first = std::make_unique<InterruptGuard>(), second = std::make_unique<InterruptGuard>();
  first.reset();
  CHECK_FALSE(is_in_force());
  (void)std::raise(SIGINT);
  CHECK(InterruptGuard::interrupted());
  second.reset();
  CHECK(is_in_force());
  const InterruptGuard next;
  CHECK_FALSE(InterruptGuard::interrupted());
}

TEST_CASE("interrupt: a program that outlives its commands outlives a second Ctrl-C") {
  const OtherHandler other;
  const InterruptGuard guard(Second::is_noted), inner;
  (void)std::raise(SIGINT);
  (void)std::raise(SIGINT);
  CHECK(InterruptGuard::interrupted());
}

}  // namespace lockstep
