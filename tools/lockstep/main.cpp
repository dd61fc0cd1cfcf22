#include <cstdio>
#include <iostream>
#include <new>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "tools/lockstep/cli.hpp"

namespace {

/// Searches and sweeps simulate thousands of steps one after the other, each in megabytes that the
/// next one needs again: given back to the system between them they cost half of the time.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargest = 32 << 20;  // bytes; malloc takes no more
  constexpr int kKept = 512 << 20;    // bytes
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

}  // namespace

int main(int argc, char** argv) try {
  keep_freed_memory();
  std::ios::sync_with_stdio(false);
  lockstep::Console console{.out = std::cout,
                            .err = std::cerr,
                            .style = lockstep::style_of_terminal(::isatty(STDOUT_FILENO) == 1),
                            .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                            .err_is_log = ::isatty(STDERR_FILENO) != 1};
  const std::vector<std::string> args(argv + 1, argv + argc);
  return static_cast<int>(lockstep::run_cli(args, console));
} catch (const std::bad_alloc&) {
  // The streams may be what there was no memory for.
  std::fputs("lockstep: found no memory to begin with; allowed: a machine with more\n", stderr);
  return static_cast<int>(lockstep::Exit::internal_error);
}
