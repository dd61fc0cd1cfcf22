/// What lockstep-calibrate's own kernels take and do on the made-up card. Results are there where
/// the program looks at them.
#pragma once

#include <cstddef>

namespace lockstep::fake {

void register_kernel(const void* function, const char* name);

struct KernelCall {
  const void* function;
  std::size_t blocks;
  void** args;  ///< pointers to them
};
double seconds_of(const KernelCall& call);
void take_effect(const KernelCall& call);

}  // namespace lockstep::fake
