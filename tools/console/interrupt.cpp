#include "tools/console/interrupt.hpp"

namespace lockstep {
namespace {

volatile std::sig_atomic_t interrupts = 0;

extern "C" void lockstep_note_interrupt(int) { interrupts = 1; }

}  // namespace

InterruptGuard::InterruptGuard(const std::vector<int>& signals) {
  interrupts = 0;
  struct sigaction action{};
  action.sa_handler = lockstep_note_interrupt;
  // Once: the second one is the default action again.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : signals) {
    struct sigaction before{};
    sigaction(signal, &action, &before);
    before_.emplace_back(signal, before);
  }
}
InterruptGuard::~InterruptGuard() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

bool InterruptGuard::interrupted() { return interrupts != 0; }

}  // namespace lockstep
