#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

#include "tools/lockstep/cli.hpp"

namespace {

/// Searches and sweeps simulate thousands of steps one after the other, each in megabytes that the
/// next one needs again: given back to the system between them they cost half of the time. And an
/// event of a large network reaches into links all over it, so that with pages of 4 KiB a fifth of
/// the time goes into finding them: the heap's first part asks for huge ones, which are taken as it
/// fills.
void prepare_heap() {
#ifdef __GLIBC__
  constexpr int kLargest = 32 << 20;         // bytes; malloc takes no more
  constexpr int kKept = 512 << 20;           // bytes
  constexpr int kHuge = 256 << 20;           // bytes, of addresses at first
  constexpr int kPad = 128 << 10;            // bytes, malloc's own
  constexpr std::uintptr_t kPage = 2 << 20;  // bytes
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_TOP_PAD, kHuge);
  void* const begin = std::malloc(kLargest / 2);
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0)) / kPage * kPage;
  // Elsewhere: a sanitizer's memory, or a heap that could not grow.
  const bool in_heap = begin != nullptr && first < end && end - first <= std::uintptr_t{2} * kHuge;
  const std::uintptr_t before = first - reinterpret_cast<std::uintptr_t>(begin);
  if (in_heap) madvise(static_cast<char*>(begin) + before, end - first, MADV_HUGEPAGE);
  std::free(begin);
  mallopt(M_TOP_PAD, kPad);
#endif
}

}  // namespace

int main(int argc, char** argv) try {
  prepare_heap();
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
