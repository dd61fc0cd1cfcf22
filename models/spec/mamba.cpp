#include "models/spec/mamba.hpp"

#include "models/spec/transformer.hpp"

namespace lockstep {

double mamba_matrix_parameters(const TransformerShape& m) {
  const MambaShape& s = m.mamba;
  return m.hidden * (s.in() + s.inner()) + s.inner() * (s.selected() + s.step_rank);
}

double mamba_parameters(const TransformerShape& m) {
  const MambaShape& s = m.mamba;
  // Decay, skip and step bias of each head, and Mamba-2's norm; Mamba-1 decays each state.
  const double small = s.first_generation() ? s.inner() * (s.state + 2) : 3.0 * s.heads + s.inner();
  return mamba_matrix_parameters(m) + s.mixed() * (s.kernel + 1) + small;
}

double scan_flops(const MambaShape& s) {
  if (s.first_generation()) return 9 * s.inner() * s.state;
  const double inside = s.chunk * (static_cast<double>(s.groups) * s.state + s.inner());
  return inside + 4.0 * s.inner() * s.state;
}

double scan_bytes(const MambaShape& s) {
  constexpr double kHalfWord = 2;
  // x, the step size, the gate, the result; B and C.
  if (s.first_generation()) return kHalfWord * (4 * s.inner() + 2.0 * s.groups * s.state);
  const double columns = kHalfWord * (s.mixed() + 2 * s.inner());  // x, B and C; gate; result
  const double states = 3 * 4 * s.inner() * s.state / s.chunk;
  const double scores = 2 * 4.0 * s.chunk * s.groups;
  return columns + states + scores;
}

}  // namespace lockstep
