#include "tools/console/interrupt.hpp"

namespace lockstep {
namespace {

volatile std::sig_atomic_t interrupts = 0;

extern "C" void lockstep_note_interrupt(int) { interrupts = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupts = 0;
  struct sigaction action{};
  action.sa_handler = lockstep_note_interrupt;
  // Once: the second one is the default action again.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_);
}
InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptGuard::interrupted() { return interrupts != 0; }

}  // namespace lockstep
