#include "models/spec/mamba.hpp"

namespace lockstep {

double scan_flops(const MambaShape& s) {
  if (s.first_generation()) return 9 * s.inner() * s.state;
  const double inside = s.chunk * (static_cast<double>(s.groups) * s.state + s.inner());
  return inside + 4.0 * s.inner() * s.state;
}

double scan_bytes(const MambaShape& s) {
  constexpr double kHalfWord = 2;
  // x, the step size, the gate, the result; B and C.
  if (s.first_generation()) return kHalfWord * (4 * s.inner() + 2.0 * s.groups * s.state);
  // x, B and C; gate; result
  const double columns = kHalfWord * (3 * s.inner() + 2.0 * s.groups * s.state);
  const double states = 3 * 4 * s.inner() * s.state / s.chunk;
  const double scores = 2 * 4.0 * s.chunk * s.groups;
  return columns + states + scores;
}

}  // namespace lockstep
