#include "models/mamba.hpp"

#include "models/transformer.hpp"

namespace lockstep {

double mamba_matrix_parameters(const TransformerShape& m) {
  return m.hidden * (m.mamba.in() + m.mamba.inner());
}

double mamba_parameters(const TransformerShape& m) {
  const MambaShape& s = m.mamba;
  return mamba_matrix_parameters(m) + s.mixed() * (s.kernel + 1) + 3.0 * s.heads + s.inner();
}

double scan_flops(const MambaShape& s) {
  const double inside = s.chunk * (static_cast<double>(s.groups) * s.state + s.inner());
  return inside + 4.0 * s.inner() * s.state;
}

double scan_bytes(const MambaShape& s) {
  const double columns = 2 * (s.mixed() + 2 * s.inner());  // x, B and C; the gate; the result
  const double states = 3 * 4 * s.inner() * s.state / s.chunk;
  const double scores = 2 * 4.0 * s.chunk * s.groups;
  return columns + states + scores;
}

}  // namespace lockstep
